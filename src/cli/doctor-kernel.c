/* What this kernel has: each thing tried once. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/proc.h"
#include "base/str.h"
#include "base/uapi.h"
#include "cli/doctor.h"
#include "confine/caps.h"
#include "confine/landlock.h"
#include "confine/seccomp.h"

/* Landlock without its flaw at renames; what is below lacks more. */
#define KERNEL_MAJOR 5
#define KERNEL_MINOR 19

/* "6.1.0-13-amd64" -> 6, 1. */
static bool parse_release(const char *release, unsigned long *ret_major, unsigned long *ret_minor)
{
	char *end;

	*ret_major = strtoul(release, &end, 10);
	if (end == release || *end != '.')
		return false;
	*ret_minor = strtoul(end + 1, NULL, 10);
	return true;
}

static bool measure_kernel(const struct aw_doctor *doctor, struct aw_doctor_finding *ret)
{
	struct utsname name;
	unsigned long major, minor;
	bool is_old;

	(void)doctor;
	if (uname(&name) < 0 || !parse_release(name.release, &major, &minor)) {
		aw_doctor_find(ret, AW_DOCTOR_UNKNOWN, "uname says nothing that can be read");
		return true;
	}
	is_old = major < KERNEL_MAJOR || (major == KERNEL_MAJOR && minor < KERNEL_MINOR);
	aw_doctor_find(ret, is_old ? AW_DOCTOR_DEGRADED : AW_DOCTOR_OK, "%s, %s", name.release,
		       name.machine);
	return true;
}

static bool measure_openat2(const struct aw_doctor *doctor, struct aw_doctor_finding *ret)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	autoclose int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -EBADF;
	int code;

	(void)doctor;
	fd = (int)syscall(SYS_openat2, root, "../proc", &how, sizeof(how));
	code = fd < 0 ? errno : 0;
	if (code == EXDEV)
		aw_doctor_find(ret, AW_DOCTOR_OK, "a path that leads out is refused");
	else
		aw_doctor_find(ret, AW_DOCTOR_MISSING, "a path that leads out: %s",
			       code == 0 ? "was opened" : strerror(code));
	return true;
}

static bool measure_pidfd(const struct aw_doctor *doctor, struct aw_doctor_finding *ret)
{
	struct aw_error err = { 0 };
	autoclose int fd = aw_pidfd_open(getpid(), &err);

	(void)doctor;
	if (fd >= 0 && aw_pidfd_kill(fd, 0) == 0)
		aw_doctor_find(ret, AW_DOCTOR_OK, "opened, signalled");
	else
		aw_doctor_find(ret, AW_DOCTOR_MISSING, "%s",
			       fd < 0 ? err.message : "a signal does not arrive");
	return true;
}

static bool measure_memfd(const struct aw_doctor *doctor, struct aw_doctor_finding *ret)
{
	const int all = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	struct aw_error err = { 0 };
	autoclose int fd = aw_memfd_sealed("doctor", "x", 1, 1, &err);
	int seals = fd < 0 ? 0 : fcntl(fd, F_GET_SEALS);

	(void)doctor;
	if (fd >= 0 && (seals & all) == all && write(fd, "y", 1) < 0)
		aw_doctor_find(ret, AW_DOCTOR_OK, "sealed, writing is refused");
	else
		aw_doctor_find(ret, AW_DOCTOR_MISSING, "%s",
			       fd < 0 ? err.message : "the seals do not hold");
	return true;
}

/* What each ABI of Landlock brought; one row per version. */
static const char *const landlock_rights[] = {
	"files", "links across directories", "truncation",
	"ports", "ioctl on devices",         "signals and abstract sockets",
	"audit",
};

static bool measure_landlock(const struct aw_doctor *doctor, struct aw_doctor_finding *ret)
{
	struct aw_error err = { 0 };
	int abi = aw_landlock_abi(&err);
	char rights[192] = "";
	size_t used = 0;

	(void)doctor;
	if (abi < 0) {
		aw_doctor_find(ret, AW_DOCTOR_MISSING, "%s", err.message);
		return true;
	}
	for (size_t i = 0; i < AW_ARRAY_LEN(landlock_rights) && (int)i < abi; i++) {
		int n = aw_str_format(rights + used, sizeof(rights) - used, "%s%s",
				      i > 0 ? ", " : "", landlock_rights[i]);

		used += n > 0 ? (size_t)n : 0;
	}
	aw_doctor_find(ret, abi < AW_LANDLOCK_ABI_MIN ? AW_DOCTOR_MISSING : AW_DOCTOR_OK,
		       "ABI %d: %s", abi, rights);
	return true;
}

