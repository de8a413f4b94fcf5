/* The agent's filter on a real child, call by call, beside a control run without it. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "confine/probe.h"

#define AGENT (&aw_confine_filter_agent)

static unsigned verdict(long number, const unsigned long args[6])
{
	return probe_verdict_of(AGENT, number, args);
}

static void check_row(const struct probe_row *row)
{
	probe_check(AGENT, row);
}

static void denies_with_EPERM_what_works_without_the_filter(void **state)
{
	static const struct probe_row rows[] = {
		{ CALL(mount, BAD, BAD, BAD), -EPERM, false },
		{ CALL(umount2, BAD, 0x80), -EPERM, false },
		{ CALL(pivot_root, BAD, BAD), -EPERM, true },
		{ CALL(chroot, BAD), -EPERM, false },
		{ CALL(setns, 0, 0), -EPERM, false },
		{ NUMBER(open_tree, 428, 0, BAD, 0x80000000), -EPERM, false },
		{ NUMBER(move_mount, 429, 0, BAD, 0, BAD), -EPERM, true },
		{ NUMBER(fsopen, 430, BAD, 0), -EPERM, true },
		{ NUMBER(fsconfig, 431, 0, 0, 0), -EPERM, false },
		{ NUMBER(fsmount, 432, 0, 0, 0), -EPERM, true },
		{ NUMBER(fspick, 433, 0, BAD, 0), -EPERM, true },
		{ NUMBER(mount_setattr, 442, 0, BAD, 0, 0, 0), -EPERM, false },
		{ NUMBER(open_tree_attr, 467, 0, BAD, 0x80000000), -EPERM, false },
		{ CALL(bpf, 10000, 0, 0), -EPERM, true },
		{ CALL(perf_event_open, BAD), -EPERM, false },
		{ CALL(userfaultfd, 0xffff0000), -EPERM, true },
		{ CALL(keyctl, 10000), -EPERM, false },
		{ CALL(add_key, BAD, BAD), -EPERM, false },
		{ CALL(request_key, BAD, BAD), -EPERM, false },
		{ CALL(open_by_handle_at, 0, BAD, 0), -EPERM, true },
		{ CALL(fanotify_init, 0xffff0000, 0), -EPERM, true },
		{ CALL(fanotify_mark, 0, 0, 0, 0, BAD), -EPERM, false },
		{ NUMBER(memfd_secret, 447, 0xffff0000), -EPERM, false },
		{ CALL(kcmp, 0, 0, 100, 0, 0), -EPERM, false },
		{ CALL(move_pages, 0, 1, BAD, 0, BAD, 0xff00), -EPERM, false },
		{ CALL(migrate_pages, 0, 0, BAD, BAD), -EPERM, false },
		{ CALL(settimeofday, BAD, 0), -EPERM, false },
		{ CALL(clock_settime, 1000, BAD), -EPERM, false },
		{ CALL(clock_adjtime, 1000, BAD), -EPERM, false },
		{ CALL(adjtimex, BAD), -EPERM, false },
		{ CALL(acct, BAD), -EPERM, true },
		{ CALL(swapon, BAD, 0), -EPERM, true },
		{ CALL(swapoff, BAD), -EPERM, true },
		{ CALL(reboot, 0, 0, 0), -EPERM, true },
		{ CALL(sethostname, BAD, -1UL), -EPERM, true },
		{ CALL(setdomainname, BAD, -1UL), -EPERM, true },
		{ CALL(quotactl, 0xff00, BAD, 0, 0), -EPERM, false },
		{ NUMBER(quotactl_fd, 443, -1UL, 0, 0, 0), -EPERM, false },
		{ CALL(syslog, 1000), -EPERM, true },
		{ CALL(init_module, 0, 0, BAD), -EPERM, true },
		{ CALL(finit_module, -1UL, BAD, 0xff00), -EPERM, true },
		{ CALL(delete_module, BAD, 0), -EPERM, true },
		{ CALL(kexec_load, 0, 100, 0, 0xff00), -EPERM, true },
#ifdef __x86_64__
		{ CALL(iopl, 4), -EPERM, false },
		{ CALL(ioperm, 70000, 1, 1), -EPERM, false },
#endif
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(rows); i++)
		check_row(rows + i);
}

static void denies_namespaces_by_clone_and_unshare(void **state)
{
	static const unsigned long flags[] = {
		CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,    CLONE_NEWNET,
		CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP,
	};
	/* CLONE_THREAD without CLONE_SIGHAND, an unknown bit in unshare: EINVAL before all else. */
	for (size_t i = 0; i < AW_ARRAY_LEN(flags); i++) {
		struct probe_row clone = { CALL(clone, flags[i] | CLONE_THREAD), -EPERM, false };
		struct probe_row high = { CALL(clone, HIGH | flags[i] | CLONE_THREAD), -EPERM,
					  false };
		struct probe_row unshare = { CALL(unshare, flags[i] | 1), -EPERM, false };

		check_row(&clone);
		check_row(&high);
		check_row(&unshare);
	}
	check_row(
		&(struct probe_row){ CALL(unshare, 0x80 /* CLONE_NEWTIME */ | 1), -EPERM, false });
	assert_int_equal(probe(AGENT, &(struct probe_call)CALL(unshare, CLONE_FS | CLONE_FILES)),
			 0);
	(void)state;
}

