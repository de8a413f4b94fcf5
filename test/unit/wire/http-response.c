#include "wire/http.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"

static int parse(struct aw_str bytes, const char *method, struct aw_http_response *ret,
		 enum aw_http_flaw *ret_flaw)
{
	struct aw_http_scan scan = { 0 }, pieces = { 0 };
	enum aw_http_flaw piecewise = AW_HTTP_FLAW_NONE;
	struct aw_http_response other = { 0 };
	int r, s = -EAGAIN;

	*ret_flaw = AW_HTTP_FLAW_NONE;
	*ret = (struct aw_http_response){ 0 };
	r = aw_http_response_parse(&scan, bytes, aw_str_from(method), ret, ret_flaw);
	for (size_t n = 0; n <= bytes.len && s == -EAGAIN; n++)
		s = aw_http_response_parse(&pieces, (struct aw_str){ bytes.ptr, n },
					   aw_str_from(method), &other, &piecewise);
	assert_int_equal(s, r);
	assert_int_equal(piecewise, *ret_flaw);
	assert_int_equal(other.len, ret->len);
	assert_int_equal(other.body, ret->body);
	return r;
}

static enum aw_http_flaw flaw_of(const char *text)
{
	struct aw_http_response response;
	enum aw_http_flaw flaw;

	assert_int_equal(parse(aw_str_from(text), "GET", &response, &flaw), -EBADMSG);
	assert_int_equal(response.status, 0);
	return flaw;
}

static struct aw_http_response accept(const char *method, const char *text)
{
	struct aw_http_response response;
	enum aw_http_flaw flaw;
	int r = parse(aw_str_from(text), method, &response, &flaw);

	if (r < 0)
		fail_msg("%d: %s: %s", r, aw_http_flaw_text(flaw), text);
	assert_int_equal(r, response.len);
	return response;
}

static void reads_a_status_line_with_and_without_a_reason(void **state)
{
	struct aw_http_response r = accept("GET", "HTTP/1.1 404 Not Found\r\nA: b\r\n\r\n");

	(void)state;
	assert_int_equal(r.status, 404);
	assert_int_equal(r.minor, 1);
	assert_true(aw_str_is(r.reason, "Not Found"));
	assert_true(aw_str_is(r.fields, "A: b\r\n\r\n"));
	r = accept("GET", "HTTP/1.0 200 \r\n\r\n");
	assert_int_equal(r.minor, 0);
	assert_int_equal(r.reason.len, 0);
	r = accept("GET", "HTTP/1.1 200\r\n\r\n");
	assert_int_equal(r.reason.len, 0);
}

