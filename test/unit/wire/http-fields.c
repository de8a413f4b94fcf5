#include "wire/http-internal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"

static enum aw_http_flaw read_request_fields(const char *fields, struct aw_http_facts *ret)
{
	*ret = (struct aw_http_facts){ .is_response = false };
	return aw_http_facts_read(aw_str_from(fields), ret);
}

static enum aw_http_flaw flaw_of(const char *fields)
{
	struct aw_http_facts facts;

	return read_request_fields(fields, &facts);
}

static enum aw_http_flaw response_flaw_of(const char *fields)
{
	struct aw_http_facts facts = { .is_response = true };

	return aw_http_facts_read(aw_str_from(fields), &facts);
}

static void refuses_names_that_are_no_tokens(void **state)
{
	static const char *const fields[] = {
		": a\r\n\r\n",          "A b: c\r\n\r\n",   "A\tb: c\r\n\r\n",  "A(b): c\r\n\r\n",
		"A\xc3\xa9: c\r\n\r\n", "\"A\": c\r\n\r\n", "no colon\r\n\r\n", "nocolon\r\n\r\n",
		"A/b: c\r\n\r\n",       "[A]: c\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(fields); i++)
		assert_int_equal(flaw_of(fields[i]), AW_HTTP_FLAW_FIELD_NAME);
	assert_int_equal(flaw_of("!#$%&'*+-.^_`|~09azAZ: c\r\n\r\n"), AW_HTTP_FLAW_NONE);
}

static void refuses_a_blank_before_the_colon(void **state)
{
	(void)state;
	assert_int_equal(flaw_of("Host : a\r\n\r\n"), AW_HTTP_FLAW_SPACE_BEFORE_COLON);
	assert_int_equal(flaw_of("Content-Length\t: 1\r\n\r\n"), AW_HTTP_FLAW_SPACE_BEFORE_COLON);
	assert_int_equal(flaw_of("Transfer-Encoding : chunked\r\n\r\n"),
			 AW_HTTP_FLAW_SPACE_BEFORE_COLON);
}

static void refuses_two_hosts_in_requests_alone(void **state)
{
	(void)state;
	assert_int_equal(flaw_of("Host: a\r\nhost: a\r\n\r\n"), AW_HTTP_FLAW_HOST_TWICE);
	assert_int_equal(response_flaw_of("Host: a\r\nhost: a\r\n\r\n"), AW_HTTP_FLAW_NONE);
}

static void refuses_two_lengths_even_when_they_are_equal(void **state)
{
	(void)state;
	assert_int_equal(flaw_of("Content-Length: 5\r\nContent-Length: 5\r\n\r\n"),
			 AW_HTTP_FLAW_LENGTH_TWICE);
	assert_int_equal(flaw_of("Content-Length: 5\r\nA: b\r\ncontent-length: 6\r\n\r\n"),
			 AW_HTTP_FLAW_LENGTH_TWICE);
	assert_int_equal(flaw_of("Content-Length: 5, 5\r\n\r\n"), AW_HTTP_FLAW_LENGTH);
}

static void refuses_lengths_that_are_not_plain_digits(void **state)
{
	static const char *const lengths[] = {
		"",
		"+5",
		"-5",
		"0x5",
		"5 5",
		"5;",
		"05",
		"5.0",
		"5e3",
		"\"5\"",
		"5,",
		"1_0",
		"\xd9\xa5",
		"9223372036854775808",
		"18446744073709551616",
		"99999999999999999999999999",
		" ",
	};
	char fields[128];

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(lengths); i++) {
		assert_true(aw_str_format(fields, sizeof(fields), "Content-Length: %s\r\n\r\n",
					  lengths[i]) > 0);
		assert_int_equal(flaw_of(fields), AW_HTTP_FLAW_LENGTH);
	}
}

static void reads_lengths_up_to_their_maximum(void **state)
{
	struct aw_http_facts facts;

	(void)state;
	assert_int_equal(read_request_fields("Content-Length:9223372036854775807\r\n\r\n", &facts),
			 0);
	assert_true(facts.content_length == INT64_MAX);
	assert_int_equal(read_request_fields("CONTENT-LENGTH: \t0 \r\n\r\n", &facts), 0);
	assert_true(facts.has_length && facts.content_length == 0);
}

static void refuses_every_coding_but_one_chunked(void **state)
{
	static const char *const codings[] = {
		"xchunked",
		"chunked, chunked",
		"gzip, chunked",
		"chunked, identity",
		"identity",
		"",
		",chunked",
		"chunked;q=1",
		"\"chunked\"",
		"chunked,",
		"chunk",
		"gzip",
		"\x0b"
		"chunked",
		"chunked\xa0",
	};
	char fields[128];

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(codings); i++) {
		assert_true(aw_str_format(fields, sizeof(fields), "Transfer-Encoding: %s\r\n\r\n",
					  codings[i]) > 0);
		assert_int_equal(flaw_of(fields), AW_HTTP_FLAW_CODING);
		assert_int_equal(response_flaw_of(fields), AW_HTTP_FLAW_CODING);
	}
	assert_int_equal(
		flaw_of("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
		AW_HTTP_FLAW_CODING);
	assert_int_equal(flaw_of("transfer-encoding:Chunked\r\n\r\n"), AW_HTTP_FLAW_NONE);
}

