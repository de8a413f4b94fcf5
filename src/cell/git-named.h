/*
 * git-named - what a git configuration names that runs code, or configures what git runs.
 *
 * Read are the repository's own files and the person's (~/.gitconfig and its like), for they count in
 * every repository. Followed are core.hooksPath, include.path and includeIf.*.path (whatever the
 * condition, since that may come true), to what they include in turn; core.worktree, where the pointer
 * file of a submodule lies; and hooks that are links to scripts. Other keys that name programs
 * (core.fsmonitor, filters, aliases) hold command lines: not followed.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "cell/grants.h"

struct aw_git_named {
	struct aw_texts paths; /* absolute, normal; whether there or not */
	bool is_partial;       /* there is more, which cannot be read or cannot be held */
};

/*
 * Add what the git directory @git_dir names within itself or @project to @ret; both canonical paths on
 * the host. Where a link leads is added beside the link.
 */
int aw_git_named_find(const char *project, const char *git_dir, struct aw_git_named *ret,
		      struct aw_error *err);
/* Where the work tree of @git_dir is, or would be: @out has PATH_MAX bytes. */
int aw_git_work_tree(const char *project, const char *git_dir, char *out, struct aw_error *err);

void aw_git_named_fini(struct aw_git_named *named);
