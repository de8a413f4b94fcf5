/*
 * The chain that a cell is made by, tried for real. A child is cloned into the namespaces of a cell;
 * we write its maps, as `run` does; it mounts, makes a network namespace and brings lo up. What it
 * made goes with it.
 *
 * Each step can be forbidden by another authority (sysctl, seccomp, AppArmor, a masked /proc), and
 * some let the clone work and stop what comes later: so only the whole chain says anything.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/proc.h"
#include "base/str.h"
#include "cell/view.h"
#include "cli/doctor.h"

#define NAMESPACES \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)
#define PLACE "/tmp"

const char *aw_doctor_step_text(enum aw_chain_step step)
{
	static const char *const texts[] = {
		[AW_CHAIN_CLONE] = "make the namespaces",
		[AW_CHAIN_MAP] = "write uid_map and gid_map",
		[AW_CHAIN_TMPFS] = "mount a tmpfs",
		[AW_CHAIN_TREE] = "take and change a mount (open_tree, mount_setattr)",
		[AW_CHAIN_PROC] = "mount a new /proc",
		[AW_CHAIN_NET] = "make a network namespace",
		[AW_CHAIN_LO] = "bring up lo",
	};

	return texts[step];
}

static int result(int r)
{
	return r < 0 ? errno : 0;
}

static int mount_tmpfs(void)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return errno;
	return result(mount("tmpfs", PLACE, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,mode=0755"));
}

static int change_tree(void)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID };
	autoclose int tree =
		(int)syscall(SYS_open_tree, AT_FDCWD, PLACE, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (tree < 0)
		return errno;
	return result(
		(int)syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)));
}

static int mount_proc(void)
{
	if (mkdir(PLACE "/proc", 0755) < 0)
		return errno;
	return result(mount("proc", PLACE "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL));
}

static int make_net(void)
{
	return result(unshare(CLONE_NEWNET));
}

static int bring_up_lo(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? errno : result(ioctl(fd, SIOCSIFFLAGS, &ifr));
}

/* What the child does, and which step must have worked before. */
static const struct {
	enum aw_chain_step step, needs;
	int (*try)(void);
} inside[] = {
	{ AW_CHAIN_TMPFS, AW_CHAIN_MAP, mount_tmpfs },
	{ AW_CHAIN_TREE, AW_CHAIN_TMPFS, change_tree },
	{ AW_CHAIN_PROC, AW_CHAIN_TMPFS, mount_proc },
	{ AW_CHAIN_NET, AW_CHAIN_MAP, make_net },
	{ AW_CHAIN_LO, AW_CHAIN_NET, bring_up_lo },
};

static _Noreturn void be_child(int link)
{
	struct aw_doctor_chain chain;
	char byte;

	for (size_t i = 0; i < AW_CHAIN_STEPS; i++)
		chain.code[i] = AW_CHAIN_NOT_TRIED;
	chain.code[AW_CHAIN_MAP] = 0;
	/* The end of the link means that our maps could not be written. */
	if (read(link, &byte, 1) != 1)
		_exit(1);
	for (size_t i = 0; i < AW_ARRAY_LEN(inside); i++)
		if (chain.code[inside[i].needs] == 0)
			chain.code[inside[i].step] = inside[i].try();
	_exit(send(link, &chain, sizeof(chain), MSG_NOSIGNAL) < 0);
}

static int write_maps(pid_t pid, struct aw_error *err)
{
	const struct {
		const char *file;
		unsigned outside;
	} maps[] = { { "gid_map", getegid() }, { "uid_map", geteuid() } };
	char path[64], text[64];
	int r;

	(void)aw_str_format(path, sizeof(path), "/proc/%d/setgroups", (int)pid);
	r = aw_write_file(AT_FDCWD, path, "deny", err);
	for (size_t i = 0; r == 0 && i < AW_ARRAY_LEN(maps); i++) {
		(void)aw_str_format(path, sizeof(path), "/proc/%d/%s", (int)pid, maps[i].file);
		(void)aw_str_format(text, sizeof(text), "%d %u 1\n", AW_CELL_UID, maps[i].outside);
		r = aw_write_file(AT_FDCWD, path, text, err);
	}
	return r;
}

/* Our half: map the child, let it go, take its answer. */
static void guide(pid_t pid, int link, struct aw_doctor_chain *ret)
{
	struct aw_doctor_chain chain;
	struct aw_error err = { 0 };

	ret->code[AW_CHAIN_MAP] = write_maps(pid, &err) < 0 ? err.code : 0;
	if (ret->code[AW_CHAIN_MAP] != 0 || send(link, "", 1, MSG_NOSIGNAL) < 0 ||
	    recv(link, &chain, sizeof(chain), 0) != (ssize_t)sizeof(chain))
		return;
	for (size_t i = AW_CHAIN_TMPFS; i < AW_CHAIN_STEPS; i++)
		ret->code[i] = chain.code[i];
}

void aw_doctor_try_chain(struct aw_doctor_chain *ret)
{
	autoclose int pidfd = -EBADF;
	struct clone_args args = {
		.flags = NAMESPACES | CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	struct aw_error none;
	int link[2];
	long pid;

	for (size_t i = 0; i < AW_CHAIN_STEPS; i++)
		ret->code[i] = AW_CHAIN_NOT_TRIED;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link) < 0)
		return;
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0) {
		(void)close(link[0]);
		be_child(link[1]);
	}
	ret->code[AW_CHAIN_CLONE] = pid < 0 ? errno : 0;
	(void)close(link[1]);
	if (pid > 0)
		guide((pid_t)pid, link[0], ret);
	(void)close(link[0]);
	if (pid > 0) {
		(void)aw_pidfd_kill(pidfd, SIGKILL);
		(void)aw_pidfd_wait(pidfd, false, &none);
	}
}
