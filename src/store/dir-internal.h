/*
 * dir - listing a directory that is held as a descriptor.
 */
#pragma once

#include <dirent.h>

#include "base/error.h"

/* Open @name (no link is followed) in @dir_fd for readdir; NULL and *err on failure. */
DIR *aw_dir_open(int dir_fd, const char *name, struct aw_error *err);

/* For autodrop. */
void aw_dir_close(DIR **dir);

/* The name of the next entry beside "." and "..", NULL at the end; errno is 0 at a true end. */
const char *aw_dir_next(DIR *dir);