static void answers_ENOSYS_to_what_a_libc_has_another_way_for(void **state)
{
	static const struct probe_row rows[] = {
		{ NUMBER(clone3, 435, 0, 0), -ENOSYS, false },
		{ NUMBER(openat2, 437, -1UL, 0, 0, 0), -ENOSYS, false },
		{ NUMBER(io_uring_setup, 425, 1, 0), -ENOSYS, false },
		{ NUMBER(io_uring_enter, 426, -1UL, 0, 0, 0, 0, 0), -ENOSYS, false },
		{ NUMBER(io_uring_register, 427, -1UL, 0, 0, 0), -ENOSYS, false },
	};
	static const long unknown[] = { 470, 999, 9999, 0x3fffffff };

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(rows); i++)
		check_row(rows + i);
	for (size_t i = 0; i < AW_ARRAY_LEN(unknown); i++)
		assert_int_equal(probe(AGENT, &(struct probe_call){ "unknown", unknown[i], { 0 } }),
				 -ENOSYS);
}

static void allows_the_modern_equivalents(void **state)
{
	/* What the kernel says by itself must come through: no EPERM, no ENOSYS of ours. */
	static const struct probe_call calls[] = {
		NUMBER(faccessat2, 439, CWD, BAD, 0, 0),
		NUMBER(close_range, 436, 500, 600, 0),
		NUMBER(pidfd_open, 434, 1, 0),
		NUMBER(epoll_pwait2, 441, -1UL, 0, 0),
		NUMBER(futex_waitv, 449, 0, 0, 0),
		NUMBER(cachestat, 451, -1UL, 0, 0, 0),
		NUMBER(fchmodat2, 452, -1UL, BAD, 0644),
		NUMBER(map_shadow_stack, 453, 1, 1, -1UL),
		NUMBER(futex_wake, 454, 0, 0, 0, 0),
		NUMBER(futex_requeue, 456, 0, 0, 0, 0),
		NUMBER(statmount, 457, 0, 0, 0, 0),
		NUMBER(listmount, 458, 0, 0, 0, 0),
		NUMBER(mseal, 462, 1, 1, 1),
		NUMBER(getxattrat, 464, -1UL, BAD, 0, BAD),
		NUMBER(file_getattr, 468, -1UL, BAD, BAD),
		NUMBER(landlock, 444, 0, 0, 1),
		CALL(statx, CWD, BAD, 0, 0, BAD),
		CALL(rseq, BAD, 0, 0),
		CALL(membarrier, 0, 0, 0),
		CALL(memfd_create, BAD, 0),
		CALL(ptrace, 1000, 0, 0, 0),
		CALL(process_vm_readv, 0, 0, 0, 0, 0, 1),
		CALL(seccomp, 2, 0, BAD),
		CALL(copy_file_range, -1UL, 0, -1UL, 0, 1),
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(calls); i++) {
		assert_int_equal(verdict(calls[i].number, calls[i].args), SECCOMP_RET_ALLOW);
		assert_int_equal(probe(AGENT, calls + i), probe(NULL, calls + i));
	}
}

static void denies_typing_into_the_terminal_whatever_the_high_bits(void **state)
{
	static const unsigned long commands[] = { TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD };
	static const unsigned long high[] = { 0, HIGH, -1UL << 32 };

	for (size_t i = 0; i < AW_ARRAY_LEN(commands); i++)
		for (size_t k = 0; k < AW_ARRAY_LEN(high); k++) {
			struct probe_row row = { CALL(ioctl, -1UL, commands[i] | high[k], BAD),
						 -EPERM, false };

			check_row(&row);
		}
	assert_int_equal(probe(AGENT, &(struct probe_call)CALL(ioctl, -1UL, TCGETS, BAD)), -EBADF);
	assert_int_equal(probe(AGENT, &(struct probe_call)CALL(ioctl, -1UL, TIOCGPTN, BAD)),
			 -EBADF);
	(void)state;
}

