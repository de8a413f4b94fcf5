#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "cell/scope-internal.h"
#include "scope-peer.h"
#include "support/torture.h"

#define UNIT "warden-1.scope"

static const struct aw_scope_property properties[] = {
	{ "MemoryMax", AW_SCOPE_NUMBER, 64 << 20, NULL },
	{ "IOReadBandwidthMax", AW_SCOPE_RATE, 5, "/dev/sda" },
};

/*
 * The bytes that systemd 252 and 257 took (doc/spikes/cgroup-v2.md); only a little-endian machine writes
 * these.
 */
static void writes_what_systemd_takes(void **state)
{
	static const char expected[] =
		"\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n"
		"l\1\0\1\360\0\0\0\4\0\0\0\266\0\0\0"
		"\1\1o\0\31\0\0\0/org/freedesktop/systemd1\0\0\0\0\0\0\0"
		"\2\1s\0 \0\0\0org.freedesktop.systemd1.Manager\0\0\0\0\0\0\0\0"
		"\3\1s\0\22\0\0\0StartTransientUnit\0\0\0\0\0\0"
		"\6\1s\0\30\0\0\0org.freedesktop.systemd1\0\0\0\0\0\0\0\0"
		"\10\1g\0\20ssa(sv)a(sa(sv))\0\0\0"
		"\16\0\0\0warden-1.scope\0\0"
		"\4\0\0\0fail\0\0\0\0"
		"\300\0\0\0\0\0\0\0"
		"\4\0\0\0PIDs\0\2au\0\0\0\0\4\0\0\0\222\20\0\0"
		"\10\0\0\0Delegate\0\1b\0\1\0\0\0\0\0\0\0"
		"\13\0\0\0CollectMode\0\1s\0\0\22\0\0\0inactive-or-failed\0\0\0\0\0\0"
		"\11\0\0\0MemoryMax\0\1t\0\0\0\0\0\0\0\0\0\0\0\4\0\0\0\0"
		"\22\0\0\0IOReadBandwidthMax\0\5a(st)\0\0\0"
		"\30\0\0\0\0\0\0\0\10\0\0\0/dev/sda\0\0\0\0\5\0\0\0\0\0\0\0"
		"\0\0\0\0\0\0\0\0";
	const uint16_t one = 1;
	autodrop(aw_buf_fini) struct aw_buf out = AW_BUF_INIT(4096);

	(void)state;
	if (*(const char *)&one != 1) {
		print_message("this machine is big-endian\n");
		skip();
	}
	assert_int_equal(aw_scope_write_start(&out, false, UNIT, 4242, properties, 2), 0);
	assert_int_equal(out.len, sizeof(expected) - 1);
	assert_memory_equal(out.data, expected, out.len);
}

/* Our own reader finds what was written, message after message. */
static void greets_a_bus_before_it_asks(void **state)
{
	static const char *const members[] = { "Hello", "Subscribe", "AddMatch",
					       "StartTransientUnit" };
	autodrop(aw_buf_fini) struct aw_buf out = AW_BUF_INIT(4096);
	struct aw_scope_message m = { 0 };
	size_t at = sizeof("\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n") - 1;

	(void)state;
	assert_int_equal(aw_scope_write_start(&out, true, UNIT, 4242, properties, 2), 0);
	for (size_t i = 0; i < AW_ARRAY_LEN(members); i++) {
		ssize_t len = aw_scope_parse(out.data + at, out.len - at, &m);

		assert_true(len > 0);
		assert_int_equal(m.type, AW_SCOPE_CALL);
		assert_true(aw_str_is(m.member, members[i]));
		at += (size_t)len;
	}
	assert_true(aw_str_is(m.text, UNIT));
	assert_int_equal(at, out.len);
}

