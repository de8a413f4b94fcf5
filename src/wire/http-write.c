#include "wire/http-write.h"

#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "wire/http-internal.h"

#define DEFAULT_PORT 80
#define SWITCHING_PROTOCOLS 101

/* Fields for one hop alone, and those that we write ourselves. */
static const char *const dropped_in_requests[] = {
	"host", "connection", "keep-alive",     "proxy-connection", "proxy-authorization",
	"te",   "upgrade",    "http2-settings",
};
static const char *const dropped_in_responses[] = {
	"connection", "keep-alive", "proxy-connection", "proxy-authenticate", "upgrade",
};

static bool is_among(struct aw_str name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (aw_http_token_is(name, names[i]))
			return true;
	return false;
}

/* The fields of a message, and which of them are not passed on. */
struct forward {
	struct aw_str fields;
	const char *const *dropped;
	size_t dropped_count;
	bool is_upgrade_kept;
	bool is_coding_dropped;
};

static bool is_named_by_connection(struct aw_str fields, struct aw_str name)
{
	struct aw_str field, value, option;

	while (aw_http_field_next(&fields, &field, &value)) {
		if (!aw_http_token_is(field, "connection"))
			continue;
		while (aw_str_next(&value, ',', &option))
			if (aw_host_is_same(aw_str_trim(option), name))
				return true;
	}
	return false;
}

static bool is_forwarded(const struct forward *forward, struct aw_str name)
{
	if (aw_http_token_is(name, "upgrade"))
		return forward->is_upgrade_kept;
	return !is_among(name, forward->dropped, forward->dropped_count) &&
	       !is_named_by_connection(forward->fields, name);
}

/*
 * Lines go as they came, because a server may count on blanks and case that we do not know of. Not so
 * the framing: there are readers that stumble over a blank behind "chunked" and then see no body. No
 * Connection field can have it dropped, because then the body would end elsewhere.
 */
static int write_field(const struct forward *forward, struct aw_str name, struct aw_str value,
		       struct aw_str line, struct aw_buf *out)
{
	if (aw_http_token_is(name, "content-length"))
		return aw_buf_printf(out, "Content-Length: %.*s\r\n", (int)value.len, value.ptr);
	if (!aw_http_token_is(name, "transfer-encoding"))
		return is_forwarded(forward, name) ? aw_buf_append(out, line.ptr, line.len) : 0;
	if (forward->is_coding_dropped)
		return 0;
	return aw_buf_append_str(out, "Transfer-Encoding: chunked\r\n");
}

static int write_fields(const struct forward *forward, struct aw_buf *out)
{
	struct aw_str rest = forward->fields, line = forward->fields, name, value;
	int r = 0;

	while (r >= 0 && aw_http_field_next(&rest, &name, &value)) {
		line.len = (size_t)(rest.ptr - line.ptr);
		r = write_field(forward, name, value, line, out);
		line.ptr = rest.ptr;
	}
	return r;
}

static int write_connection(bool is_upgrade, bool is_kept, struct aw_buf *out)
{
	if (is_upgrade)
		return aw_buf_append_str(out, "Connection: Upgrade\r\n\r\n");
	return aw_buf_append_str(out, is_kept ? "Connection: keep-alive\r\n\r\n"
					      : "Connection: close\r\n\r\n");
}

/* OPTIONS of an URL without a path asks about the server itself: RFC 9112 3.2.4. */
static const char *path_start(const struct aw_http_request *request)
{
	if (request->path.len == 0 && aw_str_is(request->method, "OPTIONS"))
		return "*";
	if (request->form == AW_HTTP_FORM_ASTERISK)
		return "";
	return request->path.len == 0 || request->path.ptr[0] != '/' ? "/" : "";
}

