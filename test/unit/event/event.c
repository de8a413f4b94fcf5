#include "event/event.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

static struct aw_event event;
static const struct aw_chain no_chain;

static void a_line_has_its_fields_in_order(void **state)
{
	static const char expected[] =
		"{\"v\":1,\"seq\":7,\"time\":\"2026-03-01T12:00:00.123456789Z\","
		"\"session\":\"k3v9x0ab\",\"kind\":\"net.refused\",\"host\":\"evil.example\","
		"\"port\":443,\"delta\":-1,\"tls\":true,\"argv\":[\"a\",\"b\"],"
		"\"prev\":\"" ZEROS "\"}\n";
	const struct aw_str argv[] = { AW_STR("a"), AW_STR("b") };
	struct aw_str line;

	(void)state;
	aw_event_begin(&event, AW_EVENT_NET_REFUSED, UINT64_C(1772366400123456789));
	aw_event_add_str(&event, "host", AW_STR("evil.example"));
	aw_event_add_u64(&event, "port", 443);
	aw_event_add_i64(&event, "delta", -1);
	aw_event_add_bool(&event, "tls", true);
	aw_event_add_strv(&event, "argv", argv, 2);
	line = aw_event_seal(&event, "k3v9x0ab", 7, &no_chain);
	assert_int_equal(line.len, sizeof(expected) - 1);
	assert_memory_equal(line.ptr, expected, line.len);
}

static void the_largest_head_fits(void **state)
{
	struct aw_str line;

	(void)state;
	aw_event_begin(&event, AW_EVENT_NOTE, UINT64_MAX);
	line = aw_event_seal(&event, "zzzzzzzz", UINT64_MAX, &no_chain);
	assert_true(line.ptr[0] == '{' && line.ptr[line.len - 1] == '\n');
}

static void every_kind_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (size_t i = AW_EVENT_UNKNOWN + 1; i < AW_EVENT_KIND_COUNT; i++) {
		const struct aw_event_info *info = aw_event_info((enum aw_event_kind)i);

		assert_int_equal(aw_event_kind_find(aw_str_from(info->name)), i);
		assert_int_not_equal(info->sources, 0);
		assert_true(info->severity >= AW_SEVERITY_INFO &&
			    info->severity <= AW_SEVERITY_BREACH);
	}
	assert_int_equal(aw_event_kind_find(AW_STR("unknown")), AW_EVENT_UNKNOWN);
	assert_int_equal(aw_event_kind_find(AW_STR("")), AW_EVENT_UNKNOWN);
}

static void no_role_speaks_for_another(void **state)
{
	(void)state;
	assert_true(aw_event_may_come_from(AW_EVENT_NET_REFUSED, AW_EVENT_BY_GATE));
	assert_false(aw_event_may_come_from(AW_EVENT_NET_REFUSED, AW_EVENT_BY_CELL));
	assert_true(aw_event_may_come_from(AW_EVENT_EXEC_END, AW_EVENT_BY_CELL));
	assert_false(aw_event_may_come_from(AW_EVENT_EXEC_END, AW_EVENT_BY_GATE));
	assert_true(aw_event_may_come_from(AW_EVENT_ALLOWLIST_CHANGED, AW_EVENT_BY_CLIENT));
	for (size_t i = AW_EVENT_UNKNOWN; i < AW_EVENT_KIND_COUNT; i++)
		if (aw_event_info((enum aw_event_kind)i)->severity == AW_SEVERITY_BREACH)
			assert_int_equal(aw_event_info((enum aw_event_kind)i)->sources,
					 AW_EVENT_BY_MONITOR);
	assert_false(aw_event_may_come_from(AW_EVENT_UNKNOWN, AW_EVENT_BY_MONITOR));
}

static void severities_have_names(void **state)
{
	(void)state;
	assert_string_equal(aw_event_severity_name(AW_SEVERITY_INFO), "info");
	assert_string_equal(aw_event_severity_name(AW_SEVERITY_BREACH), "breach");
}

static void a_fixed_field_cannot_be_written_twice(void **state)
{
	static const char *const fixed[] = { "v", "seq", "time", "session", "kind", "prev" };

	(void)state;
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		pid_t pid = fork();
		int status;

		assert_true(pid >= 0);
		if (pid == 0) {
			(void)close(STDERR_FILENO);
			(void)sigaction(SIGABRT, &(struct sigaction){ .sa_handler = SIG_DFL },
					NULL);
			aw_event_begin(&event, AW_EVENT_NOTE, 0);
			aw_event_add_u64(&event, fixed[i], 1);
			(void)aw_event_seal(&event, "k3v9x0ab", 1, &no_chain);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_has_its_fields_in_order),
		cmocka_unit_test(the_largest_head_fits),
		cmocka_unit_test(every_kind_has_a_name_of_its_own),
		cmocka_unit_test(no_role_speaks_for_another),
		cmocka_unit_test(severities_have_names),
		cmocka_unit_test(a_fixed_field_cannot_be_written_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
