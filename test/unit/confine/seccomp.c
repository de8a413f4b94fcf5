#include <errno.h>
#include <linux/filter.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/uapi.h"
#include "confine/caps.h"
#include "confine/probe.h"

#define AUDITED (&aw_confine_filter_agent_audited)

static void refuses_bytes_that_are_no_program(void **state)
{
	static const char bytes[8 * (BPF_MAXINSNS + 1)];
	static const size_t sizes[] = { 0, 1, 7, 9, sizeof(bytes) };
	struct aw_error err;

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(sizes); i++)
		assert_int_equal(aw_seccomp_apply(bytes, sizes[i], &err), -EBADMSG);
}

static long apply_rubbish(void *state)
{
	static const char rubbish[16] = { 1, 2, 3 };
	struct aw_error err;

	(void)state;
	return aw_seccomp_apply(rubbish, sizeof(rubbish), &err);
}

static long apply_from_an_odd_address(void *state)
{
	static char copy[64 * 1024];
	const struct aw_filter *filter = &aw_confine_filter_agent;
	struct aw_error err;

	(void)state;
	memcpy(copy + 1, filter->code, filter->size);
	return aw_seccomp_apply(copy + 1, filter->size, &err) < 0 ? -err.code
								  : prctl(PR_GET_SECCOMP);
}

static void tells_what_the_kernel_refuses(void **state)
{
	(void)state;
	assert_int_equal(probe_body(NULL, apply_rubbish, NULL), -EINVAL);
}

static void takes_bytes_from_an_odd_address(void **state)
{
	(void)state;
	assert_true(aw_confine_filter_agent.size < 60 * 1024);
	assert_int_equal(probe_body(NULL, apply_from_an_odd_address, NULL), 2);
}

static void needs_no_new_privs(void **state)
{
	const struct aw_filter *filter = &aw_confine_filter_agent;
	struct aw_error err;
	int status;
	pid_t pid;

	(void)state;
	pid = fork();
	if (pid == 0)
		_exit(aw_caps_clear(&err) == 0 &&
				      aw_seccomp_apply(filter->code, filter->size, &err) == -EACCES
			      ? 0
			      : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* --- The audited filter: a child that is listened to, and a supervisor. --- */

struct answers {
	long unlinked, mounted, raw_socket, second_listener, unlinked_unheard;
};

static long call(long number, unsigned long a, unsigned long b, unsigned long c)
{
	return probe_syscall(number, (unsigned long[6]){ a, b, c });
}

static long second_listener(void)
{
	bool killable;
	struct aw_error err;

	return aw_seccomp_listen(AUDITED->code, AUDITED->size, &killable, &err);
}

static _Noreturn void be_audited(int peer)
{
	struct answers answers;
	struct aw_error err;
	bool killable = false;
	int listener = -EBADF;
	char go;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		listener = aw_seccomp_listen(AUDITED->code, AUDITED->size, &killable, &err);
	if (write(peer, &listener, sizeof(listener)) != sizeof(listener) || read(peer, &go, 1) != 1)
		_exit(1);
	close(listener);
	answers.unlinked = call(SYS_unlinkat, (unsigned long)-1, (unsigned long)"f", 0);
	answers.mounted = call(SYS_mount, 1, 1, 1);
	answers.raw_socket = call(SYS_socket, AF_PACKET, SOCK_RAW, 0);
	answers.second_listener = second_listener();
	if (write(peer, &go, 1) != 1 || read(peer, &go, 1) != 1)
		_exit(1);
	answers.unlinked_unheard = call(SYS_unlinkat, (unsigned long)-1, (unsigned long)"f", 0);
	_exit(write(peer, &answers, sizeof(answers)) == sizeof(answers) ? 0 : 1);
}

/* Answer one notification as a monitor would: with the verdict of the plain filter. */
static void supervise_one(int listener)
{
	struct seccomp_notif request = { 0 };
	struct seccomp_notif_resp response = { 0 };
	unsigned verdict;

	assert_int_equal(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request), 0);
	verdict = probe_verdict(&aw_confine_filter_agent, &request.data, NULL);
	response.id = request.id;
	if (verdict == SECCOMP_RET_ALLOW)
		response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	else
		response.error = -(int)(verdict & SECCOMP_RET_DATA);
	assert_int_equal(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response), 0);
}

