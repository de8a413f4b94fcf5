#include "cell/appeared.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/loop.h"
#include "base/own.h"
#include "base/str.h"
#include "cell/git-dir.h"
#include "cell/git-index.h"
#include "cell/git-named.h"
#include "cell/git-tree.h"
#include "policy/paths.h"

/* File times are stamped with the clock of the last tick. */
#define TICK_NS 10000000u

struct search {
	struct aw_git_tree tree;
	const struct aw_appeared *what;
	const struct aw_protect_place *place; /* that the tree is looked through in */
	struct aw_texts *ret;
	struct aw_error *err;
};

/* The time of the last change moves with a rename and with a write, and nobody can set it. */
static bool was_changed(const struct search *s, int dir_fd, const char *path, int flags)
{
	struct stat st;
	uint64_t changed;

	if (fstatat(dir_fd, path, &st, flags) < 0)
		return false;
	changed = (uint64_t)st.st_ctim.tv_sec * 1000000000u + (uint64_t)st.st_ctim.tv_nsec;
	return changed + TICK_NS >= s->what->since_ns;
}

/* Of a path with links: one of the links on the way, or what they lead to. */
static bool was_link_changed(const struct search *s, int dir_fd, const char *path)
{
	char part[PATH_MAX];

	if (faccessat(dir_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	for (const char *end = strchr(path, '/'); end != NULL; end = strchr(end + 1, '/')) {
		if (aw_str_format(part, sizeof(part), "%.*s", (int)(end - path), path) >= 0 &&
		    aw_protect_look(dir_fd, part) == AW_PROTECT_LINK &&
		    was_changed(s, dir_fd, part, AT_SYMLINK_NOFOLLOW))
			return true;
	}
	return was_changed(s, dir_fd, path, AT_SYMLINK_NOFOLLOW) || was_changed(s, dir_fd, path, 0);
}

static int report(const struct search *s, const struct aw_protect_place *place, const char *path)
{
	char host[PATH_MAX];

	return aw_protect_join(place->path, path, host, s->err) < 0
		       ? -s->err->code
		       : aw_grants_add(s->ret, host, s->err);
}

/* 1: there is something at @path that was not there at the start, or may be something else now. */
static int is_new(const struct search *s, const struct aw_protect_place *place, const char *path)
{
	enum aw_protect_sight sight = aw_protect_look(place->fd, path);
	char at[PATH_MAX];

	if (sight == AW_PROTECT_NOTHING)
		return 0;
	if (aw_protect_join(place->at, path, at, s->err) < 0)
		return -s->err->code;
	if (aw_protect_is_held(s->what->g, at))
		return 0;
	return sight == AW_PROTECT_REAL || was_link_changed(s, place->fd, path);
}

static int check(const struct search *s, const struct aw_protect_place *place, const char *path)
{
	int r = is_new(s, place, path);

	return r > 0 ? report(s, place, path) : r;
}

static int check_named_files(const struct search *s, const struct aw_protect_place *place,
			     const char *dir, const char *const *names, size_t count)
{
	char path[PATH_MAX];
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		r = aw_protect_join(dir, names[i], path, s->err);
		if (r == 0)
			r = check(s, place, path);
	}
	return r;
}

/* git does not run its samples, nor what begins with a dot. */
static bool is_hook(const char *name)
{
	return name[0] != '.' && !aw_str_ends(aw_str_from(name), ".sample");
}

/* A new directory of hooks: each of them, for most are samples. */
static int check_hooks(const struct search *s, const struct aw_protect_place *place,
		       const char *hooks)
{
	const struct dirent *entry;
	char path[PATH_MAX];
	DIR *dir;
	int r = is_new(s, place, hooks);

	if (r <= 0)
		return r;
	dir = aw_protect_list(place->fd, hooks);
	if (dir == NULL)
		return report(s, place, hooks);
	for (r = 0; r == 0 && (entry = readdir(dir)) != NULL;) {
		if (!is_hook(entry->d_name))
			continue;
		r = aw_protect_join(hooks, entry->d_name, path, s->err);
		if (r == 0)
			r = report(s, place, path);
	}
	(void)closedir(dir);
	return r;
}

static int check_git_names(const struct search *s, const struct aw_protect_place *place,
			   const char *git_dir)
{
	size_t count;
	const char *const *names = aw_git_dir_names(&count);
	char path[PATH_MAX];
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		r = aw_protect_join(git_dir, names[i], path, s->err);
		if (r < 0)
			return r;
		r = strcmp(names[i], "hooks") == 0 ? check_hooks(s, place, path)
						   : check(s, place, path);
	}
	return r;
}

/* Those that were there at the start: a new one counts for nobody until a new .git points to it. */
static int check_worktrees(const struct search *s, const struct aw_protect_place *place,
			   const char *git_dir)
{
	size_t count;
	const char *const *names = aw_git_worktree_names(&count);
	char worktrees[PATH_MAX], path[PATH_MAX], at[PATH_MAX];
	const struct dirent *entry;
	DIR *dir;
	int r = 0;

	if (aw_protect_join(git_dir, "worktrees", worktrees, s->err) < 0)
		return -s->err->code;
	dir = aw_protect_list(place->fd, worktrees);
	while (r == 0 && dir != NULL && (entry = readdir(dir)) != NULL) {
		r = aw_protect_join(worktrees, entry->d_name, path, s->err);
		if (r == 0)
			r = aw_protect_join(place->at, path, at, s->err);
		if (r == 0 && aw_grants_has(&s->what->g->pins, at))
			r = check_named_files(s, place, path, names, count);
	}
	if (dir != NULL)
		(void)closedir(dir);
	return r;
}

