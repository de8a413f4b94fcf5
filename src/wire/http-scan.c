/*
 * The shape of a head (RFC 9112 section 2.1), before anything in it is understood:
 *
 *	first-line CR LF *( field-line CR LF ) CR LF
 *
 * A machine that takes each byte once. It also checks how the first line begins, so that another
 * protocol on this port is refused with its first bytes and not after 64 KiB.
 */
#include <errno.h>
#include <string.h>

#include "wire/http-internal.h"

enum scan_state {
	SCAN_BEGIN,  /* method, or "HTTP/" of a response */
	SCAN_TEXT,   /* inside a line */
	SCAN_CR,     /* behind the CR of a line */
	SCAN_LINE,   /* at the first byte of a field line */
	SCAN_END_CR, /* behind the CR of the empty line */
	SCAN_DONE,
};

bool aw_http_is_token_byte(unsigned char c)
{
	if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
		return true;
	return c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL;
}

bool aw_http_is_control(unsigned char c)
{
	return (c < 0x20 && c != '\t') || c == 0x7f;
}

bool aw_http_is_token(struct aw_str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!aw_http_is_token_byte((unsigned char)s.ptr[i]))
			return false;
	return s.len > 0;
}

static enum aw_http_flaw control_flaw(unsigned char c)
{
	return c == '\n' || c == '\r' ? AW_HTTP_FLAW_LINE_END : AW_HTTP_FLAW_CONTROL;
}

static enum aw_http_flaw scan_method(struct aw_http_scan *scan, unsigned char c)
{
	if (c == ' ' && scan->method_len > 0) {
		scan->state = SCAN_TEXT;
		return AW_HTTP_FLAW_NONE;
	}
	if (!aw_http_is_token_byte(c) || scan->method_len == AW_HTTP_METHOD_MAX)
		return AW_HTTP_FLAW_METHOD;
	scan->method_len++;
	return AW_HTTP_FLAW_NONE;
}

static enum aw_http_flaw scan_protocol(struct aw_http_scan *scan, unsigned char c)
{
	static const char protocol[] = "HTTP/";

	if (c != (unsigned char)protocol[scan->method_len])
		return AW_HTTP_FLAW_STATUS_LINE;
	if (++scan->method_len == sizeof(protocol) - 1)
		scan->state = SCAN_TEXT;
	return AW_HTTP_FLAW_NONE;
}

static enum aw_http_flaw scan_text(struct aw_http_scan *scan, unsigned char c)
{
	if (c == '\r')
		scan->state = SCAN_CR;
	else if (aw_http_is_control(c))
		return control_flaw(c);
	return AW_HTTP_FLAW_NONE;
}

static enum aw_http_flaw scan_line_feed(struct aw_http_scan *scan, unsigned char c,
					enum scan_state next)
{
	if (c != '\n')
		return AW_HTTP_FLAW_LINE_END;
	scan->state = (uint8_t)next;
	scan->lines++;
	return AW_HTTP_FLAW_NONE;
}

static enum aw_http_flaw scan_line_start(struct aw_http_scan *scan, unsigned char c)
{
	if (c == '\r') {
		scan->state = SCAN_END_CR;
		return AW_HTTP_FLAW_NONE;
	}
	if (c == ' ' || c == '\t')
		return AW_HTTP_FLAW_FOLDED;
	if (aw_http_is_control(c))
		return control_flaw(c);
	if (scan->lines > AW_HTTP_FIELDS_MAX)
		return AW_HTTP_FLAW_FIELD_COUNT;
	scan->state = SCAN_TEXT;
	return AW_HTTP_FLAW_NONE;
}

static enum aw_http_flaw scan_byte(struct aw_http_scan *scan, unsigned char c, bool is_response)
{
	switch ((enum scan_state)scan->state) {
	case SCAN_BEGIN:
		return is_response ? scan_protocol(scan, c) : scan_method(scan, c);
	case SCAN_TEXT:
		return scan_text(scan, c);
	case SCAN_CR:
		return scan_line_feed(scan, c, SCAN_LINE);
	case SCAN_LINE:
		return scan_line_start(scan, c);
	case SCAN_END_CR:
		return scan_line_feed(scan, c, SCAN_DONE);
	case SCAN_DONE:
		break;
	}
	return AW_HTTP_FLAW_LINE_END;
}

ssize_t aw_http_scan_head(struct aw_http_scan *scan, struct aw_str bytes, bool is_response,
			  enum aw_http_flaw *ret_flaw)
{
	size_t end = bytes.len < AW_HTTP_HEAD_MAX ? bytes.len : AW_HTTP_HEAD_MAX;
	enum aw_http_flaw flaw;

	/* The offset stays on a byte that was refused: asked again, the answer is the same. */
	while (scan->offset < end && scan->state != SCAN_DONE) {
		flaw = scan_byte(scan, (unsigned char)bytes.ptr[scan->offset], is_response);
		if (flaw != AW_HTTP_FLAW_NONE) {
			*ret_flaw = flaw;
			return -EBADMSG;
		}
		scan->offset++;
	}
	if (scan->state == SCAN_DONE)
		return (ssize_t)scan->offset;
	if (scan->offset < AW_HTTP_HEAD_MAX)
		return -EAGAIN;
	*ret_flaw = AW_HTTP_FLAW_HEAD_SIZE;
	return -EBADMSG;
}
