#include "base/fd.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"

/* A rename race makes openat2 ask for another try; so does a foreign lease, but that lasts. */
#define TRIES_MAX 32

static int open_how(int dir_fd, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (unsigned)(flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK),
		.mode = mode,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	long fd;
	int tries = 0;

	/* O_PATH refuses flags that mean nothing to it (openat2 is strict, open was not). */
	if (flags & O_PATH)
		how.flags = (unsigned)(flags | O_CLOEXEC);
	do
		fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
	while (fd < 0 && (errno == EINTR || (errno == EAGAIN && ++tries < TRIES_MAX)));
	return fd < 0 ? -errno : (int)fd;
}

int aw_open_beneath(int dir_fd, const char *path, int flags, struct aw_error *err)
{
	int fd = open_how(dir_fd, path, flags, 0);

	return fd < 0 ? aw_fail(err, -fd, "open '%s'", path) : fd;
}

int aw_create_beneath(int dir_fd, const char *path, int flags, mode_t mode, struct aw_error *err)
{
	int fd = open_how(dir_fd, path, flags | O_CREAT, mode & 0777);

	return fd < 0 ? aw_fail(err, -fd, "create '%s'", path) : fd;
}

ssize_t aw_read_any(int fd, size_t max, char **ret, struct aw_error *err)
{
	autofree char *text = NULL;
	size_t len = 0, capacity = 0;

	for (;;) {
		ssize_t n;

		if (len == capacity) {
			char *larger;

			capacity = capacity == 0 ? 4096 : capacity * 2;
			if (capacity > max)
				capacity = max + 1;
			larger = realloc(text, capacity + 1);
			if (larger == NULL)
				return aw_fail(err, ENOMEM, "read");
			text = larger;
		}
		n = read(fd, text + len, capacity - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return aw_fail(err, errno, "read");
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > max)
			return aw_refuse(err, EFBIG, "larger than %zu bytes", max);
	}
	text[len] = '\0';
	*ret = AW_TAKE_PTR(text);
	return (ssize_t)len;
}

ssize_t aw_read_text(int fd, size_t max, char **ret, struct aw_error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return aw_fail(err, errno, "fstat");
	if (!S_ISREG(st.st_mode))
		return aw_refuse(err, EBADMSG, "not a regular file");
	return aw_read_any(fd, max, ret, err);
}

ssize_t aw_read_file(int dir_fd, const char *path, size_t max, char **ret, struct aw_error *err)
{
	autoclose int fd = -EBADF;
	ssize_t n;

	fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return aw_fail(err, errno, "open '%s'", path);
	n = aw_read_any(fd, max, ret, err);
	return n < 0 ? aw_while(err, "read '%s'", path) : n;
}

int aw_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int aw_write_file(int dir_fd, const char *path, const char *text, struct aw_error *err)
{
	autoclose int fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	size_t len = strlen(text);
	ssize_t n;

	if (fd < 0)
		return aw_fail(err, errno, "open '%s'", path);
	n = write(fd, text, len);
	if (n != (ssize_t)len)
		return aw_fail(err, n < 0 ? errno : EIO, "write '%s' to '%s'", text, path);
	return 0;
}

int aw_mkdir_beneath(int dir_fd, const char *path, mode_t mode, struct aw_error *err)
{
	autoclose int fd = open_how(dir_fd, ".", O_PATH | O_DIRECTORY, 0);
	const char *p = path;

	if (fd < 0)
		return aw_fail(err, -fd, "open the directory above '%s'", path);
	if (*p == '/')
		return aw_fail(err, EXDEV, "make '%s'", path);
	while (*p != '\0') {
		char name[256];
		size_t n = strcspn(p, "/");
		int next;

		if (n >= sizeof(name))
			return aw_fail(err, ENAMETOOLONG, "make '%s'", path);
		memcpy(name, p, n);
		name[n] = '\0';
		p += n + (p[n] == '/');
		if (n == 0)
			continue;
		if (mkdirat(fd, name, mode) < 0 && errno != EEXIST)
			return aw_fail(err, errno, "make directory '%s' of '%s'", name, path);
		next = open_how(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
		if (next < 0)
			return aw_fail(err, -next, "enter directory '%s' of '%s'", name, path);
		(void)close(fd);
		fd = next;
	}
	return AW_TAKE_FD(fd);
}

static int compare_fds(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static int close_span(unsigned first, unsigned last)
{
	if (first > last)
		return 0;
	return syscall(SYS_close_range, first, last, 0) < 0 ? -errno : 0;
}

int aw_close_others(int first, const int *keep, size_t count)
{
	int sorted[AW_KEEP_MAX] = { 0 };
	unsigned next = (unsigned)first;

	if (count > AW_KEEP_MAX)
		return -E2BIG;
	if (count > 0)
		memcpy(sorted, keep, count * sizeof(*keep));
	qsort(sorted, count, sizeof(*sorted), compare_fds);
	for (size_t i = 0; i < count; i++) {
		int r;

		if (sorted[i] < (int)next)
			continue;
		r = sorted[i] > (int)next ? close_span(next, (unsigned)sorted[i] - 1) : 0;
		if (r < 0)
			return r;
		next = (unsigned)sorted[i] + 1;
	}
	return close_span(next, ~0U);
}

int aw_memfd_sealed(const char *name, const void *data, size_t len, size_t size,
		    struct aw_error *err)
{
	autoclose int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0)
		return aw_fail(err, errno, "memfd_create '%s'", name);
	r = aw_write_all(fd, data, len);
	if (r < 0)
		return aw_fail(err, -r, "fill memfd '%s'", name);
	if (size > len && ftruncate(fd, (off_t)size) < 0)
		return aw_fail(err, errno, "size memfd '%s'", name);
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		return aw_fail(err, errno, "seal memfd '%s'", name);
	if (lseek(fd, 0, SEEK_SET) < 0)
		return aw_fail(err, errno, "rewind memfd '%s'", name);
	return AW_TAKE_FD(fd);
}
