#include "cell/git.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "cell/protect.h"
#include "policy/paths.h"

#define POINTER_MAX 8192
#define CONFIG_MAX (256 * 1024)

/* The first line of a small file below @dir_fd without its end; NULL if there is none. */
static char *read_line(int dir_fd, const char *name)
{
	struct aw_error err;
	autoclose int fd = aw_open_beneath(dir_fd, name, O_RDONLY | O_NOFOLLOW, &err);
	char *text = NULL;

	if (fd < 0 || aw_read_text(fd, POINTER_MAX, &text, &err) < 0)
		return NULL;
	text[strcspn(text, "\r\n")] = '\0';
	return text;
}

/* Make @path, relative to the directory @base, canonical; NULL when it is not there. */
static char *resolve(const char *base, const char *path)
{
	char joined[PATH_MAX];

	if (path[0] == '/')
		return realpath(path, NULL);
	if (aw_str_format(joined, sizeof(joined), "%s/%s", base, path) < 0)
		return NULL;
	return realpath(joined, NULL);
}

static bool is_same(const char *resolved, const char *path)
{
	return resolved != NULL && strcmp(resolved, path) == 0;
}

/* A worktree's git directory names the .git file that belongs to it in `gitdir`. */
static bool worktree_points_back(int git_fd, const char *git_dir, const char *project)
{
	autofree char *text = read_line(git_fd, "gitdir"), *back = NULL, *own = NULL;

	if (text == NULL)
		return false;
	back = resolve(git_dir, text);
	own = aw_str_print("%s/.git", project);
	return own != NULL && is_same(back, own);
}

/* `key = value` of a section, from a git configuration; quotes and comments as git-config(1) has them. */
static char *config_value(const char *text, const char *section, const char *key)
{
	struct aw_str rest = aw_str_from(text), line;
	bool is_in_section = false;
	char *found = NULL;

	while (aw_str_next(&rest, '\n', &line)) {
		struct aw_str name, value;

		line = aw_str_trim(line);
		if (line.len > 0 && line.ptr[0] == '[') {
			is_in_section = line.len == strlen(section) + 2 &&
					strncasecmp(line.ptr + 1, section, strlen(section)) == 0;
			continue;
		}
		if (!is_in_section || !aw_str_next(&line, '=', &name) || line.ptr == NULL)
			continue;
		name = aw_str_trim(name);
		value = aw_str_trim(line);
		if (name.len != strlen(key) || strncasecmp(name.ptr, key, name.len) != 0)
			continue;
		if (value.len >= 2 && value.ptr[0] == '"' && value.ptr[value.len - 1] == '"')
			value = (struct aw_str){ value.ptr + 1, value.len - 2 };
		free(found); /* the last one counts */
		found = aw_str_dup(value);
	}
	return found;
}

/* A submodule's git directory names its work tree in core.worktree. */
static bool submodule_points_back(int git_fd, const char *git_dir, const char *project)
{
	struct aw_error err;
	autofree char *text = NULL, *value = NULL, *back = NULL;
	autoclose int fd = aw_open_beneath(git_fd, "config", O_RDONLY | O_NOFOLLOW, &err);

	if (fd < 0 || aw_read_text(fd, CONFIG_MAX, &text, &err) < 0)
		return false;
	value = config_value(text, "core", "worktree");
	if (value == NULL)
		return false;
	back = resolve(git_dir, value);
	return is_same(back, project);
}

static int open_own_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && (st.st_uid == geteuid() || geteuid() == 0))
		return fd;
	(void)close(fd);
	return -EPERM;
}

static int grant_git_dir(const char *path, const char *project, struct aw_grants *g,
			 struct aw_error *err)
{
	autoclose int fd = -EBADF;

	if (aw_path_is_within(path, project))
		return 0; /* part of the project already; protected with it */
	fd = open_own_dir(path);
	if (fd < 0)
		return aw_grants_note(g, err, "git directory %s cannot be opened and is not shown",
				      path);
	if (aw_grants_bind(g, path, path, true, err) < 0)
		return -err->code;
	return aw_protect_git_dir(fd, path, g, err);
}

