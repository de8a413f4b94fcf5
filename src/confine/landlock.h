/*
 * landlock - what a process may do below which path, beside and after the mounts.
 *
 *	abi = aw_landlock_abi(err);                        the version of the running kernel
 *	ruleset = aw_landlock_begin(abi, err);             everything that can be denied is
 *	aw_landlock_allow_path(ruleset, abi, "/usr", AW_LANDLOCK_READ | AW_LANDLOCK_EXEC, err);
 *	aw_landlock_enforce(ruleset, err);                 for us and our children, for good
 *
 * Every right that the kernel's ABI has is handled, so that what is not granted is refused; nobody
 * may make device nodes. Since ABI 6 (Linux 6.12) the domain also ends signals and connections to
 * abstract unix sockets of processes outside of it. Needs no privilege beside no_new_privs.
 *
 * What it does not see: stat, chmod, chown, xattrs, connecting to a unix socket by path, files that
 * were open before.
 */
#pragma once

#include "base/error.h"

/* What a rule grants. Combine them; WRITE alone does not let a file be read. */
enum aw_landlock_right {
	AW_LANDLOCK_READ = 1 << 0, /* read files, list directories */
	AW_LANDLOCK_EXEC = 1 << 1, /* execute files */
	AW_LANDLOCK_WRITE =
		1 << 2, /* write, truncate, create, link and move in (no device nodes) */
	AW_LANDLOCK_REMOVE = 1 << 3, /* unlink, rmdir, rename away and rename over */
	AW_LANDLOCK_DEVICE = 1 << 4, /* ioctl on devices (ABI 5): terminals need it for raw mode */
};

/*
 * Below ABI 2 (Linux 5.19) each rename or link across directories fails with EXDEV, whatever the
 * rules say: such a kernel gets no file rules.
 */
#define AW_LANDLOCK_ABI_MIN 2

/* The ABI, >= 1. -ENOSYS if it is not built in, -EOPNOTSUPP if it was not enabled at boot. */
int aw_landlock_abi(struct aw_error *err);

/* Returns a ruleset fd (close-on-exec) that grants nothing. -ENOTSUP below AW_LANDLOCK_ABI_MIN. */
int aw_landlock_begin(int abi, struct aw_error *err);

/*
 * Grant @rights below @fd (O_PATH is enough), cut down to what this @abi knows and, for anything
 * but a directory, to what a file can have. Rules of one ruleset add up.
 */
int aw_landlock_allow(int ruleset, int abi, int fd, unsigned rights, struct aw_error *err);

/* As aw_landlock_allow for what @path leads to now. -ENOENT is for the caller to judge. */
int aw_landlock_allow_path(int ruleset, int abi, const char *path, unsigned rights,
			   struct aw_error *err);

/* Put it on the calling process (one thread, no_new_privs). The fd stays the caller's. */
int aw_landlock_enforce(int ruleset, struct aw_error *err);

/* Begin and enforce with no rule at all: for a role that opens nothing. Works from ABI 1. */
int aw_landlock_deny_all(int abi, struct aw_error *err);
