#include "confine/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "confine/probe.h"

#define READ_WRITE (AW_LANDLOCK_READ | AW_LANDLOCK_WRITE)

static int abi; /* of the running kernel; 0: none */

/* A directory with a/ (holding f), b/ and run (an executable script); the tests run in it. */
static int enter_directory(void **state)
{
	static char path[32];
	int fd;

	(void)snprintf(path, sizeof(path), "/tmp/aw-unit-XXXXXX");
	*state = mkdtemp(path);
	if (*state == NULL || chdir(path) < 0 || mkdir("a", 0700) < 0 || mkdir("b", 0700) < 0)
		return -1;
	fd = open("a/f", O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
	if (fd < 0 || write(fd, "#!/bin/sh\nexit 7\n", 17) != 17)
		return -1;
	return close(fd);
}

static int leave_directory(void **state)
{
	static const char *const names[] = { "a/f", "a/g", "b/f", "b/g", "a/d" };

	for (size_t i = 0; i < AW_ARRAY_LEN(names); i++)
		if (unlink(names[i]) < 0)
			(void)rmdir(names[i]);
	return rmdir("a") == 0 && rmdir("b") == 0 && chdir("/") == 0 ? rmdir(*state) : -1;
}

struct attempt {
	unsigned rights_on_a, rights_on_b;
	int abi;
	long (*act)(void);
};

/* In the child: rules on a and b, programs may be run, nothing else; then the act. */
static long act_confined(void *state)
{
	const struct attempt *attempt = state;
	struct aw_error err;
	autoclose int ruleset = aw_landlock_begin(attempt->abi, &err);

	if (ruleset < 0 ||
	    aw_landlock_allow_path(ruleset, attempt->abi, "a", attempt->rights_on_a, &err) < 0 ||
	    aw_landlock_allow_path(ruleset, attempt->abi, "b", attempt->rights_on_b, &err) < 0 ||
	    aw_landlock_allow_path(ruleset, attempt->abi, "/usr",
				   AW_LANDLOCK_READ | AW_LANDLOCK_EXEC, &err) < 0 ||
	    aw_landlock_enforce(ruleset, &err) < 0)
		return -err.code - 1000;
	return attempt->act();
}

static long act_free(void *state)
{
	return ((const struct attempt *)state)->act();
}

static long confined(unsigned rights_on_a, unsigned rights_on_b, long (*act)(void))
{
	struct attempt attempt = { rights_on_a, rights_on_b, abi, act };

	return probe_body(NULL, act_confined, &attempt);
}

static long unconfined(long (*act)(void))
{
	struct attempt attempt = { .act = act };

	return probe_body(NULL, act_free, &attempt);
}

static long opens(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC | O_NOCTTY, 0600);

	return fd < 0 ? -errno : close(fd);
}

static long result(int r)
{
	return r < 0 ? -errno : 0;
}

static long reads(void)
{
	return opens("a/f", O_RDONLY);
}

static long lists(void)
{
	return opens("a", O_RDONLY | O_DIRECTORY);
}

static long writes(void)
{
	return opens("a/f", O_WRONLY);
}

static long creates(void)
{
	return opens("a/g", O_WRONLY | O_CREAT | O_EXCL);
}

static long removes(void)
{
	return result(unlink("a/f"));
}

static long renames_over(void)
{
	return result(rename("a/f", "a/f2")) == 0 ? result(rename("a/f2", "a/f")) : -errno;
}

static long moves_across(void)
{
	return result(rename("a/f", "b/f")) == 0 ? result(rename("b/f", "a/f")) : -errno;
}

static long links_across(void)
{
	return result(link("a/f", "b/g")) == 0 ? result(unlink("b/g")) : -errno;
}

static long reads_elsewhere(void)
{
	return opens("/dev/null", O_RDONLY);
}

static long makes_a_device(void)
{
	return result(mknod("a/d", S_IFCHR, 0)); /* a whiteout: needs no privilege (5.8) */
}

/* The script ends with 7. */
static long executes(void)
{
	siginfo_t info = { 0 };
	pid_t pid = fork();

	if (pid == 0) {
		execl("a/f", "f", NULL);
		_exit(errno == EACCES ? 126 : 127);
	}
	return waitid(P_PID, (id_t)pid, &info, WEXITED) < 0 ? -errno : info.si_status;
}

