/*
 * git-tree - a look through a project for the repositories in it, as git would find them.
 *
 * Directories are listed, nothing else is opened. Left out are trees in which nobody starts git by hand
 * and which are large (node_modules and the like), and what lies in git directories. The same look is
 * taken at the start of a session, to hold what is there, and at its end, to find what is new.
 */
#pragma once

#include "base/error.h"

#define AW_GIT_TREE_ENTRIES_MAX 20000
#define AW_GIT_TREE_DEPTH_MAX 24

enum aw_git_kind {
	AW_GIT_DIRECTORY, /* DIR/.git */
	AW_GIT_POINTER,   /* DIR/.git that is a file or a link */
	AW_GIT_BARE,      /* DIR, in which there is all that makes a git directory */
};

struct aw_git_tree {
	/* @path is relative to the root. 0; 1: it had to be left out; or -errno, which ends the look. */
	int (*found)(struct aw_git_tree *tree, enum aw_git_kind kind, const char *path,
		     struct aw_error *err);
};

/*
 * Look through the directory @start ("": the root itself) of @root_fd. Returns 0; 1 when something
 * was left out, a bound was met or a directory could not be listed; or -errno.
 */
int aw_git_tree_walk(struct aw_git_tree *tree, int root_fd, const char *start,
		     struct aw_error *err);
