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

/* Feed byte by byte: the last answer, which must be that of the whole. */
static int parse_in_pieces(struct aw_str bytes, struct aw_http_request *ret,
			   enum aw_http_flaw *ret_flaw)
{
	struct aw_http_scan scan = { 0 };
	int r = -EAGAIN;

	for (size_t n = 0; n <= bytes.len && r == -EAGAIN; n++)
		r = aw_http_request_parse(&scan, (struct aw_str){ bytes.ptr, n }, ret, ret_flaw);
	return r;
}

static int parse(struct aw_str bytes, struct aw_http_request *ret, enum aw_http_flaw *ret_flaw)
{
	struct aw_http_scan scan = { 0 };
	enum aw_http_flaw piecewise = AW_HTTP_FLAW_NONE;
	struct aw_http_request other = { 0 };
	int r;

	*ret_flaw = AW_HTTP_FLAW_NONE;
	*ret = (struct aw_http_request){ 0 };
	r = aw_http_request_parse(&scan, bytes, ret, ret_flaw);
	assert_int_equal(parse_in_pieces(bytes, &other, &piecewise), r);
	if (r == -EBADMSG) {
		assert_int_equal(piecewise, *ret_flaw);
		assert_int_equal(ret->len, 0);
	} else {
		assert_memory_equal(&other, ret, sizeof(other));
	}
	return r;
}

static enum aw_http_flaw flaw_of(struct aw_str bytes)
{
	struct aw_http_request request;
	enum aw_http_flaw flaw;

	assert_int_equal(parse(bytes, &request, &flaw), -EBADMSG);
	return flaw;
}

static struct aw_http_request accept(const char *text)
{
	struct aw_http_request request;
	enum aw_http_flaw flaw;
	int r = parse(aw_str_from(text), &request, &flaw);

	if (r < 0)
		fail_msg("%d: %s: %s", r, aw_http_flaw_text(flaw), text);
	assert_int_equal(r, request.len);
	return request;
}

