/*
 * held - what protected files contained, for the moment in which their protection is lost.
 *
 * The kernel takes a bind mount away when somebody on the host renames over its file, and what came in
 * its place was a file that the cell could write before, under the name that it had then, and can
 * write until it is frozen. No event tells whose content that is: so it is not trusted. The last
 * content that only the host can have written is put back, in a fresh file that nobody has open, and
 * the other is kept for the person. What the host writes in place, under the mount, is the host's.
 *
 * No symbolic link is followed on the way: a directory that is swapped for one leads nowhere.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

#define AW_HELD_MAX 256
#define AW_HELD_FILE_MAX (1024 * 1024)

struct aw_held_content {
	char *text; /* NULL: none */
	size_t len;
	mode_t mode;
	uid_t uid;
	gid_t gid;
};

struct aw_held_file {
	char *path;       /* on the host */
	const char *name; /* the end of it */
	struct aw_held_content last, pending;
	bool is_changed; /* written to since it was read */
	bool is_lost;    /* its mount was missing, and it was not put back since */
	bool is_needed;  /* the host has no reason to remove it: it is put back then, too */
};

struct aw_held {
	struct aw_held_file file[AW_HELD_MAX];
	size_t count;
};

/*
 * Remember the file at the canonical @path and its content. What is no regular file, or too large, or
 * one too many, is not kept: *ret is NULL. -ENOMEM; -ELOOP: a link has come into @path.
 */
int aw_held_add(struct aw_held *held, const char *path, struct aw_held_file **ret,
		struct aw_error *err);
void aw_held_fini(struct aw_held *held);

struct aw_held_file *aw_held_find(struct aw_held *held, const char *path);

/* Whether the name is there, or its directory is and it must be. */
bool aw_held_is_due(const struct aw_held_file *file);

/*
 * Read what changed files contain now; and then, when the mount table was looked at after that, take it
 * for the host's where the file is not lost: a mount that is in its place was there all the while.
 * What has grown too large cannot be put back from then on.
 */
void aw_held_reread(struct aw_held *held);
void aw_held_accept(struct aw_held *held);

/*
 * With the cell frozen: put the last content back, with its owner and mode. 0: what was there was the
 * same; 1: it was not, and is NAME in @keep_dir (@ret_name, "" if it could not be kept); -ESTALE: its
 * directory is gone, or there is no content to put back.
 */
int aw_held_restore(struct aw_held_file *file, int keep_dir, char *ret_name, size_t size,
		    struct aw_error *err);
