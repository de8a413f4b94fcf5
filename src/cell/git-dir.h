/*
 * git-dir - what in a git directory runs code on the host later, and how it is held.
 *
 * That is: the hooks, whatever configures a command that git will run, or names what does; the same of
 * its worktrees and submodules; and what the configuration names (git-named.h).
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "cell/git-named.h"
#include "cell/grants.h"
#include "cell/protect.h"

#define AW_GIT_MODULE_DEPTH_MAX 8
#define AW_GIT_DIRS_MAX 128

/* The names in a git directory, and those of them that each "worktrees/NAME" has for itself. */
const char *const *aw_git_dir_names(size_t *ret_count);
const char *const *aw_git_worktree_names(size_t *ret_count);

/* What a look over git directories has left: a repository may be hostile. */
struct aw_git_hold {
	const struct aw_protect_place *project; /* with its path */
	struct aw_grants *g;
	unsigned depth_left, dirs_left; /* of submodules in one another; of git directories */
};

/*
 * Hold the git directory @path below @place (the project, or a git directory outside of it): pin it,
 * protect its names, remember it among the repositories; then its worktrees and submodules. -E2BIG when
 * there are too many.
 */
int aw_git_dir_hold(struct aw_git_hold *hold, const struct aw_protect_place *place,
		    const char *path, struct aw_error *err);

/* The place that @path, one of aw_git_named_find's for a git directory of @place, lies in. */
const struct aw_protect_place *aw_git_place_of(const struct aw_protect_place *project,
					       const struct aw_protect_place *place,
					       const char *path);
