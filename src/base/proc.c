#include "base/proc.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int aw_pidfd_open(pid_t pid, struct aw_error *err)
{
	long fd = syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? aw_fail(err, errno, "pidfd_open %d", (int)pid) : (int)fd;
}

int aw_pidfd_kill(int pidfd, int sig)
{
	return syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0) < 0 ? -errno : 0;
}

int aw_pidfd_wait(int pidfd, bool nohang, struct aw_error *err)
{
	siginfo_t info = { 0 };
	int r;

	do
		r = waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | (nohang ? WNOHANG : 0));
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return aw_fail(err, errno, "wait for a child");
	if (info.si_pid == 0)
		return -EAGAIN;
	return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

uint64_t aw_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t aw_wall_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}
