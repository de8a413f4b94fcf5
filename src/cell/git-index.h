/*
 * git-index - the nested repositories that an index knows.
 *
 * `git status` goes into every directory that the index has as a repository of its own (mode 160000),
 * wherever it lies, and does there what its configuration says. The agent writes the index: so these are
 * looked at beside what a look through the tree finds. The format is gitformat-index(5), versions 2 to 4:
 *
 *	"DIRC" version count, then for each entry in network order
 *	ctime mtime (8 each) dev ino mode uid gid size (4 each) id (20 or 32) flags (2)
 *	in version 3 and 4 with flag 0x4000: 2 more
 *	the path and 1 to 8 NULs up to a multiple of 8; in version 4: how many bytes of the path before
 *	to drop, as a varint, and what to append, with one NUL
 */
#pragma once

#include "base/error.h"
#include "base/str.h"
#include "cell/git-tree.h"
#include "cell/grants.h"
#include "cell/protect.h"

#define AW_GIT_INDEX_MAX (64 * 1024 * 1024)

/* Add the paths of the nested repositories to @ret. Pure. -EBADMSG: not an index; -E2BIG; -ENOMEM. */
int aw_git_index_parse(struct aw_str bytes, struct aw_texts *ret, struct aw_error *err);

/*
 * Tell @tree of the repositories in @project that the indexes of the git directory @at (a path in the
 * cell) name. As aw_git_tree_walk: 0; 1 when something was left out or could not be read; or -errno.
 */
int aw_git_index_walk(struct aw_git_tree *tree, const struct aw_protect_place *project,
		      const char *at, struct aw_error *err);
