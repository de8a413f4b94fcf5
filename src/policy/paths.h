/*
 * paths - the two kinds of path a policy names, from text to one normal form.
 *
 * Cell paths (read_paths, write_paths, deny_paths, a mount's `at`) are absolute inside the cell;
 * /workspace stands for the project wherever it is mounted. DIR, DIR/ and DIR followed by / and one or
 * two stars all mean the subtree and become DIR. Host paths (a mount's `host`) are absolute or begin
 * with ~/, which is the home directory given; no other ~ is known.
 *
 * Normal form: absolute, no empty, "." or ".." component, no slash at the end ("/" alone stays).
 * Nothing here touches the file system: a symbolic link is the affair of whoever opens the path.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"

#define AW_PATH_MAX 4095 /* PATH_MAX of Linux without the NUL */
#define AW_PATH_WORKSPACE "/workspace"

/* @out has AW_PATH_MAX + 1 bytes. Length, or -EBADMSG with a sentence. Other globs are refused. */
int aw_path_cell(struct aw_str text, char *out, struct aw_error *err);

/* As aw_path_cell for a path on the host. @home may be NULL: then ~ is refused. */
int aw_path_host(struct aw_str text, const char *home, char *out, struct aw_error *err);

/* Whether @path is @dir or lies below it. Both normalised. */
bool aw_path_is_within(const char *path, const char *dir);

/* The part of a cell path below /workspace ("" for /workspace itself), NULL if it lies elsewhere. */
const char *aw_path_in_workspace(const char *path);