static void asks_to_stop_a_unit(void **state)
{
	static const size_t greeting = sizeof("\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n") - 1;
	autodrop(aw_buf_fini) struct aw_buf out = AW_BUF_INIT(4096);
	struct aw_scope_message m = { 0 };

	(void)state;
	assert_int_equal(aw_scope_write_stop(&out, false, UNIT), 0);
	assert_int_equal(aw_scope_parse(out.data + greeting, out.len - greeting, &m),
			 (ssize_t)(out.len - greeting));
	assert_true(aw_str_is(m.member, "StopUnit"));
	assert_true(aw_str_is(m.text, UNIT));
}

static int write_all(void *max)
{
	autodrop(aw_buf_fini) struct aw_buf out = AW_BUF_INIT(*(const size_t *)max);

	return aw_scope_write_start(&out, true, UNIT, 4242, properties, 2);
}

static void says_when_it_does_not_fit(void **state)
{
	size_t enough = 4096, small = 300;

	(void)state;
	assert_true(aw_torture(write_all, &enough) > 0);
	assert_int_equal(write_all(&small), -ENOBUFS);
}

static void reads_a_signal_in_any_pieces(void **state)
{
	struct aw_scope_message message;
	struct scope_made m;

	(void)state;
	scope_make_signal(&m, "JobRemoved", UNIT, "done");
	for (size_t len = 0; len < m.len; len++)
		assert_int_equal(aw_scope_parse(m.data, len, &message), 0);
	assert_int_equal(aw_scope_parse(m.data, m.len, &message), (ssize_t)m.len);
	assert_true(aw_str_is(message.unit, UNIT));
	assert_true(aw_str_is(message.result, "done"));
	scope_make_error(&m, AW_SCOPE_ASK, "no");
	assert_int_equal(aw_scope_parse(m.data, m.len, &message), (ssize_t)m.len);
	assert_int_equal(message.answers, AW_SCOPE_ASK);
	assert_true(aw_str_is(message.text, "no"));
	assert_true(aw_str_is(message.error_name, "org.freedesktop.DBus.Error.Failed"));
}

/* Whatever a byte becomes: refused, waited for, or understood, and never read beyond. */
static void survives_any_changed_byte(void **state)
{
	struct aw_scope_message message;
	struct scope_made m;

	(void)state;
	scope_make_signal(&m, "JobRemoved", UNIT, "done");
	for (size_t i = 0; i < m.len; i++) {
		for (unsigned value = 0; value < 256; value++) {
			char *copy = malloc(m.len);
			ssize_t len;

			assert_non_null(copy);
			memcpy(copy, m.data, m.len);
			copy[i] = (char)value;
			len = aw_scope_parse(copy, m.len, &message);
			assert_true(len == -EPROTO || (len >= 0 && (size_t)len <= m.len));
			free(copy);
		}
	}
}

static void refuses_what_is_no_message(void **state)
{
	struct aw_scope_message message;
	struct scope_made m;
	uint32_t huge = AW_SCOPE_MESSAGE_MAX;

	(void)state;
	scope_make_signal(&m, "JobRemoved", UNIT, "done");
	m.data[0] = 'x';
	assert_int_equal(aw_scope_parse(m.data, m.len, &message), -EPROTO);
	scope_make_signal(&m, "JobRemoved", UNIT, "done");
	memcpy(m.data + 4, &huge, sizeof(huge));
	assert_int_equal(aw_scope_parse(m.data, m.len, &message), -EPROTO);
	/* The text of a field ends inside it. */
	scope_make_error(&m, AW_SCOPE_ASK, "no");
	memcpy(m.data + 28, &huge, sizeof(huge));
	assert_int_equal(aw_scope_parse(m.data, m.len, &message), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_what_systemd_takes),
		cmocka_unit_test(greets_a_bus_before_it_asks),
		cmocka_unit_test(asks_to_stop_a_unit),
		cmocka_unit_test(says_when_it_does_not_fit),
		cmocka_unit_test(reads_a_signal_in_any_pieces),
		cmocka_unit_test(survives_any_changed_byte),
		cmocka_unit_test(refuses_what_is_no_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
