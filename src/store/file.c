#include "store/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"

static int create_new(int dir_fd, const char *name, struct aw_error *err)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
	int fd = openat(dir_fd, name, flags, 0600);

	/* Left by a writer that was killed, or planted: never written through, always replaced. */
	if (fd < 0 && errno == EEXIST && unlinkat(dir_fd, name, 0) == 0)
		fd = openat(dir_fd, name, flags, 0600);
	return fd < 0 ? aw_fail(err, errno, "create '%s'", name) : fd;
}

int aw_file_replace(int dir_fd, const char *name, struct aw_str data, struct aw_error *err)
{
	char fresh[AW_FILE_NAME_MAX + 8];
	autoclose int fd = -EBADF;
	int r;

	r = aw_str_format(fresh, sizeof(fresh), ".%s.new", name);
	if (r < 0)
		return aw_fail(err, -r, "replace '%s'", name);
	fd = create_new(dir_fd, fresh, err);
	if (fd < 0)
		return aw_while(err, "replace '%s'", name);
	r = aw_write_all(fd, data.ptr, data.len);
	if (r == 0 && renameat(dir_fd, fresh, dir_fd, name) < 0)
		r = -errno;
	if (r == 0)
		return 0;
	(void)unlinkat(dir_fd, fresh, 0);
	return aw_fail(err, -r, "replace '%s'", name);
}

ssize_t aw_file_read(int dir_fd, const char *name, size_t max, char **ret, struct aw_error *err)
{
	autoclose int fd = aw_open_beneath(dir_fd, name, O_RDONLY | O_NOFOLLOW, err);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = aw_read_text(fd, max, ret, err);
	return n < 0 ? aw_while(err, "read '%s'", name) : n;
}
