#include "cell/git-tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "cell/protect.h"

static const char *const skipped[] = { ".git", "node_modules", ".venv",
				       "venv", "target",       "__pycache__" };

/* A directory with HEAD and either these two or a commondir is a git directory: git's setup.c. */
enum {
	SEEN_HEAD = 1,
	SEEN_OBJECTS = 2,
	SEEN_REFS = 4,
	SEEN_COMMON = 8,
	SEEN_GIT = 16,
	SEEN_DIRS = 32
};

static const struct {
	const char *name;
	unsigned bit;
} signs[] = {
	{ "HEAD", SEEN_HEAD },        { "objects", SEEN_OBJECTS }, { "refs", SEEN_REFS },
	{ "commondir", SEEN_COMMON }, { ".git", SEEN_GIT },
};

/* In a git directory: what is no place for another one, and large. */
static const char *const stores[] = { "objects", "refs", "logs" };

struct walk {
	struct aw_git_tree *tree;
	unsigned entries_left;
	struct aw_error *err;
	char path[PATH_MAX];
};

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static bool may_be_directory(const struct dirent *entry)
{
	return entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN;
}

static bool is_git_directory(unsigned seen)
{
	unsigned store = SEEN_OBJECTS | SEEN_REFS;

	return (seen & SEEN_HEAD) && ((seen & SEEN_COMMON) || (seen & store) == store);
}

/* What a directory has in it, as SEEN bits. 1: there is more than may be read. */
static int read_names(struct walk *walk, DIR *dir, unsigned *ret_seen)
{
	const struct dirent *entry;

	while ((entry = readdir(dir)) != NULL) {
		if (is_dots(entry->d_name))
			continue;
		if (walk->entries_left == 0)
			return 1;
		walk->entries_left--;
		for (size_t i = 0; i < AW_ARRAY_LEN(signs); i++)
			if (strcmp(entry->d_name, signs[i].name) == 0)
				*ret_seen |= signs[i].bit;
		if (may_be_directory(entry))
			*ret_seen |= SEEN_DIRS;
	}
	return 0;
}

/* Put "/name" behind the path; false if there is no room. @ret_len: what to cut it to afterwards. */
static bool enter(struct walk *walk, const char *name, size_t *ret_len)
{
	size_t len = strlen(walk->path);

	*ret_len = len;
	if (aw_str_format(walk->path + len, sizeof(walk->path) - len, "%s%s", len > 0 ? "/" : "",
			  name) >= 0)
		return true;
	walk->path[len] = '\0';
	return false;
}

/* 0 for what is none of git's. */
static int tell_dot_git(struct walk *walk, int dir_fd)
{
	struct stat st;
	size_t len;
	int r;

	if (fstatat(dir_fd, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !(S_ISDIR(st.st_mode) || S_ISREG(st.st_mode) || S_ISLNK(st.st_mode)))
		return 0;
	if (!enter(walk, ".git", &len))
		return 1;
	r = walk->tree->found(walk->tree, S_ISDIR(st.st_mode) ? AW_GIT_DIRECTORY : AW_GIT_POINTER,
			      walk->path, walk->err);
	walk->path[len] = '\0';
	return r;
}

static int tell(struct walk *walk, int dir_fd, unsigned seen)
{
	int r = seen & SEEN_GIT ? tell_dot_git(walk, dir_fd) : 0;

	if (r == 0 && is_git_directory(seen))
		r = walk->tree->found(walk->tree, AW_GIT_BARE, walk->path, walk->err);
	return r;
}

static int look(struct walk *walk, DIR *dir, unsigned depth);

/* The directory may hide something only if whoever made it so can make it otherwise. */
static int judge_closed(int dir_fd, const char *name)
{
	int why = errno;
	struct stat st;

	if (why == ENOENT || why == ENOTDIR || why == ELOOP)
		return 0;
	if (why == EACCES && fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return st.st_uid == geteuid();
	return 1;
}

static int look_into(struct walk *walk, int dir_fd, const char *name, unsigned depth)
{
	DIR *dir;
	size_t len;
	int r;

	if (depth > AW_GIT_TREE_DEPTH_MAX || !enter(walk, name, &len))
		return 1;
	dir = aw_protect_list(dir_fd, name);
	r = dir != NULL ? look(walk, dir, depth) : judge_closed(dir_fd, name);
	walk->path[len] = '\0';
	return r;
}

static int descend(struct walk *walk, DIR *dir, unsigned seen, unsigned depth)
{
	bool is_git = is_git_directory(seen);
	const struct dirent *entry;
	int r = 0, is_partial = 0;

	rewinddir(dir);
	while (r >= 0 && walk->entries_left > 0 && (entry = readdir(dir)) != NULL) {
		if (!may_be_directory(entry) || is_dots(entry->d_name) ||
		    is_one_of(entry->d_name, skipped, AW_ARRAY_LEN(skipped)) ||
		    (is_git && is_one_of(entry->d_name, stores, AW_ARRAY_LEN(stores))))
			continue;
		r = look_into(walk, dirfd(dir), entry->d_name, depth + 1);
		is_partial |= r > 0;
	}
	return r < 0 ? r : is_partial || walk->entries_left == 0;
}

/* Takes @dir over. */
static int look(struct walk *walk, DIR *dir, unsigned depth)
{
	unsigned seen = 0;
	int is_partial = read_names(walk, dir, &seen), r;

	r = tell(walk, dirfd(dir), seen);
	if (r == 0 && is_partial == 0 && (seen & SEEN_DIRS))
		r = descend(walk, dir, seen, depth);
	(void)closedir(dir);
	return r != 0 ? r : is_partial;
}

int aw_git_tree_walk(struct aw_git_tree *tree, int root_fd, const char *start, struct aw_error *err)
{
	struct walk walk = {
		.tree = tree,
		.entries_left = AW_GIT_TREE_ENTRIES_MAX,
		.err = err,
	};
	DIR *dir = aw_protect_list(root_fd, start);

	if (dir == NULL)
		return judge_closed(root_fd, *start != '\0' ? start : ".");
	if (aw_str_format(walk.path, sizeof(walk.path), "%s", start) < 0) {
		(void)closedir(dir);
		return aw_fail(err, ENAMETOOLONG, "'%s'", start);
	}
	return look(&walk, dir, 0);
}
