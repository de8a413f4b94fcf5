#include "cell/pid1-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"

/* proc_pid_oom_score_adj(5): thousandths of all memory, or of the limit, added to what a process uses. */
#define OOM_MAX 1000
#define VICTIM 200
#define OOM_TEXT_MAX 16

/*
 * Between vfork and exec: our memory is lent to the child, so it only makes system calls and leaves
 * the errno of what failed in @ret. Each job is a session of its own; pid 1 stays out of them, since
 * with autogroup scheduling a busy agent would otherwise delay the kill.
 */
static _Noreturn void become_job(const struct aw_job_start *start, volatile int *ret)
{
	sigset_t none;
	int pty = -EBADF;

	(void)setsid();
	if (start->pty_name != NULL) {
		pty = open(start->pty_name, O_RDWR | O_CLOEXEC);
		if (pty < 0 || ioctl(pty, TIOCSCTTY, 0) < 0)
			goto failed;
	}
	for (int i = 0; i < 3; i++)
		if (dup2(start->stdio[i] >= 0 ? start->stdio[i] : pty, i) < 0)
			goto failed;
	if (chdir(start->cwd) < 0)
		goto failed;
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)execvpe(start->argv[0], start->argv, start->env);
failed:
	*ret = errno;
	_exit(127);
}

static int find_slot(const struct aw_jobs *jobs)
{
	for (size_t i = 0; i < AW_ARRAY_LEN(jobs->slot); i++)
		if (!jobs->slot[i].is_used)
			return (int)i;
	return -EAGAIN;
}

static int tell_exec_failed(const struct aw_job_start *start, int code, int link,
			    struct aw_error *err)
{
	bool is_missing = code == ENOENT || code == ENOTDIR;
	struct aw_ipc_cell_job ended = {
		.job = start->job,
		.status = is_missing ? 127 : 126,
		.exec_failed = 1,
		.exec_errno = code,
	};

	return aw_ipc_send(link, AW_IPC_CELL_ENDED, &ended, sizeof(ended), NULL, 0, err);
}

void aw_jobs_mark_victims(struct aw_jobs *jobs)
{
	char text[OOM_TEXT_MAX] = "";

	jobs->oom_fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	if (jobs->oom_fd < 0)
		return;
	jobs->marks_victims = read(jobs->oom_fd, text, sizeof(text) - 1) > 0;
	jobs->oom_score_adj = (int)strtol(text, NULL, 10);
}

/*
 * A job inherits the value at the fork: neither we nor a vforked child, which both are not dumpable,
 * could open the child's own file. It may go back to ours, but no lower.
 */
static void set_oom_score_adj(const struct aw_jobs *jobs, int more)
{
	int value = jobs->oom_score_adj + more;
	char text[OOM_TEXT_MAX];
	int len;

	if (!jobs->marks_victims)
		return;
	len = aw_str_format(text, sizeof(text), "%d", value < OOM_MAX ? value : OOM_MAX);
	(void)!pwrite(jobs->oom_fd, text, (size_t)len, 0);
}

int aw_job_start(struct aw_jobs *jobs, const struct aw_job_start *start, int link, int pty_master,
		 struct aw_error *err)
{
	struct aw_ipc_cell_job started = { .job = start->job };
	int slot = find_slot(jobs);
	/* Written by the vforked child in our memory. */
	volatile int exec_errno = 0;
	pid_t pid;

	if (slot < 0)
		return tell_exec_failed(start, EAGAIN, link, err);
	environ = start->env; /* execvpe searches the PATH of the caller */
	set_oom_score_adj(jobs, VICTIM);
	pid = vfork();
	if (pid == 0)
		become_job(start, &exec_errno);
	set_oom_score_adj(jobs, 0);
	if (pid < 0)
		return tell_exec_failed(start, errno, link, err);
	if (exec_errno != 0) {
		(void)waitpid(pid, NULL, 0);
		return tell_exec_failed(start, exec_errno, link, err);
	}
	jobs->slot[slot].is_used = true;
	jobs->slot[slot].job = start->job;
	jobs->slot[slot].pid = pid;
	started.pid = pid;
	return aw_ipc_send(link, AW_IPC_CELL_STARTED, &started, sizeof(started), &pty_master,
			   pty_master >= 0 ? 1 : 0, err);
}

static int tell_ended(struct aw_jobs *jobs, size_t slot, int status, int link, struct aw_error *err)
{
	struct aw_ipc_cell_job ended = {
		.job = jobs->slot[slot].job,
		.pid = jobs->slot[slot].pid,
		.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
		.by_signal = WIFSIGNALED(status),
	};

	jobs->slot[slot].is_used = false;
	if (ended.job == 0)
		jobs->agent_ended = true;
	return aw_ipc_send(link, AW_IPC_CELL_ENDED, &ended, sizeof(ended), NULL, 0, err);
}

int aw_jobs_reap(struct aw_jobs *jobs, int link, struct aw_error *err)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (size_t i = 0; i < AW_ARRAY_LEN(jobs->slot); i++) {
			if (!jobs->slot[i].is_used || jobs->slot[i].pid != pid)
				continue;
			if (tell_ended(jobs, i, status, link, err) < 0)
				return -err->code;
		}
	}
	return 0;
}

int aw_jobs_signal(const struct aw_jobs *jobs, uint32_t job, int sig)
{
	for (size_t i = 0; i < AW_ARRAY_LEN(jobs->slot); i++)
		if (jobs->slot[i].is_used && jobs->slot[i].job == job)
			return kill(-jobs->slot[i].pid, sig) < 0 ? -errno : 0;
	return -ESRCH;
}

void aw_jobs_end_all(void)
{
	/* A fork that was under way when we killed shows up as one more child: until ECHILD. */
	do
		(void)kill(-1, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR);
}

int aw_pty_open(uint16_t rows, uint16_t columns, char *name, size_t size, struct aw_error *err)
{
	struct winsize window = { .ws_row = rows, .ws_col = columns };
	autoclose int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	int unlock = 0, number;

	if (master < 0)
		return aw_fail(err, errno, "open /dev/ptmx in the cell");
	if (ioctl(master, TIOCSPTLCK, &unlock) < 0 || ioctl(master, TIOCGPTN, &number) < 0)
		return aw_fail(err, errno, "unlock the cell's terminal");
	(void)ioctl(master, TIOCSWINSZ, &window);
	(void)aw_str_format(name, size, "/dev/pts/%d", number);
	return AW_TAKE_FD(master);
}
