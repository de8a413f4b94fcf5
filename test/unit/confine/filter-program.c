/*
 * The instructions of the agent's filter, interpreted: against the same decisions in plain C over
 * very many arguments, against the list of calls that do not exist, and counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "confine/probe.h"

#define AGENT (&aw_confine_filter_agent)

#define KERNEL_O_TMPFILE 020000000UL

static unsigned verdict(long number, const unsigned long args[6])
{
	return probe_verdict_of(AGENT, number, args);
}

#ifdef __x86_64__
static long enter_by_int80(void *state)
{
	long r = 20; /* getpid */

	(void)state;
	__asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
	return r;
}

static void foreign_entries_do_not_exist(void **state)
{
	static const unsigned long none[6];
	struct seccomp_data foreign = { .nr = 20, .arch = AUDIT_ARCH_I386 };
	long control = probe_body(NULL, enter_by_int80, NULL);

	(void)state;
	assert_int_equal(probe_body(AGENT, enter_by_int80, NULL), -ENOSYS);
	if (control <= 0)
		print_message("# no control: this kernel has no 32-bit entry (%ld)\n", control);
	assert_int_equal(probe_verdict(AGENT, &foreign, NULL), ANSWER(ENOSYS));
	foreign.arch = AUDIT_ARCH_AARCH64;
	assert_int_equal(probe_verdict(AGENT, &foreign, NULL), ANSWER(ENOSYS));
	assert_int_equal(verdict(0x40000000 | SYS_getpid, none), ANSWER(ENOSYS));
	assert_int_equal(
		probe(AGENT, &(struct probe_call){ "x32", 0x40000000 | SYS_getpid, { 0 } }),
		-ENOSYS);
	assert_int_equal(verdict(-1, none), ANSWER(ENOSYS));
}

/* All that is known and not answered: a call that gets lost from the table shows here. */
static void only_these_known_calls_do_not_exist(void **state)
{
	static const long absent[] = {
		SYS_uselib,
		SYS_ustat,
		SYS_sysfs,
		SYS_modify_ldt,
		SYS__sysctl,
		SYS_create_module,
		SYS_get_kernel_syms,
		SYS_query_module,
		SYS_nfsservctl,
		SYS_getpmsg,
		SYS_putpmsg,
		SYS_afs_syscall,
		SYS_tuxcall,
		SYS_security,
		SYS_set_thread_area,
		SYS_get_thread_area,
		SYS_lookup_dcookie,
		SYS_epoll_ctl_old,
		SYS_epoll_wait_old,
		SYS_vserver,
		425 /* io_uring_setup */,
		426,
		427,
		435 /* clone3 */,
		437 /* openat2 */,
	};
	static const unsigned long none[6];
	size_t at = 0;

	(void)state;
	for (long number = 0; number <= 469; number++) {
		bool is_hole = number > 336 && number < 424;

		if (is_hole || verdict(number, none) != ANSWER(ENOSYS))
			continue;
		assert_true(at < AW_ARRAY_LEN(absent));
		assert_int_equal(number, absent[at]);
		at++;
	}
	assert_int_equal(at, AW_ARRAY_LEN(absent));
}
#endif

static unsigned expect_openat(const unsigned long *a)
{
	bool creates = (a[2] & (O_CREAT | KERNEL_O_TMPFILE)) != 0;

	return creates && (a[3] & 06000) != 0 ? ANSWER(EPERM) : SECCOMP_RET_ALLOW;
}

static unsigned expect_fchmod(const unsigned long *a)
{
	return (a[1] & 06000) != 0 ? ANSWER(EPERM) : SECCOMP_RET_ALLOW;
}

static unsigned expect_mknodat(const unsigned long *a)
{
	mode_t type = a[2] & S_IFMT;
	bool is_harmless = type == 0 || type == S_IFREG || type == S_IFIFO || type == S_IFSOCK;

	return is_harmless && (a[2] & 06000) == 0 ? SECCOMP_RET_ALLOW : ANSWER(EPERM);
}

static unsigned expect_clone(const unsigned long *a)
{
	return (a[0] & 0x7e020000) != 0 ? ANSWER(EPERM) : SECCOMP_RET_ALLOW;
}

static unsigned expect_unshare(const unsigned long *a)
{
	return (a[0] & 0x7e020080) != 0 ? ANSWER(EPERM) : SECCOMP_RET_ALLOW;
}