static int write_request_line(const struct aw_http_request *request, struct aw_buf *out)
{
	const struct aw_hostport *authority = &request->authority;
	bool is_bracketed = authority->host.kind == AW_HOST_IPV6;
	struct aw_str host = authority->host.text;
	int r;

	r = aw_buf_printf(out, "%.*s %s%.*s HTTP/1.%d\r\nHost: %s%.*s%s", (int)request->method.len,
			  request->method.ptr, path_start(request), (int)request->path.len,
			  request->path.ptr, request->minor, is_bracketed ? "[" : "", (int)host.len,
			  host.ptr, is_bracketed ? "]" : "");
	if (r < 0)
		return r;
	if (authority->port == DEFAULT_PORT)
		return aw_buf_append_str(out, "\r\n");
	return aw_buf_printf(out, ":%u\r\n", authority->port);
}

/* All or nothing: what was appended before a failure is taken back. */
static int settle(int r, size_t before, struct aw_buf *out)
{
	if (r < 0)
		out->len = before;
	return r;
}

int aw_http_request_write(const struct aw_http_request *request, bool is_kept, struct aw_buf *out)
{
	const struct forward forward = {
		.fields = request->fields,
		.dropped = dropped_in_requests,
		.dropped_count = AW_ARRAY_LEN(dropped_in_requests),
		.is_upgrade_kept = request->is_websocket,
	};
	size_t before = out->len;
	int r;

	if (request->form == AW_HTTP_FORM_AUTHORITY || request->authority.port == 0)
		return -EINVAL;
	r = write_request_line(request, out);
	if (r >= 0)
		r = write_fields(&forward, out);
	if (r >= 0)
		r = write_connection(request->is_websocket, is_kept, out);
	return settle(r, before, out);
}

int aw_http_response_write(const struct aw_http_response *response, bool is_kept,
			   struct aw_buf *out)
{
	bool is_switching = response->status == SWITCHING_PROTOCOLS;
	const struct forward forward = {
		.fields = response->fields,
		.dropped = dropped_in_responses,
		.dropped_count = AW_ARRAY_LEN(dropped_in_responses),
		.is_upgrade_kept = is_switching,
		/* A 304 may name a coding but has no body; there are clients that wait for one. */
		.is_coding_dropped = response->body == AW_HTTP_BODY_NONE,
	};
	size_t before = out->len;
	int r;

	r = aw_buf_printf(out, "HTTP/1.%d %u ", response->minor, response->status);
	if (r >= 0)
		r = aw_buf_append(out, response->reason.ptr, response->reason.len);
	if (r >= 0)
		r = aw_buf_append_str(out, "\r\n");
	if (r >= 0)
		r = write_fields(&forward, out);
	if (r >= 0 && response->is_interim)
		r = aw_buf_append_str(out, "\r\n");
	else if (r >= 0)
		r = write_connection(is_switching, is_kept && response->body != AW_HTTP_BODY_CLOSE,
				     out);
	return settle(r, before, out);
}

int aw_http_answer_write(unsigned status, const char *reason, struct aw_str body,
			 struct aw_buf *out)
{
	size_t before = out->len;
	int r;

	r = aw_buf_printf(out,
			  "HTTP/1.1 %u %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
			  "Content-Length: %zu\r\nCache-Control: no-store\r\n"
			  "Connection: close\r\n\r\n",
			  status, reason, body.len);
	if (r >= 0)
		r = aw_buf_append(out, body.ptr, body.len);
	return settle(r, before, out);
}

static const struct {
	unsigned status;
	const char *text;
} statuses[] = {
	{ 200, "OK" },
	{ 400, "Bad Request" },
	{ 403, "Forbidden" },
	{ 405, "Method Not Allowed" },
	{ 407, "Proxy Authentication Required" },
	{ 408, "Request Timeout" },
	{ 421, "Misdirected Request" },
	{ 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 502, "Bad Gateway" },
	{ 503, "Service Unavailable" },
	{ 504, "Gateway Timeout" },
	{ 505, "HTTP Version Not Supported" },
};

const char *aw_http_status_text(unsigned status)
{
	for (size_t i = 0; i < AW_ARRAY_LEN(statuses); i++)
		if (statuses[i].status == status)
			return statuses[i].text;
	return "Error";
}
