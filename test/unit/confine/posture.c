/*
 * A small cell of the test's own (user, mount, pid and network namespace, a read-only root with
 * /proc), measured as it should be and then with one thing wrong at a time.
 */
#include "confine/posture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/own.h"
#include "confine/caps.h"
#include "confine/probe.h"
#include "confine/seccomp.h"

/* What is left out or added. */
enum wrong {
	NOTHING,
	WITH_OTHER_UID,
	WITH_CAPABILITIES,
	WITHOUT_FILTER,
	WITHOUT_NOSUID,
	WITHOUT_NODEV,
	WITH_WRITABLE_ROOT,
	WITH_DESCRIPTOR,
	WITHOUT_NO_NEW_PRIVS,
	WITH_ROUTE,
};

#define NO_CELL 3 /* exit code of a child that could not be set up here */
#define MOUNT_POINT "/tmp"
#define SAFE (MS_NOSUID | MS_NODEV)

static int make_root(enum wrong wrong)
{
	unsigned long flags = SAFE;

	if (wrong == WITHOUT_NOSUID)
		flags &= ~(unsigned long)MS_NOSUID;
	if (wrong == WITHOUT_NODEV)
		flags &= ~(unsigned long)MS_NODEV;
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("cell", MOUNT_POINT, "tmpfs", SAFE, NULL) < 0 || chdir(MOUNT_POINT) < 0 ||
	    mkdir("proc", 0755) < 0 || mkdir("tmp", 0755) < 0 ||
	    mount("proc", "proc", "proc", SAFE | MS_NOEXEC, NULL) < 0 ||
	    mount("tmp", "tmp", "tmpfs", flags, NULL) < 0 ||
	    syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0)
		return -errno;
	if (wrong == WITH_WRITABLE_ROOT)
		return 0;
	return mount("none", "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | SAFE, NULL) < 0 ? -errno
											   : 0;
}

/* 192.0.2.0/24 on the loopback device: then there is a way to the address that is tried. */
static int make_route(void)
{
	autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_name = "lo" };
	struct sockaddr_in address = { .sin_family = AF_INET };

	(void)inet_pton(AF_INET, "192.0.2.77", &address.sin_addr);
	memcpy(&request.ifr_addr, &address, sizeof(address));
	if (ioctl(fd, SIOCSIFADDR, &request) < 0)
		return -errno;
	(void)inet_pton(AF_INET, "255.255.255.0", &address.sin_addr);
	memcpy(&request.ifr_netmask, &address, sizeof(address));
	if (ioctl(fd, SIOCSIFNETMASK, &request) < 0)
		return -errno;
	request.ifr_flags = IFF_UP;
	return ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}

static int drop_without_no_new_privs(void)
{
	struct aw_error err;

	if (aw_caps_lock(&err) < 0 || aw_caps_drop_bounding(&err) < 0)
		return -1;
	return aw_caps_clear(&err);
}

static int confine(enum wrong wrong)
{
	const struct aw_filter *filter = &aw_confine_filter_agent;
	struct aw_error err;

	if (wrong == WITHOUT_FILTER)
		return aw_caps_drop_all(&err);
	/* With CAP_SYS_ADMIN in the namespace a filter may come before no_new_privs. */
	if (aw_seccomp_apply(filter->code, filter->size, &err) < 0)
		return -1;
	if (wrong == WITH_CAPABILITIES)
		return aw_caps_no_new_privs(&err);
	return wrong == WITHOUT_NO_NEW_PRIVS ? drop_without_no_new_privs() : aw_caps_drop_all(&err);
}

struct outcome {
	int result;
	unsigned held;
	struct aw_error err;
};

