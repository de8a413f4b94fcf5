/* As process 1 of a process namespace of its own: what is frozen here is everything there is. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "cell/pid1-internal.h"
#include "support/inside.h"

static struct aw_error err;

/* What the children count, where all of them see it. */
struct shared {
	volatile unsigned long turns, forks;
};

static struct shared *share(void)
{
	return mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		    -1, 0);
}

static void pause_ms(long ms)
{
	struct timespec t = { .tv_nsec = ms * 1000000 };

	(void)nanosleep(&t, NULL);
}

/* State letter of a process; 0: it is not there. */
static char state_of(pid_t pid)
{
	char path[32], text[512];
	const char *end;
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	(void)aw_fd_close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	end = strrchr(text, ')');
	return end == NULL ? 0 : end[2];
}

/* Wait up to two seconds for a state. */
static bool comes_to(pid_t pid, const char *states)
{
	for (int i = 0; i < 1000; i++) {
		char state = state_of(pid);

		if (state != 0 && strchr(states, state) != NULL)
			return true;
		pause_ms(2);
	}
	return false;
}

static pid_t spin(struct shared *shared)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			shared->turns++;
	return pid;
}

static pid_t sleeper(const char *name)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_NAME, name);
		for (;;)
			(void)pause();
	}
	return pid;
}

static int stop_and_go(void *state)
{
	struct shared *shared = share();
	pid_t spinning = spin(shared), sleeping = sleeper("a) R 1 (b"), stopped = sleeper("c");
	struct aw_freeze freeze;
	unsigned long turns;

	(void)state;
	INSIDE(comes_to(sleeping, "S") && comes_to(stopped, "S"));
	INSIDE(kill(stopped, SIGSTOP) == 0 && comes_to(stopped, "T"));
	INSIDE(aw_freeze_all(&freeze, &err) == 0);
	INSIDE(freeze.count == 1 && freeze.stopped_before[0] == stopped);
	INSIDE(state_of(spinning) == 'T' && state_of(sleeping) == 'T');
	turns = shared->turns;
	pause_ms(20);
	INSIDE(shared->turns == turns);
	aw_thaw_all(&freeze);
	INSIDE(comes_to(spinning, "R") && comes_to(sleeping, "S"));
	/* Who stopped a process before us expects it to stay so. */
	pause_ms(20);
	INSIDE(state_of(stopped) == 'T');
	INSIDE(shared->turns > turns);
	return 0;
}

static void everything_stops_and_goes_on_but_what_was_stopped_before(void **state)
{
	(void)state;
	inside_check(CLONE_NEWPID, stop_and_go, NULL);
}

/* Each child makes the next one and ends. */
static void breed(struct shared *shared)
{
	if (fork() != 0)
		return;
	for (;;) {
		shared->forks++;
		if (fork() != 0)
			_exit(0);
	}
}

static int stop_forks(void *state)
{
	struct shared *shared = share();
	struct aw_freeze freeze;
	unsigned long forks;

	(void)state;
	(void)signal(SIGCHLD, SIG_IGN); /* the orphans are ours: nothing is left of them */
	for (int i = 0; i < 4; i++)
		breed(shared);
	for (int i = 0; shared->forks < 50 && i < 1000; i++)
		pause_ms(2);
	INSIDE(shared->forks >= 50);
	INSIDE(aw_freeze_all(&freeze, &err) == 0);
	forks = shared->forks;
	pause_ms(50);
	INSIDE(shared->forks == forks);
	aw_thaw_all(&freeze);
	for (int i = 0; shared->forks == forks && i < 1000; i++)
		pause_ms(2);
	INSIDE(shared->forks > forks);
	return 0;
}

static void processes_that_keep_forking_are_caught(void **state)
{
	(void)state;
	inside_check(CLONE_NEWPID, stop_forks, NULL);
}

static int stop_the_dead(void *state)
{
	struct aw_freeze freeze;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(0);
	INSIDE(comes_to(pid, "Z"));
	INSIDE(aw_freeze_all(&freeze, &err) == 0);
	INSIDE(freeze.count == 0);
	aw_thaw_all(&freeze);
	INSIDE(waitpid(pid, NULL, 0) == pid);
	/* Alone: nothing to do is done at once. */
	INSIDE(aw_freeze_all(&freeze, &err) == 0 && freeze.count == 0);
	aw_thaw_all(&freeze);
	return 0;
}

static void the_dead_are_at_rest(void **state)
{
	(void)state;
	inside_check(CLONE_NEWPID, stop_the_dead, NULL);
}

static int without_proc(void *state)
{
	struct aw_freeze freeze;

	(void)state;
	INSIDE(chroot("/dev") == 0 && chdir("/") == 0);
	INSIDE(aw_freeze_all(&freeze, &err) == -ENOENT);
	return 0;
}

static void without_proc_there_is_no_telling(void **state)
{
	(void)state;
	inside_check(CLONE_NEWPID, without_proc, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_stops_and_goes_on_but_what_was_stopped_before),
		cmocka_unit_test(processes_that_keep_forking_are_caught),
		cmocka_unit_test(the_dead_are_at_rest),
		cmocka_unit_test(without_proc_there_is_no_telling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