static void refuses_a_length_beside_a_coding_in_either_order(void **state)
{
	(void)state;
	assert_int_equal(flaw_of("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"),
			 AW_HTTP_FLAW_LENGTH_AND_CODING);
	assert_int_equal(flaw_of("Transfer-Encoding: chunked\r\nA: b\r\nContent-Length: 0\r\n\r\n"),
			 AW_HTTP_FLAW_LENGTH_AND_CODING);
	assert_int_equal(
		response_flaw_of("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n"),
		AW_HTTP_FLAW_LENGTH_AND_CODING);
}

static void refuses_a_request_that_has_host_or_framing_dropped(void **state)
{
	(void)state;
	assert_int_equal(flaw_of("Connection: close, Host\r\n\r\n"), AW_HTTP_FLAW_CONNECTION);
	assert_int_equal(flaw_of("Connection: content-length\r\n\r\n"), AW_HTTP_FLAW_CONNECTION);
	assert_int_equal(flaw_of("Connection: TRANSFER-ENCODING\r\n\r\n"), AW_HTTP_FLAW_CONNECTION);
	assert_int_equal(response_flaw_of("Connection: Transfer-Encoding\r\n\r\n"),
			 AW_HTTP_FLAW_NONE);
}

static void refuses_a_connection_that_is_no_list_of_tokens(void **state)
{
	char many[] = "Connection: ,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,\r\n\r\n";

	(void)state;
	assert_int_equal(flaw_of("Connection: a b\r\n\r\n"), AW_HTTP_FLAW_CONNECTION);
	assert_int_equal(flaw_of("Connection: \"close\"\r\n\r\n"), AW_HTTP_FLAW_CONNECTION);
	assert_int_equal(flaw_of("Connection: , close,,\r\n\r\n"), AW_HTTP_FLAW_NONE);
	assert_int_equal(flaw_of(many), AW_HTTP_FLAW_CONNECTION);
}

static void a_connection_is_kept_as_version_and_options_say(void **state)
{
	static const struct {
		const char *fields;
		bool is_kept_1_0, is_kept_1_1;
	} cases[] = {
		{ "\r\n", false, true },
		{ "Connection: close\r\n\r\n", false, false },
		{ "Connection: Keep-Alive\r\n\r\n", true, true },
		{ "Connection: keep-alive\r\nConnection: a, CLOSE\r\n\r\n", false, false },
		{ "Proxy-Connection: keep-alive\r\n\r\n", false, true },
		{ "Connection: closed\r\n\r\n", false, true },
	};
	struct aw_http_facts facts;

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(cases); i++) {
		assert_int_equal(read_request_fields(cases[i].fields, &facts), AW_HTTP_FLAW_NONE);
		assert_int_equal(aw_http_facts_keep(&facts, 0), cases[i].is_kept_1_0);
		assert_int_equal(aw_http_facts_keep(&facts, 1), cases[i].is_kept_1_1);
	}
}

static void knows_a_websocket_only_as_the_one_protocol_asked_for(void **state)
{
	static const struct {
		const char *fields;
		bool is_websocket;
	} cases[] = {
		{ "Upgrade: WebSocket\r\n\r\n", true },
		{ "Upgrade: h2c\r\n\r\n", false },
		{ "Upgrade: websocket, h2c\r\n\r\n", false },
		{ "Upgrade: h2c\r\nUpgrade: websocket\r\n\r\n", false },
		{ "Upgrade: websocket\r\nUpgrade: websocket\r\n\r\n", false },
	};
	struct aw_http_facts facts;

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(cases); i++) {
		assert_int_equal(read_request_fields(cases[i].fields, &facts), AW_HTTP_FLAW_NONE);
		assert_int_equal(facts.is_websocket, cases[i].is_websocket);
	}
}

static void knows_just_two_versions(void **state)
{
	static const char *const others[] = { "HTTP/0.9", "HTTP/2.0", "HTTP/1.2",  "HTTP/1.10",
					      "HTTP/1.",  "http/1.1", "HTTP/01.1", "HTTP/1.1 ",
					      "",         "HTTP/3" };
	uint8_t minor = 7;

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(others); i++)
		assert_false(aw_http_version_parse(aw_str_from(others[i]), &minor));
	assert_int_equal(minor, 7);
	assert_true(aw_http_version_parse(AW_STR("HTTP/1.0"), &minor));
	assert_int_equal(minor, 0);
	assert_true(aw_http_version_parse(AW_STR("HTTP/1.1"), &minor));
	assert_int_equal(minor, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_names_that_are_no_tokens),
		cmocka_unit_test(refuses_a_blank_before_the_colon),
		cmocka_unit_test(refuses_two_hosts_in_requests_alone),
		cmocka_unit_test(refuses_two_lengths_even_when_they_are_equal),
		cmocka_unit_test(refuses_lengths_that_are_not_plain_digits),
		cmocka_unit_test(reads_lengths_up_to_their_maximum),
		cmocka_unit_test(refuses_every_coding_but_one_chunked),
		cmocka_unit_test(refuses_a_length_beside_a_coding_in_either_order),
		cmocka_unit_test(refuses_a_request_that_has_host_or_framing_dropped),
		cmocka_unit_test(refuses_a_connection_that_is_no_list_of_tokens),
		cmocka_unit_test(a_connection_is_kept_as_version_and_options_say),
		cmocka_unit_test(knows_a_websocket_only_as_the_one_protocol_asked_for),
		cmocka_unit_test(knows_just_two_versions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
