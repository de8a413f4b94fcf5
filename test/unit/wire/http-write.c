#include "wire/http-write.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "support/torture.h"

#define OUT_MAX 4096

static struct aw_http_request request_of(const char *text)
{
	struct aw_http_scan scan = { 0 };
	struct aw_http_request request;
	enum aw_http_flaw flaw;

	assert_true(aw_http_request_parse(&scan, aw_str_from(text), &request, &flaw) > 0);
	return request;
}

static struct aw_http_response response_of(const char *text)
{
	struct aw_http_scan scan = { 0 };
	struct aw_http_response response;
	enum aw_http_flaw flaw;

	assert_true(aw_http_response_parse(&scan, aw_str_from(text), AW_STR("GET"), &response,
					   &flaw) > 0);
	return response;
}

static void assert_rewritten(const char *from, bool is_kept, const char *to)
{
	autodrop(aw_buf_fini) struct aw_buf out = AW_BUF_INIT(OUT_MAX);
	struct aw_http_request request = request_of(from);

	assert_int_equal(aw_http_request_write(&request, is_kept, &out), 0);
	assert_string_equal(aw_buf_text(&out), to);
}

static void assert_response_rewritten(const char *from, bool is_kept, const char *to)
{
	autodrop(aw_buf_fini) struct aw_buf out = AW_BUF_INIT(OUT_MAX);
	struct aw_http_response response = response_of(from);

	assert_int_equal(aw_http_response_write(&response, is_kept, &out), 0);
	assert_string_equal(aw_buf_text(&out), to);
}

