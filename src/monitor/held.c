#include "monitor/held.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/proc.h"
#include "base/str.h"

static void drop(struct aw_held_content *content)
{
	free(content->text);
	*content = (struct aw_held_content){ .text = NULL };
}

/* Each time anew: the host may have put another directory there, but no link is followed. */
static int open_parent(const struct aw_held_file *file)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	autofree char *parent = strndup(file->path, (size_t)(file->name - file->path));

	return parent == NULL ? -1 : (int)syscall(SYS_openat2, AT_FDCWD, parent, &how, sizeof(how));
}

/* False for what is no regular file of a size that is kept. */
static bool read_content(int dir, const char *name, struct aw_held_content *ret)
{
	autoclose int fd =
		openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct aw_held_content content;
	struct aw_error none;
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	n = aw_read_text(fd, AW_HELD_FILE_MAX, &content.text, &none);
	if (n < 0)
		return false;
	content.len = (size_t)n;
	content.mode = st.st_mode & 0777;
	content.uid = st.st_uid;
	content.gid = st.st_gid;
	*ret = content;
	return true;
}

static void file_fini(struct aw_held_file *file)
{
	free(file->path);
	drop(&file->last);
	drop(&file->pending);
}

int aw_held_add(struct aw_held *held, const char *path, struct aw_held_file **ret,
		struct aw_error *err)
{
	struct aw_held_file file = { .path = strdup(path) };
	autoclose int dir = -EBADF;
	int r = 0;

	*ret = NULL;
	if (file.path == NULL)
		return aw_fail(err, ENOMEM, "remember '%s'", path);
	file.name = strrchr(file.path, '/') + 1;
	dir = open_parent(&file);
	if (dir < 0)
		r = errno == ENOENT ? 0 : aw_fail(err, errno, "remember '%s'", path);
	else if (held->count < AW_HELD_MAX && read_content(dir, file.name, &file.last))
		*ret = &held->file[held->count];
	if (*ret == NULL)
		file_fini(&file);
	else
		held->file[held->count++] = file;
	return r;
}

void aw_held_fini(struct aw_held *held)
{
	for (size_t i = 0; i < held->count; i++)
		file_fini(&held->file[i]);
	held->count = 0;
}

struct aw_held_file *aw_held_find(struct aw_held *held, const char *path)
{
	for (size_t i = 0; i < held->count; i++)
		if (strcmp(held->file[i].path, path) == 0)
			return &held->file[i];
	return NULL;
}

bool aw_held_is_due(const struct aw_held_file *file)
{
	autoclose int dir = open_parent(file);
	struct stat st;

	return dir >= 0 &&
	       (file->is_needed || fstatat(dir, file->name, &st, AT_SYMLINK_NOFOLLOW) == 0);
}

static bool is_too_large(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size > AW_HELD_FILE_MAX;
}

void aw_held_reread(struct aw_held *held)
{
	for (size_t i = 0; i < held->count; i++) {
		struct aw_held_file *file = &held->file[i];
		autoclose int dir = file->is_changed ? open_parent(file) : -EBADF;

		if (!file->is_changed || file->is_lost)
			continue;
		file->is_changed = false;
		drop(&file->pending);
		if (!read_content(dir, file->name, &file->pending) && is_too_large(dir, file->name))
			drop(&file->last);
	}
}

void aw_held_accept(struct aw_held *held)
{
	for (size_t i = 0; i < held->count; i++) {
		struct aw_held_file *file = &held->file[i];

		if (file->is_lost)
			drop(&file->pending);
		if (file->pending.text == NULL)
			continue;
		drop(&file->last);
		file->last = file->pending;
		file->pending = (struct aw_held_content){ .text = NULL };
	}
}

static int write_new(int dir, const char *name, const struct aw_held_content *content, mode_t mode)
{
	autoclose int fd =
		openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : aw_write_all(fd, content->text, content->len);
	struct stat st;

	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	/* A group that its owner is not in cannot be given by the owner: the file is better than none. */
	if (r == 0 && (st.st_uid != content->uid || st.st_gid != content->gid) &&
	    fchown(fd, content->uid, content->gid) < 0 && st.st_uid != content->uid)
		r = -errno;
	if (r == 0 && fchmod(fd, mode) < 0)
		r = -errno;
	return r;
}

/* A fresh inode, renamed over: whatever descriptor the cell got of the other one leads nowhere. */
static int put_back(const struct aw_held_file *file, int dir, struct aw_error *err)
{
	char temporary[64];
	int r;

	(void)aw_str_format(temporary, sizeof(temporary), ".warden-restore-%llu",
			    (unsigned long long)aw_now_ns());
	r = write_new(dir, temporary, &file->last, file->last.mode);
	if (r == 0 && renameat(dir, temporary, dir, file->name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir, temporary, 0);
	return r < 0 ? aw_fail(err, -r, "put '%s' back as it was", file->path) : 0;
}

/* For the person, under their own account: whose the file was does not matter here. */
static void keep(const struct aw_held_content *content, int dir, char *ret_name, size_t size)
{
	struct aw_held_content mine = *content;

	mine.uid = geteuid();
	mine.gid = getegid();
	(void)aw_str_format(ret_name, size, "replaced-%llu", (unsigned long long)aw_now_ns());
	if (content->text == NULL || write_new(dir, ret_name, &mine, 0600) < 0)
		ret_name[0] = '\0';
}

int aw_held_restore(struct aw_held_file *file, int keep_dir, char *ret_name, size_t size,
		    struct aw_error *err)
{
	struct aw_held_content now = { .text = NULL };
	autoclose int dir = open_parent(file);
	bool is_same;

	ret_name[0] = '\0';
	drop(&file->pending);
	if (dir < 0 || file->last.text == NULL)
		return aw_refuse(err, ESTALE, "'%s' cannot be put back", file->path);
	(void)read_content(dir, file->name, &now);
	is_same = now.text != NULL && now.len == file->last.len &&
		  memcmp(now.text, file->last.text, now.len) == 0;
	if (!is_same)
		keep(&now, keep_dir, ret_name, size);
	drop(&now);
	if (put_back(file, dir, err) < 0)
		return -err->code;
	file->is_lost = false;
	return is_same ? 0 : 1;
}
