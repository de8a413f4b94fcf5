#include "cell/git.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/loop.h"
#include "base/own.h"
#include "base/str.h"
#include "cell/git-config.h"
#include "cell/git-dir.h"
#include "cell/git-index.h"
#include "cell/git-tree.h"
#include "cell/protect.h"
#include "policy/paths.h"

#define POINTER_MAX 8192

/* A project and what was found for it. */
struct search {
	struct aw_protect_place project;
	struct aw_grants *g;
};

/* A path for a person: a hostile project chose it. */
struct shown {
	char text[512];
};

static struct shown show(const char *path)
{
	struct shown shown = { "" };

	(void)aw_str_escape(aw_str_from(path), shown.text, sizeof(shown.text));
	return shown;
}

/* The first line of a small file below @dir_fd without its end; NULL if there is none, or a NUL in it. */
static char *read_line(int dir_fd, const char *name)
{
	struct aw_error err;
	autoclose int fd = aw_open_beneath(dir_fd, name, O_RDONLY | O_NOFOLLOW, &err);
	autofree char *text = NULL;
	ssize_t n = fd < 0 ? -1 : aw_read_text(fd, POINTER_MAX, &text, &err);

	if (n < 0 || memchr(text, '\0', (size_t)n) != NULL)
		return NULL;
	text[strcspn(text, "\r\n")] = '\0';
	return AW_TAKE_PTR(text);
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

/* A submodule's git directory names its work tree in core.worktree. */
static bool submodule_points_back(int git_fd, const char *git_dir, const char *project)
{
	struct aw_error err;
	autodrop(aw_git_config_fini) struct aw_git_config config = { 0 };
	autofree char *text = NULL, *back = NULL;
	autoclose int fd = aw_open_beneath(git_fd, "config", O_RDONLY | O_NOFOLLOW, &err);
	const char *value;

	if (fd < 0 || aw_read_text(fd, AW_GIT_CONFIG_MAX, &text, &err) < 0 ||
	    aw_git_config_parse(aw_str_from(text), &config, &err) < 0)
		return false;
	value = aw_git_config_get(&config, "core.worktree");
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

static int hold_git_dir(const struct search *search, const struct aw_protect_place *place,
			const char *path, struct aw_error *err)
{
	struct aw_git_hold hold = {
		.project = &search->project,
		.g = search->g,
		.depth_left = AW_GIT_MODULE_DEPTH_MAX,
		.dirs_left = AW_GIT_DIRS_MAX + 1, /* its own, and those of others */
	};

	return aw_git_dir_hold(&hold, place, path, err);
}

/* A git directory at the canonical @path: shown if it is not part of the project, held in any case. */
static int grant_git_dir(const struct search *search, const char *path, struct aw_error *err)
{
	autoclose int fd = open_own_dir(path);
	const struct aw_protect_place place = { .fd = fd, .path = path, .at = path };
	const char *project = search->project.path;

	if (fd < 0)
		return aw_grants_note(search->g, err,
				      "git directory %s cannot be opened and is not shown",
				      show(path).text);
	if (aw_path_is_within(path, project))
		return hold_git_dir(search, &search->project, path + strlen(project) + 1, err);
	if (aw_grants_bind(search->g, path, path, true, err) < 0)
		return -err->code;
	return hold_git_dir(search, &place, "", err);
}

/*
 * What @git_dir shares with other worktrees: itself, or the COMMON of "COMMON/worktrees/NAME" where
 * its `commondir` says so. An earlier session may have written that file: no other place is believed,
 * or it would open any directory of the person's.
 */
static char *common_dir(int git_fd, const char *git_dir)
{
	autofree char *text = read_line(git_fd, "commondir"), *common = NULL, *expected = NULL;
	const char *name = strrchr(git_dir, '/');

	if (faccessat(git_fd, "commondir", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return strdup(git_dir);
	common = text == NULL ? NULL : resolve(git_dir, text);
	if (common == NULL)
		return NULL;
	expected = aw_str_print("%s/worktrees%s", common, name);
	return is_same(expected, git_dir) ? AW_TAKE_PTR(common) : NULL;
}

static int follow_pointer(const struct search *search, const char *pointer, struct aw_error *err)
{
	autofree char *git_dir = resolve(search->project.path, pointer), *common = NULL;
	autoclose int fd = -EBADF;

	fd = git_dir == NULL ? -ENOENT : open_own_dir(git_dir);
	if (fd < 0)
		return aw_grants_note(search->g, err,
				      "the project's .git points to a place that is not there");
	if (!aw_path_is_within(git_dir, search->project.path) &&
	    !worktree_points_back(fd, git_dir, search->project.path) &&
	    !submodule_points_back(fd, git_dir, search->project.path))
		return aw_grants_note(
			search->g, err,
			"the project's .git points to %s, which does not point back: git "
			"has no repository in the cell",
			show(git_dir).text);
	common = common_dir(fd, git_dir);
	if (common == NULL)
		return aw_grants_note(
			search->g, err,
			"%s/commondir does not name the repository that this worktree "
			"lies in: git has no repository in the cell",
			show(git_dir).text);
	return grant_git_dir(search, common, err);
}

/* The pointer itself is held: with another in its place, git on the host would run what that says. */
static int find_by_pointer(const struct search *search, struct aw_error *err)
{
	autofree char *line = read_line(search->project.fd, ".git");

	if (aw_protect_hold(&search->project, ".git", search->g, err) < 0)
		return -err->code;
	if (line == NULL || strncmp(line, "gitdir: ", 8) != 0)
		return aw_grants_note(search->g, err,
				      "the project's .git is not a pointer to a repository");
	return follow_pointer(search, line + 8, err);
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
				"shown; for git, run there, or grant --ro %s",
				show(path).text, show(git).text);
	}
	return 0;
}

int aw_git_find(int root_fd, const char *path, const char *at, struct aw_grants *g,
		struct aw_error *err)
{
	const struct search search = { .project = { root_fd, path, at }, .g = g };
	struct stat st;

	if (fstatat(root_fd, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return note_enclosing(path, g, err);
	if (S_ISLNK(st.st_mode))
		return aw_grants_note(g, err,
				      "the project's .git is a symbolic link and is not followed: "
				      "grant its target with --rw");
	if (S_ISREG(st.st_mode))
		return find_by_pointer(&search, err);
	if (!S_ISDIR(st.st_mode))
		return 0;
	return hold_git_dir(&search, &search.project, ".git", err);
}

struct nested {
	struct aw_git_tree tree;
	struct aw_git_hold hold;
};

static int hold_nested(struct aw_git_tree *tree, enum aw_git_kind kind, const char *path,
		       struct aw_error *err)
{
	struct nested *nested = AW_CONTAINER(tree, struct nested, tree);
	struct aw_git_hold *hold = &nested->hold;
	char at[PATH_MAX];
	int r;

	if (kind != AW_GIT_BARE && strcmp(path, ".git") == 0)
		return 0; /* aw_git_find's */
	if (kind == AW_GIT_POINTER)
		return aw_protect_hold(hold->project, path, hold->g, err);
	if (aw_protect_join(hold->project->at, path, at, err) < 0)
		return -err->code;
	if (aw_grants_has(&hold->g->repositories, at))
		return 0;
	r = aw_git_dir_hold(hold, hold->project, path, err);
	return r == -E2BIG ? 1 : r;
}

int aw_git_find_nested(int root_fd, const char *path, const char *at, struct aw_grants *g,
		       struct aw_error *err)
{
	const struct aw_protect_place project = { root_fd, path, at };
	struct nested nested = {
		.tree = { .found = hold_nested },
		.hold = { .project = &project,
			  .g = g,
			  .depth_left = AW_GIT_MODULE_DEPTH_MAX,
			  .dirs_left = AW_GIT_NESTED_MAX },
	};
	int r = aw_git_tree_walk(&nested.tree, root_fd, "", err), left_out = r > 0;

	/* What an index names adds to the list, and has an index itself. */
	for (size_t i = 0; r >= 0 && i < g->repositories.count; i++) {
		r = aw_git_index_walk(&nested.tree, &project, g->repositories.text[i], err);
		left_out |= r > 0;
	}
	if (r < 0 || !left_out)
		return r;
	g->has_unseen_repositories = true;
	return aw_grants_note(
		g, err,
		"the project is too large to be looked through for nested repositories: "
		"beyond %d names, or %d repositories, they are not held, and reported at "
		"the end if they changed",
		AW_GIT_TREE_ENTRIES_MAX, AW_GIT_NESTED_MAX);
}

static void take_value(const struct aw_git_config *config, const char *name, char **ret)
{
	const char *value = aw_git_config_get(config, name);
	char *copy = value != NULL ? strdup(value) : NULL;

	if (copy == NULL)
		return;
	free(*ret);
	*ret = copy;
}

void aw_git_identity(const char *home, char **ret_name, char **ret_email)
{
	static const char *const places[] = { ".config/git/config", ".gitconfig" };

	*ret_name = *ret_email = NULL;
	for (size_t i = 0; i < AW_ARRAY_LEN(places); i++) {
		autodrop(aw_git_config_fini) struct aw_git_config config = { 0 };
		autofree char *path = aw_str_print("%s/%s", home, places[i]), *text = NULL;
		struct aw_error err;
		ssize_t n = path == NULL
				    ? -1
				    : aw_read_file(AT_FDCWD, path, AW_GIT_CONFIG_MAX, &text, &err);

		if (n < 0 ||
		    aw_git_config_parse((struct aw_str){ text, (size_t)n }, &config, &err) < 0)
			continue;
		take_value(&config, "user.name", ret_name);
		take_value(&config, "user.email", ret_email);
	}
}