/* What @git_dir shares with other worktrees: its `commondir`, or itself. */
static char *common_dir(int git_fd, const char *git_dir)
{
	autofree char *text = read_line(git_fd, "commondir");

	return text == NULL ? strdup(git_dir) : resolve(git_dir, text);
}

static int follow_pointer(const char *pointer, const char *project, struct aw_grants *g,
			  struct aw_error *err)
{
	autofree char *git_dir = resolve(project, pointer), *common = NULL;
	autoclose int fd = -EBADF;

	fd = git_dir == NULL ? -ENOENT : open_own_dir(git_dir);
	if (fd < 0)
		return aw_grants_note(g, err,
				      "the project's .git points to a place that is not there");
	if (!worktree_points_back(fd, git_dir, project) &&
	    !submodule_points_back(fd, git_dir, project))
		return aw_grants_note(
			g, err,
			"the project's .git points to %s, which does not point back: git "
			"has no repository in the cell",
			git_dir);
	common = common_dir(fd, git_dir);
	if (common == NULL)
		return aw_grants_note(g, err, "the common directory of %s is not there", git_dir);
	if (grant_git_dir(common, project, g, err) < 0)
		return -err->code;
	/* Usually <common>/worktrees/NAME, so already shown; a separate git directory is not. */
	return aw_path_is_within(git_dir, common) ? 0 : grant_git_dir(git_dir, project, g, err);
}

static int note_enclosing(const char *project, struct aw_grants *g, struct aw_error *err)
{
	char path[PATH_MAX], git[PATH_MAX];
	char *slash;

	if (aw_str_format(path, sizeof(path), "%s", project) < 0)
		return 0;
	while ((slash = strrchr(path, '/')) != NULL && slash != path) {
		*slash = '\0';
		if (aw_str_format(git, sizeof(git), "%s/.git", path) >= 0 && access(git, F_OK) == 0)
			return aw_grants_note(
				g, err,
				"the project is part of the repository %s, which is not "
				"shown; for git, run in %s, or grant --ro %s",
				path, path, git);
	}
	return 0;
}

int aw_git_find(int root_fd, const char *path, const char *at, struct aw_grants *g,
		struct aw_error *err)
{
	autofree char *line = NULL;
	autoclose int fd = -EBADF;
	char git_at[PATH_MAX];
	struct aw_error none;
	struct stat st;

	if (fstatat(root_fd, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return note_enclosing(path, g, err);
	if (S_ISLNK(st.st_mode))
		return aw_grants_note(g, err,
				      "the project's .git is a symbolic link and is not followed: "
				      "grant its target with --rw");
	if (S_ISREG(st.st_mode)) {
		line = read_line(root_fd, ".git");
		if (line == NULL || strncmp(line, "gitdir: ", 8) != 0)
			return aw_grants_note(
				g, err, "the project's .git is not a pointer to a repository");
		return follow_pointer(line + 8, path, g, err);
	}
	fd = aw_open_beneath(root_fd, ".git", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, &none);
	if (fd < 0)
		return 0;
	if (aw_str_format(git_at, sizeof(git_at), "%s/.git", at) < 0)
		return aw_fail(err, ENAMETOOLONG, "'%s'", at);
	return aw_protect_git_dir(fd, git_at, g, err);
}

void aw_git_identity(const char *home, char **ret_name, char **ret_email)
{
	static const char *const places[] = { ".config/git/config", ".gitconfig" };

	*ret_name = *ret_email = NULL;
	for (size_t i = 0; i < AW_ARRAY_LEN(places); i++) {
		autofree char *path = aw_str_print("%s/%s", home, places[i]), *text = NULL;
		struct aw_error err;
		char *name, *email;

		if (path == NULL || aw_read_file(AT_FDCWD, path, CONFIG_MAX, &text, &err) < 0)
			continue;
		name = config_value(text, "user", "name");
		email = config_value(text, "user", "email");
		if (name != NULL) {
			free(*ret_name);
			*ret_name = name;
		}
		if (email != NULL) {
			free(*ret_email);
			*ret_email = email;
		}
	}
}
