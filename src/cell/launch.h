/*
 * launch - the monitor's side of a birth: a process in new namespaces that executes warden-cell.
 *
 *	aw_launch_cell(&how, &cell, err);	clone3, exec: it makes its network meanwhile
 *	aw_launch_map(&how, &cell, err);	write the id maps
 *	aw_launch_hand_over(&cell, plan, ...);	send CELL_MAPPED with the plan and its trees
 *	... CELL_READY arrives on cell.link ...
 *
 * The single-uid map makes the caller uid 1001 inside. Started by root, the ids outside are those of
 * the project's owner, or AW_UNPRIVILEGED where root owns the project.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "ipc/ipc.h"

/* A uid that systemd, Debian and the LSB leave unassigned (systemd.io/UIDS-GIDS: 60706-61183). */
#define AW_UNPRIVILEGED_AGENT 61001
#define AW_UNPRIVILEGED_GATE 61002

struct aw_launch {
	int program_fd; /* warden-cell or warden-gate */
	int stdio[3];   /* what the agent gets as 0, 1 and 2 */
	int cgroup_fd;  /* a cgroup v2 directory to be born in; -EBADF: none */
	bool is_root_started;
	uid_t outside_uid; /* what uid 1001 inside is outside */
	gid_t outside_gid;
};

struct aw_child {
	pid_t pid;
	int pidfd;
	int link; /* our end */
};

/* Start warden-cell. EPERM, EACCES, ENOSPC name the host's setting that forbids it. */
int aw_launch_cell(const struct aw_launch *how, struct aw_child *ret, struct aw_error *err);
int aw_launch_map(const struct aw_launch *how, const struct aw_child *cell, struct aw_error *err);

/* @trees: for the plan's TREE operations, in their order; at most AW_IPC_TREES_MAX. */
int aw_launch_hand_over(const struct aw_child *cell, int plan, const int *trees, size_t tree_count,
			struct aw_error *err);

/* Start warden-gate in an empty mount namespace and a user namespace of its own, with no rights. */
int aw_launch_gate(int program_fd, bool is_root_started, struct aw_child *ret,
		   struct aw_error *err);

/* Open a program that lies beside ours (or in ../libexec/warden), never one of PATH. */
int aw_launch_open_program(const char *name, struct aw_error *err);

/*
 * A detached tree of @path in which on-disk ids @disk_uid/@disk_gid appear as @uid/@gid (Linux 5.12).
 * -EINVAL: the file system knows no idmapped mounts.
 */
int aw_launch_idmapped_tree(const char *path, uid_t disk_uid, gid_t disk_gid, uid_t uid, gid_t gid,
			    struct aw_error *err);
