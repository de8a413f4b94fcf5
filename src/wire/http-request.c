/*
 * Request line (RFC 9112 section 3):  method SP request-target SP HTTP-version
 * and the four forms of its target:   /path?query · http://host:port/path · host:port · *
 */
#include <errno.h>
#include <string.h>

#include "wire/http-internal.h"

#define DEFAULT_PORT 80

/*
 * Printable ASCII without '#'. More than a URL may hold, because clients send "|", quotes and braces
 * and servers take them; a fragment never travels, and what is above ASCII reads differently by charset.
 */
static bool is_target_clean(struct aw_str target)
{
	for (size_t i = 0; i < target.len; i++) {
		unsigned char c = (unsigned char)target.ptr[i];

		if (c <= 0x20 || c >= 0x7f || c == '#')
			return false;
	}
	return target.len > 0;
}

static enum aw_http_flaw read_connect(struct aw_http_request *request)
{
	request->form = AW_HTTP_FORM_AUTHORITY;
	request->path = (struct aw_str){ request->target.ptr, 0 };
	if (aw_hostport_parse(request->target, 0, &request->authority) < 0)
		return AW_HTTP_FLAW_AUTHORITY;
	return AW_HTTP_FLAW_NONE;
}

static bool is_scheme(struct aw_str s)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		      (i > 0 && c >= '0' && c <= '9')))
			return false;
	}
	return s.len > 0;
}

/* @target is clean and does not begin with '/'. */
static enum aw_http_flaw read_absolute(struct aw_http_request *request)
{
	struct aw_str target = request->target, scheme, authority;
	const char *mark = memmem(target.ptr, target.len, "://", 3);
	size_t i;

	if (mark == NULL)
		return AW_HTTP_FLAW_TARGET;
	scheme = (struct aw_str){ target.ptr, (size_t)(mark - target.ptr) };
	if (!is_scheme(scheme))
		return AW_HTTP_FLAW_TARGET;
	if (!aw_http_token_is(scheme, "http"))
		return AW_HTTP_FLAW_SCHEME;
	for (i = scheme.len + 3; i < target.len; i++)
		if (target.ptr[i] == '/' || target.ptr[i] == '?')
			break;
	authority = (struct aw_str){ mark + 3, i - scheme.len - 3 };
	request->form = AW_HTTP_FORM_ABSOLUTE;
	request->path = (struct aw_str){ target.ptr + i, target.len - i };
	if (aw_hostport_parse(authority, DEFAULT_PORT, &request->authority) < 0)
		return AW_HTTP_FLAW_AUTHORITY;
	return AW_HTTP_FLAW_NONE;
}

static enum aw_http_flaw read_target(struct aw_http_request *request)
{
	if (!is_target_clean(request->target))
		return AW_HTTP_FLAW_TARGET;
	if (aw_str_is(request->method, "CONNECT"))
		return read_connect(request);
	request->path = request->target;
	if (request->target.ptr[0] == '/') {
		request->form = AW_HTTP_FORM_ORIGIN;
		return AW_HTTP_FLAW_NONE;
	}
	if (!aw_str_is(request->target, "*"))
		return read_absolute(request);
	request->form = AW_HTTP_FORM_ASTERISK;
	return aw_str_is(request->method, "OPTIONS") ? AW_HTTP_FLAW_NONE : AW_HTTP_FLAW_TARGET;
}

static enum aw_http_flaw read_request_line(struct aw_http_request *request, struct aw_str line)
{
	/* The scan has seen the method's blank, hence the first split always succeeds. */
	(void)aw_str_next(&line, ' ', &request->method);
	if (!aw_str_next(&line, ' ', &request->target))
		return AW_HTTP_FLAW_TARGET;
	if (line.ptr == NULL)
		return AW_HTTP_FLAW_VERSION;
	if (line.len > 0 && memchr(line.ptr, ' ', line.len) != NULL)
		return AW_HTTP_FLAW_TARGET;
	if (!aw_http_version_parse(line, &request->minor))
		return AW_HTTP_FLAW_VERSION;
	return read_target(request);
}

/* Host is checked in every form: a server behind us may look at it first. */
static enum aw_http_flaw apply_host(struct aw_http_request *request,
				    const struct aw_http_facts *facts)
{
	struct aw_hostport host;

	if (!facts->has_host)
		return request->minor == 0 ? AW_HTTP_FLAW_NONE : AW_HTTP_FLAW_HOST_MISSING;
	if (aw_hostport_parse(facts->host, DEFAULT_PORT, &host) < 0)
		return AW_HTTP_FLAW_HOST;
	request->host = facts->host;
	if (request->form == AW_HTTP_FORM_ORIGIN || request->form == AW_HTTP_FORM_ASTERISK)
		request->authority = host;
	return AW_HTTP_FLAW_NONE;
}

static enum aw_http_flaw apply_body(struct aw_http_request *request,
				    const struct aw_http_facts *facts)
{
	request->body = AW_HTTP_BODY_NONE;
	request->content_length = facts->content_length;
	if (facts->has_coding)
		request->body = AW_HTTP_BODY_CHUNKED;
	else if (facts->content_length > 0)
		request->body = AW_HTTP_BODY_LENGTH;
	/* HTTP/1.0 knows no codings: whoever reads it so sees no body at all (RFC 9112 6.1). */
	if (facts->has_coding && request->minor == 0)
		return AW_HTTP_FLAW_CODING;
	if (request->form == AW_HTTP_FORM_AUTHORITY && request->body != AW_HTTP_BODY_NONE)
		return AW_HTTP_FLAW_CONNECT_BODY;
	return AW_HTTP_FLAW_NONE;
}

static enum aw_http_flaw read_head(struct aw_http_request *request, struct aw_str head)
{
	struct aw_http_facts facts = { .is_response = false };
	struct aw_str line;
	enum aw_http_flaw flaw;

	(void)aw_http_line_next(&head, &line);
	flaw = read_request_line(request, line);
	if (flaw != AW_HTTP_FLAW_NONE)
		return flaw;
	request->fields = head;
	flaw = aw_http_facts_read(head, &facts);
	if (flaw == AW_HTTP_FLAW_NONE)
		flaw = apply_host(request, &facts);
	if (flaw == AW_HTTP_FLAW_NONE)
		flaw = apply_body(request, &facts);
	request->is_kept = aw_http_facts_keep(&facts, request->minor);
	request->is_websocket = facts.is_websocket && facts.is_upgrade && request->minor == 1 &&
				request->body == AW_HTTP_BODY_NONE &&
				aw_str_is(request->method, "GET");
	request->is_continue_wanted = facts.is_continue_wanted && request->minor == 1;
	return flaw;
}

int aw_http_request_parse(struct aw_http_scan *scan, struct aw_str bytes,
			  struct aw_http_request *ret, enum aw_http_flaw *ret_flaw)
{
	struct aw_http_request request = { 0 };
	ssize_t len = aw_http_scan_head(scan, bytes, false, ret_flaw);

	if (len < 0)
		return (int)len;
	request.len = (size_t)len;
	*ret_flaw = read_head(&request, (struct aw_str){ bytes.ptr, request.len });
	if (*ret_flaw != AW_HTTP_FLAW_NONE)
		return -EBADMSG;
	*ret = request;
	return (int)len;
}
