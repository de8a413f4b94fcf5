/*
 * cgroup - the limits that only a control group can enforce: memory with swap, cpu, disk, processes.
 *
 * Three homes for a session's group:
 *	v2 as root		warden/ID below /sys/fs/cgroup: the cell is born in it (dir_fd)
 *	v2 as a user		a scope that the user's systemd makes around the cell's pid 1
 *	v1 as root		warden/ID below the hierarchy of each controller: pid 1 is moved in
 *
 *	aw_cgroup_create(id, &limits, &group, err);	before the clone
 *	aw_cgroup_join(&group, pid, err);		after it; pid 1 must not have forked yet
 *	...						the cell builds itself
 *	aw_cgroup_settle(&group, err);			before anything in it may run
 *	aw_cgroup_remove(&group);
 *
 * What was asked for is read back: a limit that the kernel did not take is no limit. What holds and what
 * does not is known limit by limit (`held`), so that a host without one of them enforces the others.
 * The group can also freeze and kill everything in it at once.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "cell/scope.h"

#define AW_CGROUP_DIRS_MAX 6
#define AW_CGROUP_ID_MAX 64
#define AW_CGROUP_NODE_MAX 128

enum aw_cgroup_limit {
	AW_CGROUP_MEMORY,    /* bytes of RAM; swap is 0 */
	AW_CGROUP_PROCESSES, /* with their threads */
	AW_CGROUP_CPU,       /* thousandths of a CPU */
	AW_CGROUP_IO,        /* bytes per second from the disk, and as many to it */
	AW_CGROUP_LIMITS
};

struct aw_cgroup_limits {
	uint64_t of[AW_CGROUP_LIMITS]; /* 0: no limit */
	dev_t device;                  /* st_dev of the project: AW_CGROUP_IO is about its disk */
};

struct aw_cgroup {
	unsigned version; /* 0: there is none, 1, 2 */
	bool is_scope;    /* systemd's to remove */
	unsigned held;    /* the limits that are in force: 1 << enum aw_cgroup_limit */
	int dir_fd;       /* v2 as root: for clone3(CLONE_INTO_CGROUP); -EBADF */
	unsigned dir_count;
	char dirs[AW_CGROUP_DIRS_MAX][PATH_MAX]; /* v2: one; v1: one per hierarchy */

	char id[AW_CGROUP_ID_MAX];
	struct aw_cgroup_limits limits; /* as asked for, with the whole disk as the device */
	char node[AW_CGROUP_NODE_MAX];  /* of that disk; empty: there is none to limit */
	struct aw_scope scope;          /* connected: settle has still to wait for it */
	pid_t pid;
};

#define AW_CGROUP_INIT                                     \
	{                                                  \
		.dir_fd = -EBADF, .scope = {.fd = -EBADF } \
	}

/* True when any of them is set: only then a group is made at all. */
bool aw_cgroup_is_wanted(const struct aw_cgroup_limits *limits);

/* "memory", "processes", ... */
const char *aw_cgroup_limit_name(enum aw_cgroup_limit limit);

/*
 * Make the group for session @id. 0: every limit holds, or settle will tell. -ENOTSUP: not all of them
 * can be had, and why; @ret is valid, `held` tells what is in force all the same, and the caller
 * decides whether to go on. Anything else: failed.
 */
int aw_cgroup_create(const char *id, const struct aw_cgroup_limits *limits, struct aw_cgroup *ret,
		     struct aw_error *err);

/* Put pid 1 of the cell in (v1), or ask for that (scope). Nothing to do where it was born in it. */
int aw_cgroup_join(struct aw_cgroup *group, pid_t pid, struct aw_error *err);

/* True between join and settle of a scope: what holds is not known yet. */
bool aw_cgroup_is_pending(const struct aw_cgroup *group);

/* Wait, for at most 5 s, until pid 1 is under its limits, and measure them. Returns as create. */
int aw_cgroup_settle(struct aw_cgroup *group, struct aw_error *err);

/* Freeze or thaw; returns 0 when asked, not when done. -ENOTSUP without a freezer. */
int aw_cgroup_freeze(const struct aw_cgroup *group, bool is_frozen);

/*
 * The limits that were run into so far, as bits: AW_CGROUP_MEMORY has killed something,
 * AW_CGROUP_PROCESSES has refused a fork. The figures of a scope vanish with its last process.
 */
unsigned aw_cgroup_hits(const struct aw_cgroup *group);

/* Kill everything inside (v2). On v1 thaw: a frozen process dies only then, and pid 1 takes all along. */
void aw_cgroup_kill(const struct aw_cgroup *group);

/* Remove what create made, once the last process has gone; waits for that up to 5 s. */
void aw_cgroup_remove(struct aw_cgroup *group);