static void reads_a_connect(void **state)
{
	struct aw_http_request r =
		accept("CONNECT PyPI.org:443 HTTP/1.1\r\nHost: PyPI.org:443\r\n\r\n");

	(void)state;
	assert_int_equal(r.form, AW_HTTP_FORM_AUTHORITY);
	assert_true(aw_str_is(r.authority.host.text, "PyPI.org"));
	assert_int_equal(r.authority.host.kind, AW_HOST_NAME);
	assert_int_equal(r.authority.port, 443);
	assert_int_equal(r.body, AW_HTTP_BODY_NONE);
	r = accept("CONNECT [2606:4700::1]:443 HTTP/1.0\r\n\r\n");
	assert_int_equal(r.authority.host.kind, AW_HOST_IPV6);
	r = accept("CONNECT 140.82.112.3:443 HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_int_equal(r.authority.host.kind, AW_HOST_IPV4);
	r = accept("CONNECT 2130706433:443 HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_int_equal(r.authority.host.kind, AW_HOST_ODD_NUMBER);
}

static void refuses_a_connect_to_what_is_no_host_and_port(void **state)
{
	static const char *const targets[] = {
		"pypi.org",
		"pypi.org:",
		"pypi.org:0",
		"pypi.org:65536",
		"pypi.org:0443",
		":443",
		"pypi.org..:443",
		"a%00.b:443",
		"user@pypi.org:443",
		"a\\b:443",
		"http://pypi.org/",
		"/pypi.org:443",
		"*",
		"::1:443",
		"[fe80::1%eth0]:443",
		"[::1]:443:443",
		"pypi.org:443/",
		"pypi.org:443?x",
	};
	char head[256];

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(targets); i++) {
		(void)aw_str_format(head, sizeof(head), "CONNECT %s HTTP/1.1\r\nHost: a\r\n\r\n",
				    targets[i]);
		assert_int_equal(flaw_of(aw_str_from(head)), AW_HTTP_FLAW_AUTHORITY);
	}
}

static void refuses_a_name_that_hides_another(void **state)
{
	(void)state;
	assert_int_equal(flaw_of(AW_STR("CONNECT evil.com\0.github.com:443 HTTP/1.1\r\n")),
			 AW_HTTP_FLAW_CONTROL);
	assert_int_equal(
		flaw_of(AW_STR("CONNECT evil.com\t.github.com:443 HTTP/1.1\r\nHost: a\r\n\r\n")),
		AW_HTTP_FLAW_TARGET);
	assert_int_equal(
		flaw_of(AW_STR("CONNECT evil.com .github.com:443 HTTP/1.1\r\nHost: a\r\n\r\n")),
		AW_HTTP_FLAW_TARGET);
	assert_int_equal(
		flaw_of(AW_STR("CONNECT evil.com#.github.com:443 HTTP/1.1\r\nHost: a\r\n\r\n")),
		AW_HTTP_FLAW_TARGET);
	assert_int_equal(flaw_of(AW_STR("CONNECT b\xc3\xbc"
					"cher.de:443 HTTP/1.1\r\nHost: a\r\n\r\n")),
			 AW_HTTP_FLAW_TARGET);
}

static void reads_the_peer_of_an_absolute_url_and_not_of_host(void **state)
{
	struct aw_http_request r =
		accept("GET http://PyPI.org/simple/?q=1 HTTP/1.1\r\nHost: evil.com\r\n\r\n");

	(void)state;
	assert_int_equal(r.form, AW_HTTP_FORM_ABSOLUTE);
	assert_true(aw_str_is(r.authority.host.text, "PyPI.org"));
	assert_int_equal(r.authority.port, 80);
	assert_true(aw_str_is(r.path, "/simple/?q=1"));
	assert_true(aw_str_is(r.host, "evil.com"));
	r = accept("GET HTTP://[::1]:8080?q HTTP/1.0\r\n\r\n");
	assert_int_equal(r.authority.port, 8080);
	assert_true(aw_str_is(r.path, "?q"));
	r = accept("GET http://a HTTP/1.1\r\nHost: a\r\n\r\n");
	assert_true(aw_str_is(r.path, ""));
}

static void refuses_absolute_urls_that_others_read_differently(void **state)
{
	static const char *const urls[] = {
		"http://user@pypi.org/",
		"http://user:pw@pypi.org/",
		"http:///x",
		"http://",
		"http://pypi.org:/",
		"http://pypi.org:0/",
		"http://pypi.org\\@evil.com/",
		"http://evil.com%2f.pypi.org/",
		"http://a..b/",
		"http://[::1/",
		"http://::1/",
		"http://?a",
		"http://pypi.org:80:80/",
	};
	char head[256];

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(urls); i++) {
		(void)aw_str_format(head, sizeof(head), "GET %s HTTP/1.1\r\nHost: a\r\n\r\n",
				    urls[i]);
		assert_int_equal(flaw_of(aw_str_from(head)), AW_HTTP_FLAW_AUTHORITY);
	}
}

static void refuses_other_schemes(void **state)
{
	(void)state;
	assert_int_equal(flaw_of(AW_STR("GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n")),
			 AW_HTTP_FLAW_SCHEME);
	assert_int_equal(flaw_of(AW_STR("GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n")),
			 AW_HTTP_FLAW_SCHEME);
}

static void takes_the_peer_of_the_origin_form_from_host(void **state)
{
	struct aw_http_request r = accept("POST /a?b HTTP/1.1\r\nhost:\t a.com:8080 \r\n\r\n");

	(void)state;
	assert_int_equal(r.form, AW_HTTP_FORM_ORIGIN);
	assert_true(aw_str_is(r.authority.host.text, "a.com"));
	assert_int_equal(r.authority.port, 8080);
	assert_true(aw_str_is(r.path, "/a?b"));
	r = accept("GET //evil.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n");
	assert_true(aw_str_is(r.authority.host.text, "a.com"));
	assert_true(aw_str_is(r.path, "//evil.com/"));
	r = accept("OPTIONS * HTTP/1.1\r\nHost: a.com\r\n\r\n");
	assert_int_equal(r.form, AW_HTTP_FORM_ASTERISK);
	r = accept("GET / HTTP/1.0\r\n\r\n");
	assert_int_equal(r.authority.host.kind, 0);
	assert_int_equal(r.authority.port, 0);
}

