/*
 * git - where a project's repository really is.
 *
 * `.git` may be a directory, a file that points elsewhere (worktree, submodule), or missing because
 * the repository begins further up. A pointer is text in a hostile project: what it names is shown in
 * the cell only if it points back (a worktree's gitdir file, a submodule's core.worktree), so that a
 * forged pointer does not open somebody else's repository.
 */
#pragma once

#include "base/error.h"
#include "cell/grants.h"

/*
 * Find the layout of the project at @path (opened as @root_fd, shown in the cell at @at) and add the
 * git directories outside of it (writable, at their own paths) and everything protected in all of them.
 */
int aw_git_find(int root_fd, const char *path, const char *at, struct aw_grants *g,
		struct aw_error *err);

#define AW_GIT_NESTED_MAX 64 /* git directories of nested repositories and their submodules */

/*
 * Hold what runs code later in the repositories nested in the project: found by a bounded look
 * (git-tree.h), noted when that could not be complete. After aw_git_find.
 */
int aw_git_find_nested(int root_fd, const char *path, const char *at, struct aw_grants *g,
		       struct aw_error *err);

/*
 * Name and e-mail of the person from the host's git configuration, as the four GIT_AUTHOR_/COMMITTER_
 * variables; whatever cannot be found is left NULL. Reads ~/.gitconfig and ~/.config/git/config only:
 * never includes, never credential helpers, never a project's file. The caller frees both.
 */
void aw_git_identity(const char *home, char **ret_name, char **ret_email);
