#include "cell/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/proc.h"
#include "base/str.h"
#include "cell/pid1-internal.h"
#include "cell/view.h"
#include "confine/caps.h"
#include "ipc/ipc.h"

#define CELL_NAMESPACES \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWCGROUP)
#define GATE_LINK 3

/* What warden-cell needs of its rights over its own namespaces until it has confined itself. */
#define CELL_CAPS                                                                              \
	(AW_CAP_BIT(CAP_SYS_ADMIN) | AW_CAP_BIT(CAP_NET_ADMIN) |                               \
	 AW_CAP_BIT(CAP_NET_BIND_SERVICE) | AW_CAP_BIT(CAP_SETPCAP) | AW_CAP_BIT(CAP_SETUID) | \
	 AW_CAP_BIT(CAP_SETGID) | AW_CAP_BIT(CAP_SYS_RESOURCE))

int aw_launch_open_program(const char *name, struct aw_error *err)
{
	static const char *const places[] = { "", "../libexec/warden/" };
	char self[PATH_MAX], path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n < 0)
		return aw_fail(err, errno, "read /proc/self/exe");
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (slash == NULL)
		return aw_refuse(err, ENOENT, "no directory in the name of this program");
	for (size_t i = 0; i < AW_ARRAY_LEN(places); i++) {
		int fd;

		if (aw_str_format(path, sizeof(path), "%.*s/%s%s", (int)(slash - self), self,
				  places[i], name) < 0)
			continue;
		fd = open(path, O_PATH | O_CLOEXEC);
		if (fd >= 0)
			return fd;
	}
	return aw_refuse(err, ENOENT, "%s is not beside %s nor in its ../libexec/warden: reinstall",
			 name, self);
}

static void reset_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_DFL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Put fds[i] at first + i, without one landing on another that is still to be moved. */
static int place_fds(int first, int *fds, int count)
{
	for (int i = 0; i < count; i++) {
		fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, first + count);
		if (fds[i] < 0)
			return -errno;
	}
	for (int i = 0; i < count; i++)
		if (dup2(fds[i], first + i) < 0)
			return -errno;
	return 0;
}

/* Whatever we were started with beyond @first_unwanted ends with this exec (close_range, Linux 5.11). */
static int exec_program(int program_fd, const char *name, unsigned first_unwanted,
			struct aw_error *err)
{
	char *const argv[] = { (char *)(uintptr_t)name, NULL }, *const env[] = { NULL };

