/*
 * cgroup - the limits that only a control group can enforce: memory with swap, cpu, io, processes.
 *
 * Three homes for a session's group, tried in this order:
 *	v2 as root		/sys/fs/cgroup/warden/ID
 *	v2 as a user		a transient scope of the user's systemd manager, with delegation
 *	v1 as root		warden/ID below the memory, pids, cpu and freezer hierarchies
 * Where none can be had, aw_cgroup_create says -ENOTSUP and why; the caller refuses or, where the
 * policy lets `limits` degrade, goes on with the watchdog. What was written is read back: a limit
 * that the kernel did not take is no limit.
 *
 * The group can also freeze and kill everything in it at once, which the caller uses where it is.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define AW_CGROUP_DIRS_MAX 6

struct aw_cgroup_limits {
	uint64_t memory_bytes; /* RAM; swap is 0. All: 0 = no limit */
	uint64_t processes;
	uint64_t cpu_milli;  /* thousandths of a CPU */
	uint64_t io_bytes_s; /* per device that backs the project */
	dev_t io_device;
};

struct aw_cgroup {
	unsigned version; /* 0: there is none, 1, 2 */
	int dir_fd;       /* v2: for clone3(CLONE_INTO_CGROUP); -EBADF */
	unsigned dir_count;
	char dirs[AW_CGROUP_DIRS_MAX][PATH_MAX]; /* v2: one; v1: one per hierarchy */
};

/* True when any of them is set: only then a group is made at all. */
bool aw_cgroup_is_wanted(const struct aw_cgroup_limits *limits);

/*
 * Make the group for session @id with these limits, measured by reading back. -ENOTSUP: none of the
 * homes is open to this user; the message says what was tried and what would allow it.
 */
int aw_cgroup_create(const char *id, const struct aw_cgroup_limits *limits, struct aw_cgroup *ret,
		     struct aw_error *err);

/* Put a process in (v1, or a v2 process that was not born in it). */
int aw_cgroup_join(const struct aw_cgroup *group, pid_t pid, struct aw_error *err);

/* Freeze or thaw; returns 0 when asked, not when done. -ENOTSUP without a freezer. */
int aw_cgroup_freeze(const struct aw_cgroup *group, bool is_frozen);

/* Which limit killed or refused something so far: "memory", "processes", or NULL. */
const char *aw_cgroup_limit_hit(const struct aw_cgroup *group);

/* Kill everything inside; on v1 also thaw, since a frozen process dies only then. */
void aw_cgroup_kill(const struct aw_cgroup *group);

/* Remove the directories (with retries while the last processes are going), close dir_fd. */
void aw_cgroup_remove(struct aw_cgroup *group);
