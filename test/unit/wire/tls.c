#include "wire/tls.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"

/* A ClientHello under construction: first its extensions, then all of it, cut into records. */
struct hello {
	char extensions[4096];
	size_t extensions_len;
	char message[8192];
	size_t message_len;
	char records[16384];
	size_t len;
};

static void put(char *out, size_t *len, const void *bytes, size_t n)
{
	memcpy(out + *len, bytes, n);
	*len += n;
}

static void put_u16(char *out, size_t *len, size_t value)
{
	out[(*len)++] = (char)(value >> 8);
	out[(*len)++] = (char)value;
}

static void add_extension(struct hello *h, unsigned type, struct aw_str data)
{
	put_u16(h->extensions, &h->extensions_len, type);
	put_u16(h->extensions, &h->extensions_len, data.len);
	put(h->extensions, &h->extensions_len, data.ptr, data.len);
}

static void add_server_name(struct hello *h, struct aw_str name)
{
	char data[2048];
	size_t len = 0;

	put_u16(data, &len, name.len + 3);
	put(data, &len, "\0", 1);
	put_u16(data, &len, name.len);
	put(data, &len, name.ptr, name.len);
	add_extension(h, 0, (struct aw_str){ data, len });
}

/* @front: version to compression methods. Leaves the extensions away when there are none. */
static void build_message(struct hello *h, struct aw_str front)
{
	size_t body = front.len + (h->extensions_len > 0 ? 2 + h->extensions_len : 0);

	h->message_len = 0;
	put(h->message, &h->message_len, "\1\0", 2);
	put_u16(h->message, &h->message_len, body);
	put(h->message, &h->message_len, front.ptr, front.len);
	if (h->extensions_len == 0)
		return;
	put_u16(h->message, &h->message_len, h->extensions_len);
	put(h->message, &h->message_len, h->extensions, h->extensions_len);
}

static void build_records(struct hello *h, size_t fragment)
{
	h->len = 0;
	for (size_t at = 0; at < h->message_len; at += fragment) {
		size_t n = h->message_len - at < fragment ? h->message_len - at : fragment;

		put(h->records, &h->len, "\x16\3\1", 3);
		put_u16(h->records, &h->len, n);
		put(h->records, &h->len, h->message + at, n);
	}
}

#define RANDOM "0123456789abcdef0123456789abcdef"
#define FRONT AW_STR("\3\3" RANDOM "\0\0\2\x13\1\1\0")

static struct aw_str build(struct hello *h)
{
	build_message(h, FRONT);
	build_records(h, 16384);
	return (struct aw_str){ h->records, h->len };
}

static ssize_t parse(struct aw_str bytes, struct aw_tls_hello *ret, enum aw_tls_flaw *ret_flaw)
{
	struct aw_tls_hello other = { 0 };
	enum aw_tls_flaw piecewise = AW_TLS_FLAW_NONE;
	ssize_t r, s = -EAGAIN;

	*ret = (struct aw_tls_hello){ 0 };
	*ret_flaw = AW_TLS_FLAW_NONE;
	r = aw_tls_hello_parse(bytes, ret, ret_flaw);
	for (size_t n = 0; n <= bytes.len && s == -EAGAIN; n++)
		s = aw_tls_hello_parse((struct aw_str){ bytes.ptr, n }, &other, &piecewise);
	assert_int_equal(r, s);
	assert_int_equal(piecewise, *ret_flaw);
	assert_string_equal(other.server_name, ret->server_name);
	return r;
}

static struct aw_tls_hello accept(struct aw_str bytes)
{
	struct aw_tls_hello hello;
	enum aw_tls_flaw flaw;
	ssize_t r = parse(bytes, &hello, &flaw);

	if (r < 0)
		fail_msg("%zd: %s", r, aw_tls_flaw_text(flaw));
	assert_int_equal(r, hello.len);
	return hello;
}

static enum aw_tls_flaw flaw_of(struct aw_str bytes)
{
	struct aw_tls_hello hello;
	enum aw_tls_flaw flaw;

	assert_int_equal(parse(bytes, &hello, &flaw), -EBADMSG);
	assert_int_equal(hello.len, 0);
	return flaw;
}

