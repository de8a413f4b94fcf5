#include "wire/socks.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"

static ssize_t parse(struct aw_str bytes, struct aw_hostport *ret, enum aw_socks_reply *ret_reply)
{
	struct aw_hostport other = { 0 };
	enum aw_socks_reply piecewise = AW_SOCKS_OK;
	ssize_t r, s = -EAGAIN;

	*ret_reply = AW_SOCKS_OK;
	r = aw_socks_request_parse(bytes, ret, ret_reply);
	for (size_t n = 0; n <= bytes.len && s == -EAGAIN; n++)
		s = aw_socks_request_parse((struct aw_str){ bytes.ptr, n }, &other, &piecewise);
	assert_int_equal(r, s);
	assert_int_equal(piecewise, *ret_reply);
	return r;
}

static enum aw_socks_reply reply_of(struct aw_str bytes)
{
	struct aw_hostport peer = { .port = 7 };
	enum aw_socks_reply reply;

	assert_int_equal(parse(bytes, &peer, &reply), -EBADMSG);
	assert_int_equal(peer.port, 7);
	return reply;
}

static void a_greeting_is_open_if_it_offers_no_authentication(void **state)
{
	bool is_open = false;

	(void)state;
	assert_int_equal(aw_socks_greeting_parse(AW_STR("\5\1\0"), &is_open), 3);
	assert_true(is_open);
	assert_int_equal(aw_socks_greeting_parse(AW_STR("\5\2\2\1\0"), &is_open), 4);
	assert_false(is_open);
	assert_int_equal(aw_socks_greeting_parse(AW_STR("\5\3\2\1\0rest"), &is_open), 5);
	assert_true(is_open);
}

static void a_greeting_waits_until_it_is_whole(void **state)
{
	bool is_open = false;

	(void)state;
	assert_int_equal(aw_socks_greeting_parse((struct aw_str){ NULL, 0 }, &is_open), -EAGAIN);
	assert_int_equal(aw_socks_greeting_parse(AW_STR("\5"), &is_open), -EAGAIN);
	assert_int_equal(aw_socks_greeting_parse(AW_STR("\5\2\0"), &is_open), -EAGAIN);
	assert_false(is_open);
}

static void refuses_greetings_without_methods_or_of_another_version(void **state)
{
	bool is_open = false;

	(void)state;
	assert_int_equal(aw_socks_greeting_parse(AW_STR("\5\0"), &is_open), -EBADMSG);
	assert_int_equal(aw_socks_greeting_parse(AW_STR("\4\1\0"), &is_open), -EPROTONOSUPPORT);
	assert_int_equal(aw_socks_greeting_parse(AW_STR("GET "), &is_open), -EPROTONOSUPPORT);
}

static void reads_a_name(void **state)
{
	struct aw_hostport peer;
	enum aw_socks_reply reply;

	(void)state;
	assert_int_equal(parse(AW_STR("\5\1\0\3\10PyPI.org\1\273TLS"), &peer, &reply), 15);
	assert_int_equal(peer.host.kind, AW_HOST_NAME);
	assert_true(aw_str_is(peer.host.text, "PyPI.org"));
	assert_int_equal(peer.port, 443);
}

static void reads_addresses(void **state)
{
	static const uint8_t v4[16] = { 198, 18, 0, 7 };
	static const uint8_t v6[16] = { 0x20, 1, [15] = 1 };
	struct aw_hostport peer;
	enum aw_socks_reply reply;

	(void)state;
	assert_int_equal(parse(AW_STR("\5\1\0\1\306\22\0\7\0\120"), &peer, &reply), 10);
	assert_int_equal(peer.host.kind, AW_HOST_IPV4);
	assert_memory_equal(peer.host.address, v4, 16);
	assert_int_equal(peer.host.text.len, 0);
	assert_int_equal(peer.port, 80);
	assert_int_equal(
		parse(AW_STR("\5\1\0\4\40\1\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\26"), &peer, &reply), 22);
	assert_int_equal(peer.host.kind, AW_HOST_IPV6);
	assert_memory_equal(peer.host.address, v6, 16);
	assert_int_equal(peer.port, 22);
}