static void skip_without_landlock(void)
{
	if (abi < AW_LANDLOCK_ABI_MIN)
		probe_skip("no Landlock with ABI 2 or later here");
}

static void grants_and_denies_by_class(void **state)
{
	static const struct {
		const char *name;
		long (*act)(void);
		unsigned enough, not_enough; /* rights on both directories */
		int denied;
	} rows[] = {
		{ "read", reads, AW_LANDLOCK_READ, AW_LANDLOCK_WRITE, EACCES },
		{ "list", lists, AW_LANDLOCK_READ, AW_LANDLOCK_WRITE, EACCES },
		{ "write", writes, AW_LANDLOCK_WRITE, AW_LANDLOCK_READ, EACCES },
		{ "create", creates, AW_LANDLOCK_WRITE, AW_LANDLOCK_READ, EACCES },
		{ "rename", renames_over, READ_WRITE | AW_LANDLOCK_REMOVE, READ_WRITE, EACCES },
		{ "move", moves_across, READ_WRITE | AW_LANDLOCK_REMOVE, READ_WRITE, EACCES },
		{ "link", links_across, READ_WRITE | AW_LANDLOCK_REMOVE, AW_LANDLOCK_READ, EACCES },
		{ "remove", removes, AW_LANDLOCK_REMOVE, READ_WRITE, EACCES },
	};

	(void)state;
	skip_without_landlock();
	for (size_t i = 0; i < AW_ARRAY_LEN(rows); i++) {
		long denied = confined(rows[i].not_enough, rows[i].not_enough, rows[i].act);
		long allowed = confined(rows[i].enough, rows[i].enough, rows[i].act);

		if (denied != -rows[i].denied || allowed != 0)
			fail_msg("%s: %ld, %ld", rows[i].name, denied, allowed);
	}
}

static void refuses_what_no_rule_names(void **state)
{
	(void)state;
	skip_without_landlock();
	assert_int_equal(confined(READ_WRITE, READ_WRITE, reads_elsewhere), -EACCES);
	assert_int_equal(unconfined(reads_elsewhere), 0);
}

static void nobody_makes_device_nodes(void **state)
{
	(void)state;
	skip_without_landlock();
	assert_int_equal(unconfined(makes_a_device), 0);
	assert_int_equal(unlink("a/d"), 0);
	assert_int_equal(confined(READ_WRITE | AW_LANDLOCK_REMOVE, READ_WRITE, makes_a_device),
			 -EACCES);
}

static void executes_only_with_the_right(void **state)
{
	(void)state;
	skip_without_landlock();
	assert_int_equal(confined(READ_WRITE | AW_LANDLOCK_DEVICE, 0, executes), 126);
	assert_int_equal(confined(AW_LANDLOCK_READ | AW_LANDLOCK_EXEC, 0, executes), 7);
}

static void refuses_an_abi_that_cannot_move_files(void **state)
{
	struct aw_error err;

	(void)state;
	assert_int_equal(aw_landlock_begin(1, &err), -ENOTSUP);
	assert_non_null(strstr(err.message, "ABI 1"));
}

/* Every right on files and directories, masked for each ABI up to ours: no EINVAL, no ENOMSG. */
static void masks_rights_for_files_and_for_each_abi(void **state)
{
	static const char *const paths[] = { "a/f", "a", "/dev/null", "/dev/ptmx",
					     "/proc/self/status" };
	struct aw_error err = { 0 };

	(void)state;
	skip_without_landlock();
	for (int version = AW_LANDLOCK_ABI_MIN; version <= abi; version++) {
		autoclose int ruleset = aw_landlock_begin(version, &err);

		assert_true(ruleset >= 0);
		for (unsigned rights = 0; rights < 32; rights++)
			for (size_t i = 0; i < AW_ARRAY_LEN(paths); i++)
				assert_int_equal(aw_landlock_allow_path(ruleset, version, paths[i],
									rights, &err),
						 0);
	}
}