/* Until the child writes to @peer. Returns how many notifications came. */
static unsigned supervise(int listener, int peer)
{
	struct pollfd fds[] = { { listener, POLLIN, 0 }, { peer, POLLIN, 0 } };
	unsigned count = 0;

	while (poll(fds, 2, 10000) > 0 && (fds[1].revents & POLLIN) == 0) {
		supervise_one(listener);
		count++;
	}
	return count;
}

static void an_audited_process_is_heard_and_refused(void **state)
{
	int peers[2], listener, status, number = -EBADF;
	struct answers answers = { 0 };
	pid_t pid;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, peers), 0);
	pid = fork();
	if (pid == 0)
		be_audited(peers[1]);
	close(peers[1]);
	assert_int_equal(read(peers[0], &number, sizeof(number)), sizeof(number));
	assert_true(number >= 0);
	listener = (int)syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, pid, 0), number, 0);
	assert_true(listener >= 0);

	assert_int_equal(write(peers[0], "", 1), 1);
	assert_int_equal(supervise(listener, peers[0]), 3);
	close(listener);
	assert_int_equal(read(peers[0], &number, 1), 1);
	assert_int_equal(write(peers[0], "", 1), 1);
	assert_int_equal(read(peers[0], &answers, sizeof(answers)), sizeof(answers));
	assert_int_equal(waitpid(pid, &status, 0), pid);

	assert_int_equal(answers.unlinked, -EBADF);
	assert_int_equal(answers.mounted, -EPERM);
	assert_int_equal(answers.raw_socket, -EAFNOSUPPORT);
	assert_int_equal(answers.second_listener, -EBUSY);
	assert_int_equal(answers.unlinked_unheard, -ENOSYS);
	close(peers[0]);
}

static void the_audited_filter_differs_in_nothing_else(void **state)
{
	static const unsigned long args[][6] = {
		{ 0 },         { 0x10000000 },        { 4, 0 }, { 1, 0x5412, 0 },
		{ 16, 3, 16 }, { 0, 0, 0x40, 04755 },
	};
	const unsigned errors[] = { EPERM, EAFNOSUPPORT };

	(void)state;
	for (int number = 0; number < 600; number++)
		for (size_t i = 0; i < AW_ARRAY_LEN(args); i++) {
			struct seccomp_data data = { .nr = number, .arch = probe_arch };
			unsigned plain, audited;

			for (size_t k = 0; k < 6; k++)
				data.args[k] = args[i][k];
			plain = probe_verdict(&aw_confine_filter_agent, &data, NULL);
			audited = probe_verdict(AUDITED, &data, NULL);
			if (plain == (SECCOMP_RET_ERRNO | errors[0]) ||
			    plain == (SECCOMP_RET_ERRNO | errors[1]))
				assert_int_equal(audited, SECCOMP_RET_USER_NOTIF);
			else if (audited != SECCOMP_RET_USER_NOTIF)
				assert_int_equal(audited, plain);
		}
}

static void never_asks_about_close_fork_wait_read_write(void **state)
{
	static const int numbers[] = { SYS_close,   SYS_clone,  SYS_wait4,     SYS_waitid,
				       SYS_read,    SYS_write,  SYS_readv,     SYS_recvmsg,
				       SYS_sendmsg, SYS_openat, SYS_futex,     SYS_exit,
				       SYS_mmap,    SYS_dup3,   SYS_exit_group };

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(numbers); i++) {
		struct seccomp_data data = { .nr = numbers[i], .arch = probe_arch };

		assert_int_equal(probe_verdict(AUDITED, &data, NULL), SECCOMP_RET_ALLOW);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_bytes_that_are_no_program),
		cmocka_unit_test(tells_what_the_kernel_refuses),
		cmocka_unit_test(takes_bytes_from_an_odd_address),
		cmocka_unit_test(needs_no_new_privs),
		cmocka_unit_test(an_audited_process_is_heard_and_refused),
		cmocka_unit_test(the_audited_filter_differs_in_nothing_else),
		cmocka_unit_test(never_asks_about_close_fork_wait_read_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
