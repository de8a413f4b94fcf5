/*
 * Names in the new root: opened without following a link, made only where we made the file system.
 */
#include "cell/pid1-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"

/* Open a name of the new root; no symbolic link in it is followed, wherever the project has put one. */
int aw_place_open(const struct aw_build *build, const char *at)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
	};
	long fd;

	at += strspn(at, "/");
	do
		fd = syscall(SYS_openat2, build->root_fd, *at == '\0' ? "." : at, &how,
			     sizeof(how));
	while (fd < 0 && errno == EAGAIN);
	return fd < 0 ? -errno : (int)fd;
}

int aw_place_own(struct aw_build *build, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (build->own_count == AW_ARRAY_LEN(build->own))
		return -E2BIG;
	build->own[build->own_count++] = st.st_dev;
	return 0;
}

static bool is_own(const struct aw_build *build, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	for (unsigned i = 0; i < build->own_count; i++)
		if (build->own[i] == st.st_dev)
			return true;
	return false;
}

/* Enter @name below @dir, made first if it is missing and the place is our own. */
static int enter_or_make(const struct aw_build *build, int dir, const char *name, mode_t mode)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | O_NOFOLLOW | O_DIRECTORY,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	long fd = syscall(SYS_openat2, dir, name, &how, sizeof(how));

	if (fd < 0 && errno == ENOENT) {
		if (!is_own(build, dir))
			return -EXDEV;
		if (mkdirat(dir, name, mode) < 0)
			return -errno;
		fd = syscall(SYS_openat2, dir, name, &how, sizeof(how));
	}
	return fd < 0 ? -errno : (int)fd;
}

static int walk_to(const struct aw_build *build, const char *dir)
{
	autoclose int fd = fcntl(build->root_fd, F_DUPFD_CLOEXEC, 0);
	const char *p = dir + strspn(dir, "/");

	while (*p != '\0') {
		char name[256];
		size_t n = strcspn(p, "/");
		int next;

		if (n >= sizeof(name))
			return -ENAMETOOLONG;
		memcpy(name, p, n);
		name[n] = '\0';
		next = enter_or_make(build, fd, name, 0755);
		if (next < 0)
			return next;
		(void)close(fd);
		fd = next;
		p += n + strspn(p + n, "/");
	}
	return AW_TAKE_FD(fd);
}

/*
 * The directory that holds the last name of @at, made if need be; @ret_name points into @at. The fd
 * stays ours: operations come in order, so the next one mostly wants the same directory.
 */
static int open_parent(struct aw_build *build, const char *at, const char **ret_name)
{
	const char *slash = strrchr(at, '/');
	size_t len = (size_t)(slash - at);

	*ret_name = slash + 1;
	if (build->parent_fd >= 0 && strlen(build->parent) == len &&
	    strncmp(build->parent, at, len) == 0)
		return build->parent_fd;
	build->parent_fd = aw_fd_close(build->parent_fd);
	if (len >= sizeof(build->parent))
		return -ENAMETOOLONG;
	memcpy(build->parent, at, len);
	build->parent[len] = '\0';
	build->parent_fd = walk_to(build, build->parent);
	return build->parent_fd;
}

/* A mount at @at hides what we hold of that name. */
void aw_place_forget(struct aw_build *build, const char *at)
{
	if (build->parent_fd >= 0 && strcmp(build->parent, at) == 0)
		build->parent_fd = aw_fd_close(build->parent_fd);
}

int aw_place_dir(struct aw_build *build, const char *at, mode_t mode)
{
	const char *name;
	int dir = open_parent(build, at, &name);

	if (dir < 0)
		return dir;
	return enter_or_make(build, dir, name, mode);
}

int aw_place_file(struct aw_build *build, const char *at, mode_t mode, struct aw_str content)
{
	const char *name;
	int dir = open_parent(build, at, &name);
	autoclose int fd = -EBADF;

	if (dir < 0)
		return dir;
	if (!is_own(build, dir))
		return -EXDEV;
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (fchmod(fd, mode) < 0)
		return -errno;
	return aw_write_all(fd, content.ptr, content.len);
}

int aw_place_symlink(struct aw_build *build, const char *at, const char *target)
{
	const char *name;
	int dir = open_parent(build, at, &name);

	if (dir < 0)
		return dir;
	if (!is_own(build, dir))
		return -EXDEV;
	return symlinkat(target, dir, name) < 0 ? -errno : 0;
}
