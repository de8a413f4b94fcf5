/*
 * workspace - may this directory be given to an agent?
 *
 * Everything below the workspace is the agent's to read and, by default, to write: so it must not be
 * a directory that holds more than a project. The path is made canonical first, so that a symbolic
 * link to a refused place is refused as that place.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"

struct aw_workspace {
	char *path; /* canonical, absolute */
	int fd;     /* O_PATH directory: what was checked is what is mounted */
	uid_t uid;
	gid_t gid;
	const char
		*secrets[4]; /* names like ".ssh" that lie directly inside; NULL-terminated list */
	size_t secret_count;
};

struct aw_workspace_host {
	const char *home;      /* the caller's home; never NULL */
	const char *state_dir; /* Warden's own state and configuration: never inside a cell */
	const char *config_dir;
	const char *program_dir; /* where this Warden runs from */
};

/*
 * Open and check @dir. -ENOENT, -ENOTDIR, or -EACCES with the reason in words. Directories named
 * .ssh, .aws, .kube or .gnupg inside are only reported: the caller asks or needs --allow-secrets.
 */
int aw_workspace_open(const char *dir, const struct aw_workspace_host *host,
		      struct aw_workspace *ret, struct aw_error *err);
void aw_workspace_fini(struct aw_workspace *workspace);

/*
 * Does the canonical @path overlap with Warden's own state or configuration, whatever links lead to
 * these? 1 yes, 0 no, -ENOMEM.
 */
int aw_workspace_touches_own(const char *path, const struct aw_workspace_host *host,
			     struct aw_error *err);

/* The part that decides, on canonical paths; pure but for @is_mount_root and @uid given. */
int aw_workspace_judge(const char *path, uid_t owner, uid_t caller, bool is_whole_drive,
		       const struct aw_workspace_host *host, struct aw_error *err);

/* Does this mountinfo line mount the root of a whole file system at @path? Pure. */
bool aw_mountinfo_is_drive(struct aw_str line, const char *path);

/* The mount point of a mountinfo line, unescaped; false when there is none or it is too long. Pure. */
bool aw_mountinfo_point(struct aw_str line, char *out, size_t size);
