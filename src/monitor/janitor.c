#include "monitor/janitor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/proc.h"
#include "store/registry.h"

#define DEATH_WAIT_MS 5000

static void wait_dead(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	if (pidfd >= 0)
		(void)poll(&p, 1, DEATH_WAIT_MS);
}

static void clean_up(const struct aw_janitor_duties *duties)
{
	struct aw_cgroup group = *duties->cgroup;
	struct aw_error none;

	/* One that was there before the group has its names, but not the monitor's descriptors. */
	if (duties->cell < 0) {
		group.dir_fd = -EBADF;
		group.scope.fd = -EBADF;
	}
	aw_cgroup_kill(&group);
	if (duties->cell >= 0)
		(void)aw_pidfd_kill(duties->cell, SIGKILL);
	if (duties->gate >= 0)
		(void)aw_pidfd_kill(duties->gate, SIGKILL);
	aw_terminal_restore_orphaned(duties->terminal);
	wait_dead(duties->cell);
	wait_dead(duties->gate);
	aw_cgroup_remove(&group);
	/* The monitor's lock went with it: its session now is one of the dead. */
	(void)aw_registry_sweep(duties->state, AW_REGISTRY_EVERYTHING, &none);
}

static _Noreturn void be_janitor(const struct aw_janitor_duties *duties, int link, int monitor)
{
	const struct aw_state *state = duties->state;
	int keep[] = { link,
		       monitor,
		       duties->cell,
		       duties->gate,
		       duties->terminal->fd,
		       duties->cgroup->dir_fd,
		       state->state_fd,
		       state->sessions_fd,
		       state->run_fd,
		       state->fallback_run_fd,
		       duties->inotify };
	struct pollfd p = { .fd = monitor, .events = POLLIN };
	char done = 0;

	/* The shell's signals and hangups are the monitor's business: a session of our own. */
	(void)setsid();
	(void)prctl(PR_SET_NAME, "warden-janitor");
	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)signal(SIGHUP, SIG_IGN);
	(void)aw_close_others(0, keep, AW_ARRAY_LEN(keep));
	/* Also when all is well: what it hands over is closed last here, not in its own exit. */
	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	if (recv(link, &done, 1, MSG_DONTWAIT) != 1)
		clean_up(duties);
	_exit(0);
}

int aw_janitor_start(const struct aw_janitor_duties *duties, struct aw_janitor *ret,
		     struct aw_error *err)
{
	autoclose int monitor = aw_pidfd_open(getpid(), err);
	int ends[2];
	pid_t pid;

	if (monitor < 0)
		return monitor;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return aw_fail(err, errno, "socketpair for the janitor");
	pid = fork();
	if (pid == 0)
		be_janitor(duties, ends[1], monitor);
	(void)close(ends[1]);
	if (pid < 0) {
		(void)close(ends[0]);
		return aw_fail(err, errno, "fork the janitor");
	}
	*ret = (struct aw_janitor){ .pid = pid, .link = ends[0] };
	return 0;
}

void aw_janitor_recall(struct aw_janitor *janitor)
{
	if (janitor->pid <= 0)
		return;
	/* Our own child, not waited for yet: the number is still its. */
	(void)kill(janitor->pid, SIGKILL);
	while (waitpid(janitor->pid, NULL, 0) < 0 && errno == EINTR)
		;
	janitor->link = aw_fd_close(janitor->link);
	janitor->pid = 0;
}

void aw_janitor_dismiss(struct aw_janitor *janitor, const int *take_over, size_t count)
{
	char control[CMSG_SPACE(AW_JANITOR_TAKES_MAX * sizeof(int))]
		__attribute__((aligned(__alignof__(struct cmsghdr)))) = { 0 };
	struct cmsghdr *head = (void *)control;
	struct iovec done = { .iov_base = (char[]){ 'd' }, .iov_len = 1 };
	struct msghdr message = { .msg_iov = &done, .msg_iovlen = 1 };

	if (janitor->pid <= 0)
		return;
	if (count > 0 && count <= AW_JANITOR_TAKES_MAX) {
		message.msg_control = control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(head), take_over, count * sizeof(int));
	}
	(void)sendmsg(janitor->link, &message, MSG_NOSIGNAL);
	janitor->link = aw_fd_close(janitor->link);
	janitor->pid = 0;
}