static void refuses_targets_of_no_form(void **state)
{
	static const char *const heads[] = {
		"GET a.com/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET * HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET a.com:80 HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET ?a HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /\ta HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET 1http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET a.b://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"OPTIONS ** HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET ://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /  HTTP/1.1\r\nHost: a\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(heads); i++)
		assert_int_equal(flaw_of(aw_str_from(heads[i])), AW_HTTP_FLAW_TARGET);
}

static void refuses_other_versions_and_none(void **state)
{
	static const char *const heads[] = {
		"GET /\r\n\r\n",          "GET / HTTP/0.9\r\n\r\n",  "GET / HTTP/2.0\r\n\r\n",
		"GET / HTTP/1.2\r\n\r\n", "PRI * HTTP/2.0\r\n\r\n",  "GET / http/1.1\r\n\r\n",
		"GET / \r\n\r\n",         "GET /\tHTTP/1.1\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(heads); i++)
		assert_int_equal(flaw_of(aw_str_from(heads[i])), AW_HTTP_FLAW_VERSION);
	assert_int_equal(flaw_of(AW_STR("GET / HTTP/1.1 \r\n\r\n")), AW_HTTP_FLAW_TARGET);
}

static void refuses_a_missing_second_or_malformed_host(void **state)
{
	static const struct {
		const char *text;
		enum aw_http_flaw flaw;
	} cases[] = {
		{ "GET / HTTP/1.1\r\n\r\n", AW_HTTP_FLAW_HOST_MISSING },
		{ "GET http://a/ HTTP/1.1\r\n\r\n", AW_HTTP_FLAW_HOST_MISSING },
		{ "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", AW_HTTP_FLAW_HOST_TWICE },
		{ "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\nHOST: a\r\n\r\n", AW_HTTP_FLAW_HOST_TWICE },
		{ "GET / HTTP/1.1\r\nHost:\r\n\r\n", AW_HTTP_FLAW_HOST },
		{ "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", AW_HTTP_FLAW_HOST },
		{ "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", AW_HTTP_FLAW_HOST },
		{ "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", AW_HTTP_FLAW_HOST },
		{ "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", AW_HTTP_FLAW_HOST },
		{ "GET / HTTP/1.1\r\nHost: a:99999\r\n\r\n", AW_HTTP_FLAW_HOST },
		{ "GET http://a/ HTTP/1.1\r\nHost: a b\r\n\r\n", AW_HTTP_FLAW_HOST },
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(cases); i++)
		assert_int_equal(flaw_of(aw_str_from(cases[i].text)), cases[i].flaw);
}

static void refuses_what_smuggles_a_second_request(void **state)
{
	static const struct {
		const char *text;
		enum aw_http_flaw flaw;
	} cases[] = {
		{ "Content-Length: 5\r\nContent-Length: 6\r\n", AW_HTTP_FLAW_LENGTH_TWICE },
		{ "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
		  AW_HTTP_FLAW_LENGTH_AND_CODING },
		{ "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
		  AW_HTTP_FLAW_CODING },
		{ "Transfer-Encoding: chunked\r\n , identity\r\n", AW_HTTP_FLAW_FOLDED },
		{ "Transfer-Encoding:\n chunked\r\n", AW_HTTP_FLAW_LINE_END },
		{ "Transfer-Encoding : chunked\r\n", AW_HTTP_FLAW_SPACE_BEFORE_COLON },
		{ "X: y\rTransfer-Encoding: chunked\r\n", AW_HTTP_FLAW_LINE_END },
		{ "X: y\nTransfer-Encoding: chunked\r\n", AW_HTTP_FLAW_LINE_END },
		{ "Transfer-Encoding: \x0b"
		  "chunked\r\n",
		  AW_HTTP_FLAW_CONTROL },
		{ "Content-Length: 5\x0c\r\n", AW_HTTP_FLAW_CONTROL },
		{ "Content-Length: +5\r\n", AW_HTTP_FLAW_LENGTH },
		{ "Connection: content-length\r\nContent-Length: 5\r\n", AW_HTTP_FLAW_CONNECTION },
		{ ": x\r\n", AW_HTTP_FLAW_FIELD_NAME },
		{ "Transfer-Encoding\r\n", AW_HTTP_FLAW_FIELD_NAME },
	};
	char head[256];

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(cases); i++) {
		(void)aw_str_format(head, sizeof(head), "POST / HTTP/1.1\r\nHost: a\r\n%s\r\n",
				    cases[i].text);
		assert_int_equal(flaw_of(aw_str_from(head)), cases[i].flaw);
	}
	assert_int_equal(flaw_of(AW_STR("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n")),
			 AW_HTTP_FLAW_CODING);
}

static void decides_where_the_body_ends(void **state)
{
	struct aw_http_request r;

	(void)state;
	r = accept("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\n");
	assert_int_equal(r.body, AW_HTTP_BODY_LENGTH);
	assert_int_equal(r.content_length, 12);
	r = accept("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
	assert_int_equal(r.body, AW_HTTP_BODY_NONE);
	r = accept("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
	assert_int_equal(r.body, AW_HTTP_BODY_CHUNKED);
	r = accept("POST / HTTP/1.1\r\nHost: a\r\n\r\n");
	assert_int_equal(r.body, AW_HTTP_BODY_NONE);
}

static void refuses_a_connect_with_content(void **state)
{
	(void)state;
	assert_int_equal(
		flaw_of(AW_STR("CONNECT a:443 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n")),
		AW_HTTP_FLAW_CONNECT_BODY);
	assert_int_equal(flaw_of(AW_STR("CONNECT a:443 HTTP/1.1\r\nHost: a\r\n"
					"Transfer-Encoding: chunked\r\n\r\n")),
			 AW_HTTP_FLAW_CONNECT_BODY);
	accept("CONNECT a:443 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
}

static void a_websocket_needs_get_version_and_connection(void **state)
{
	static const char upgrade[] =
		"Host: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n";
	char head[256];

	(void)state;
	(void)aw_str_format(head, sizeof(head), "GET / HTTP/1.1\r\n%s\r\n", upgrade);
	assert_true(accept(head).is_websocket);
	(void)aw_str_format(head, sizeof(head), "POST / HTTP/1.1\r\n%s\r\n", upgrade);
	assert_false(accept(head).is_websocket);
	(void)aw_str_format(head, sizeof(head), "GET / HTTP/1.0\r\n%s\r\n", upgrade);
	assert_false(accept(head).is_websocket);
	(void)aw_str_format(head, sizeof(head), "GET / HTTP/1.1\r\n%sContent-Length: 1\r\n\r\n",
			    upgrade);
	assert_false(accept(head).is_websocket);
	assert_false(
		accept("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n").is_websocket);
}

static void knows_who_waits_for_100_continue(void **state)
{
	(void)state;
	assert_true(accept("PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n\r\n")
			    .is_continue_wanted);
	assert_false(accept("PUT / HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\n\r\n")
			     .is_continue_wanted);
	assert_false(accept("PUT / HTTP/1.1\r\nHost: a\r\n\r\n").is_continue_wanted);
}

static void a_second_request_behind_the_first_is_left_for_later(void **state)
{
	struct aw_http_request request;
	enum aw_http_flaw flaw;
	static const char two[] = "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\n";

	(void)state;
	assert_int_equal(parse(AW_STR(two), &request, &flaw), 28);
	assert_true(aw_str_is(request.target, "/1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_connect),
		cmocka_unit_test(refuses_a_connect_to_what_is_no_host_and_port),
		cmocka_unit_test(refuses_a_name_that_hides_another),
		cmocka_unit_test(reads_the_peer_of_an_absolute_url_and_not_of_host),
		cmocka_unit_test(refuses_absolute_urls_that_others_read_differently),
		cmocka_unit_test(refuses_other_schemes),
		cmocka_unit_test(takes_the_peer_of_the_origin_form_from_host),
		cmocka_unit_test(refuses_targets_of_no_form),
		cmocka_unit_test(refuses_other_versions_and_none),
		cmocka_unit_test(refuses_a_missing_second_or_malformed_host),
		cmocka_unit_test(refuses_what_smuggles_a_second_request),
		cmocka_unit_test(decides_where_the_body_ends),
		cmocka_unit_test(refuses_a_connect_with_content),
		cmocka_unit_test(a_websocket_needs_get_version_and_connection),
		cmocka_unit_test(knows_who_waits_for_100_continue),
		cmocka_unit_test(a_second_request_behind_the_first_is_left_for_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
