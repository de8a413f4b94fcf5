#include "cell/usage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"

#define CHILDREN_MAX (1024 * 1024)
#define ROLLUP_MAX 65536
#define PROCESSES_MAX 32768

struct walk {
	pid_t *pids;
	size_t count;
};

/* "Pss:     1234 kB" of proc_pid_smaps(5). */
static uint64_t parse_pss(const char *text)
{
	const char *line = strstr(text, "\nPss:");

	return line == NULL ? 0 : strtoull(line + 5, NULL, 10) * 1024;
}

static void measure_one(pid_t pid, struct aw_usage *ret)
{
	autofree char *text = NULL;
	struct aw_error none;
	char path[64];

	(void)aw_str_format(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	ret->processes++;
	if (aw_read_file(AT_FDCWD, path, ROLLUP_MAX, &text, &none) < 0) {
		ret->unreadable++;
		return;
	}
	ret->memory_bytes += parse_pss(text);
}

static void add_children_of_thread(int tasks, const char *thread, struct walk *walk)
{
	autofree char *text = NULL;
	struct aw_error none;
	char path[64], *next;

	if (aw_str_format(path, sizeof(path), "%s/children", thread) < 0 ||
	    aw_read_file(tasks, path, CHILDREN_MAX, &text, &none) < 0)
		return;
	for (char *p = text; walk->count < PROCESSES_MAX; p = next) {
		long child = strtol(p, &next, 10);

		if (next == p)
			return;
		walk->pids[walk->count++] = (pid_t)child;
	}
}

/* Each thread lists the children that it made itself, a Go or Java program's other threads too. */
static int add_children(pid_t pid, struct walk *walk)
{
	const struct dirent *entry;
	char path[64];
	DIR *tasks;

	(void)aw_str_format(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	if (tasks == NULL)
		return -errno;
	while ((entry = readdir(tasks)) != NULL)
		if (entry->d_name[0] != '.')
			add_children_of_thread(dirfd(tasks), entry->d_name, walk);
	(void)closedir(tasks);
	return 0;
}

int aw_usage_measure(pid_t pid1, struct aw_usage *ret, struct aw_error *err)
{
	autofree pid_t *pids = calloc(PROCESSES_MAX, sizeof(*pids));
	struct walk walk = { .pids = pids };
	int r;

	if (pids == NULL)
		return aw_fail(err, ENOMEM, "measure the cell");
	r = add_children(pid1, &walk);
	if (r < 0)
		return aw_fail(err, r == -ENOENT ? ESRCH : -r, "measure the cell");
	*ret = (struct aw_usage){ 0 };
	for (size_t i = 0; i < walk.count; i++) {
		measure_one(walk.pids[i], ret);
		(void)add_children(walk.pids[i], &walk); /* it may be gone already */
	}
	return 0;
}
