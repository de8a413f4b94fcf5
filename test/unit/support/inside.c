#include "support/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"

#define DIED 1000000

struct task {
	int flags;
	int (*body)(void *state);
	void *state;
};

/* Run @body(@state) in a child; its result comes through a pipe, since a status has eight bits. */
static int fork_and_ask(int (*body)(void *state), void *state)
{
	int ends[2], status, result = 0;
	ssize_t n;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return DIED;
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		result = body(state);
		_exit(write(ends[1], &result, sizeof(result)) == sizeof(result) ? 0 : 1);
	}
	(void)close(ends[1]);
	do
		n = read(ends[0], &result, sizeof(result));
	while (n < 0 && errno == EINTR);
	(void)close(ends[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0 || n != (ssize_t)sizeof(result))
		return DIED + (pid > 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	return result;
}

int inside_child(int (*body)(void *state), void *state)
{
	return fork_and_ask(body, state);
}

bool inside_become_root(void)
{
	unsigned uid = geteuid(), gid = getegid();
	char uid_map[32], gid_map[32];
	struct aw_error err;

	if (unshare(CLONE_NEWUSER) < 0)
		return false;
	(void)aw_str_format(uid_map, sizeof(uid_map), "0 %u 1", uid);
	(void)aw_str_format(gid_map, sizeof(gid_map), "0 %u 1", gid);
	return aw_write_file(AT_FDCWD, "/proc/self/setgroups", "deny", &err) == 0 &&
	       aw_write_file(AT_FDCWD, "/proc/self/gid_map", gid_map, &err) == 0 &&
	       aw_write_file(AT_FDCWD, "/proc/self/uid_map", uid_map, &err) == 0;
}

static int as_process_1(void *state)
{
	const struct task *task = state;

	if (mount("proc", "/proc", "proc", 0, NULL) < 0)
		return INSIDE_LACKS;
	return task->body(task->state);
}

static int enter(void *state)
{
	const struct task *task = state;

	/* Root in a container may not; in a user namespace of its own it may. */
	if (unshare(task->flags | CLONE_NEWNS) < 0 &&
	    (!inside_become_root() || unshare(task->flags | CLONE_NEWNS) < 0))
		return INSIDE_LACKS;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return INSIDE_LACKS;
	return task->flags & CLONE_NEWPID ? fork_and_ask(as_process_1, state)
					  : task->body(task->state);
}

int inside_namespaces(int flags, int (*body)(void *state), void *state)
{
	struct task task = { flags, body, state };

	return fork_and_ask(enter, &task);
}

void inside_check(int flags, int (*body)(void *state), void *state)
{
	int r = inside_namespaces(flags, body, state);

	if (r == INSIDE_LACKS) {
		print_message("skipped: no namespaces of its own for the test\n");
		skip();
	}
	if (r != 0)
		fail_msg("line %d of the body", r);
}
