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

static enum aw_http_flaw flaw_of(struct aw_str bytes)
{
	struct aw_http_scan scan = { 0 };
	enum aw_http_flaw flaw = AW_HTTP_FLAW_NONE, again = AW_HTTP_FLAW_NONE;

	assert_int_equal(aw_http_scan_head(&scan, bytes, false, &flaw), -EBADMSG);
	assert_int_equal(aw_http_scan_head(&scan, bytes, false, &again), -EBADMSG);
	assert_int_equal(flaw, again);
	return flaw;
}

static ssize_t scan_once(struct aw_str bytes)
{
	struct aw_http_scan scan = { 0 };
	enum aw_http_flaw flaw;

	return aw_http_scan_head(&scan, bytes, false, &flaw);
}

static void finds_the_end_and_leaves_the_body_alone(void **state)
{
	(void)state;
	assert_int_equal(scan_once(AW_STR("GET / HTTP/1.1\r\nA: b\r\n\r\nbody\n\0")), 24);
	assert_int_equal(scan_once(AW_STR("GET / HTTP/1.1\r\n\r\n")), 18);
	assert_int_equal(scan_once(AW_STR("GET / HTTP/1.1\r\n\r")), -EAGAIN);
	assert_int_equal(scan_once((struct aw_str){ NULL, 0 }), -EAGAIN);
}

static void each_byte_is_looked_at_once(void **state)
{
	char head[] = "GET / HTTP/1.1\r\nA: b\r\n\r\n";
	struct aw_http_scan scan = { 0 };
	enum aw_http_flaw flaw;

	(void)state;
	for (size_t n = 1; n < sizeof(head) - 1; n++) {
		assert_int_equal(aw_http_scan_head(&scan, (struct aw_str){ head, n }, false, &flaw),
				 -EAGAIN);
		assert_int_equal(scan.offset, n);
		/* What was scanned is not read again: even spoiling it changes nothing. */
		head[n - 1] = '\0';
	}
	assert_int_equal(
		aw_http_scan_head(&scan, (struct aw_str){ head, sizeof(head) - 1 }, false, &flaw),
		24);
}

static void refuses_bare_line_feeds_and_carriage_returns(void **state)
{
	static const char *const heads[] = {
		"GET / HTTP/1.1\n",
		"GET / HTTP/1.1\r\nA: b\n",
		"GET / HTTP/1.1\rA",
		"GET / HTTP/1.1\r\r\n",
		"GET / HTTP/1.1\r\nA: b\r\n\n",
		"GET / HTTP/1.1\r\nA: b\r\n\rX",
		"GET / HTTP/1.1\r\nA: b\rc",
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(heads); i++)
		assert_int_equal(flaw_of(aw_str_from(heads[i])), AW_HTTP_FLAW_LINE_END);
}

static void refuses_every_control_byte_but_tab(void **state)
{
	(void)state;
	for (int c = 0; c < 256; c++) {
		char head[] = "GET / HTTP/1.1\r\nA: b?c", first[] = "GET / HTTP/1.1\r\n?",
		     line[] = "GET /?";
		bool is_control = (c < 0x20 && c != '\t') || c == 0x7f;

		head[20] = first[16] = line[5] = (char)c;
		if (c == '\r' || c == '\n')
			continue;
		if (!is_control) {
			assert_int_equal(scan_once((struct aw_str){ head, 22 }), -EAGAIN);
			continue;
		}
		assert_int_equal(flaw_of((struct aw_str){ head, 22 }), AW_HTTP_FLAW_CONTROL);
		assert_int_equal(flaw_of((struct aw_str){ first, 17 }), AW_HTTP_FLAW_CONTROL);
		assert_int_equal(flaw_of((struct aw_str){ line, 6 }), AW_HTTP_FLAW_CONTROL);
	}
}

static void refuses_folded_lines(void **state)
{
	(void)state;
	assert_int_equal(flaw_of(AW_STR("GET / HTTP/1.1\r\nA: b\r\n c")), AW_HTTP_FLAW_FOLDED);
	assert_int_equal(flaw_of(AW_STR("GET / HTTP/1.1\r\nA: b\r\n\t")), AW_HTTP_FLAW_FOLDED);
	assert_int_equal(flaw_of(AW_STR("GET / HTTP/1.1\r\n Host: a")), AW_HTTP_FLAW_FOLDED);
}