/* Flaw of a hello with this one extension. */
static enum aw_tls_flaw flaw_with(unsigned type, struct aw_str data)
{
	struct hello h = { .len = 0 };

	add_extension(&h, type, data);
	return flaw_of(build(&h));
}

static struct aw_str typical(struct hello *h)
{
	*h = (struct hello){ .len = 0 };
	add_extension(h, 0x1a1a, AW_STR(""));
	add_server_name(h, AW_STR("PyPI.org"));
	add_extension(h, 16, AW_STR("\0\14\2h2\10http/1.1"));
	add_extension(h, 43, AW_STR("\6\x7a\x7a\3\4\3\3"));
	add_extension(h, 0xfe0d, AW_STR("\0\0\1\0\1"));
	return build(h);
}

static void reads_what_a_hello_says(void **state)
{
	struct hello h;
	struct aw_tls_hello hello = accept(typical(&h));
	struct aw_str protocol;
	size_t offset = 0;

	(void)state;
	assert_int_equal(hello.len, h.len);
	assert_true(hello.has_server_name);
	assert_string_equal(hello.server_name, "PyPI.org");
	assert_int_equal(hello.server_name_len, 8);
	assert_true(hello.has_ech);
	assert_int_equal(hello.legacy_version, 0x0303);
	assert_int_equal(hello.max_version, 0x0304);
	assert_true(aw_tls_alpn_next(&hello, &offset, &protocol));
	assert_true(aw_str_is(protocol, "h2"));
	assert_true(aw_tls_alpn_next(&hello, &offset, &protocol));
	assert_true(aw_str_is(protocol, "http/1.1"));
	assert_false(aw_tls_alpn_next(&hello, &offset, &protocol));
}

static void a_hello_may_say_nothing(void **state)
{
	struct hello h = { .len = 0 };
	struct aw_tls_hello hello = accept(build(&h));
	struct aw_str protocol;
	size_t offset = 0;

	(void)state;
	assert_false(hello.has_server_name);
	assert_false(hello.has_ech);
	assert_int_equal(hello.max_version, 0x0303);
	assert_false(aw_tls_alpn_next(&hello, &offset, &protocol));
}

static void a_hello_may_be_spread_over_records(void **state)
{
	struct hello h;

	(void)state;
	(void)typical(&h);
	for (size_t fragment = (h.message_len + 15) / 16; fragment < h.message_len; fragment++) {
		struct aw_tls_hello hello;

		build_records(&h, fragment);
		hello = accept((struct aw_str){ h.records, h.len });
		assert_string_equal(hello.server_name, "PyPI.org");
		assert_int_equal(hello.alpn_len, 12);
		assert_int_equal(hello.max_version, 0x0304);
		assert_int_equal(hello.len, h.len);
	}
}

static void refuses_more_records_than_any_client_sends(void **state)
{
	struct hello h;

	(void)state;
	(void)typical(&h);
	build_records(&h, h.message_len / 17);
	assert_int_equal(flaw_of((struct aw_str){ h.records, h.len }), AW_TLS_FLAW_SIZE);
}

static void bytes_of_later_records_are_left_alone(void **state)
{
	struct hello h;
	struct aw_str bytes = typical(&h);

	(void)state;
	memcpy(h.records + h.len, "\x17\3\3\0\1x", 6);
	assert_int_equal(accept((struct aw_str){ bytes.ptr, bytes.len + 6 }).len, bytes.len);
}

static void tells_other_protocols_with_their_first_bytes(void **state)
{
	static const struct aw_str others[] = {
		AW_STR("GET / HTTP/1.1\r\n"),
		AW_STR("SSH-2.0-x\r\n"),
		AW_STR("\x80\x2e\1\0\2"),
		AW_STR("\x17\3\3\0\1x"),
		AW_STR("\x15\3\1\0\2"),
		AW_STR("\x16\2\0\0\5"),
		AW_STR("\x16\3\5\0\5"),
		AW_STR("\0"),
		AW_STR("\x16GET"),
	};
	struct aw_tls_hello hello;
	enum aw_tls_flaw flaw;

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(others); i++) {
		assert_int_equal(parse(others[i], &hello, &flaw), -EPROTONOSUPPORT);
		assert_int_equal(flaw, AW_TLS_FLAW_NOT_TLS);
	}
	assert_int_equal(parse((struct aw_str){ NULL, 0 }, &hello, &flaw), -EAGAIN);
	assert_int_equal(parse(AW_STR("\x16\3\4\0"), &hello, &flaw), -EAGAIN);
}

