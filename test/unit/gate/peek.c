#include "gate/peek.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"

#define NAME "a.example"

struct hello {
	char bytes[512];
	size_t len;
};

static void put16(struct hello *h, size_t at, size_t value)
{
	h->bytes[at] = (char)(value >> 8);
	h->bytes[at + 1] = (char)value;
}

/* A ClientHello with this server name, or with none (NULL); @has_ech adds the extension 0xfe0d. */
static struct hello make_hello(const char *name, bool has_ech)
{
	struct hello h = { .bytes = { 0x16, 3, 1, 0, 0, 1, 0, 0, 0, 3, 3 }, .len = 11 };
	size_t name_len = name != NULL ? strlen(name) : 0, extensions;

	h.len += 32;                                  /* random */
	h.bytes[h.len++] = 0;                         /* session id */
	memcpy(h.bytes + h.len, "\0\2\x13\1\1\0", 6); /* one cipher, null compression */
	h.len += 6;
	extensions = h.len;
	h.len += 2;
	if (name != NULL) {
		put16(&h, h.len, 0);
		put16(&h, h.len + 2, name_len + 5);
		put16(&h, h.len + 4, name_len + 3);
		h.bytes[h.len + 6] = 0;
		put16(&h, h.len + 7, name_len);
		memcpy(h.bytes + h.len + 9, name, name_len);
		h.len += 9 + name_len;
	}
	if (has_ech) {
		memcpy(h.bytes + h.len, "\xfe\x0d\0\1\0", 5);
		h.len += 5;
	}
	put16(&h, extensions, h.len - extensions - 2);
	put16(&h, 3, h.len - 5);
	put16(&h, 7, h.len - 9);
	return h;
}

static enum aw_peek look(const char *bytes, size_t len, uint16_t port, struct aw_peek_refusal *ret)
{
	memset(ret, 0, sizeof(*ret));
	return aw_peek_look((struct aw_str){ bytes, len }, port, NAME, ret);
}

static void tls_for_the_granted_name_passes_on_any_port(void **state)
{
	static const char *const spellings[] = { NAME, "A.Example" };
	struct aw_peek_refusal refusal;

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(spellings); i++) {
		struct hello h = make_hello(spellings[i], false);

		assert_int_equal(look(h.bytes, h.len, 443, &refusal), AW_PEEK_PASS);
		assert_int_equal(look(h.bytes, h.len, 80, &refusal), AW_PEEK_PASS);
		assert_int_equal(look(h.bytes, h.len, 8443, &refusal), AW_PEEK_PASS);
	}
}

static void tls_for_another_name_or_none_is_refused_on_any_port(void **state)
{
	static const char *const names[] = { "b.example", "evil.a.example", NULL };
	struct aw_peek_refusal refusal;

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(names); i++) {
		struct hello h = make_hello(names[i], false);

		for (uint16_t port = 442; port < 445; port++) {
			assert_int_equal(look(h.bytes, h.len, port, &refusal), AW_PEEK_REFUSE);
			assert_int_equal(refusal.outcome, AW_IPC_REFUSED_SNI);
			assert_string_equal(refusal.seen, names[i] != NULL ? names[i] : "");
		}
	}
}

static void the_cover_name_of_an_encrypted_hello_has_to_be_the_granted_one(void **state)
{
	struct hello good = make_hello(NAME, true), bad = make_hello("cover.example", true);
	struct aw_peek_refusal refusal;

	(void)state;
	assert_int_equal(look(good.bytes, good.len, 443, &refusal), AW_PEEK_PASS);
	assert_int_equal(look(bad.bytes, bad.len, 443, &refusal), AW_PEEK_REFUSE);
	assert_int_equal(refusal.outcome, AW_IPC_REFUSED_SNI);
}

static void no_byte_of_a_hello_passes_before_it_is_whole(void **state)
{
	struct hello h = make_hello(NAME, false);
	struct aw_peek_refusal refusal;

	(void)state;
	for (size_t n = 1; n < h.len; n++)
		assert_int_equal(look(h.bytes, n, 443, &refusal), AW_PEEK_MORE);
}

static void broken_tls_is_refused(void **state)
{
	struct hello h = make_hello(NAME, false);
	struct aw_peek_refusal refusal;

	(void)state;
	h.bytes[5] = 2; /* a ServerHello */
	assert_int_equal(look(h.bytes, h.len, 8443, &refusal), AW_PEEK_REFUSE);
	assert_int_equal(refusal.outcome, AW_IPC_REFUSED_PROTOCOL);
	assert_true(refusal.seen[0] != '\0');
}

static void other_first_bytes_go_by_port_and_look(void **state)
{
	static const struct {
		const char *bytes;
		uint16_t port;
		enum aw_peek peek;
	} table[] = {
		{ "GET / HTTP/1.1\r\n", 443, AW_PEEK_REFUSE },
		{ "SSH-2.0-x\r\n", 443, AW_PEEK_REFUSE },
		{ "GET / HTTP/1.1\r\n", 80, AW_PEEK_HTTP },
		{ "SSH-2.0-x\r\n", 80, AW_PEEK_HTTP },
		{ "G", 80, AW_PEEK_HTTP },
		{ "SSH-2.0-x\r\n", 22, AW_PEEK_PASS },
		{ "GET / HTTP/1.1\r\n", 8080, AW_PEEK_HTTP },
		{ "GET /", 8080, AW_PEEK_HTTP },
		{ "OPTIONS * HTTP/1.1", 8080, AW_PEEK_HTTP },
		{ "GET http://b.example/", 8080, AW_PEEK_HTTP },
		{ "M-SEARCH *", 8080, AW_PEEK_HTTP },
		{ "PRI * HTTP/2.0\r\n", 8080, AW_PEEK_HTTP },
		{ "GET", 8080, AW_PEEK_MORE },
		{ "GET ", 8080, AW_PEEK_MORE },
		{ "G", 8080, AW_PEEK_MORE },
		{ "EHLO me\r\n", 587, AW_PEEK_PASS },
		{ "PING\r\n", 6379, AW_PEEK_PASS },
		{ "*1\r\n", 6379, AW_PEEK_PASS },
		{ "get / HTTP/1.1", 8080, AW_PEEK_PASS },
		{ " GET / HTTP/1.1", 8080, AW_PEEK_PASS },
		{ "ABCDEFGHIJKLMNOP /", 8080, AW_PEEK_PASS },
	};
	struct aw_peek_refusal refusal;

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(table); i++) {
		const char *bytes = table[i].bytes;

		if (look(bytes, strlen(bytes), table[i].port, &refusal) != table[i].peek)
			fail_msg("'%s' on port %u", bytes, table[i].port);
		if (table[i].peek == AW_PEEK_REFUSE)
			assert_int_equal(refusal.outcome, AW_IPC_REFUSED_PROTOCOL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tls_for_the_granted_name_passes_on_any_port),
		cmocka_unit_test(tls_for_another_name_or_none_is_refused_on_any_port),
		cmocka_unit_test(the_cover_name_of_an_encrypted_hello_has_to_be_the_granted_one),
		cmocka_unit_test(no_byte_of_a_hello_passes_before_it_is_whole),
		cmocka_unit_test(broken_tls_is_refused),
		cmocka_unit_test(other_first_bytes_go_by_port_and_look),
	};

	return cmocka_run_group_tests_name("peek", tests, NULL, NULL);
}