static void says_which_path_is_missing(void **state)
{
	struct aw_error err = { 0 };
	autoclose int ruleset = -EBADF;

	(void)state;
	skip_without_landlock();
	ruleset = aw_landlock_begin(abi, &err);
	assert_int_equal(aw_landlock_allow_path(ruleset, abi, "/no/such", 1, &err), -ENOENT);
	assert_non_null(strstr(err.message, "/no/such"));
}

struct terminal {
	unsigned rights;
};

/* Raw mode on a pty that was opened under a rule with @rights. */
static long set_raw_mode(void *state)
{
	const struct terminal *terminal = state;
	struct aw_error err;
	struct termios settings;
	int ruleset = aw_landlock_begin(abi, &err), fd;

	if (aw_landlock_allow_path(ruleset, abi, "/dev/ptmx", terminal->rights, &err) < 0 ||
	    aw_landlock_allow_path(ruleset, abi, "/dev/pts", terminal->rights, &err) < 0 ||
	    aw_landlock_enforce(ruleset, &err) < 0)
		return -err.code - 1000;
	fd = open("/dev/ptmx", O_RDWR | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno - 2000;
	if (tcgetattr(fd, &settings) < 0)
		return -errno;
	cfmakeraw(&settings);
	return result(tcsetattr(fd, TCSANOW, &settings));
}

static void a_terminal_needs_the_device_right(void **state)
{
	struct terminal with = { READ_WRITE | AW_LANDLOCK_DEVICE }, without = { READ_WRITE };

	(void)state;
	skip_without_landlock();
	if (opens("/dev/ptmx", O_RDWR) < 0)
		probe_skip("no /dev/ptmx here");
	assert_int_equal(probe_body(NULL, set_raw_mode, &with), 0);
	if (abi >= 5)
		assert_int_equal(probe_body(NULL, set_raw_mode, &without), -EACCES);
}

static long signals_the_parent(void)
{
	return result(kill(getppid(), 0));
}

/* An abstract socket whose listener the test holds. */
static struct sockaddr_un abstract = { .sun_family = AF_UNIX };

static long connects_to_the_parent(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return result(connect(fd, (const struct sockaddr *)&abstract, sizeof(abstract)));
}

static void signals_and_abstract_sockets_end_at_the_domain(void **state)
{
	autoclose int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	if (abi < 6)
		probe_skip("no Landlock with ABI 6 or later here");
	(void)snprintf(abstract.sun_path + 1, sizeof(abstract.sun_path) - 1, "aw-unit-%d",
		       getpid());
	assert_int_equal(bind(listener, (struct sockaddr *)&abstract, sizeof(abstract)), 0);
	assert_int_equal(listen(listener, 4), 0);
	assert_int_equal(unconfined(signals_the_parent), 0);
	assert_int_equal(confined(READ_WRITE, READ_WRITE, signals_the_parent), -EPERM);
	assert_int_equal(unconfined(connects_to_the_parent), 0);
	assert_int_equal(confined(READ_WRITE, READ_WRITE, connects_to_the_parent), -EPERM);
}

static long denies_all(void *state)
{
	struct aw_error err;
	int version = *(int *)state;

	return aw_landlock_deny_all(version, &err) < 0 ? -err.code - 1000 : reads_elsewhere();
}

static void denies_everything_from_abi_1(void **state)
{
	(void)state;
	if (abi < 1)
		probe_skip("no Landlock here");
	for (int version = 1; version <= abi; version++)
		assert_int_equal(probe_body(NULL, denies_all, &version), -EACCES);
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, enter_directory, leave_directory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_DIRECTORY(grants_and_denies_by_class),
		IN_DIRECTORY(refuses_what_no_rule_names),
		IN_DIRECTORY(nobody_makes_device_nodes),
		IN_DIRECTORY(executes_only_with_the_right),
		IN_DIRECTORY(refuses_an_abi_that_cannot_move_files),
		IN_DIRECTORY(masks_rights_for_files_and_for_each_abi),
		IN_DIRECTORY(says_which_path_is_missing),
		IN_DIRECTORY(a_terminal_needs_the_device_right),
		IN_DIRECTORY(signals_and_abstract_sockets_end_at_the_domain),
		IN_DIRECTORY(denies_everything_from_abi_1),
	};
	struct aw_error err;
	int r = aw_landlock_abi(&err);

	abi = r > 0 ? r : 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
