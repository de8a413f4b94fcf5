/*
 * fd - opening, reading and writing with descriptors as the only truth.
 *
 * Everything opened here is close-on-exec. Paths that came from a policy or an agent go through
 * aw_open_beneath: no symbolic link leads out, no magic link is followed, nothing blocks.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * Open @path below @dir_fd with openat2 RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS (Linux 5.6); adds
 * O_CLOEXEC | O_NOCTTY | O_NONBLOCK, so that a FIFO or a leased file cannot hold us.
 * Returns the fd, or -EXDEV if the path would leave @dir_fd, -EAGAIN while another holds a lease, or
 * -errno.
 */
int aw_open_beneath(int dir_fd, const char *path, int flags, struct aw_error *err);

/* As aw_open_beneath with O_CREAT and @mode, less set-id bits and the umask. */
int aw_create_beneath(int dir_fd, const char *path, int flags, mode_t mode, struct aw_error *err);

/*
 * Read all of a regular file (or memfd) of at most @max bytes into a fresh NUL-terminated buffer.
 * Returns its length; -EFBIG beyond @max, -EBADMSG if it is not a regular file. The caller frees *ret.
 */
ssize_t aw_read_text(int fd, size_t max, char **ret, struct aw_error *err);

/* As aw_read_text, but any kind of file, from where it stands. */
ssize_t aw_read_any(int fd, size_t max, char **ret, struct aw_error *err);

/* Open and read a small kernel or configuration file. As aw_read_text, but any file type. */
ssize_t aw_read_file(int dir_fd, const char *path, size_t max, char **ret, struct aw_error *err);

/* Write all of it, over short writes and EINTR. Blocking descriptors only. */
int aw_write_all(int fd, const void *data, size_t len);

/* Write @text in one write to an existing file (a kernel knob). */
int aw_write_file(int dir_fd, const char *path, const char *text, struct aw_error *err);

/*
 * mkdir -p below @dir_fd: every component is made with @mode if it is missing and entered without
 * following links. Returns an O_PATH fd of the last one; -EXDEV for a path that is absolute or leads
 * above @dir_fd.
 */
int aw_mkdir_beneath(int dir_fd, const char *path, mode_t mode, struct aw_error *err);

#define AW_KEEP_MAX 128

/*
 * Close every descriptor >= @first except the @count in @keep (any order, may contain negatives and
 * repetitions). -E2BIG beyond AW_KEEP_MAX.
 */
int aw_close_others(int first, const int *keep, size_t count);

/* A sealed, read-only memfd of @size bytes, offset 0: the @len given, then zeros that take no memory. */
int aw_memfd_sealed(const char *name, const void *data, size_t len, size_t size,
		    struct aw_error *err);