static int check_configured(const struct search *s, const struct aw_protect_place *place,
			    const char *path)
{
	autodrop(aw_git_named_fini) struct aw_git_named named = { 0 };
	const struct aw_protect_place *project = &s->what->project;
	char git_dir[PATH_MAX];
	int r = aw_protect_join(place->path, path, git_dir, s->err);

	if (r == 0)
		r = aw_git_named_find(project->path, git_dir, &named, s->err);
	for (size_t i = 0; r == 0 && i < named.paths.count; i++) {
		const char *text = named.paths.text[i];
		const struct aw_protect_place *in = aw_git_place_of(project, place, text);

		r = check(s, in, text + strlen(in->path) + 1);
	}
	return r;
}

static bool was_git_changed(const struct search *s, int root_fd, const char *path)
{
	size_t count;
	const char *const *names = aw_git_dir_names(&count);
	char below[PATH_MAX];

	if (was_changed(s, root_fd, *path != '\0' ? path : ".", AT_SYMLINK_NOFOLLOW))
		return true;
	for (size_t i = 0; i < count; i++)
		if (aw_protect_join(path, names[i], below, s->err) == 0 &&
		    was_changed(s, root_fd, below, AT_SYMLINK_NOFOLLOW))
			return true;
	return false;
}

/* A .git that is a link to a directory: what is in that changes all day. */
static int check_pointer(const struct search *s, const char *path)
{
	const struct aw_protect_place *place = s->place;

	if (aw_protect_look(place->fd, path) == AW_PROTECT_REAL)
		return check(s, place, path);
	return was_changed(s, place->fd, path, AT_SYMLINK_NOFOLLOW) ? report(s, place, path) : 0;
}

static int on_repository(struct aw_git_tree *tree, enum aw_git_kind kind, const char *path,
			 struct aw_error *err)
{
	struct search *s = AW_CONTAINER(tree, struct search, tree);
	const struct aw_grants *g = s->what->g;
	char at[PATH_MAX];

	if (aw_protect_join(s->place->at, path, at, err) < 0)
		return -err->code;
	if (kind != AW_GIT_POINTER && aw_grants_has(&g->repositories, at))
		return 0;
	if (g->has_unseen_repositories && !was_git_changed(s, s->place->fd, path))
		return 0;
	return kind == AW_GIT_POINTER ? check_pointer(s, path) : report(s, s->place, path);
}

static int look_through(struct search *s, const struct aw_protect_place *place, const char *start)
{
	s->place = place;
	return aw_git_tree_walk(&s->tree, place->fd, start, s->err);
}

/* 1: the look over its submodules was not complete. */
static int check_git_dir(struct search *s, const struct aw_protect_place *place, const char *path)
{
	char modules[PATH_MAX];
	int r = check_git_names(s, place, path);

	if (r == 0)
		r = check_worktrees(s, place, path);
	if (r == 0)
		r = check_configured(s, place, path);
	if (r == 0)
		r = aw_protect_join(path, "modules", modules, s->err);
	return r < 0 ? r : look_through(s, place, modules);
}

/* One that was there at the start, by its path in the cell. */
static int check_repository(struct search *s, const char *at)
{
	const struct aw_protect_place *project = &s->what->project;
	struct aw_protect_place outside = { .fd = -EBADF, .path = at, .at = at };
	size_t len = strlen(project->at);
	int r;

	if (aw_path_is_within(at, project->at))
		return check_git_dir(s, project, at + len + (at[len] == '/'));
	outside.fd = open(at, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (outside.fd < 0)
		return 0;
	r = check_git_dir(s, &outside, "");
	(void)close(outside.fd);
	return r;
}

static int find_git(struct search *s, bool *ret_complete)
{
	const struct aw_texts *known = &s->what->g->repositories;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < known->count; i++) {
		r = check_repository(s, known->text[i]);
		*ret_complete = *ret_complete && r == 0;
	}
	s->place = &s->what->project;
	for (size_t i = 0; r >= 0 && i < known->count; i++) {
		r = aw_git_index_walk(&s->tree, s->place, known->text[i], s->err);
		*ret_complete = *ret_complete && r == 0;
	}
	if (r < 0)
		return r;
	r = look_through(s, &s->what->project, "");
	*ret_complete = *ret_complete && r == 0;
	return r < 0 ? r : 0;
}

/* Held files that could be written by another name. */
static int check_linked(const struct search *s)
{
	const struct aw_texts *linked = &s->what->g->linked;
	const struct aw_protect_place *project = &s->what->project;
	size_t len = strlen(project->at);
	int r = 0;

	for (size_t i = 0; r == 0 && i < linked->count; i++) {
		const char *at = linked->text[i];
		bool is_inside = aw_path_is_within(at, project->at) && at[len] == '/';

		if (is_inside && was_changed(s, project->fd, at + len + 1, AT_SYMLINK_NOFOLLOW))
			r = report(s, project, at + len + 1);
		else if (!is_inside && was_changed(s, AT_FDCWD, at, AT_SYMLINK_NOFOLLOW))
			r = aw_grants_add(s->ret, at, s->err);
	}
	return r;
}

int aw_appeared_find(const struct aw_appeared *what, struct aw_texts *ret, bool *ret_complete,
		     struct aw_error *err)
{
	struct search s = {
		.tree = { .found = on_repository }, .what = what, .ret = ret, .err = err
	};
	size_t count;
	const struct aw_protect_name *names = aw_protect_names(&count);
	int r = check_linked(&s);

	*ret_complete = true;
	for (size_t i = 0; r == 0 && i < count; i++)
		if (names[i].class & what->classes)
			r = check(&s, &what->project, names[i].path);
	if (r < 0 || !(what->classes & AW_PROTECT_GIT))
		return r;
	return find_git(&s, ret_complete);
}
