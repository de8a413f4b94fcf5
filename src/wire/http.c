#include "wire/http.h"

#include <string.h>

#include "base/own.h"
#include "wire/http-internal.h"

static const struct {
	const char *text;
	unsigned status;
} flaws[AW_HTTP_FLAW_COUNT] = {
	[AW_HTTP_FLAW_NONE] = { "nothing is wrong", 200 },
	[AW_HTTP_FLAW_HEAD_SIZE] = { "the head is too large", 431 },
	[AW_HTTP_FLAW_FIELD_COUNT] = { "there are too many header fields", 431 },
	[AW_HTTP_FLAW_LINE_END] = { "a line does not end in CR LF", 400 },
	[AW_HTTP_FLAW_CONTROL] = { "a control byte is in the head", 400 },
	[AW_HTTP_FLAW_METHOD] = { "the method is not a short token", 400 },
	[AW_HTTP_FLAW_TARGET] = { "the request target is malformed", 400 },
	[AW_HTTP_FLAW_SCHEME] = { "the URL is not http:// (https goes through CONNECT)", 400 },
	[AW_HTTP_FLAW_AUTHORITY] = { "host or port of the target is malformed", 400 },
	[AW_HTTP_FLAW_VERSION] = { "the version is neither HTTP/1.0 nor HTTP/1.1", 505 },
	[AW_HTTP_FLAW_STATUS_LINE] = { "the status line is malformed", 400 },
	[AW_HTTP_FLAW_FOLDED] = { "a header line begins with a blank", 400 },
	[AW_HTTP_FLAW_FIELD_NAME] = { "a header field name is malformed", 400 },
	[AW_HTTP_FLAW_SPACE_BEFORE_COLON] = { "a blank stands before the colon of a header", 400 },
	[AW_HTTP_FLAW_HOST_MISSING] = { "there is no Host", 400 },
	[AW_HTTP_FLAW_HOST_TWICE] = { "there are two Host fields", 400 },
	[AW_HTTP_FLAW_HOST] = { "Host is malformed", 400 },
	[AW_HTTP_FLAW_LENGTH_TWICE] = { "there are two Content-Length fields", 400 },
	[AW_HTTP_FLAW_LENGTH] = { "Content-Length is malformed or too large", 400 },
	[AW_HTTP_FLAW_LENGTH_AND_CODING] = { "Content-Length and Transfer-Encoding are both there",
					     400 },
	[AW_HTTP_FLAW_CODING] = { "Transfer-Encoding is not plain chunked, or not in HTTP/1.1",
				  501 },
	[AW_HTTP_FLAW_CONNECTION] = { "Connection is malformed or names what it must not", 400 },
	[AW_HTTP_FLAW_CONNECT_BODY] = { "CONNECT has content", 400 },
	[AW_HTTP_FLAW_CHUNK_SIZE] = { "a chunk size is malformed or too large", 400 },
	[AW_HTTP_FLAW_CHUNK_EXTENSION] = { "a chunk extension is malformed or too long", 400 },
	[AW_HTTP_FLAW_CHUNK_END] = { "a chunk does not end in CR LF", 400 },
	[AW_HTTP_FLAW_TRAILER] = { "a trailer is malformed or too long", 400 },
};

const char *aw_http_flaw_text(enum aw_http_flaw flaw)
{
	return (size_t)flaw < AW_ARRAY_LEN(flaws) ? flaws[flaw].text : "unknown";
}

unsigned aw_http_flaw_status(enum aw_http_flaw flaw)
{
	return (size_t)flaw < AW_ARRAY_LEN(flaws) ? flaws[flaw].status : 400;
}

bool aw_http_token_is(struct aw_str token, const char *text)
{
	return aw_host_is_same(token, aw_str_from(text));
}

bool aw_http_list_has(struct aw_str list, const char *text)
{
	struct aw_str part;

	while (aw_str_next(&list, ',', &part))
		if (aw_http_token_is(aw_str_trim(part), text))
			return true;
	return false;
}

bool aw_http_line_next(struct aw_str *rest, struct aw_str *ret_line)
{
	const char *lf = rest->len > 0 ? memchr(rest->ptr, '\n', rest->len) : NULL;
	size_t len;

	if (lf == NULL)
		return false;
	len = (size_t)(lf - rest->ptr);
	*ret_line = (struct aw_str){ rest->ptr, len > 0 ? len - 1 : 0 };
	rest->ptr += len + 1;
	rest->len -= len + 1;
	return true;
}

bool aw_http_field_next(struct aw_str *rest, struct aw_str *ret_name, struct aw_str *ret_value)
{
	struct aw_str line;
	const char *colon;
	size_t name_len;

	if (!aw_http_line_next(rest, &line) || line.len == 0)
		return false;
	colon = memchr(line.ptr, ':', line.len);
	name_len = colon != NULL ? (size_t)(colon - line.ptr) : line.len;
	*ret_name = (struct aw_str){ line.ptr, name_len };
	if (colon == NULL)
		*ret_value = (struct aw_str){ line.ptr + name_len, 0 };
	else
		*ret_value = aw_str_trim((struct aw_str){ colon + 1, line.len - name_len - 1 });
	return true;
}