static unsigned expect_ioctl(const unsigned long *a)
{
	unsigned command = (unsigned)a[1];
	bool is_bad = command == TIOCSTI || command == TIOCLINUX || command == TIOCCONS ||
		      command == TIOCSETD;

	return is_bad ? ANSWER(EPERM) : SECCOMP_RET_ALLOW;
}

static unsigned expect_fcntl(const unsigned long *a)
{
	return (unsigned)a[1] == F_SETLEASE ? ANSWER(EPERM) : SECCOMP_RET_ALLOW;
}

static unsigned expect_prctl(const unsigned long *a)
{
	if ((unsigned)a[0] == PR_SET_DUMPABLE && a[1] == 0)
		return ANSWER(0);
	return (unsigned)a[0] == PR_SET_MM ? ANSWER(EPERM) : SECCOMP_RET_ALLOW;
}

static unsigned expect_read(const unsigned long *a)
{
	(void)a;
	return SECCOMP_RET_ALLOW;
}

static const struct property {
	long number;
	unsigned (*expect)(const unsigned long *args);
} properties[] = {
	{ SYS_openat, expect_openat },   { SYS_fchmod, expect_fchmod },
	{ SYS_mknodat, expect_mknodat }, { SYS_clone, expect_clone },
	{ SYS_unshare, expect_unshare }, { SYS_ioctl, expect_ioctl },
	{ SYS_fcntl, expect_fcntl },     { SYS_prctl, expect_prctl },
	{ SYS_read, expect_read },
};

/* Half the time something that matters, with or without rubbish above 32 bits. */
static unsigned long random_argument(void)
{
	static const unsigned long values[] = {
		0,
		TIOCSTI,
		TIOCLINUX,
		TIOCSETD,
		TIOCCONS,
		F_SETLEASE,
		PR_SET_DUMPABLE,
		PR_SET_MM,
		O_CREAT,
		KERNEL_O_TMPFILE,
		O_TMPFILE,
		04755,
		02644,
		06000,
		0644,
		S_IFCHR,
		S_IFIFO,
		CLONE_NEWUSER,
		CLONE_VM | SIGCHLD,
		0x80,
		1,
		-1UL,
	};
	unsigned long value = ((unsigned long)random() << 33) ^ ((unsigned long)random() << 8) ^
			      (unsigned long)random();

	if (random() % 2 == 0)
		value = values[(size_t)random() % AW_ARRAY_LEN(values)];
	return random() % 2 == 0 ? value : value ^ ((unsigned long)random() << 32);
}

static void decides_as_plain_C_does_for_any_argument(void **state)
{
	(void)state;
	srandom(1);
	for (size_t i = 0; i < AW_ARRAY_LEN(properties); i++)
		for (unsigned round = 0; round < 20000; round++) {
			unsigned long args[6];

			for (size_t k = 0; k < 6; k++)
				args[k] = random_argument();
			assert_int_equal(verdict(properties[i].number, args),
					 properties[i].expect(args));
		}
}

static void common_calls_take_few_instructions(void **state)
{
	static const long numbers[] = { SYS_read,  SYS_write,  SYS_openat, SYS_close,  SYS_futex,
					SYS_ioctl, SYS_mmap,   SYS_fcntl,  SYS_execve, SYS_recvmsg,
					SYS_clone, SYS_fchmod, SYS_prctl,  SYS_statx,  9999 };
	unsigned worst = 0;

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(numbers); i++) {
		struct seccomp_data call = { .nr = (int)numbers[i],
					     .arch = probe_arch,
					     .args = { 0, 0, O_CREAT, 0644 } };
		unsigned steps;

		(void)probe_verdict(AGENT, &call, &steps);
		worst = steps > worst ? steps : worst;
		if (steps >= 60)
			fail_msg("call %ld takes %u instructions", numbers[i], steps);
	}
	print_message("# at most %u instructions, %zu in all\n", worst, AGENT->size / 8);
	assert_true(AGENT->size / 8 < 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef __x86_64__
		cmocka_unit_test(foreign_entries_do_not_exist),
		cmocka_unit_test(only_these_known_calls_do_not_exist),
#endif
		cmocka_unit_test(decides_as_plain_C_does_for_any_argument),
		cmocka_unit_test(common_calls_take_few_instructions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