static _Noreturn void measure_inside(enum wrong wrong, int out)
{
	const int descriptors[] = { 0, 1, 2, out };
	const struct aw_posture_expected expected = {
		.uid = wrong == WITH_OTHER_UID ? 1 : 0,
		.descriptors = descriptors,
		.descriptor_count = AW_ARRAY_LEN(descriptors),
	};
	struct outcome outcome = { 0 };

	if (aw_close_others(3, &out, 1) < 0 || make_root(wrong) < 0)
		_exit(NO_CELL);
	if (wrong == WITH_DESCRIPTOR && dup(0) < 0)
		_exit(1);
	if (wrong == WITH_ROUTE && make_route() < 0)
		_exit(1);
	if (confine(wrong) < 0)
		_exit(1);
	outcome.result = aw_posture_measure(&expected, &outcome.held, &outcome.err);
	_exit(write(out, &outcome, sizeof(outcome)) == sizeof(outcome) ? 0 : 1);
}

static int write_map(const char *path, unsigned id)
{
	struct aw_error err;
	char line[32];

	(void)snprintf(line, sizeof(line), "0 %u 1", id);
	return aw_write_file(AT_FDCWD, path, line, &err);
}

static int enter_namespaces(void)
{
	unsigned uid = geteuid(), gid = getegid();
	struct aw_error err;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET) < 0 ||
	    aw_write_file(AT_FDCWD, "/proc/self/setgroups", "deny", &err) < 0 ||
	    write_map("/proc/self/uid_map", uid) < 0 || write_map("/proc/self/gid_map", gid) < 0)
		return -1;
	return 0;
}

static _Noreturn void run_outside(enum wrong wrong, int out)
{
	int status = 0;
	pid_t pid;

	if (enter_namespaces() < 0)
		_exit(NO_CELL);
	pid = fork();
	if (pid == 0)
		measure_inside(wrong, out);
	_exit(waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static struct outcome measure(enum wrong wrong)
{
	struct outcome outcome = { 0 };
	int pipe_fd[2], status;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe2(pipe_fd, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0)
		run_outside(wrong, pipe_fd[1]);
	close(pipe_fd[1]);
	n = read(pipe_fd[0], &outcome, sizeof(outcome));
	close(pipe_fd[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_CELL)
		probe_skip("no namespaces with a proc of their own here");
	assert_int_equal(status, 0);
	assert_int_equal(n, sizeof(outcome));
	return outcome;
}

static void holds_where_all_is_right(void **state)
{
	struct outcome outcome = measure(NOTHING);

	(void)state;
	if (outcome.result != 0)
		fail_msg("%s", outcome.err.message);
	assert_int_equal(outcome.held, AW_POSTURE_ALL);
}

static void finds_each_thing_that_is_wrong(void **state)
{
	static const struct {
		enum wrong wrong;
		enum aw_posture_check check;
		const char *message;
	} rows[] = {
		{ WITH_OTHER_UID, AW_POSTURE_IDENTITY, "identity is 0:0, not 1:0" },
		{ WITH_CAPABILITIES, AW_POSTURE_CAPABILITIES, "CapPrm is" },
		{ WITHOUT_NO_NEW_PRIVS, AW_POSTURE_NO_NEW_PRIVS, "not set" },
		{ WITHOUT_FILTER, AW_POSTURE_SECCOMP, "no filter" },
		{ WITHOUT_NOSUID, AW_POSTURE_MOUNTS, "'/tmp' is not nosuid" },
		{ WITHOUT_NODEV, AW_POSTURE_MOUNTS, "'/tmp' is not nodev" },
		{ WITH_WRITABLE_ROOT, AW_POSTURE_ROOT, "'/' is not read-only" },
		{ WITH_DESCRIPTOR, AW_POSTURE_DESCRIPTORS, "descriptor 3 is open" },
		{ WITH_ROUTE, AW_POSTURE_ROUTE, "IPv4 route to the outside (connected)" },
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(rows); i++) {
		struct outcome outcome = measure(rows[i].wrong);
		unsigned missing = AW_POSTURE_ALL & ~outcome.held;

		if (outcome.result != -EACCES || missing != 1u << rows[i].check ||
		    strstr(outcome.err.message, rows[i].message) == NULL)
			fail_msg("%s: %d %#x %s", aw_posture_name(rows[i].check), outcome.result,
				 missing, outcome.err.message);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holds_where_all_is_right),
		cmocka_unit_test(finds_each_thing_that_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