static void refuses_malformed_status_lines(void **state)
{
	static const char *const lines[] = {
		"HTTP/1.1 20 OK\r\n\r\n",   "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1  200 OK\r\n\r\n",
		"HTTP/1.1 +20 OK\r\n\r\n",  "HTTP/1.1 099 OK\r\n\r\n",  "HTTP/1.1 600 OK\r\n\r\n",
		"HTTP/1.1 abc OK\r\n\r\n",  "HTTP/1.1\r\n\r\n",         "HTTP/1.1 \r\n\r\n",
		"HTTP/1.1 200\tOK\r\n\r\n", "HTTP/1.1 000 OK\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(lines); i++)
		assert_int_equal(flaw_of(lines[i]), AW_HTTP_FLAW_STATUS_LINE);
	assert_int_equal(flaw_of("HTTP/2.0 200 OK\r\n\r\n"), AW_HTTP_FLAW_VERSION);
	assert_int_equal(flaw_of("HTTP/1.1\t200 OK\r\n\r\n"), AW_HTTP_FLAW_VERSION);
}

static void refuses_what_splits_or_desynchronises_a_response(void **state)
{
	(void)state;
	assert_int_equal(
		flaw_of("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"),
		AW_HTTP_FLAW_LENGTH_TWICE);
	assert_int_equal(
		flaw_of("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
		AW_HTTP_FLAW_LENGTH_AND_CODING);
	assert_int_equal(flaw_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
			 AW_HTTP_FLAW_CODING);
	assert_int_equal(flaw_of("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n"), AW_HTTP_FLAW_FOLDED);
	assert_int_equal(flaw_of("HTTP/1.1 200 OK\r\nA: b\n\n"), AW_HTTP_FLAW_LINE_END);
	assert_int_equal(flaw_of("HTTP/1.1 200 OK\r\nA : b\r\n\r\n"),
			 AW_HTTP_FLAW_SPACE_BEFORE_COLON);
}

static void refuses_a_coding_where_there_can_be_no_content(void **state)
{
	static const char *const lines[] = { "HTTP/1.0 200 OK", "HTTP/1.1 204 No Content",
					     "HTTP/1.1 100 Continue", "HTTP/1.1 101 Switching" };
	char head[128];

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(lines); i++) {
		(void)aw_str_format(head, sizeof(head), "%s\r\nTransfer-Encoding: chunked\r\n\r\n",
				    lines[i]);
		assert_int_equal(flaw_of(head), AW_HTTP_FLAW_CODING);
	}
}

static void decides_where_the_body_ends(void **state)
{
	static const struct {
		const char *method, *text;
		enum aw_http_body body;
	} cases[] = {
		{ "GET", "HTTP/1.1 200 OK\r\n\r\n", AW_HTTP_BODY_CLOSE },
		{ "GET", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", AW_HTTP_BODY_LENGTH },
		{ "GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", AW_HTTP_BODY_NONE },
		{ "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
		  AW_HTTP_BODY_CHUNKED },
		{ "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", AW_HTTP_BODY_NONE },
		{ "HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
		  AW_HTTP_BODY_NONE },
		{ "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n",
		  AW_HTTP_BODY_NONE },
		{ "GET", "HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n",
		  AW_HTTP_BODY_NONE },
		{ "GET", "HTTP/1.1 100 Continue\r\n\r\n", AW_HTTP_BODY_NONE },
		{ "GET", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", AW_HTTP_BODY_NONE },
		{ "GET", "HTTP/1.1 101 Switching Protocols\r\n\r\n", AW_HTTP_BODY_TUNNEL },
		{ "CONNECT", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", AW_HTTP_BODY_TUNNEL },
		{ "CONNECT", "HTTP/1.1 403 No\r\nContent-Length: 3\r\n\r\n", AW_HTTP_BODY_LENGTH },
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(cases); i++)
		assert_int_equal(accept(cases[i].method, cases[i].text).body, cases[i].body);
}

static void tells_interim_responses_from_final_ones(void **state)
{
	(void)state;
	assert_true(accept("GET", "HTTP/1.1 100 Continue\r\n\r\n").is_interim);
	assert_true(accept("GET", "HTTP/1.1 103 Early Hints\r\n\r\n").is_interim);
	assert_false(accept("GET", "HTTP/1.1 101 Switching Protocols\r\n\r\n").is_interim);
	assert_false(accept("GET", "HTTP/1.1 200 OK\r\n\r\n").is_interim);
}

static void a_connection_is_kept_only_if_the_end_is_known(void **state)
{
	static const struct {
		const char *text;
		bool is_kept;
	} cases[] = {
		{ "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", true },
		{ "HTTP/1.1 200 OK\r\n\r\n", false },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\n", false },
		{ "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\n", false },
		{ "HTTP/1.0 200 OK\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\n", true },
		{ "HTTP/1.1 101 Switching Protocols\r\n\r\n", false },
		{ "HTTP/1.1 304 Not Modified\r\n\r\n", true },
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(cases); i++)
		assert_int_equal(accept("GET", cases[i].text).is_kept, cases[i].is_kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_status_line_with_and_without_a_reason),
		cmocka_unit_test(refuses_malformed_status_lines),
		cmocka_unit_test(refuses_what_splits_or_desynchronises_a_response),
		cmocka_unit_test(refuses_a_coding_where_there_can_be_no_content),
		cmocka_unit_test(decides_where_the_body_ends),
		cmocka_unit_test(tells_interim_responses_from_final_ones),
		cmocka_unit_test(a_connection_is_kept_only_if_the_end_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