static void refuses_another_protocol_with_its_first_bytes(void **state)
{
	(void)state;
	assert_int_equal(flaw_of(AW_STR("\x16")), AW_HTTP_FLAW_METHOD);
	assert_int_equal(flaw_of(AW_STR("\x05\x01")), AW_HTTP_FLAW_METHOD);
	assert_int_equal(flaw_of(AW_STR("SSH-2.0-OpenSSH_9.2p1")), AW_HTTP_FLAW_METHOD);
	assert_int_equal(flaw_of(AW_STR("\r\nGET / HTTP/1.1\r\n")), AW_HTTP_FLAW_METHOD);
	assert_int_equal(flaw_of(AW_STR(" GET / HTTP/1.1\r\n")), AW_HTTP_FLAW_METHOD);
	assert_int_equal(flaw_of(AW_STR("G\0ET / HTTP/1.1\r\n")), AW_HTTP_FLAW_METHOD);
	assert_int_equal(flaw_of(AW_STR("G(T / HTTP/1.1\r\n")), AW_HTTP_FLAW_METHOD);
	assert_int_equal(flaw_of(AW_STR("GET\t/ HTTP/1.1\r\n")), AW_HTTP_FLAW_METHOD);
	assert_int_equal(flaw_of(AW_STR("GET\r\n")), AW_HTTP_FLAW_METHOD);
}

static void a_response_begins_with_its_protocol(void **state)
{
	static const char *const heads[] = { "GET", "http/1.1 200", "HTTPS", "\x15\x03",
					     "ICY 200" };
	enum aw_http_flaw flaw;

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(heads); i++) {
		struct aw_http_scan scan = { 0 };

		assert_int_equal(aw_http_scan_head(&scan, aw_str_from(heads[i]), true, &flaw),
				 -EBADMSG);
		assert_int_equal(flaw, AW_HTTP_FLAW_STATUS_LINE);
	}
}

static void a_method_has_at_most_15_bytes(void **state)
{
	(void)state;
	assert_int_equal(scan_once(AW_STR("ABCDEFGHIJKLMNO ")), -EAGAIN);
	assert_int_equal(flaw_of(AW_STR("ABCDEFGHIJKLMNOP")), AW_HTTP_FLAW_METHOD);
}

/* A head of exactly @len bytes in few lines. */
static char *head_of(size_t len)
{
	static const char start[] = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
	char *head = malloc(len);

	assert_non_null(head);
	memset(head, 'x', len);
	memcpy(head, start, sizeof(start) - 1);
	memcpy(head + len - 4, "\r\n\r\n", 4);
	return head;
}

static void a_head_has_at_most_its_maximum_of_bytes(void **state)
{
	autofree char *fits = head_of(AW_HTTP_HEAD_MAX), *big = head_of(AW_HTTP_HEAD_MAX + 1);

	(void)state;
	assert_int_equal(scan_once((struct aw_str){ fits, AW_HTTP_HEAD_MAX }), AW_HTTP_HEAD_MAX);
	assert_int_equal(scan_once((struct aw_str){ fits, AW_HTTP_HEAD_MAX - 1 }), -EAGAIN);
	assert_int_equal(flaw_of((struct aw_str){ big, AW_HTTP_HEAD_MAX + 1 }),
			 AW_HTTP_FLAW_HEAD_SIZE);
	assert_int_equal(flaw_of((struct aw_str){ big, AW_HTTP_HEAD_MAX }), AW_HTTP_FLAW_HEAD_SIZE);
}

static void a_head_has_at_most_its_maximum_of_fields(void **state)
{
	char head[32 + 6 * (AW_HTTP_FIELDS_MAX + 1)] = "GET / HTTP/1.1\r\n";
	size_t len = strlen(head);

	(void)state;
	for (int i = 0; i < AW_HTTP_FIELDS_MAX; i++, len += 6)
		memcpy(head + len, "A: b\r\n", 6);
	memcpy(head + len, "\r\n", 2);
	assert_int_equal(scan_once((struct aw_str){ head, len + 2 }), (ssize_t)len + 2);
	head[len] = 'A';
	assert_int_equal(flaw_of((struct aw_str){ head, len + 1 }), AW_HTTP_FLAW_FIELD_COUNT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_end_and_leaves_the_body_alone),
		cmocka_unit_test(each_byte_is_looked_at_once),
		cmocka_unit_test(refuses_bare_line_feeds_and_carriage_returns),
		cmocka_unit_test(refuses_every_control_byte_but_tab),
		cmocka_unit_test(refuses_folded_lines),
		cmocka_unit_test(refuses_another_protocol_with_its_first_bytes),
		cmocka_unit_test(a_response_begins_with_its_protocol),
		cmocka_unit_test(a_method_has_at_most_15_bytes),
		cmocka_unit_test(a_head_has_at_most_its_maximum_of_bytes),
		cmocka_unit_test(a_head_has_at_most_its_maximum_of_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
