#include "cell/usage.h"

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

/* Children that other threads of @pid made are listed with those threads: clone(2) in a Go program. */
static void add_children(pid_t pid, struct walk *walk)
{
	autofree char *text = NULL;
	struct aw_error none;
	char path[64], *next;

	(void)aw_str_format(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	if (aw_read_file(AT_FDCWD, path, CHILDREN_MAX, &text, &none) < 0)
		return;
	for (char *p = text; walk->count < PROCESSES_MAX; p = next) {
		long child = strtol(p, &next, 10);

		if (next == p)
			return;
		walk->pids[walk->count++] = (pid_t)child;
	}
}

int aw_usage_measure(pid_t pid1, struct aw_usage *ret, struct aw_error *err)
{
	autofree pid_t *pids = calloc(PROCESSES_MAX, sizeof(*pids));
	struct walk walk = { .pids = pids };

	if (pids == NULL)
		return aw_fail(err, ENOMEM, "measure the cell");
	*ret = (struct aw_usage){ 0 };
	add_children(pid1, &walk);
	for (size_t i = 0; i < walk.count; i++) {
		measure_one(walk.pids[i], ret);
		add_children(walk.pids[i], &walk);
	}
	return 0;
}
