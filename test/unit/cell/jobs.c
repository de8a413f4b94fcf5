/*
 * In children: a job changes the environment of its starter, and what ends all of them ends every
 * process of its namespace. The other end of the link is this test instead of a monitor.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "cell/pid1-internal.h"
#include "support/inside.h"
#include "support/place.h"

static struct aw_error err;

/* What a body works with; a child has its own. */
struct world {
	struct aw_jobs jobs;
	int link, monitor;
	struct aw_ipc_message message;
};

static bool make(struct world *w)
{
	int ends[2];

	memset(w, 0, sizeof(*w));
	if (aw_ipc_pair(ends, &err) < 0)
		return false;
	w->link = ends[0];
	w->monitor = ends[1];
	return true;
}

/* A job that runs SCRIPT with /bin/sh; its descriptors are /dev/null. */
static struct aw_job_start script(const char *text)
{
	static char *argv[4], *env[] = { (char *)(uintptr_t) "PATH=/usr/bin:/bin",
					 (char *)(uintptr_t) "A=b", NULL };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	argv[0] = (char *)(uintptr_t) "sh";
	argv[1] = (char *)(uintptr_t) "-c";
	argv[2] = (char *)(uintptr_t)text;
	return (struct aw_job_start){
		.argv = argv, .env = env, .cwd = "/", .stdio = { null, null, null }
	};
}

/* The next message, which must be of @type. */
static const struct aw_ipc_cell_job *hear(struct world *w, enum aw_ipc_type type)
{
	if (!aw_ipc_wait_readable(w->monitor, 5000) ||
	    aw_ipc_recv(w->monitor, AW_IPC_MONITOR, AW_IPC_CELL, &w->message, &err) != 1 ||
	    w->message.type != type)
		return NULL;
	return (const void *)w->message.payload;
}

/* Reap until a job has said that it ended. */
static const struct aw_ipc_cell_job *end_of_job(struct world *w)
{
	siginfo_t info;

	while (!aw_ipc_wait_readable(w->monitor, 0))
		if (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) < 0 ||
		    aw_jobs_reap(&w->jobs, w->link, &err) < 0)
			return NULL;
	return hear(w, AW_IPC_CELL_ENDED);
}

static int run_to_the_end(void *state)
{
	static struct world w;
	struct aw_job_start start = script("test \"$A\" = b && test \"$PWD\" = / && exit 42");
	const struct aw_ipc_cell_job *job;
	int32_t pid;

	(void)state;
	INSIDE(make(&w));
	start.job = 7;
	INSIDE(aw_job_start(&w.jobs, &start, w.link, -EBADF, &err) == 0);
	job = hear(&w, AW_IPC_CELL_STARTED);
	INSIDE(job != NULL && job->job == 7 && job->pid > 0 && w.message.fd_count == 0);
	pid = job->pid;
	job = end_of_job(&w);
	INSIDE(job != NULL && job->job == 7 && job->pid == pid);
	INSIDE(job->status == 42 && !job->by_signal && !job->exec_failed);
	INSIDE(!w.jobs.agent_ended && !w.jobs.slot[0].is_used);
	return 0;
}

static void a_job_is_started_and_its_status_told(void **state)
{
	(void)state;
	assert_int_equal(inside_child(run_to_the_end, NULL), 0);
}

static int end_the_agent(void *state)
{
	static struct world w;
	struct aw_job_start start = script("kill -TERM $$");
	const struct aw_ipc_cell_job *job;

	(void)state;
	INSIDE(make(&w));
	INSIDE(aw_job_start(&w.jobs, &start, w.link, -EBADF, &err) == 0);
	INSIDE(hear(&w, AW_IPC_CELL_STARTED) != NULL);
	job = end_of_job(&w);
	INSIDE(job != NULL && job->status == 128 + SIGTERM && job->by_signal);
	INSIDE(w.jobs.agent_ended);
	return 0;
}

static void job_0_is_the_agent_and_a_signal_is_told_as_one(void **state)
{
	(void)state;
	assert_int_equal(inside_child(end_the_agent, NULL), 0);
}