static void refuses_empty_over_long_and_foreign_records(void **state)
{
	struct hello h;

	(void)state;
	assert_int_equal(flaw_of(AW_STR("\x16\3\1\0\0")), AW_TLS_FLAW_RECORD);
	assert_int_equal(flaw_of(AW_STR("\x16\3\1\x40\1")), AW_TLS_FLAW_RECORD);
	(void)typical(&h);
	build_records(&h, h.message_len - 5);
	h.records[h.len - 10] = 0x17;
	assert_int_equal(flaw_of((struct aw_str){ h.records, h.len }), AW_TLS_FLAW_RECORD);
	h.records[h.len - 10] = 0x14;
	assert_int_equal(flaw_of((struct aw_str){ h.records, h.len }), AW_TLS_FLAW_RECORD);
	h.records[h.len - 10] = 0x16;
	h.records[h.len - 6] = 0;
	assert_int_equal(flaw_of((struct aw_str){ h.records, h.len }), AW_TLS_FLAW_RECORD);
}

static void refuses_other_handshake_messages(void **state)
{
	(void)state;
	assert_int_equal(flaw_of(AW_STR("\x16\3\1\0\1\2")), AW_TLS_FLAW_HANDSHAKE);
	assert_int_equal(flaw_of(AW_STR("\x16\3\1\0\4\0\0\0\0")), AW_TLS_FLAW_HANDSHAKE);
}

static void refuses_bytes_behind_the_hello_in_its_record(void **state)
{
	struct hello h;

	(void)state;
	(void)typical(&h);
	h.message[h.message_len++] = 0;
	build_records(&h, 16384);
	assert_int_equal(flaw_of((struct aw_str){ h.records, h.len }), AW_TLS_FLAW_HANDSHAKE);
}

static void refuses_a_hello_over_its_maximum(void **state)
{
	autofree char *bytes = calloc(1, AW_TLS_HELLO_MAX + 16384);
	struct aw_tls_hello hello;
	enum aw_tls_flaw flaw;
	size_t len = 0;

	(void)state;
	assert_non_null(bytes);
	assert_int_equal(flaw_of(AW_STR("\x16\3\1\0\4\1\1\0\0")), AW_TLS_FLAW_SIZE);
	/* The message says it fits, but with the record headers it does not. */
	for (int i = 0; i < 4; i++, len += 5 + 16384)
		memcpy(bytes + len, "\x16\3\1\x40\0", 5);
	memcpy(bytes + 5, "\1\0\xff\xfc", 4);
	assert_int_equal(
		aw_tls_hello_parse((struct aw_str){ bytes, 3 * (5 + 16384) }, &hello, &flaw),
		-EAGAIN);
	assert_int_equal(aw_tls_hello_parse((struct aw_str){ bytes, len }, &hello, &flaw),
			 -EBADMSG);
	assert_int_equal(flaw, AW_TLS_FLAW_SIZE);
}

static void refuses_lengths_that_point_outside(void **state)
{
	static const struct aw_str fronts[] = {
		AW_STR("\3"),
		AW_STR("\3\3"
		       "0123"),
		AW_STR("\3\3" RANDOM),
		AW_STR("\3\3" RANDOM "\x21" RANDOM "x\0\2\x13\1\1\0"),
		AW_STR("\3\3" RANDOM "\5\0"),
		AW_STR("\3\3" RANDOM "\0\0\0\1\0"),
		AW_STR("\3\3" RANDOM "\0\0\3\x13\1\x13\1\0"),
		AW_STR("\3\3" RANDOM "\0\0\x20\x13\1\1\0"),
		AW_STR("\3\3" RANDOM "\0\0\2\x13\1\0"),
		AW_STR("\3\3" RANDOM "\0\0\2\x13\1\2\0"),
		AW_STR("\2\3" RANDOM "\0\0\2\x13\1\1\0"),
		AW_STR("\3\3" RANDOM "\0\0\2\x13\1"),
	};
	struct hello h = { .len = 0 };

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(fronts); i++) {
		build_message(&h, fronts[i]);
		build_records(&h, 16384);
		assert_int_equal(flaw_of((struct aw_str){ h.records, h.len }), AW_TLS_FLAW_BODY);
	}
}

