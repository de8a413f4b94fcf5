/*
 * The agent's filter and files with a set-id bit or of a device: every way to make one, in a
 * directory of the test's own, beside a control run without the filter.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "confine/probe.h"

#define AGENT (&aw_confine_filter_agent)

struct maker {
	const char *name;
	long (*make)(mode_t mode); /* makes "f", or changes its mode */
	bool needs_file;
};

static long result(long r)
{
	return r < 0 ? -errno : 0;
}

static long by_openat(mode_t mode)
{
	return result(syscall(SYS_openat, AT_FDCWD, "f", O_CREAT | O_RDWR, mode));
}

static long by_openat_high(mode_t mode)
{
	return result(syscall(SYS_openat, AT_FDCWD, "f", HIGH | O_CREAT | O_RDWR, HIGH | mode));
}

static long by_tmpfile(mode_t mode)
{
	char path[64];
	int fd = (int)syscall(SYS_openat, AT_FDCWD, ".", O_TMPFILE | O_RDWR, mode);

	if (fd < 0)
		return -errno;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return result(linkat(AT_FDCWD, path, AT_FDCWD, "f", AT_SYMLINK_FOLLOW));
}

static long by_mknodat(mode_t mode)
{
	return result(syscall(SYS_mknodat, AT_FDCWD, "f", S_IFREG | mode, 0));
}

static long by_fchmod(mode_t mode)
{
	int fd = open("f", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : result(syscall(SYS_fchmod, fd, mode));
}

static long by_fchmodat(mode_t mode)
{
	return result(syscall(SYS_fchmodat, AT_FDCWD, "f", HIGH | mode));
}

static long by_fchmodat2(mode_t mode)
{
	return result(syscall(452, AT_FDCWD, "f", mode, 0));
}

#ifdef __x86_64__
static long by_open(mode_t mode)
{
	return result(syscall(SYS_open, "f", O_CREAT | O_WRONLY, mode));
}

static long by_creat(mode_t mode)
{
	return result(syscall(SYS_creat, "f", mode));
}

static long by_mknod(mode_t mode)
{
	return result(syscall(SYS_mknod, "f", S_IFREG | mode, 0));
}

static long by_chmod(mode_t mode)
{
	return result(syscall(SYS_chmod, "f", mode));
}
#endif

static const struct maker makers[] = {
	{ "openat", by_openat, false },      { "openat with high bits", by_openat_high, false },
	{ "O_TMPFILE", by_tmpfile, false },  { "mknodat", by_mknodat, false },
	{ "fchmod", by_fchmod, true },       { "fchmodat", by_fchmodat, true },
	{ "fchmodat2", by_fchmodat2, true },
#ifdef __x86_64__
	{ "open", by_open, false },          { "creat", by_creat, false },
	{ "mknod", by_mknod, false },        { "chmod", by_chmod, true },
#endif
};

struct attempt {
	const struct maker *maker;
	mode_t mode;
};

static long make_file(void *state)
{
	const struct attempt *attempt = state;

	return attempt->maker->make(attempt->mode);
}

/* The mode of "f" afterwards, or -errno of the attempt. */
static long attempt(const struct aw_filter *filter, const struct maker *maker, mode_t mode)
{
	struct attempt a = { maker, mode };
	struct stat st;
	long r;

	(void)unlink("f");
	if (maker->needs_file)
		assert_true(close(open("f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)) == 0);
	r = probe_body(filter, make_file, &a);
	if (r < 0)
		return r;
	assert_int_equal(stat("f", &st), 0);
	return (long)(st.st_mode & 07777);
}

static int enter_directory(void **state)
{
	static char path[32];

	(void)snprintf(path, sizeof(path), "/tmp/aw-unit-XXXXXX");
	*state = mkdtemp(path);
	(void)umask(0);
	return *state != NULL ? chdir(path) : -1;
}

static int leave_directory(void **state)
{
	(void)unlink("f");
	return chdir("/") == 0 ? rmdir(*state) : -1;
}

static void no_call_makes_a_set_id_file(void **state)
{
	static const mode_t modes[] = { 04755, 02755, 06755 };

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(makers); i++) {
		long plain = attempt(NULL, makers + i, 0755);

		if (plain == -ENOSYS || plain == -EOPNOTSUPP)
			continue; /* fchmodat2 before 6.6, O_TMPFILE on an overlay */
		assert_int_equal(plain, 0755);
		assert_int_equal(attempt(AGENT, makers + i, 0755), 0755);
		assert_int_equal(attempt(AGENT, makers + i, 01755), 01755);
		for (size_t k = 0; k < AW_ARRAY_LEN(modes); k++) {
			if (attempt(NULL, makers + i, modes[k]) != (long)modes[k])
				fail_msg("%s: no control for %o", makers[i].name, modes[k]);
			if (attempt(AGENT, makers + i, modes[k]) != -EPERM)
				fail_msg("%s made %o", makers[i].name, modes[k]);
		}
	}
}

static void ignores_a_stray_mode_without_creation(void **state)
{
	struct probe_call call = CALL(openat, CWD, (unsigned long)"/", O_RDONLY, 07777);

	(void)state;
	assert_true(probe(AGENT, &call) >= 0);
}

static void makes_no_device_nodes(void **state)
{
	static const unsigned long types[] = { S_IFCHR, S_IFBLK };
	unsigned long name = (unsigned long)"f";

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(types); i++)
		for (unsigned long high = 0; high <= HIGH; high += HIGH) {
			struct probe_row row = { CALL(mknodat, CWD, name, high | types[i] | 0600,
						      0x103),
						 -EPERM, true };

			probe_check(AGENT, &row);
			(void)unlink("f");
		}
	/* A whiteout needs no privilege. */
	probe_check(AGENT,
		    &(struct probe_row){ CALL(mknodat, CWD, name, S_IFCHR, 0), -EPERM, false });
	(void)unlink("f");
	assert_int_equal(
		probe(AGENT, &(struct probe_call)CALL(mknodat, CWD, name, S_IFIFO | 0600, 0)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(no_call_makes_a_set_id_file, enter_directory,
						leave_directory),
		cmocka_unit_test(ignores_a_stray_mode_without_creation),
		cmocka_unit_test_setup_teardown(makes_no_device_nodes, enter_directory,
						leave_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
