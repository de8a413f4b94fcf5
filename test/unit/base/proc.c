#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"

/* A child that ends with @code at once, or waits for a signal if @code is negative. */
static int start(int code, pid_t *ret_pid)
{
	struct aw_error err;
	pid_t pid = fork();
	int pidfd;

	if (pid == 0) {
		while (code < 0)
			(void)pause();
		_exit(code);
	}
	assert_true(pid > 0);
	pidfd = aw_pidfd_open(pid, &err);
	assert_true(pidfd >= 0);
	if (ret_pid != NULL)
		*ret_pid = pid;
	return pidfd;
}

static void waiting_gives_the_exit_code(void **state)
{
	static const int codes[] = { 0, 1, 42, 255 };
	struct aw_error err;

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(codes); i++) {
		autoclose int pidfd = start(codes[i], NULL);

		assert_int_equal(aw_pidfd_wait(pidfd, false, &err), codes[i]);
	}
}

static void a_signal_is_128_and_its_number(void **state)
{
	static const int signals[] = { SIGKILL, SIGTERM };
	struct aw_error err;

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(signals); i++) {
		autoclose int pidfd = start(-1, NULL);

		assert_int_equal(aw_pidfd_kill(pidfd, signals[i]), 0);
		assert_int_equal(aw_pidfd_wait(pidfd, false, &err), 128 + signals[i]);
	}
}

static void a_child_that_runs_is_not_waited_for_with_nohang(void **state)
{
	autoclose int pidfd = start(-1, NULL);
	struct aw_error err;

	(void)state;
	assert_int_equal(aw_pidfd_wait(pidfd, true, &err), -EAGAIN);
	assert_int_equal(aw_pidfd_kill(pidfd, SIGKILL), 0);
	assert_int_equal(aw_pidfd_wait(pidfd, false, &err), 128 + SIGKILL);
}

static void a_child_is_waited_for_once(void **state)
{
	autoclose int pidfd = start(0, NULL);
	struct aw_error err;

	(void)state;
	assert_int_equal(aw_pidfd_wait(pidfd, false, &err), 0);
	assert_int_equal(aw_pidfd_wait(pidfd, false, &err), -ECHILD);
	assert_int_equal(err.code, ECHILD);
}

static void what_is_gone_gets_no_signal(void **state)
{
	struct aw_error err;
	pid_t pid;
	autoclose int pidfd = start(0, &pid);

	(void)state;
	assert_int_equal(aw_pidfd_wait(pidfd, false, &err), 0);
	assert_int_equal(aw_pidfd_kill(pidfd, SIGKILL), -ESRCH);
	assert_int_equal(aw_pidfd_open(pid, &err), -ESRCH);
	assert_int_equal(err.code, ESRCH);
}

static void a_pidfd_is_close_on_exec(void **state)
{
	autoclose int pidfd = start(0, NULL);
	struct aw_error err;

	(void)state;
	assert_int_equal(fcntl(pidfd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(aw_pidfd_wait(pidfd, false, &err), 0);
}

static void clocks_count_nanoseconds(void **state)
{
	const struct timespec nap = { .tv_nsec = 2000000 };
	uint64_t before = aw_now_ns(), wall = aw_wall_ns();

	(void)state;
	assert_int_equal(nanosleep(&nap, NULL), 0);
	assert_in_range(aw_now_ns() - before, 2000000, 20000000000U);
	/* Seconds of two clocks may differ in the last: time() reads a coarser one. */
	assert_in_range((uint64_t)time(NULL) - wall / 1000000000U + 1, 0, 21);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waiting_gives_the_exit_code),
		cmocka_unit_test(a_signal_is_128_and_its_number),
		cmocka_unit_test(a_child_that_runs_is_not_waited_for_with_nohang),
		cmocka_unit_test(a_child_is_waited_for_once),
		cmocka_unit_test(what_is_gone_gets_no_signal),
		cmocka_unit_test(a_pidfd_is_close_on_exec),
		cmocka_unit_test(clocks_count_nanoseconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
