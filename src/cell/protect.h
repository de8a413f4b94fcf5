/*
 * protect - files of a project that run code on the host later.
 *
 * A git hook, an editor's task, an agent's settings or a CI workflow that the agent writes today runs
 * tomorrow on the person's own machine, outside any cell. What exists of these is shown read-only,
 * and pinned: a bind mount protects only its own name, so every directory between it and the
 * workspace is made a mount point too, which the kernel does not let anyone inside rename.
 *
 * What does not exist yet cannot be held without creating it: such names are looked for at the end of
 * the session instead (appeared.h), and what came into being is reported.
 */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "cell/grants.h"
#include "policy/policy.h"

struct aw_protect_name {
	const char *path; /* relative to the workspace */
	enum aw_policy_protect class;
};

/* The table: *ret_count names. Those of git directories are git-dir.h's. */
const struct aw_protect_name *aw_protect_names(size_t *ret_count);

/* Add what of the table exists below @root_fd (shown in the cell at @root_at) to @g. */
int aw_protect_find(int root_fd, const char *root_at, unsigned classes, struct aw_grants *g,
		    struct aw_error *err);

/* A directory that is open, with its canonical path on the host and its path in the cell. */
struct aw_protect_place {
	int fd;
	const char *path, *at;
};

/*
 * Hold @path, relative to @place, if it exists: read-only, and pinned from @place on down. A symbolic
 * link (or one on the way) cannot be held: it is noted for the person.
 */
int aw_protect_hold(const struct aw_protect_place *place, const char *path, struct aw_grants *g,
		    struct aw_error *err);

/* Pin the directory @path ("": the place itself) and those on the way: they cannot be moved. */
int aw_protect_pin(const struct aw_protect_place *place, const char *path, struct aw_grants *g,
		   struct aw_error *err);

/* Whether @at, a path in the cell, is held read-only by itself or with a directory that it is in. */
bool aw_protect_is_held(const struct aw_grants *g, const char *at);

enum aw_protect_sight {
	AW_PROTECT_NOTHING,
	AW_PROTECT_REAL,
	AW_PROTECT_LINK, /* it is a symbolic link, or one is on the way */
};

enum aw_protect_sight aw_protect_look(int dir_fd, const char *path);

/* A listing of the directory @path, to which no link leads; NULL with errno. The caller closes it. */
DIR *aw_protect_list(int dir_fd, const char *path);

/* @out (PATH_MAX bytes) = @dir/@name, either of which may be "". -ENAMETOOLONG. */
int aw_protect_join(const char *dir, const char *name, char *out, struct aw_error *err);