static void tells_numbers_sent_as_names(void **state)
{
	struct aw_hostport peer;
	enum aw_socks_reply reply;

	(void)state;
	assert_int_equal(parse(AW_STR("\5\1\0\3\011127.0.0.1\0\120"), &peer, &reply), 16);
	assert_int_equal(peer.host.kind, AW_HOST_IPV4);
	assert_int_equal(parse(AW_STR("\5\1\0\3\0060x7f.1\0\120"), &peer, &reply), 13);
	assert_int_equal(peer.host.kind, AW_HOST_ODD_NUMBER);
}

static void refuses_names_that_hide_another(void **state)
{
	static const char *const names[] = { "a b",    "a%00b", "u@a", "a#b",  "a\\b", "a..b",
					     "a\r\nb", "[::1]", "::1", "a:80", "a/b",  "\xff" };
	char request[64];

	(void)state;
	assert_int_equal(reply_of(AW_STR("\5\1\0\3\24evil.com\0.github.com\1\273")),
			 AW_SOCKS_FAILED);
	assert_int_equal(reply_of(AW_STR("\5\1\0\3\0\1\273")), AW_SOCKS_FAILED);
	for (size_t i = 0; i < AW_ARRAY_LEN(names); i++) {
		size_t len = strlen(names[i]);

		memcpy(request, "\5\1\0\3", 4);
		request[4] = (char)len;
		memcpy(request + 5, names[i], len);
		memcpy(request + 5 + len, "\1\273", 2);
		assert_int_equal(reply_of((struct aw_str){ request, len + 7 }), AW_SOCKS_FAILED);
	}
}

static void refuses_port_zero(void **state)
{
	(void)state;
	assert_int_equal(reply_of(AW_STR("\5\1\0\3\1a\0\0")), AW_SOCKS_FAILED);
}

static void refuses_everything_but_connect_to_a_known_type(void **state)
{
	struct aw_hostport peer;
	enum aw_socks_reply reply;

	(void)state;
	assert_int_equal(reply_of(AW_STR("\5\2\0\3\1a\0\120")), AW_SOCKS_COMMAND);
	assert_int_equal(reply_of(AW_STR("\5\3\0\1\0\0\0\0\0\120")), AW_SOCKS_COMMAND);
	assert_int_equal(reply_of(AW_STR("\5\1\1\3\1a\0\120")), AW_SOCKS_FAILED);
	assert_int_equal(reply_of(AW_STR("\5\1\0\2\1a\0\120")), AW_SOCKS_ADDRESS_TYPE);
	assert_int_equal(reply_of(AW_STR("\5\1\0\0")), AW_SOCKS_ADDRESS_TYPE);
	assert_int_equal(parse(AW_STR("\4\1\0\120"), &peer, &reply), -EPROTONOSUPPORT);
}

static void replies_are_what_the_protocol_says(void **state)
{
	static const uint8_t expected[] = { 5, 2, 0, 1, 0, 0, 0, 0, 0, 0 };
	uint8_t method[AW_SOCKS_METHOD_LEN], reply[AW_SOCKS_REPLY_LEN];

	(void)state;
	aw_socks_method_write(true, method);
	assert_memory_equal(method, "\5\0", 2);
	aw_socks_method_write(false, method);
	assert_memory_equal(method, "\5\377", 2);
	aw_socks_reply_write(AW_SOCKS_NOT_ALLOWED, reply);
	assert_memory_equal(reply, expected, sizeof(expected));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_greeting_is_open_if_it_offers_no_authentication),
		cmocka_unit_test(a_greeting_waits_until_it_is_whole),
		cmocka_unit_test(refuses_greetings_without_methods_or_of_another_version),
		cmocka_unit_test(reads_a_name),
		cmocka_unit_test(reads_addresses),
		cmocka_unit_test(tells_numbers_sent_as_names),
		cmocka_unit_test(refuses_names_that_hide_another),
		cmocka_unit_test(refuses_port_zero),
		cmocka_unit_test(refuses_everything_but_connect_to_a_known_type),
		cmocka_unit_test(replies_are_what_the_protocol_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
