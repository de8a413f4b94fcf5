/*
 * chunked-body (RFC 9112 section 7.1):
 *
 *	*( 1*HEXDIG [ ; extension ] CR LF  data CR LF )  1*"0" [ ; extension ] CR LF
 *	*( field-line CR LF )  CR LF
 *
 * Lines go byte by byte, data in one step. A bare LF in a size or extension is what smuggling of
 * chunked bodies is made of: it is refused everywhere.
 */
#include "wire/http-chunked.h"

#include <errno.h>

#include "wire/http-internal.h"

#define SIZE_DIGITS_MAX 16

enum chunk_state {
	CHUNK_SIZE,      /* in the digits */
	CHUNK_EXTENSION, /* behind the first ';' */
	CHUNK_SIZE_CR,   /* behind the CR of the size line */
	CHUNK_DATA,
	CHUNK_DATA_CR, /* the CR behind the data is due */
	CHUNK_DATA_LF, /* and its LF */
	TRAILER_START, /* at the first byte of a trailer line */
	TRAILER_NAME,
	TRAILER_VALUE,
	TRAILER_CR,     /* behind the CR of a trailer line */
	TRAILER_END_CR, /* behind the CR of the empty line */
	CHUNK_DONE,
};

static int hex_value(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static void enter(struct aw_http_chunked *chunked, enum chunk_state state)
{
	chunked->state = (uint8_t)state;
}

/* Advance over a byte that can only be @wanted. */
static enum aw_http_flaw expect(struct aw_http_chunked *chunked, unsigned char c, char wanted,
				enum chunk_state next, enum aw_http_flaw flaw)
{
	if (c != (unsigned char)wanted)
		return flaw;
	enter(chunked, next);
	return AW_HTTP_FLAW_NONE;
}

/* Blanks in front of the ';' or the end are legal, but strict readers refuse them, and so do we. */
static enum aw_http_flaw step_behind_size(struct aw_http_chunked *chunked, unsigned char c)
{
	if (chunked->line == 0 || (c != '\r' && c != ';'))
		return AW_HTTP_FLAW_CHUNK_SIZE;
	enter(chunked, c == '\r' ? CHUNK_SIZE_CR : CHUNK_EXTENSION);
	return AW_HTTP_FLAW_NONE;
}

static enum aw_http_flaw step_size(struct aw_http_chunked *chunked, unsigned char c)
{
	int digit = hex_value(c);

	if (digit < 0)
		return step_behind_size(chunked, c);
	if (++chunked->line > SIZE_DIGITS_MAX)
		return AW_HTTP_FLAW_CHUNK_SIZE;
	chunked->left = chunked->left << 4 | (unsigned)digit;
	return AW_HTTP_FLAW_NONE;
}

static enum aw_http_flaw step_extension(struct aw_http_chunked *chunked, unsigned char c)
{
	if (c == '\r')
		enter(chunked, CHUNK_SIZE_CR);
	else if (aw_http_is_control(c) || ++chunked->line > AW_HTTP_CHUNK_LINE_MAX)
		return AW_HTTP_FLAW_CHUNK_EXTENSION;
	return AW_HTTP_FLAW_NONE;
}

static enum aw_http_flaw step_size_lf(struct aw_http_chunked *chunked, unsigned char c)
{
	if (c != '\n')
		return AW_HTTP_FLAW_CHUNK_SIZE;
	if (chunked->left > INT64_MAX - chunked->content)
		return AW_HTTP_FLAW_CHUNK_SIZE;
	chunked->content += chunked->left;
	chunked->line = 0;
	enter(chunked, chunked->left > 0 ? CHUNK_DATA : TRAILER_START);
	return AW_HTTP_FLAW_NONE;
}

static enum aw_http_flaw step_trailer_start(struct aw_http_chunked *chunked, unsigned char c)
{
	if (c == '\r') {
		enter(chunked, TRAILER_END_CR);
		return AW_HTTP_FLAW_NONE;
	}
	enter(chunked, TRAILER_NAME);
	return aw_http_is_token_byte(c) ? AW_HTTP_FLAW_NONE : AW_HTTP_FLAW_TRAILER;
}

static enum aw_http_flaw step_trailer_name(struct aw_http_chunked *chunked, unsigned char c)
{
	if (c == ':') {
		enter(chunked, TRAILER_VALUE);
		return AW_HTTP_FLAW_NONE;
	}
	return aw_http_is_token_byte(c) ? AW_HTTP_FLAW_NONE : AW_HTTP_FLAW_TRAILER;
}

static enum aw_http_flaw step_trailer_value(struct aw_http_chunked *chunked, unsigned char c)
{
	if (c == '\r')
		enter(chunked, TRAILER_CR);
	else if (aw_http_is_control(c))
		return AW_HTTP_FLAW_TRAILER;
	return AW_HTTP_FLAW_NONE;
}

static enum aw_http_flaw step_trailer(struct aw_http_chunked *chunked, unsigned char c)
{
	if (++chunked->line > AW_HTTP_TRAILERS_MAX)
		return AW_HTTP_FLAW_TRAILER;
	switch ((enum chunk_state)chunked->state) {
	case TRAILER_START:
		return step_trailer_start(chunked, c);
	case TRAILER_NAME:
		return step_trailer_name(chunked, c);
	case TRAILER_VALUE:
		return step_trailer_value(chunked, c);
	case TRAILER_CR:
		return expect(chunked, c, '\n', TRAILER_START, AW_HTTP_FLAW_TRAILER);
	case TRAILER_END_CR:
		return expect(chunked, c, '\n', CHUNK_DONE, AW_HTTP_FLAW_TRAILER);
	case CHUNK_SIZE:
	case CHUNK_EXTENSION:
	case CHUNK_SIZE_CR:
	case CHUNK_DATA:
	case CHUNK_DATA_CR:
	case CHUNK_DATA_LF:
	case CHUNK_DONE:
		break;
	}
	return AW_HTTP_FLAW_TRAILER;
}

static enum aw_http_flaw step(struct aw_http_chunked *chunked, unsigned char c)
{
	switch ((enum chunk_state)chunked->state) {
	case CHUNK_SIZE:
		return step_size(chunked, c);
	case CHUNK_EXTENSION:
		return step_extension(chunked, c);
	case CHUNK_SIZE_CR:
		return step_size_lf(chunked, c);
	case CHUNK_DATA_CR:
		return expect(chunked, c, '\r', CHUNK_DATA_LF, AW_HTTP_FLAW_CHUNK_END);
	case CHUNK_DATA_LF:
		return expect(chunked, c, '\n', CHUNK_SIZE, AW_HTTP_FLAW_CHUNK_END);
	case CHUNK_DATA:
	case CHUNK_DONE:
	case TRAILER_START:
	case TRAILER_NAME:
	case TRAILER_VALUE:
	case TRAILER_CR:
	case TRAILER_END_CR:
		break;
	}
	return step_trailer(chunked, c);
}

static size_t take_data(struct aw_http_chunked *chunked, size_t available)
{
	size_t n = available;

	if (n >= chunked->left) {
		n = (size_t)chunked->left;
		enter(chunked, CHUNK_DATA_CR);
	}
	chunked->left -= n;
	return n;
}

ssize_t aw_http_chunked_feed(struct aw_http_chunked *chunked, struct aw_str bytes,
			     enum aw_http_flaw *ret_flaw)
{
	size_t taken = 0;

	if (chunked->flaw == AW_HTTP_FLAW_NONE)
		while (taken < bytes.len && chunked->state != CHUNK_DONE) {
			if (chunked->state == CHUNK_DATA) {
				taken += take_data(chunked, bytes.len - taken);
				continue;
			}
			chunked->flaw = (uint8_t)step(chunked, (unsigned char)bytes.ptr[taken]);
			if (chunked->flaw != AW_HTTP_FLAW_NONE)
				break;
			taken++;
		}
	if (chunked->flaw == AW_HTTP_FLAW_NONE)
		return (ssize_t)taken;
	*ret_flaw = (enum aw_http_flaw)chunked->flaw;
	return -EBADMSG;
}

bool aw_http_chunked_is_done(const struct aw_http_chunked *chunked)
{
	return chunked->state == CHUNK_DONE;
}
