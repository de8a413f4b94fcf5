#include "monitor/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/proc.h"

#define CHUNK 65536
#define PIPE_SIZE (1024 * 1024)
#define FINISH_WAIT_MS 60000

/* Where splice(2) does not go: into files, and on some file systems. */
static int copy_some(int from, int to)
{
	static char buffer[CHUNK];
	ssize_t n = read(from, buffer, sizeof(buffer));

	if (n <= 0)
		return n < 0 ? -errno : 0;
	return aw_write_all(to, buffer, (size_t)n) < 0 ? -EPIPE : 1;
}

static bool is_pipe(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PIPEFS_MAGIC;
}

/*
 * When the far side takes no more, the reading end goes with us, and the agent gets SIGPIPE. From a
 * file to a pipe only what arrived moves the file's offset: the copier may be killed at any moment.
 */
static _Noreturn void copy(int from, int to)
{
	int keep[] = { from, to };
	/* Into a file splice(2) writes where the file's end was when it began to wait for us. */
	bool may_splice = is_pipe(to);
	int r = 1;

	(void)setsid();
	(void)prctl(PR_SET_NAME, "warden-relay");
	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)aw_close_others(0, keep, AW_ARRAY_LEN(keep));
	while (r > 0 || r == -EINTR) {
		ssize_t n = may_splice ? splice(from, NULL, to, NULL, CHUNK, 0) : -1;

		if (n >= 0)
			r = n > 0;
		else if (may_splice && errno == EINTR)
			r = -EINTR;
		else if (may_splice && errno != EINVAL)
			r = -errno;
		else {
			may_splice = false;
			r = copy_some(from, to);
		}
	}
	_exit(r < 0);
}

/* Fork a copier between @fd and a pipe of ours; the agent's end is *ret. */
static int start_copier(struct aw_relay *relay, int fd, uid_t uid, gid_t gid, struct aw_error *err)
{
	autoclose int reading = -EBADF, writing = -EBADF;
	bool is_input = fd == 0;
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return aw_fail(err, errno, "pipe");
	reading = ends[0];
	writing = ends[1];
	(void)fcntl(writing, F_SETPIPE_SZ, PIPE_SIZE);
	if (geteuid() == 0 && uid != 0 && fchown(writing, uid, gid) < 0)
		return aw_fail(err, errno, "give a pipe to the agent");
	pid = fork();
	if (pid == 0)
		copy(is_input ? fd : reading, is_input ? writing : fd);
	if (pid < 0)
		return aw_fail(err, errno, "fork");
	relay->pidfds[fd] = aw_pidfd_open(pid, err);
	if (relay->pidfds[fd] < 0)
		return relay->pidfds[fd];
	if (is_input)
		relay->input = fcntl(reading, F_DUPFD_CLOEXEC, 0);
	relay->stdio[fd] = is_input ? AW_TAKE_FD(reading) : AW_TAKE_FD(writing);
	return 0;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

int aw_relay_start(struct aw_relay *ret, uid_t uid, gid_t gid, struct aw_error *err)
{
	struct stat st[3];

	*ret = (struct aw_relay)AW_RELAY_INIT;
	for (int fd = 0; fd < 3; fd++) {
		bool is_copied;

		if (fstat(fd, &st[fd]) < 0)
			return aw_fail(err, errno, "look at descriptor %d", fd);
		is_copied = S_ISREG(st[fd].st_mode) || (fd > 0 && is_pipe(fd));
		/* Else the agent of a root session could not open /dev/stdin. */
		if (fd == 0 && !is_copied && uid != 0 && is_pipe(fd) && geteuid() == 0 &&
		    fchown(fd, uid, gid) < 0)
			return aw_fail(err, errno, "give stdin to the agent");
		if (!is_copied)
			continue;
		if (fd == 2 && ret->stdio[1] != 1 && is_same_file(&st[1], &st[2])) {
			ret->stdio[2] = ret->stdio[1];
			continue;
		}
		if (start_copier(ret, fd, uid, gid, err) < 0) {
			aw_relay_release(ret);
			return -err->code;
		}
	}
	return 0;
}

void aw_relay_release(struct aw_relay *relay)
{
	if (relay->stdio[2] == relay->stdio[1])
		relay->stdio[2] = 2;
	for (int fd = 0; fd < 3; fd++) {
		if (relay->stdio[fd] != fd)
			(void)close(relay->stdio[fd]);
		relay->stdio[fd] = fd;
	}
}

/* What the agent did not read goes back to the file: whoever reads on there gets it. */
static void put_input_back(struct aw_relay *relay)
{
	int left = 0;

	if (relay->input >= 0 && ioctl(relay->input, FIONREAD, &left) == 0 && left > 0)
		(void)lseek(0, -(off_t)left, SEEK_CUR);
	relay->input = aw_fd_close(relay->input);
}

void aw_relay_finish(struct aw_relay *relay)
{
	aw_relay_release(relay);
	for (size_t i = 0; i < AW_ARRAY_LEN(relay->pidfds); i++) {
		struct pollfd p = { .fd = relay->pidfds[i], .events = POLLIN };
		struct aw_error none;

		if (p.fd < 0)
			continue;
		if (i == 0)
			(void)aw_pidfd_kill(p.fd, SIGKILL);
		if (poll(&p, 1, FINISH_WAIT_MS) > 0)
			(void)aw_pidfd_wait(p.fd, true, &none);
		relay->pidfds[i] = aw_fd_close(p.fd);
	}
	put_input_back(relay);
}