static int fail_to_start(void *state)
{
	struct place *p = state;
	const struct {
		const char *program, *cwd;
		int error, status;
	} rows[] = {
		{ "no-such-program", "/", ENOENT, 127 },
		{ place_at(p, "text/x"), "/", ENOTDIR, 127 },
		{ place_at(p, "text"), "/", EACCES, 126 },
		{ "/bin", "/", EACCES, 126 },
		{ "sh", "/no/such/dir", ENOENT, 127 },
	};
	static struct world w;

	INSIDE(make(&w));
	for (size_t i = 0; i < AW_ARRAY_LEN(rows); i++) {
		struct aw_job_start start = script("exit 0");
		const struct aw_ipc_cell_job *job;

		start.argv[0] = (char *)(uintptr_t)rows[i].program;
		start.cwd = rows[i].cwd;
		INSIDE(aw_job_start(&w.jobs, &start, w.link, -EBADF, &err) == 0);
		job = hear(&w, AW_IPC_CELL_ENDED);
		INSIDE(job != NULL && job->exec_failed && job->exec_errno == rows[i].error);
		INSIDE(job->status == rows[i].status);
		INSIDE(!w.jobs.slot[0].is_used && !w.jobs.agent_ended);
		INSIDE(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	}
	return 0;
}

static void what_cannot_be_executed_is_told_as_a_shell_would(void **state)
{
	place_file(*state, "text", "no program\n");
	assert_int_equal(inside_child(fail_to_start, *state), 0);
}

static int start_cleanly(void *state)
{
	static struct world w;
	/* Blocked signals would be inherited; so would a descriptor without close-on-exec. */
	struct aw_job_start start = script("kill -USR1 $$; exit 1");
	const struct aw_ipc_cell_job *job;
	sigset_t all;

	(void)state;
	INSIDE(make(&w));
	sigfillset(&all);
	INSIDE(sigprocmask(SIG_SETMASK, &all, NULL) == 0);
	INSIDE(aw_job_start(&w.jobs, &start, w.link, -EBADF, &err) == 0);
	job = hear(&w, AW_IPC_CELL_STARTED);
	INSIDE(job != NULL && getsid(job->pid) == job->pid);
	job = end_of_job(&w);
	INSIDE(job != NULL && job->status == 128 + SIGUSR1);
	return 0;
}

static void a_job_leads_a_session_with_no_signal_blocked(void **state)
{
	(void)state;
	assert_int_equal(inside_child(start_cleanly, NULL), 0);
}

static int signal_jobs(void *state)
{
	static struct world w;
	struct aw_job_start start = script("sleep 20 & wait");
	const struct aw_ipc_cell_job *job;

	(void)state;
	INSIDE(make(&w));
	start.job = 3;
	INSIDE(aw_job_start(&w.jobs, &start, w.link, -EBADF, &err) == 0);
	INSIDE(hear(&w, AW_IPC_CELL_STARTED) != NULL);
	INSIDE(aw_jobs_signal(&w.jobs, 4, SIGKILL) == -ESRCH);
	INSIDE(aw_jobs_signal(&w.jobs, 3, SIGKILL) == 0);
	job = end_of_job(&w);
	INSIDE(job != NULL && job->job == 3 && job->status == 128 + SIGKILL);
	INSIDE(aw_jobs_signal(&w.jobs, 3, SIGKILL) == -ESRCH);
	return 0;
}

static void a_signal_goes_to_the_job_that_is_named(void **state)
{
	(void)state;
	assert_int_equal(inside_child(signal_jobs, NULL), 0);
}

static int fill_slots(void *state)
{
	static struct world w;
	struct aw_job_start start = script("sleep 20");
	const struct aw_ipc_cell_job *job;

	(void)state;
	INSIDE(make(&w));
	for (size_t i = 0; i < AW_ARRAY_LEN(w.jobs.slot); i++) {
		w.jobs.slot[i].is_used = true;
		w.jobs.slot[i].pid = 1;
	}
	INSIDE(aw_job_start(&w.jobs, &start, w.link, -EBADF, &err) == 0);
	job = hear(&w, AW_IPC_CELL_ENDED);
	INSIDE(job != NULL && job->exec_failed && job->exec_errno == EAGAIN && job->status == 126);
	INSIDE(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	return 0;
}

static void beyond_the_slots_no_job_is_started(void **state)
{
	(void)state;
	assert_int_equal(inside_child(fill_slots, NULL), 0);
}

/* A job on a pty: what it says of its terminal arrives at the master, which goes to the monitor. */
static int use_a_pty(void *state)
{
	static struct world w;
	struct aw_job_start start = script("test -t 0 && test -t 1 && stty size >&2 && exit 5");
	const struct aw_ipc_cell_job *job;
	char name[64], text[64] = "";
	int master = aw_pty_open(31, 97, name, sizeof(name), &err);
	ssize_t n;

	(void)state;
	INSIDE(make(&w));
	INSIDE(master >= 0 && (fcntl(master, F_GETFD) & FD_CLOEXEC));
	start.pty_name = name;
	start.stdio[0] = start.stdio[1] = start.stdio[2] = -EBADF;
	INSIDE(aw_job_start(&w.jobs, &start, w.link, master, &err) == 0);
	INSIDE(hear(&w, AW_IPC_CELL_STARTED) != NULL && w.message.fd_count == 1);
	n = read(w.message.fds[0], text, sizeof(text) - 1);
	INSIDE(n > 0 && strncmp(text, "31 97", 5) == 0);
	job = end_of_job(&w);
	INSIDE(job != NULL && job->status == 5);
	return 0;
}

static void a_pty_is_the_controlling_terminal_of_its_size(void **state)
{
	(void)state;
	assert_int_equal(inside_child(use_a_pty, NULL), 0);
}

static int lack_a_pty(void *state)
{
	static struct world w;
	struct aw_job_start start = script("exit 0");
	const struct aw_ipc_cell_job *job;

	(void)state;
	INSIDE(make(&w));
	start.pty_name = "/dev/null"; /* which is no terminal */
	INSIDE(aw_job_start(&w.jobs, &start, w.link, -EBADF, &err) == 0);
	job = hear(&w, AW_IPC_CELL_ENDED);
	INSIDE(job != NULL && job->exec_failed && job->exec_errno == ENOTTY);
	return 0;
}

static void a_terminal_that_cannot_be_had_ends_the_job(void **state)
{
	(void)state;
	assert_int_equal(inside_child(lack_a_pty, NULL), 0);
}

/* As process 1: children that ignore signals, orphans of theirs, a new session each. */
static int end_all(void *state)
{
	static struct world w;
	struct aw_job_start start = script(
		"trap '' TERM HUP INT; (setsid sleep 20 &) ; (setsid sleep 20 &) ; sleep 20");

	(void)state;
	INSIDE(getpid() == 1 && make(&w));
	for (uint32_t i = 0; i < 3; i++) {
		start.job = i;
		INSIDE(aw_job_start(&w.jobs, &start, w.link, -EBADF, &err) == 0);
		INSIDE(hear(&w, AW_IPC_CELL_STARTED) != NULL);
	}
	aw_jobs_end_all();
	INSIDE(waitpid(-1, NULL, 0) < 0 && errno == ECHILD);
	INSIDE(kill(-1, 0) < 0 && errno == ESRCH);
	return 0;
}

static void at_the_end_nothing_is_left(void **state)
{
	(void)state;
	inside_check(CLONE_NEWPID, end_all, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_is_started_and_its_status_told),
		cmocka_unit_test(job_0_is_the_agent_and_a_signal_is_told_as_one),
		IN_PLACE(what_cannot_be_executed_is_told_as_a_shell_would),
		cmocka_unit_test(a_job_leads_a_session_with_no_signal_blocked),
		cmocka_unit_test(a_signal_goes_to_the_job_that_is_named),
		cmocka_unit_test(beyond_the_slots_no_job_is_started),
		cmocka_unit_test(a_pty_is_the_controlling_terminal_of_its_size),
		cmocka_unit_test(a_terminal_that_cannot_be_had_ends_the_job),
		cmocka_unit_test(at_the_end_nothing_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