/* What a child found that put filters on itself. */
struct seccomp_answer {
	int filter, listener, wake_up; /* errno; 0: works */
	bool is_killable;
};

static int listen_for_calls(struct seccomp_answer *ret, struct aw_error *err)
{
	static const struct sock_filter allow_all[] = {
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	int fd = aw_seccomp_listen(allow_all, sizeof(allow_all), &ret->is_killable, err);

	if (fd < 0)
		return err->code;
	ret->wake_up = ioctl(fd, SECCOMP_IOCTL_NOTIF_SET_FLAGS,
			     (unsigned long)SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP) < 0
			       ? errno
			       : 0;
	return 0;
}

static _Noreturn void put_filters_on(int link)
{
	struct seccomp_answer answer = { .wake_up = ENOSYS };
	struct aw_error err = { 0 };

	answer.filter = aw_caps_no_new_privs(&err) < 0 ? err.code : 0;
	answer.listener = answer.filter != 0 ? answer.filter : listen_for_calls(&answer, &err);
	if (answer.filter == 0 &&
	    aw_seccomp_apply(aw_confine_filter_agent.code, aw_confine_filter_agent.size, &err) < 0)
		answer.filter = err.code;
	_exit(aw_write_all(link, &answer, sizeof(answer)) < 0);
}

static int try_seccomp(struct seccomp_answer *ret)
{
	int link[2], r;
	pid_t pid;

	if (pipe2(link, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		put_filters_on(link[1]);
	(void)close(link[1]);
	r = pid > 0 && read(link[0], ret, sizeof(*ret)) == (ssize_t)sizeof(*ret) ? 0 : -ECHILD;
	(void)close(link[0]);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	return r;
}

static bool measure_seccomp(const struct aw_doctor *doctor, struct aw_doctor_finding *ret)
{
	struct seccomp_answer answer = { 0 };

	(void)doctor;
	if (try_seccomp(&answer) < 0)
		aw_doctor_find(ret, AW_DOCTOR_UNKNOWN, "the child that tried gave no answer");
	else if (answer.filter != 0)
		aw_doctor_find(ret, AW_DOCTOR_MISSING, "the agent's filter: %s",
			       strerror(answer.filter));
	else
		aw_doctor_find(ret, AW_DOCTOR_OK, "the agent's filter is accepted");
	return true;
}

static bool measure_notification(const struct aw_doctor *doctor, struct aw_doctor_finding *ret)
{
	struct seccomp_answer answer = { 0 };

	(void)doctor;
	if (try_seccomp(&answer) < 0)
		aw_doctor_find(ret, AW_DOCTOR_UNKNOWN, "the child that tried gave no answer");
	else if (answer.listener != 0)
		aw_doctor_find(ret, AW_DOCTOR_MISSING, "a listener: %s", strerror(answer.listener));
	else
		aw_doctor_find(ret,
			       answer.is_killable && answer.wake_up == 0 ? AW_DOCTOR_OK
									 : AW_DOCTOR_DEGRADED,
			       "a listener is accepted; waits only a fatal signal ends (5.19): %s; "
			       "wake-up on the same CPU (6.6): %s",
			       answer.is_killable ? "yes" : "no",
			       answer.wake_up == 0 ? "yes" : "no");
	return true;
}

static const struct aw_doctor_check checks[] = {
	{ "kernel", measure_kernel, false,
	  "older than what Warden is made for (5.19): what is missing is named below",
	  "a newer kernel of your distribution" },
	{ "openat2", measure_openat2, true, "paths of the project cannot be opened safely",
	  "Linux 5.6 or later; in a container: let its seccomp profile allow openat2" },
	{ "pidfd", measure_pidfd, true, "processes cannot be told apart safely",
	  "Linux 5.3 or later; in a container: let its seccomp profile allow pidfd_open" },
	{ "memfd", measure_memfd, true, "the plan of a cell cannot be sealed",
	  "Linux 3.17 or later with CONFIG_MEMFD_CREATE" },
	{ "landlock", measure_landlock, true,
	  "the second wall around the files is missing; a policy that accepts it says "
	  "\"allow_degraded\": [\"landlock\"]",
	  "Linux 5.19 or later; add landlock to the boot parameter lsm= (cat "
	  "/sys/kernel/security/lsm shows it)" },
	{ "seccomp", measure_seccomp, true, "system calls of the agent cannot be refused",
	  "a kernel with CONFIG_SECCOMP_FILTER" },
	{ "notification", measure_notification, false,
	  "calls of the agent cannot be watched one by one, or at more cost",
	  "Linux 6.6 or later" },
};

struct aw_doctor_table aw_doctor_kernel(void)
{
	return (struct aw_doctor_table){ checks, AW_ARRAY_LEN(checks) };
}
