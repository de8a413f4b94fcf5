#include "cell/git-dir.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "policy/paths.h"

static const char *const dir_names[] = { "hooks", "config", "config.worktree", "info/attributes",
					 "commondir" };
static const char *const worktree_names[] = { "config.worktree", "commondir" };

const char *const *aw_git_dir_names(size_t *ret_count)
{
	*ret_count = AW_ARRAY_LEN(dir_names);
	return dir_names;
}

const char *const *aw_git_worktree_names(size_t *ret_count)
{
	*ret_count = AW_ARRAY_LEN(worktree_names);
	return worktree_names;
}

static int take_one(struct aw_git_hold *hold, const char *path, struct aw_error *err)
{
	if (hold->dirs_left == 0)
		return aw_refuse(err, E2BIG,
				 "more than %d repositories, submodules and worktrees: "
				 "'%s'",
				 AW_GIT_DIRS_MAX, path);
	hold->dirs_left--;
	return 0;
}

static int hold_names(struct aw_git_hold *hold, const struct aw_protect_place *place,
		      const char *path, const char *const *names, size_t count,
		      struct aw_error *err)
{
	char name[PATH_MAX];

	for (size_t i = 0; i < count; i++)
		if (aw_protect_join(path, names[i], name, err) < 0 ||
		    aw_protect_hold(place, name, hold->g, err) < 0)
			return -err->code;
	return 0;
}

const struct aw_protect_place *aw_git_place_of(const struct aw_protect_place *project,
					       const struct aw_protect_place *place,
					       const char *path)
{
	return aw_path_is_within(path, project->path) ? project : place;
}

/* A link is replaced in a moment: what it leads to is among the names, and is held. */
static int hold_one_named(struct aw_git_hold *hold, const struct aw_protect_place *place,
			  const char *path, struct aw_error *err)
{
	char shown[512];

	if (aw_protect_look(place->fd, path) != AW_PROTECT_LINK)
		return aw_protect_hold(place, path, hold->g, err);
	(void)aw_str_escape(aw_str_from(path), shown, sizeof(shown));
	return aw_grants_note(
		hold->g, err,
		"%s, which git uses, is a symbolic link: what it leads to is held, the "
		"link is not",
		shown);
}

static int hold_named(struct aw_git_hold *hold, const struct aw_protect_place *place,
		      const char *path, struct aw_error *err)
{
	autodrop(aw_git_named_fini) struct aw_git_named named = { 0 };
	char git_dir[PATH_MAX], shown[512];

	if (aw_protect_join(place->path, path, git_dir, err) < 0 ||
	    aw_git_named_find(hold->project->path, git_dir, &named, err) < 0)
		return -err->code;
	for (size_t i = 0; i < named.paths.count; i++) {
		const char *text = named.paths.text[i];
		const struct aw_protect_place *in = aw_git_place_of(hold->project, place, text);

		if (hold_one_named(hold, in, text + strlen(in->path) + 1, err) < 0)
			return -err->code;
	}
	if (!named.is_partial)
		return 0;
	(void)aw_str_escape(aw_str_from(git_dir), shown, sizeof(shown));
	return aw_grants_note(
		hold->g, err,
		"not all that the git configuration of %s names can be held: hooks or "
		"settings in the project may be written",
		shown);
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* What is done with each directory in a directory. */
typedef int visit_fn(struct aw_git_hold *hold, const struct aw_protect_place *place,
		     const char *path, struct aw_error *err);

static int visit_each(struct aw_git_hold *hold, const struct aw_protect_place *place,
		      const char *dir_path, visit_fn *visit, struct aw_error *err)
{
	DIR *dir = aw_protect_list(place->fd, dir_path);
	const struct dirent *entry;
	char path[PATH_MAX];
	int r = 0;

	if (dir == NULL)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP
			       ? 0
			       : aw_fail(err, errno, "list '%s'", dir_path);
	while (r == 0 && (entry = readdir(dir)) != NULL) {
		if (is_dots(entry->d_name))
			continue;
		r = aw_protect_join(dir_path, entry->d_name, path, err);
		if (r == 0)
			r = visit(hold, place, path, err);
	}
	(void)closedir(dir);
	return r;
}

static int visit_worktree(struct aw_git_hold *hold, const struct aw_protect_place *place,
			  const char *path, struct aw_error *err)
{
	if (take_one(hold, path, err) < 0)
		return -err->code;
	return hold_names(hold, place, path, worktree_names, AW_ARRAY_LEN(worktree_names), err);
}

static bool is_directory(const struct aw_protect_place *place, const char *path)
{
	DIR *dir = aw_protect_list(place->fd, path);

	return dir != NULL && closedir(dir) == 0;
}

static visit_fn visit_module;

static int walk_modules(struct aw_git_hold *hold, const struct aw_protect_place *place,
			const char *path, struct aw_error *err)
{
	int r;

	if (!is_directory(place, path))
		return 0;
	if (hold->depth_left == 0)
		return aw_refuse(err, E2BIG, "submodules nest too deep at '%s'", path);
	hold->depth_left--;
	r = aw_protect_pin(place, path, hold->g, err);
	if (r == 0)
		r = visit_each(hold, place, path, visit_module, err);
	hold->depth_left++;
	return r;
}

/* One git directory: its own names, its worktrees', then the git directories of its submodules. */
static int hold_one(struct aw_git_hold *hold, const struct aw_protect_place *place,
		    const char *path, struct aw_error *err)
{
	char at[PATH_MAX], below[PATH_MAX];

	if (aw_protect_join(place->at, path, at, err) < 0)
		return -err->code;
	/* The project itself is a mount already. */
	if ((place != hold->project || *path != '\0') &&
	    aw_protect_pin(place, path, hold->g, err) < 0)
		return -err->code;
	if (aw_grants_add(&hold->g->repositories, at, err) < 0 ||
	    hold_names(hold, place, path, dir_names, AW_ARRAY_LEN(dir_names), err) < 0 ||
	    hold_named(hold, place, path, err) < 0 ||
	    aw_protect_join(path, "worktrees", below, err) < 0 ||
	    visit_each(hold, place, below, visit_worktree, err) < 0 ||
	    aw_protect_join(path, "modules", below, err) < 0)
		return -err->code;
	return walk_modules(hold, place, below, err);
}

/* The name of a submodule may hold slashes: a directory without HEAD is only a level on the way. */
static int visit_module(struct aw_git_hold *hold, const struct aw_protect_place *place,
			const char *path, struct aw_error *err)
{
	char head[PATH_MAX];

	if (!is_directory(place, path))
		return 0;
	if (take_one(hold, path, err) < 0 || aw_protect_join(path, "HEAD", head, err) < 0)
		return -err->code;
	return aw_protect_look(place->fd, head) == AW_PROTECT_REAL
		       ? hold_one(hold, place, path, err)
		       : walk_modules(hold, place, path, err);
}

int aw_git_dir_hold(struct aw_git_hold *hold, const struct aw_protect_place *place,
		    const char *path, struct aw_error *err)
{
	if (take_one(hold, path, err) < 0)
		return -err->code;
	return hold_one(hold, place, path, err);
}
