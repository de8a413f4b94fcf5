/*
 * file - small state files: replaced whole or not at all, read only if they are plain.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"

#define AW_FILE_NAME_MAX 63

/*
 * Replace @name (at most AW_FILE_NAME_MAX bytes) in @dir_fd by @data: written to a new file of mode
 * 0600 beside it, then renamed over it. Whoever reads sees the old content or the new; a kill
 * leaves at most ".NAME.new", which the next replacement removes. Not synced: after a power cut it
 * may be missing or empty, which every reader treats as malformed.
 */
int aw_file_replace(int dir_fd, const char *name, struct aw_str data, struct aw_error *err);

/*
 * Read @name in @dir_fd, at most @max bytes; the caller frees *ret. -ENOENT when it is not there,
 * -ELOOP for a symbolic link, -EBADMSG for anything that is not a regular file, -EFBIG.
 */
ssize_t aw_file_read(int dir_fd, const char *name, size_t max, char **ret, struct aw_error *err);