static void refuses_extensions_that_do_not_fill_their_list(void **state)
{
	static const struct aw_str fronts[] = {
		AW_STR("\3\3" RANDOM "\0\0\2\x13\1\1\0\0"),
		AW_STR("\3\3" RANDOM "\0\0\2\x13\1\1\0\0\1"),
		AW_STR("\3\3" RANDOM "\0\0\2\x13\1\1\0\0\0x"),
		AW_STR("\3\3" RANDOM "\0\0\2\x13\1\1\0\0\3\0\1\0"),
		AW_STR("\3\3" RANDOM "\0\0\2\x13\1\1\0\0\4\0\1\0\1"),
		AW_STR("\3\3" RANDOM "\0\0\2\x13\1\1\0\0\5\0\1\0\0x"),
	};
	struct hello h = { .len = 0 };

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(fronts); i++) {
		build_message(&h, fronts[i]);
		build_records(&h, 16384);
		assert_int_equal(flaw_of((struct aw_str){ h.records, h.len }),
				 AW_TLS_FLAW_EXTENSIONS);
	}
}

static void refuses_the_same_extension_twice_and_too_many(void **state)
{
	struct hello h = { .len = 0 };

	(void)state;
	add_server_name(&h, AW_STR("a.com"));
	add_extension(&h, 10, AW_STR(""));
	add_server_name(&h, AW_STR("b.com"));
	assert_int_equal(flaw_of(build(&h)), AW_TLS_FLAW_EXTENSIONS);
	h = (struct hello){ .len = 0 };
	for (unsigned i = 0; i < AW_TLS_EXTENSIONS_MAX; i++)
		add_extension(&h, 0x1000 + i, AW_STR(""));
	(void)accept(build(&h));
	add_extension(&h, 0x2000, AW_STR(""));
	assert_int_equal(flaw_of(build(&h)), AW_TLS_FLAW_EXTENSIONS);
}

static void refuses_server_names_that_are_not_one_name(void **state)
{
	static const struct aw_str lists[] = {
		AW_STR(""),
		AW_STR("\0"),
		AW_STR("\0\0"),
		AW_STR("\0\3\0\0\0"),
		AW_STR("\0\4\0\0\2a"),
		AW_STR("\0\4\1\0\1a"),
		AW_STR("\0\5\0\0\1ab"),
		AW_STR("\0\4\0\0\1ab"),
		AW_STR("\0\10\0\0\1a\0\0\1b"),
		AW_STR("\0\10\0\0\1a\1\0\1b"),
		AW_STR("\0\5\0\0\1a"),
		AW_STR("\0\3\0\0\1a"),
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(lists); i++)
		assert_int_equal(flaw_with(0, lists[i]), AW_TLS_FLAW_SERVER_NAME);
}

static void refuses_server_names_that_hide_another_or_are_literals(void **state)
{
	static const struct aw_str names[] = {
		AW_STR("evil.com\0.github.com"),
		AW_STR("a.com\0"),
		AW_STR("a.com."),
		AW_STR("a..com"),
		AW_STR(".a"),
		AW_STR("a b"),
		AW_STR("a%00b"),
		AW_STR("u@a"),
		AW_STR("b\xc3\xbc"
		       "cher.de"),
		AW_STR("1.2.3.4"),
		AW_STR("2130706433"),
		AW_STR("0x7f.1"),
		AW_STR("[::1]"),
		AW_STR("::1"),
		AW_STR("a:443"),
		AW_STR("*.a.com"),
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(names); i++) {
		struct hello h = { .len = 0 };

		add_server_name(&h, names[i]);
		assert_int_equal(flaw_of(build(&h)), AW_TLS_FLAW_SERVER_NAME);
	}
}