static void answers_each_kind_of_socket(void **state)
{
	static const struct {
		unsigned long family, type, protocol;
		unsigned verdict;
	} rows[] = {
		{ AF_UNIX, SOCK_STREAM, 0, SECCOMP_RET_ALLOW },
		{ AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, SECCOMP_RET_ALLOW },
		{ AF_UNIX, SOCK_SEQPACKET, 0, SECCOMP_RET_ALLOW },
		{ AF_UNIX, SOCK_RAW, 0, ANSWER(EPERM) },
		{ AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, SECCOMP_RET_ALLOW },
		{ AF_INET, SOCK_STREAM, 6, SECCOMP_RET_ALLOW },
		{ AF_INET, SOCK_DGRAM, 17, SECCOMP_RET_ALLOW },
		{ AF_INET6, SOCK_STREAM, 6, SECCOMP_RET_ALLOW },
		{ AF_INET6, SOCK_DGRAM, 0, SECCOMP_RET_ALLOW },
		{ AF_INET, SOCK_RAW, 1, ANSWER(EPERM) },
		{ AF_INET, SOCK_RAW | SOCK_CLOEXEC, 255, ANSWER(EPERM) },
		{ AF_INET6, SOCK_RAW, 58, ANSWER(EPERM) },
		{ AF_INET, SOCK_PACKET, 3, ANSWER(EPERM) },
		{ AF_INET, SOCK_STREAM, 132 /* SCTP */, ANSWER(EAFNOSUPPORT) },
		{ AF_INET, SOCK_STREAM, 262 /* MPTCP */, ANSWER(EAFNOSUPPORT) },
		{ AF_INET, SOCK_DGRAM, 1 /* ICMP */, ANSWER(EAFNOSUPPORT) },
		{ AF_INET, SOCK_DGRAM, 115 /* L2TP */, ANSWER(EAFNOSUPPORT) },
		{ AF_INET, SOCK_DCCP, 0, ANSWER(EAFNOSUPPORT) },
		{ AF_NETLINK, SOCK_RAW, 0, SECCOMP_RET_ALLOW },
		{ AF_NETLINK, SOCK_DGRAM, 0, SECCOMP_RET_ALLOW },
		{ AF_NETLINK, SOCK_RAW, 12 /* NETFILTER */, ANSWER(EAFNOSUPPORT) },
		{ AF_NETLINK, SOCK_RAW, 16 /* GENERIC */, ANSWER(EAFNOSUPPORT) },
		{ AF_PACKET, SOCK_RAW, 3, ANSWER(EAFNOSUPPORT) },
		{ AF_PACKET, SOCK_DGRAM, 0, ANSWER(EAFNOSUPPORT) },
		{ AF_VSOCK, SOCK_STREAM, 0, ANSWER(EAFNOSUPPORT) },
		{ AF_ALG, SOCK_SEQPACKET, 0, ANSWER(EAFNOSUPPORT) },
		{ AF_KEY, SOCK_RAW, 2, ANSWER(EAFNOSUPPORT) },
		{ AF_BLUETOOTH, SOCK_RAW, 0, ANSWER(EAFNOSUPPORT) },
		{ AF_TIPC, SOCK_DGRAM, 0, ANSWER(EAFNOSUPPORT) },
		{ 12345, SOCK_STREAM, 0, ANSWER(EAFNOSUPPORT) },
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(rows); i++) {
		struct probe_call call =
			CALL(socket, rows[i].family, rows[i].type, rows[i].protocol);
		struct probe_call high = CALL(socket, HIGH | rows[i].family, HIGH | rows[i].type,
					      HIGH | rows[i].protocol);
		unsigned errno_of_it = rows[i].verdict & SECCOMP_RET_DATA;

		assert_int_equal(verdict(call.number, call.args), rows[i].verdict);
		assert_int_equal(verdict(high.number, high.args), rows[i].verdict);
		if (rows[i].verdict == SECCOMP_RET_ALLOW)
			assert_true(probe(AGENT, &call) >= 0);
		else
			assert_int_equal(probe(AGENT, &high), -(long)errno_of_it);
	}
}

