/*
 * rearm - put protections of a running cell back from outside.
 *
 * A bind mount over a file goes away when anyone on the host renames over that file (`git config`, an
 * editor's save): after that the cell would see and write the real file. The monitor notices it in the
 * cell's mountinfo and calls this while the cell is frozen.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/str.h"

struct aw_rearm_point {
	const char *at; /* cell path */
	bool is_read_only;
};

/*
 * Bind each point over itself inside the cell, in order (directories before what lies in them). A
 * helper process enters the cell's user and mount namespaces for it. A point whose path is not there
 * is skipped. No symbolic link is followed: -ELOOP.
 */
int aw_rearm(int user_ns, int mount_ns, const struct aw_rearm_point *points, size_t count,
	     struct aw_error *err);

/* Whether mountinfo @text has a mount at @path. Pure. */
bool aw_mountinfo_has(struct aw_str text, const char *path);