static void a_server_name_has_at_most_253_bytes(void **state)
{
	static const size_t too_long[] = { 254, 255, 256, 300, 1024 };
	struct hello h = { .len = 0 };
	char name[1024];

	(void)state;
	memset(name, 'a', sizeof(name));
	for (size_t i = 60; i < sizeof(name); i += 60)
		name[i] = '.';
	add_server_name(&h, (struct aw_str){ name, 253 });
	assert_int_equal(accept(build(&h)).server_name_len, 253);
	for (size_t i = 0; i < AW_ARRAY_LEN(too_long); i++) {
		h = (struct hello){ .len = 0 };
		add_server_name(&h, (struct aw_str){ name, too_long[i] });
		assert_int_equal(flaw_of(build(&h)), AW_TLS_FLAW_SERVER_NAME);
	}
}

static void refuses_malformed_protocol_lists(void **state)
{
	static const struct aw_str lists[] = {
		AW_STR(""),         AW_STR("\0"),         AW_STR("\0\0"),
		AW_STR("\0\1\0"),   AW_STR("\0\2\2h"),    AW_STR("\0\3\2h2x"),
		AW_STR("\0\4\2h2"), AW_STR("\0\4\2h2\0"), AW_STR("\0\5\2h2\2h"),
	};
	char many[2 + 256] = "\1";

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(lists); i++)
		assert_int_equal(flaw_with(16, lists[i]), AW_TLS_FLAW_ALPN);
	for (size_t i = 2; i < sizeof(many); i += 2)
		memcpy(many + i, "\1x", 2);
	assert_int_equal(flaw_with(16, (struct aw_str){ many, sizeof(many) }), AW_TLS_FLAW_ALPN);
}

static void refuses_malformed_version_lists(void **state)
{
	static const struct aw_str lists[] = { AW_STR(""),         AW_STR("\0"),
					       AW_STR("\1\3"),     AW_STR("\2\3"),
					       AW_STR("\3\3\4\3"), AW_STR("\2\3\4\3\3") };

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(lists); i++)
		assert_int_equal(flaw_with(43, lists[i]), AW_TLS_FLAW_VERSIONS);
}

static void reserved_versions_do_not_count(void **state)
{
	struct hello h = { .len = 0 };

	(void)state;
	add_extension(&h, 43, AW_STR("\6\xfa\xfa\3\2\3\1"));
	assert_int_equal(accept(build(&h)).max_version, 0x0302);
	h = (struct hello){ .len = 0 };
	add_extension(&h, 43, AW_STR("\2\xfa\xfa"));
	assert_int_equal(accept(build(&h)).max_version, 0x0303);
}

static void every_flaw_has_a_text(void **state)
{
	(void)state;
	for (int flaw = 0; flaw < AW_TLS_FLAW_COUNT; flaw++)
		assert_true(strlen(aw_tls_flaw_text((enum aw_tls_flaw)flaw)) > 5);
	assert_string_equal(aw_tls_flaw_text(AW_TLS_FLAW_COUNT), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_a_hello_says),
		cmocka_unit_test(a_hello_may_say_nothing),
		cmocka_unit_test(a_hello_may_be_spread_over_records),
		cmocka_unit_test(refuses_more_records_than_any_client_sends),
		cmocka_unit_test(bytes_of_later_records_are_left_alone),
		cmocka_unit_test(tells_other_protocols_with_their_first_bytes),
		cmocka_unit_test(refuses_empty_over_long_and_foreign_records),
		cmocka_unit_test(refuses_other_handshake_messages),
		cmocka_unit_test(refuses_bytes_behind_the_hello_in_its_record),
		cmocka_unit_test(refuses_a_hello_over_its_maximum),
		cmocka_unit_test(refuses_lengths_that_point_outside),
		cmocka_unit_test(refuses_extensions_that_do_not_fill_their_list),
		cmocka_unit_test(refuses_the_same_extension_twice_and_too_many),
		cmocka_unit_test(refuses_server_names_that_are_not_one_name),
		cmocka_unit_test(refuses_server_names_that_hide_another_or_are_literals),
		cmocka_unit_test(a_server_name_has_at_most_253_bytes),
		cmocka_unit_test(refuses_malformed_protocol_lists),
		cmocka_unit_test(refuses_malformed_version_lists),
		cmocka_unit_test(reserved_versions_do_not_count),
		cmocka_unit_test(every_flaw_has_a_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