static void stops_sockets_that_the_kernel_would_give(void **state)
{
	static const struct probe_row rows[] = {
		{ CALL(socket, AF_NETLINK, SOCK_RAW, 16), -EAFNOSUPPORT, false },
		{ CALL(socket, HIGH | AF_NETLINK, SOCK_RAW, HIGH | 16), -EAFNOSUPPORT, false },
		{ CALL(socket, AF_INET, SOCK_RAW, 1), -EPERM, true },
		{ CALL(socket, AF_INET, SOCK_RAW | SOCK_CLOEXEC, 1), -EPERM, true },
		{ CALL(socketpair, AF_INET, SOCK_STREAM, 0, BAD), -EAFNOSUPPORT, false },
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(rows); i++)
		check_row(rows + i);
}

static void says_yes_to_not_dumpable_and_does_nothing(void **state)
{
	static const unsigned long get[6] = { PR_GET_DUMPABLE }, set[6] = { PR_SET_DUMPABLE, 0 };

	assert_int_equal(verdict(SYS_prctl, set), ANSWER(0));
	assert_int_equal(verdict(SYS_prctl, get), SECCOMP_RET_ALLOW);
	assert_int_equal(verdict(SYS_prctl, (unsigned long[6]){ HIGH | PR_SET_DUMPABLE, 0 }),
			 ANSWER(0));
	assert_int_equal(verdict(SYS_prctl, (unsigned long[6]){ PR_SET_DUMPABLE, 1 }),
			 SECCOMP_RET_ALLOW);
	check_row(&(struct probe_row){ CALL(prctl, PR_SET_MM, 1, 0, 0, 1), -EPERM, false });
	(void)state;
}

static long make_undumpable(void *state)
{
	(void)state;
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : prctl(PR_GET_DUMPABLE);
}

static void keeps_a_process_attributable(void **state)
{
	(void)state;
	assert_int_equal(probe_body(AGENT, make_undumpable, NULL), 1);
	assert_int_equal(probe_body(NULL, make_undumpable, NULL), 0);
}

static void denies_leases_and_foreign_personalities(void **state)
{
	(void)state;
	check_row(&(struct probe_row){ CALL(fcntl, -1UL, F_SETLEASE, F_RDLCK), -EPERM, false });
	check_row(&(struct probe_row){ CALL(fcntl, -1UL, HIGH | F_SETLEASE, F_RDLCK), -EPERM,
				       false });
	check_row(&(struct probe_row){ CALL(personality, PER_SVR4), -EPERM, false });
	check_row(&(struct probe_row){ CALL(personality, READ_IMPLIES_EXEC), -EPERM, false });
	check_row(
		&(struct probe_row){ CALL(personality, HIGH | READ_IMPLIES_EXEC), -EPERM, false });
	assert_int_equal(probe(AGENT, &(struct probe_call)CALL(fcntl, -1UL, F_GETFL)), -EBADF);
	assert_int_equal(probe(AGENT, &(struct probe_call)CALL(personality, 0xffffffff)), 0);
	assert_int_equal(probe(AGENT, &(struct probe_call)CALL(personality, ADDR_NO_RANDOMIZE)), 0);
}

static long run_a_shell(void *state)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)state;
	(void)dup2(fd, STDOUT_FILENO);
	execl("/bin/sh", "sh", "-c", "echo a | cat | cat; test $(echo b | wc -l) = 1 && exit 0",
	      NULL);
	return -errno;
}

static long run_and_wait(void *state)
{
	pid_t pid = fork();
	siginfo_t info = { 0 };

	if (pid == 0) {
		(void)run_a_shell(state);
		_exit(127);
	}
	return waitid(P_PID, (id_t)pid, &info, WEXITED) < 0 ? -errno : info.si_status;
}

static void a_shell_pipeline_runs(void **state)
{
	(void)state;
	assert_int_equal(probe_body(AGENT, run_and_wait, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(denies_with_EPERM_what_works_without_the_filter),
		cmocka_unit_test(denies_namespaces_by_clone_and_unshare),
		cmocka_unit_test(answers_ENOSYS_to_what_a_libc_has_another_way_for),
		cmocka_unit_test(allows_the_modern_equivalents),
		cmocka_unit_test(denies_typing_into_the_terminal_whatever_the_high_bits),
		cmocka_unit_test(answers_each_kind_of_socket),
		cmocka_unit_test(stops_sockets_that_the_kernel_would_give),
		cmocka_unit_test(says_yes_to_not_dumpable_and_does_nothing),
		cmocka_unit_test(keeps_a_process_attributable),
		cmocka_unit_test(denies_leases_and_foreign_personalities),
		cmocka_unit_test(a_shell_pipeline_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
