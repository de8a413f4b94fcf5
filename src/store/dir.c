#include "store/dir-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/own.h"

DIR *aw_dir_open(int dir_fd, const char *name, struct aw_error *err)
{
	/* A descriptor of its own: the one handed in may be O_PATH, and keeps its offset. */
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (dir != NULL)
		return dir;
	(void)aw_fail(err, errno, "open directory '%s'", name);
	(void)aw_fd_close(fd);
	return NULL;
}

void aw_dir_close(DIR **dir)
{
	if (*dir != NULL)
		(void)closedir(*dir);
	*dir = NULL;
}

const char *aw_dir_next(DIR *dir)
{
	struct dirent *entry;

	do {
		errno = 0;
		entry = readdir(dir);
		if (entry == NULL)
			return NULL;
	} while (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
	return entry->d_name;
}
