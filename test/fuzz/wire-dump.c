/*
 * wire-dump - say how the HTTP parsers read bytes, so that another parser can be held against them.
 *
 * Standard input is a list of cases: one byte 'q' (a stream of requests) or 's' (of responses to
 * GET), four bytes of length, big-endian, then the bytes as they stand on the connection. Each case
 * is answered with one line of JSON; strings are hexadecimal:
 *
 *	{"messages":[{"start":["GET","/"],"minor":1,"fields":[["name","value"],...],
 *	  "body":"chunked","raw":"...","content":5,"written":"..."},...],"end":"more"}
 *
 * "end" is "more" when the stream may go on, else the flaw that ended it. Only whole messages are
 * listed; "raw" are the bytes of the body as they came, "written" the head as it is passed on.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/own.h"
#include "wire/http-chunked.h"
#include "wire/http-write.h"
#include "wire/http.h"

#define CASE_MAX (1024 * 1024)

static const char *const bodies[] = {
	[AW_HTTP_BODY_NONE] = "none",       [AW_HTTP_BODY_LENGTH] = "length",
	[AW_HTTP_BODY_CHUNKED] = "chunked", [AW_HTTP_BODY_CLOSE] = "close",
	[AW_HTTP_BODY_TUNNEL] = "tunnel",
};

/* What requests and responses have in common. */
struct message {
	size_t len;
	struct aw_str start[2]; /* method and target, or status and reason */
	struct aw_str fields;
	unsigned minor;
	enum aw_http_body body;
	uint64_t length;
	struct aw_buf written; /* empty for CONNECT */
};

static void print_hex(struct aw_str s)
{
	putchar('"');
	for (size_t i = 0; i < s.len; i++)
		printf("%02x", (unsigned char)s.ptr[i]);
	putchar('"');
}

static void print_fields(struct aw_str fields)
{
	struct aw_str name, value;
	const char *separator = "";

	for (; aw_http_field_next(&fields, &name, &value); separator = ",") {
		printf("%s[", separator);
		print_hex(name);
		putchar(',');
		print_hex(value);
		putchar(']');
	}
}

static void print_message(struct message *m, struct aw_str raw, uint64_t content)
{
	printf("{\"start\":[");
	print_hex(m->start[0]);
	putchar(',');
	print_hex(m->start[1]);
	printf("],\"minor\":%u,\"fields\":[", m->minor);
	print_fields(m->fields);
	printf("],\"body\":\"%s\",\"raw\":", bodies[m->body]);
	print_hex(raw);
	printf(",\"content\":%llu,\"written\":", (unsigned long long)content);
	print_hex(aw_buf_str(&m->written));
	putchar('}');
}

static int read_request(struct aw_str bytes, struct message *ret, enum aw_http_flaw *ret_flaw)
{
	struct aw_http_scan scan = { 0 };
	struct aw_http_request request;
	int r = aw_http_request_parse(&scan, bytes, &request, ret_flaw);

	if (r < 0)
		return r;
	*ret = (struct message){
		.len = request.len,
		.start = { request.method, request.target },
		.fields = request.fields,
		.minor = request.minor,
		.body = request.form == AW_HTTP_FORM_AUTHORITY ? AW_HTTP_BODY_TUNNEL : request.body,
		.length = request.content_length,
		.written = AW_BUF_INIT(CASE_MAX),
	};
	if (request.form != AW_HTTP_FORM_AUTHORITY)
		(void)aw_http_request_write(&request, true, &ret->written);
	return r;
}

static int read_response(struct aw_str bytes, struct message *ret, enum aw_http_flaw *ret_flaw)
{
	struct aw_http_scan scan = { 0 };
	struct aw_http_response response;
	int r = aw_http_response_parse(&scan, bytes, AW_STR("GET"), &response, ret_flaw);

	if (r < 0)
		return r;
	*ret = (struct message){
		.len = response.len,
		.start = { { bytes.ptr + 9, 3 }, response.reason },
		.fields = response.fields,
		.minor = response.minor,
		.body = response.body,
		.length = response.content_length,
		.written = AW_BUF_INIT(CASE_MAX),
	};
	(void)aw_http_response_write(&response, true, &ret->written);
	return r;
}

/* Length of the body in @rest, -EAGAIN when it is not all there, or -EBADMSG. */
static ssize_t measure_body(const struct message *m, struct aw_str rest, uint64_t *ret_content,
			    enum aw_http_flaw *ret_flaw)
{
	struct aw_http_chunked chunked = { 0 };
	ssize_t n;

	*ret_content = m->body == AW_HTTP_BODY_LENGTH ? m->length : 0;
	if (m->body == AW_HTTP_BODY_CHUNKED) {
		n = aw_http_chunked_feed(&chunked, rest, ret_flaw);
		*ret_content = chunked.content;
		return n < 0 || aw_http_chunked_is_done(&chunked) ? n : -EAGAIN;
	}
	if (m->body == AW_HTTP_BODY_LENGTH)
		return m->length <= rest.len ? (ssize_t)m->length : -EAGAIN;
	if (m->body == AW_HTTP_BODY_NONE)
		return 0;
	*ret_content = rest.len;
	return (ssize_t)rest.len;
}

static void dump(char kind, struct aw_str rest)
{
	enum aw_http_flaw flaw = AW_HTTP_FLAW_NONE;
	const char *separator = "";
	struct message m;
	uint64_t content;
	ssize_t n = 0;

	printf("{\"messages\":[");
	for (; rest.len > 0; separator = ",") {
		n = kind == 'q' ? read_request(rest, &m, &flaw) : read_response(rest, &m, &flaw);
		if (n < 0)
			break;
		rest.ptr += m.len;
		rest.len -= m.len;
		n = measure_body(&m, rest, &content, &flaw);
		if (n >= 0) {
			printf("%s", separator);
			print_message(&m, (struct aw_str){ rest.ptr, (size_t)n }, content);
		}
		aw_buf_fini(&m.written);
		if (n < 0)
			break;
		rest.ptr += n;
		rest.len -= (size_t)n;
	}
	printf("],\"end\":\"%s\"}\n", n == -EBADMSG ? aw_http_flaw_text(flaw) : "more");
}

static int dump_case(void)
{
	autofree char *bytes = NULL;
	unsigned char head[5];
	size_t len;

	if (fread(head, 1, 1, stdin) != 1)
		return 0;
	if (fread(head + 1, 4, 1, stdin) != 1)
		return -EBADMSG;
	len = (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
	if ((head[0] != 'q' && head[0] != 's') || len > CASE_MAX)
		return -EBADMSG;
	bytes = malloc(len + 1);
	if (bytes == NULL)
		return -ENOMEM;
	if (len > 0 && fread(bytes, len, 1, stdin) != 1)
		return -EBADMSG;
	dump((char)head[0], (struct aw_str){ bytes, len });
	return 1;
}

int main(void)
{
	int r;

	do
		r = dump_case();
	while (r > 0);
	if (r < 0)
		fprintf(stderr, "wire-dump: the list of cases is malformed\n");
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