	if (syscall(SYS_close_range, first_unwanted, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		return aw_fail(err, errno, "close inherited descriptors");
	(void)syscall(SYS_execveat, program_fd, "", argv, env, AT_EMPTY_PATH);
	return aw_fail(err, errno, "execute %s", name);
}

static int become_cell(const struct aw_launch *how, int link, int monitor, struct aw_error *err)
{
	int program = fcntl(how->program_fd, F_DUPFD_CLOEXEC, 16);
	int fds[] = { link, monitor };
	int stdio[] = { how->stdio[0], how->stdio[1], how->stdio[2] };
	int r;

	(void)setpgid(0, 0);
	reset_signals();
	r = aw_caps_raise_ambient(CELL_CAPS, err);
	if (r < 0)
		return r;
	r = place_fds(AW_PID1_LINK, fds, 2);
	if (r == 0)
		r = place_fds(0, stdio, 3);
	if (program < 0 || r < 0)
		return aw_fail(err, program < 0 ? errno : -r, "arrange descriptors");
	return exec_program(program, "warden-cell", AW_PID1_MONITOR + 1, err);
}

/* What a user can do about a clone that the kernel refused: the setting is never the call's name. */
static int explain_clone(int code, struct aw_error *err)
{
	if (code == ENOSPC)
		return aw_refuse(
			err, code,
			"no user namespace to be had: user.max_user_namespaces is 0, used "
			"up, or they are nested too deep (sysctl user.max_user_namespaces)");
	if (code == EPERM)
		return aw_refuse(
			err, code,
			"this host forbids user namespaces to this user "
			"(kernel.unprivileged_userns_clone, a container's seccomp profile, "
			"or AppArmor): `warden doctor` says which and how to allow it");
	return aw_fail(err, code, "make the cell's namespaces");
}

static void report_from_child(int link, const struct aw_error *err)
{
	(void)aw_ipc_send(link, AW_IPC_CELL_FAILED, err, sizeof(*err), NULL, 0,
			  &(struct aw_error){ 0 });
}

static int clone_child(uint64_t flags, int cgroup_fd, struct aw_child *ret, struct aw_error *err)
{
	int pidfd = -EBADF;
	struct clone_args args = {
		.flags = flags | CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	long pid;

	if (cgroup_fd >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)(unsigned)cgroup_fd;
	}
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		return explain_clone(errno, err);
	ret->pid = (pid_t)pid;
	ret->pidfd = pidfd;
	return 0;
}

int aw_launch_cell(const struct aw_launch *how, struct aw_child *ret, struct aw_error *err)
{
	autoclose int monitor = aw_pidfd_open(getpid(), err);
	struct aw_child child = { .pidfd = -EBADF };
	int link[2], r;

	if (monitor < 0)
		return monitor;
	r = aw_ipc_pair(link, err);
	if (r < 0)
		return r;
	r = clone_child(CELL_NAMESPACES, how->cgroup_fd, &child, err);
	if (r == 0 && child.pid == 0) {
		struct aw_error story = { 0 };

		(void)become_cell(how, link[1], monitor, &story);
		report_from_child(link[1], &story);
		_exit(125);
	}
	(void)close(link[1]);
	if (r < 0) {
		(void)close(link[0]);
		return r;
	}
	child.link = link[0];
	*ret = child;
	return 0;
}

static int write_map(pid_t pid, const char *file, unsigned inside, unsigned outside,
		     struct aw_error *err)
{
	char path[64], map[64];

	(void)aw_str_format(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	(void)aw_str_format(map, sizeof(map), "%u %u 1\n", inside, outside);
	return aw_write_file(AT_FDCWD, path, map, err);
}

/*
 * Where AppArmor restricts user namespaces, the clone works and only this write fails: the kernel
 * has moved the child to a profile without rights (Ubuntu 23.10 and later).
 */
static int explain_map(struct aw_error *err)
{
	if (err->code != EPERM && err->code != EACCES)
		return aw_while(err, "map the cell's ids");
	if (geteuid() == 0)
		return aw_refuse(
			err, err->code,
			"uid 0 without CAP_SETFCAP may not be mapped into a user namespace "
			"(Linux 5.12): run as an ordinary user, or leave root its capabilities");
	return aw_refuse(
		err, err->code,
		"the kernel gave a user namespace but no rights in it; on Ubuntu 23.10 and "
		"later AppArmor does this (kernel.apparmor_restrict_unprivileged_userns): "
		"`warden doctor` names the profile to install");
}

int aw_launch_map(const struct aw_launch *how, const struct aw_child *cell, struct aw_error *err)
{
	char path[64];
	int r = 0;

	if (!how->is_root_started) {
		(void)aw_str_format(path, sizeof(path), "/proc/%d/setgroups", (int)cell->pid);
		r = aw_write_file(AT_FDCWD, path, "deny", err);
	}
	if (r == 0)
		r = write_map(cell->pid, "gid_map", AW_CELL_UID, how->outside_gid, err);
	if (r == 0)
		r = write_map(cell->pid, "uid_map", AW_CELL_UID, how->outside_uid, err);
	return r < 0 ? explain_map(err) : 0;
}

int aw_launch_hand_over(const struct aw_child *cell, int plan, const int *trees, size_t tree_count,
			struct aw_error *err)
{
	int fds[1 + AW_IPC_TREES_MAX] = { plan };

	memcpy(fds + 1, trees, tree_count * sizeof(*trees));
	return aw_ipc_send(cell->link, AW_IPC_CELL_MAPPED, NULL, 0, fds, 1 + tree_count, err);
}

/* An empty root: gate opens no file, and no path of the host leads to a socket. */
static int enter_empty_root(struct aw_error *err)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY,
		  "size=4k,mode=0555") < 0)
		return aw_fail(err, errno, "make gate's empty root");
	if (chdir("/tmp") < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0)
		return aw_fail(err, errno, "enter gate's empty root");
	return 0;
}