static void the_url_becomes_target_and_host(void **state)
{
	(void)state;
	assert_rewritten("GET http://PyPI.org/simple/?q HTTP/1.1\r\nHost: evil.com\r\nA: b\r\n\r\n",
			 true,
			 "GET /simple/?q HTTP/1.1\r\nHost: PyPI.org\r\nA: b\r\n"
			 "Connection: keep-alive\r\n\r\n");
	assert_rewritten("GET http://a:8080 HTTP/1.0\r\n\r\n", false,
			 "GET / HTTP/1.0\r\nHost: a:8080\r\nConnection: close\r\n\r\n");
	assert_rewritten("GET http://[::1]?q HTTP/1.1\r\nHost: a\r\n\r\n", false,
			 "GET /?q HTTP/1.1\r\nHost: [::1]\r\nConnection: close\r\n\r\n");
	assert_rewritten("GET http://a:80/ HTTP/1.1\r\nHost: a:80\r\n\r\n", false,
			 "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
}

static void the_origin_form_stays(void **state)
{
	(void)state;
	assert_rewritten("GET //x HTTP/1.1\r\nHost: a:8080\r\n\r\n", true,
			 "GET //x HTTP/1.1\r\nHost: a:8080\r\nConnection: keep-alive\r\n\r\n");
}

static void options_of_a_server_keep_their_asterisk(void **state)
{
	static const char expected[] = "OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

	(void)state;
	assert_rewritten("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", false, expected);
	assert_rewritten("OPTIONS http://a HTTP/1.1\r\nHost: a\r\n\r\n", false, expected);
}

static void what_was_for_one_hop_is_dropped(void **state)
{
	(void)state;
	assert_rewritten(
		"GET http://a/ HTTP/1.1\r\nProxy-Connection: keep-alive\r\nHost: a\r\n"
		"Proxy-Authorization: Basic eA==\r\nKeep-Alive: timeout=5\r\nTE: trailers\r\n"
		"Connection: X-Hop, close\r\nX-Hop: 1\r\nX-Hop2: 2\r\nUpgrade: h2c\r\n"
		"HTTP2-Settings: AAA\r\nx-hop: 3\r\nConnection: y\r\nY: 4\r\nTrailer: z\r\n\r\n",
		true,
		"GET / HTTP/1.1\r\nHost: a\r\nX-Hop2: 2\r\nTrailer: z\r\n"
		"Connection: keep-alive\r\n\r\n");
}

static void the_bytes_of_a_line_stay(void **state)
{
	(void)state;
	assert_rewritten("GET http://a/ HTTP/1.1\r\nHost: a\r\nx:\t y \xff \r\nEXPECT:z\r\n\r\n",
			 true,
			 "GET / HTTP/1.1\r\nHost: a\r\nx:\t y \xff \r\nEXPECT:z\r\n"
			 "Connection: keep-alive\r\n\r\n");
}

static void the_framing_stays_in_its_plainest_spelling(void **state)
{
	(void)state;
	assert_rewritten("POST / HTTP/1.1\r\nHost: a\r\ntransfer-encoding:\tChunked \r\n\r\n", true,
			 "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
			 "Connection: keep-alive\r\n\r\n");
	assert_rewritten("POST / HTTP/1.1\r\nHost: a\r\ncontent-length:5\t\r\n\r\n", true,
			 "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
			 "Connection: keep-alive\r\n\r\n");
	assert_response_rewritten("HTTP/1.1 200 OK\r\ncontent-length:5 \r\n\r\n", true,
				  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"
				  "Connection: keep-alive\r\n\r\n");
}

static void a_websocket_upgrade_is_passed_on(void **state)
{
	(void)state;
	assert_rewritten("GET http://a/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
			 "Upgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n",
			 false,
			 "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n"
			 "Sec-WebSocket-Key: x\r\nConnection: Upgrade\r\n\r\n");
}

static void a_connect_or_a_request_for_nobody_is_not_written(void **state)
{
	autodrop(aw_buf_fini) struct aw_buf out = AW_BUF_INIT(OUT_MAX);
	struct aw_http_request request = request_of("CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n");

	(void)state;
	assert_int_equal(aw_http_request_write(&request, true, &out), -EINVAL);
	request = request_of("GET / HTTP/1.0\r\n\r\n");
	assert_int_equal(aw_http_request_write(&request, true, &out), -EINVAL);
	assert_int_equal(out.len, 0);
}

static void a_response_loses_what_was_for_one_hop(void **state)
{
	(void)state;
	assert_response_rewritten(
		"HTTP/1.1 200 OK\r\nConnection: keep-alive, Transfer-Encoding, X\r\n"
		"Transfer-Encoding: chunked\r\nX: 1\r\nKeep-Alive: timeout=5\r\n"
		"Proxy-Authenticate: Basic\r\nUpgrade: h2\r\nSet-Cookie: a\r\n"
		"Set-Cookie: b\r\n\r\n",
		true,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nSet-Cookie: a\r\n"
		"Set-Cookie: b\r\nConnection: keep-alive\r\n\r\n");
	assert_response_rewritten(
		"HTTP/1.0 404\r\nContent-Length: 0\r\n\r\n", false,
		"HTTP/1.0 404 \r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

static void a_body_that_ends_by_closing_closes_towards_the_client(void **state)
{
	(void)state;
	assert_response_rewritten("HTTP/1.1 200 OK\r\n\r\n", true,
				  "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
}

static void a_response_without_a_body_names_no_coding(void **state)
{
	(void)state;
	assert_response_rewritten("HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
				  true,
				  "HTTP/1.1 304 Not Modified\r\nConnection: keep-alive\r\n\r\n");
	assert_response_rewritten("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", true,
				  "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n"
				  "Connection: keep-alive\r\n\r\n");
}

static void interim_responses_and_switches_are_passed_on(void **state)
{
	(void)state;
	assert_response_rewritten("HTTP/1.1 100 Continue\r\n\r\n", true,
				  "HTTP/1.1 100 Continue\r\n\r\n");
	assert_response_rewritten("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n"
				  "Upgrade: websocket\r\n\r\n",
				  false,
				  "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
				  "Connection: Upgrade\r\n\r\n");
}

static void our_own_answer_is_plain_text_and_closes(void **state)
{
	autodrop(aw_buf_fini) struct aw_buf out = AW_BUF_INIT(OUT_MAX);
	struct aw_http_response response;

	(void)state;
	assert_int_equal(aw_http_answer_write(403, aw_http_status_text(403), AW_STR("no\n"), &out),
			 0);
	response = response_of(aw_buf_text(&out));
	assert_int_equal(response.status, 403);
	assert_true(aw_str_is(response.reason, "Forbidden"));
	assert_int_equal(response.body, AW_HTTP_BODY_LENGTH);
	assert_int_equal(response.content_length, 3);
	assert_false(response.is_kept);
	assert_string_equal(out.data + response.len, "no\n");
	assert_string_equal(aw_http_status_text(299), "Error");
	assert_int_equal(response_of(AW_HTTP_ESTABLISHED).status, 200);
}

static void every_flaw_status_has_a_phrase(void **state)
{
	(void)state;
	for (int flaw = AW_HTTP_FLAW_NONE + 1; flaw < AW_HTTP_FLAW_COUNT; flaw++)
		assert_string_not_equal(
			aw_http_status_text(aw_http_flaw_status((enum aw_http_flaw)flaw)), "Error");
}

static void a_full_buffer_is_left_as_it_was(void **state)
{
	struct aw_http_request request =
		request_of("GET http://a/ HTTP/1.1\r\nHost: a\r\nA: b\r\n\r\n");
	struct aw_http_response response = response_of("HTTP/1.1 200 OK\r\nA: b\r\n\r\n");

	(void)state;
	for (size_t max = 3; max < 50; max++) {
		autodrop(aw_buf_fini) struct aw_buf out = AW_BUF_INIT(max);

		assert_int_equal(aw_buf_append_str(&out, "old"), 0);
		assert_int_equal(aw_http_request_write(&request, true, &out), -ENOBUFS);
		assert_int_equal(out.len, 3);
		if (max < 45)
			assert_int_equal(aw_http_response_write(&response, true, &out), -ENOBUFS);
		assert_int_equal(aw_http_answer_write(403, "Forbidden", AW_STR("no"), &out),
				 -ENOBUFS);
		assert_memory_equal(out.data, "old", 3);
		assert_int_equal(out.len, 3);
	}
}

static int write_all_kinds(void *state)
{
	autodrop(aw_buf_fini) struct aw_buf out = AW_BUF_INIT(OUT_MAX);
	const char *text = state;
	struct aw_http_scan scan = { 0 };
	struct aw_http_request request;
	enum aw_http_flaw flaw;
	int r = aw_http_request_parse(&scan, aw_str_from(text), &request, &flaw);

	if (r < 0)
		return r;
	r = aw_http_request_write(&request, true, &out);
	if (r >= 0)
		r = aw_http_answer_write(403, "Forbidden", AW_STR("no"), &out);
	return r;
}

static void memory_may_run_out_at_any_point(void **state)
{
	static char text[] = "GET http://a:81/ HTTP/1.1\r\nHost: a\r\nA: b\r\n\r\n";

	(void)state;
	assert_true(aw_torture(write_all_kinds, text) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_url_becomes_target_and_host),
		cmocka_unit_test(the_origin_form_stays),
		cmocka_unit_test(options_of_a_server_keep_their_asterisk),
		cmocka_unit_test(what_was_for_one_hop_is_dropped),
		cmocka_unit_test(the_bytes_of_a_line_stay),
		cmocka_unit_test(the_framing_stays_in_its_plainest_spelling),
		cmocka_unit_test(a_websocket_upgrade_is_passed_on),
		cmocka_unit_test(a_connect_or_a_request_for_nobody_is_not_written),
		cmocka_unit_test(a_response_loses_what_was_for_one_hop),
		cmocka_unit_test(a_body_that_ends_by_closing_closes_towards_the_client),
		cmocka_unit_test(a_response_without_a_body_names_no_coding),
		cmocka_unit_test(interim_responses_and_switches_are_passed_on),
		cmocka_unit_test(our_own_answer_is_plain_text_and_closes),
		cmocka_unit_test(every_flaw_status_has_a_phrase),
		cmocka_unit_test(a_full_buffer_is_left_as_it_was),
		cmocka_unit_test(memory_may_run_out_at_any_point),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
