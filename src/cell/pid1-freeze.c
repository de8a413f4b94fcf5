/*
 * SIGSTOP to everything, until a look at /proc finds nothing that runs: a fork under way leaves a
 * child that the round before did not reach. Thawing goes from the youngest to the oldest, so that a
 * shell which wakes up finds its children running and does not report them as stopped jobs.
 */
#include "cell/pid1-internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"

#define ROUNDS_MAX 300
#define ROUNDS_AT_ONCE 5
#define PAUSE_NS 1000000L
#define PROCESSES_MAX 16384

/* State letter of /proc/PID/stat: it follows the last ')' of the name, which may hold anything. */
static char state_of(int proc_fd, const char *pid)
{
	char path[32], text[512];
	autoclose int fd = -EBADF;
	const char *end;
	ssize_t n;

	if (aw_str_format(path, sizeof(path), "%s/stat", pid) < 0)
		return 'X';
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 'X';
	text[n] = '\0';
	end = strrchr(text, ')');
	return end != NULL && end[1] == ' ' ? end[2] : 'X';
}

static bool is_at_rest(char state)
{
	return state == 'T' || state == 't' || state == 'Z' || state == 'X';
}

/* List every process but ourselves; returns how many are not at rest, or -errno. */
static int list_processes(pid_t *ret, size_t max, size_t *ret_count, bool only_at_rest)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int running = 0;

	*ret_count = 0;
	if (proc == NULL)
		return -errno;
	while ((entry = readdir(proc)) != NULL) {
		int pid = (int)strtol(entry->d_name, NULL, 10);
		char state;

		if (pid <= 1)
			continue;
		state = state_of(dirfd(proc), entry->d_name);
		running += !is_at_rest(state);
		if ((!only_at_rest || state == 'T') && *ret_count < max)
			ret[(*ret_count)++] = pid;
	}
	(void)closedir(proc);
	return running;
}

int aw_freeze_all(struct aw_freeze *freeze, struct aw_error *err)
{
	size_t count;
	int running;

	running = list_processes(freeze->stopped_before, AW_ARRAY_LEN(freeze->stopped_before),
				 &count, true);
	freeze->count = (unsigned)count;
	for (int round = 0; running > 0 && round < ROUNDS_MAX; round++) {
		struct timespec pause = { .tv_nsec = PAUSE_NS };
		pid_t unused[1];

		/* One that is in the kernel stops when it comes out of it. */
		if (round >= ROUNDS_AT_ONCE)
			(void)nanosleep(&pause, NULL);
		(void)kill(-1, SIGSTOP);
		running = list_processes(unused, 1, &count, false);
	}
	if (running < 0)
		return aw_fail(err, -running, "look at the cell's processes");
	return running > 0 ? aw_refuse(err, EBUSY, "%d processes would not stop", running) : 0;
}

static int youngest_first(const void *a, const void *b)
{
	return *(const pid_t *)b - *(const pid_t *)a;
}

static bool was_stopped(const struct aw_freeze *freeze, pid_t pid)
{
	for (unsigned i = 0; i < freeze->count; i++)
		if (freeze->stopped_before[i] == pid)
			return true;
	return false;
}

void aw_thaw_all(const struct aw_freeze *freeze)
{
	autofree pid_t *pids = calloc(PROCESSES_MAX, sizeof(*pids));
	size_t count;

	if (pids == NULL || list_processes(pids, PROCESSES_MAX, &count, false) < 0) {
		(void)kill(-1, SIGCONT);
		return;
	}
	qsort(pids, count, sizeof(*pids), youngest_first);
	for (size_t i = 0; i < count; i++)
		if (!was_stopped(freeze, pids[i]))
			(void)kill(pids[i], SIGCONT);
}
