/*
 * protect - files of a project that run code on the host later.
 *
 * A git hook, an editor's task, an agent's settings or a CI workflow that the agent writes today runs
 * tomorrow on the person's own machine, outside any cell. What exists of these is shown read-only,
 * and pinned: a bind mount protects only its own name, so every directory between it and the
 * workspace is made a mount point too, which the kernel does not let anyone inside rename.
 *
 * What does not exist yet cannot be held without creating it: such names are watched for instead
 * (aw_protect_names), and what appears is moved aside and reported.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "cell/grants.h"
#include "policy/policy.h"

struct aw_protect_name {
	const char *path; /* relative to the workspace */
	enum aw_policy_protect class;
};

/* The table: *ret_count names, first those that lie directly in the workspace's own .git. */
const struct aw_protect_name *aw_protect_names(size_t *ret_count);

/*
 * Add what exists below @root_fd (shown in the cell at @root_at) to the pins and protects of @g.
 * Symbolic links are not followed: a protected name that is one is protected as the link's directory
 * entry cannot be, so it is noted for the person.
 */
int aw_protect_find(int root_fd, const char *root_at, unsigned classes, struct aw_grants *g,
		    struct aw_error *err);

/* The same for a git directory that lies anywhere (a worktree's common directory, a submodule's). */
int aw_protect_git_dir(int git_fd, const char *git_at, struct aw_grants *g, struct aw_error *err);
