/* Counting inotify instances and watches: proc_pid_fdinfo(5) has a line "inotify ..." per watch. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/doctor.h"

#define FDINFO_MAX (16 * 1024 * 1024)

static DIR *open_dir(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (dir == NULL)
		(void)aw_fd_close(fd);
	return dir;
}

static unsigned count_watches(int process, const char *fd_name)
{
	char path[300];
	autofree char *text = NULL;
	struct aw_error none;
	struct aw_str rest, line;
	unsigned count = 0;
	ssize_t n;

	(void)aw_str_format(path, sizeof(path), "fdinfo/%s", fd_name);
	n = aw_read_file(process, path, FDINFO_MAX, &text, &none);
	rest = (struct aw_str){ text, n < 0 ? 0 : (size_t)n };
	while (aw_str_next(&rest, '\n', &line))
		count += aw_str_starts(line, "inotify ");
	return count;
}

static void count_process(int process, struct aw_doctor_inotify *ret)
{
	DIR *fds = open_dir(process, "fd");
	struct dirent *entry;

	while (fds != NULL && (entry = readdir(fds)) != NULL) {
		char target[32];
		ssize_t n = readlinkat(dirfd(fds), entry->d_name, target, sizeof(target));

		if (n < 0 || !aw_str_is((struct aw_str){ target, (size_t)n }, "anon_inode:inotify"))
			continue;
		ret->instances++;
		ret->watches += count_watches(process, entry->d_name);
	}
	if (fds != NULL)
		(void)closedir(fds);
}

void aw_doctor_count_inotify(int proc_fd, unsigned uid, struct aw_doctor_inotify *ret)
{
	DIR *all = open_dir(proc_fd, ".");
	struct dirent *entry;

	while (all != NULL && (entry = readdir(all)) != NULL) {
		autoclose int process = -EBADF;
		struct stat st;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		process = openat(proc_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (process >= 0 && fstat(process, &st) == 0 && st.st_uid == uid)
			count_process(process, ret);
	}
	if (all != NULL)
		(void)closedir(all);
}