static int become_gate(int program_fd, bool is_root_started, int link, struct aw_error *err)
{
	int program = fcntl(program_fd, F_DUPFD_CLOEXEC, 16);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), r;

	(void)setpgid(0, 0);
	reset_signals();
	if (program < 0 || null < 0)
		return aw_fail(err, errno, "arrange descriptors");
	for (int i = 0; i < 3; i++)
		(void)dup2(null, i);
	r = place_fds(GATE_LINK, &link, 1);
	if (r < 0)
		return aw_fail(err, -r, "arrange descriptors");
	if (is_root_started &&
	    (setgroups(0, NULL) < 0 ||
	     setresgid(AW_UNPRIVILEGED_GATE, AW_UNPRIVILEGED_GATE, AW_UNPRIVILEGED_GATE) < 0 ||
	     setresuid(AW_UNPRIVILEGED_GATE, AW_UNPRIVILEGED_GATE, AW_UNPRIVILEGED_GATE) < 0))
		return aw_fail(err, errno, "give up root for gate");
	/* Its filter leaves it no call that the other namespaces would matter for. */
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return explain_clone(errno, err);
	r = enter_empty_root(err);
	return r < 0 ? r : exec_program(program, "warden-gate", GATE_LINK + 1, err);
}

int aw_launch_gate(int program_fd, bool is_root_started, struct aw_child *ret, struct aw_error *err)
{
	struct aw_child child = { .pidfd = -EBADF };
	int link[2], r;

	r = aw_ipc_pair(link, err);
	if (r < 0)
		return r;
	r = clone_child(0, -EBADF, &child, err);
	if (r == 0 && child.pid == 0) {
		struct aw_error story = { 0 };

		(void)become_gate(program_fd, is_root_started, link[1], &story);
		(void)aw_ipc_send(link[1], AW_IPC_GATE_FAILED, &story, sizeof(story), NULL, 0,
				  &(struct aw_error){ 0 });
		_exit(125);
	}
	(void)close(link[1]);
	if (r < 0) {
		(void)close(link[0]);
		return r;
	}
	child.link = link[0];
	*ret = child;
	return 0;
}

/* A user namespace that maps @disk_uid/@disk_gid to the ids that shall own them in the mount. */
static int mapping_namespace(uid_t disk_uid, gid_t disk_gid, uid_t uid, gid_t gid,
			     struct aw_error *err)
{
	struct aw_child child = { .pidfd = -EBADF };
	char path[64];
	int fd, r;

	r = clone_child(CLONE_NEWUSER, -EBADF, &child, err);
	if (r < 0)
		return r;
	if (child.pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
	r = write_map(child.pid, "uid_map", disk_uid, uid, err);
	if (r == 0)
		r = write_map(child.pid, "gid_map", disk_gid, gid, err);
	(void)aw_str_format(path, sizeof(path), "/proc/%d/ns/user", (int)child.pid);
	fd = r < 0 ? r : open(path, O_RDONLY | O_CLOEXEC);
	if (r == 0 && fd < 0)
		fd = aw_fail(err, errno, "open the mapping's namespace");
	(void)aw_pidfd_kill(child.pidfd, SIGKILL);
	(void)waitpid(child.pid, NULL, 0);
	(void)close(child.pidfd);
	return fd;
}

int aw_launch_idmapped_tree(const char *path, uid_t disk_uid, gid_t disk_gid, uid_t uid, gid_t gid,
			    struct aw_error *err)
{
	autoclose int map = mapping_namespace(disk_uid, disk_gid, uid, gid, err), tree = -EBADF;
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP };

	if (map < 0)
		return map;
	attr.userns_fd = (uint64_t)(unsigned)map;
	tree = (int)syscall(SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0)
		return aw_fail(err, errno, "take '%s' as a tree", path);
	if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return aw_fail(err, errno, "map the owner of '%s'", path);
	return AW_TAKE_FD(tree);
}
