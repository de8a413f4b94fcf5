#include "confine/rlimits.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "base/own.h"
#include "confine/probe.h"

#define BIT(limit) (1u << (limit))

static struct rlimit read_limit(int resource)
{
	struct rlimit limit = { 1, 2 };

	(void)getrlimit((__rlimit_resource_t)resource, &limit);
	return limit;
}

static bool is_at(int resource, rlim_t soft, rlim_t hard)
{
	struct rlimit limit = read_limit(resource);

	return limit.rlim_cur == soft && limit.rlim_max == hard;
}

static long set_them(void *state)
{
	const struct aw_rlimits limits = {
		.open_files = 300,
		.open_files_soft = 200,
		.processes = 40,
		.queued_signals = 50,
		.message_queue_bytes = 60,
	};
	struct rlimit memory = read_limit(RLIMIT_AS), locked = read_limit(RLIMIT_MEMLOCK);
	struct aw_error err;
	unsigned had_less = 99;

	(void)state;
	if (aw_rlimits_apply(&limits, &had_less, &err) < 0)
		return -err.code;
	return had_less == 0 && is_at(RLIMIT_NOFILE, 200, 300) && is_at(RLIMIT_NPROC, 40, 40) &&
	       is_at(RLIMIT_SIGPENDING, 50, 50) && is_at(RLIMIT_MSGQUEUE, 60, 60) &&
	       is_at(RLIMIT_CORE, 0, 0) && is_at(RLIMIT_AS, memory.rlim_cur, memory.rlim_max) &&
	       is_at(RLIMIT_MEMLOCK, locked.rlim_cur, locked.rlim_max);
}

static void sets_what_was_asked_and_no_core(void **state)
{
	(void)state;
	assert_int_equal(probe_body(NULL, set_them, NULL), 1);
}

static long set_nothing(void *state)
{
	struct rlimit files = read_limit(RLIMIT_NOFILE), processes = read_limit(RLIMIT_NPROC);
	struct aw_error err;

	(void)state;
	if (aw_rlimits_apply(&(struct aw_rlimits){ 0 }, NULL, &err) < 0)
		return -err.code;
	return is_at(RLIMIT_NOFILE, files.rlim_cur, files.rlim_max) &&
	       is_at(RLIMIT_NPROC, processes.rlim_cur, processes.rlim_max) &&
	       is_at(RLIMIT_CORE, 0, 0);
}

static void leaves_alone_what_is_zero(void **state)
{
	(void)state;
	assert_int_equal(probe_body(NULL, set_nothing, NULL), 1);
}

static long ask_for_more(void *state)
{
	struct aw_error err;
	unsigned had_less = 0;

	(void)state;
	if (setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 50, 100 }) < 0 ||
	    aw_rlimits_apply(&(struct aw_rlimits){ .open_files = 200, .processes = 1 }, &had_less,
			     &err) < 0)
		return -1;
	return had_less == BIT(AW_RLIMIT_OPEN_FILES) && is_at(RLIMIT_NOFILE, 100, 100);
}

static void never_raises_a_hard_limit_and_says_so(void **state)
{
	(void)state;
	assert_int_equal(probe_body(NULL, ask_for_more, NULL), 1);
}

static long raise_soft(void *state)
{
	struct aw_error err;
	unsigned had_less = 99;

	(void)state;
	if (setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 50, 300 }) < 0 ||
	    aw_rlimits_apply(&(struct aw_rlimits){ .open_files = 300, .open_files_soft = 250 },
			     &had_less, &err) < 0)
		return -1;
	return had_less == 0 && is_at(RLIMIT_NOFILE, 250, 300);
}

static void raises_a_soft_limit_up_to_the_hard_one(void **state)
{
	(void)state;
	assert_int_equal(probe_body(NULL, raise_soft, NULL), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sets_what_was_asked_and_no_core),
		cmocka_unit_test(leaves_alone_what_is_zero),
		cmocka_unit_test(never_raises_a_hard_limit_and_says_so),
		cmocka_unit_test(raises_a_soft_limit_up_to_the_hard_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
