/*
 * view - decides what a cell sees: host facts and a policy's grants become operations of a plan.
 *
 * Only looks (readlink, stat of system directories), never changes anything. The order of the
 * operations is the order of precedence: system, private places, the project, what else was granted,
 * then pins and masks, so that a broad bind never covers a narrow protection.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "cell/plan.h"

#define AW_CELL_UID 1001
#define AW_CELL_USER "ai_user"
#define AW_CELL_HOSTNAME "warden-sandbox"
#define AW_CELL_HOME "/home/" AW_CELL_USER

/* One grant beyond the system: a tree of the host and where the cell sees it. */
struct aw_view_grant {
	const char *source, *at;
	uint64_t dev,
		ino; /* what `source` was when it was decided about; ino 0: it was not there */
	bool is_writable;
	bool is_tree; /* comes with CELL_MAPPED as an idmapped tree, in the order of the grants */
	bool is_optional; /* leave it out when the host does not have it (any more) */
};

struct aw_view {
	const char *workspace; /* host path, canonical */
	uint64_t workspace_dev, workspace_ino;
	const char *workspace_at; /* cell path: the same, or /workspace under `strict` */
	bool workspace_is_tree;   /* an idmapped tree comes with CELL_MAPPED instead of a bind */
	bool is_workspace_hidden; /* only the grants inside it are seen */
	const char *
		home_source; /* private home on the host; NULL: a tmpfs that goes with the session */
	const char *home_at;
	uint64_t tmp_size; /* bytes of each private tmpfs; 0: the kernel's default */
	bool has_network;
	struct aw_str notice; /* /etc/warden/notice: what holds here, for the agent to read */
	const struct aw_view_grant *grants;
	size_t grant_count;
	const char *const *pins; /* cell paths: held in place, writable */
	size_t pin_count;
	const char *const *protects; /* cell paths: held in place, read-only */
	size_t protect_count;
	const char *const *masks; /* cell paths: there, but EACCES */
	size_t mask_count;
};

/* Append the whole view to @b. -EINVAL with a story when the workspace lies where it cannot be shown. */
int aw_view_decide(const struct aw_view *view, struct aw_plan_builder *b, struct aw_error *err);

/* Where HOME is inside: AW_CELL_HOME, or a name beside it when the project lies in a directory of that name. */
const char *aw_view_home_for(const char *workspace);
