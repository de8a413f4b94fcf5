#include "cell/git-named.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "cell/git-config.h"
#include "cell/protect.h"
#include "policy/paths.h"

#define FILES_MAX 64 /* in one repository: a file may include itself */

struct search {
	const char *project, *git_dir;
	const char *work_tree; /* of a relative core.hooksPath */
	unsigned files_left;
	struct aw_git_named *ret;
	struct aw_error *err;
};

/* What git reads for everybody and for the person, below HOME or absolute. */
static const char *const common_files[] = { "/etc/gitconfig", "~/.config/git/config",
					    "~/.gitconfig" };
static const char *const own_files[] = { "config", "config.worktree" };

/* Take the last name off a normal path. */
static void step_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash != NULL)
		*slash = '\0';
}

/* Append @text to the normal path @out (PATH_MAX): "." and ".." as they are written. */
static int append(char *out, const char *text)
{
	struct aw_str rest = aw_str_from(text), part;
	size_t len;

	while (aw_str_next(&rest, '/', &part)) {
		if (part.len == 0 || aw_str_is(part, "."))
			continue;
		if (aw_str_is(part, "..")) {
			step_up(out);
			continue;
		}
		len = strlen(out);
		if (len + 1 + part.len >= PATH_MAX)
			return -ENAMETOOLONG;
		out[len] = '/';
		memcpy(out + len + 1, part.ptr, part.len);
		out[len + 1 + part.len] = '\0';
	}
	return 0;
}

/* A path as git has it in a value, relative to @base. False: what is not below the project anyway. */
static bool resolve(const char *base, const char *value, char *out)
{
	const char *home = getenv("HOME");

	*out = '\0';
	if (value == NULL || *value == '\0' || value[0] == '%')
		return false;
	if (value[0] != '~')
		return (value[0] == '/' || append(out, base) == 0) && append(out, value) == 0;
	return value[1] == '/' && home != NULL && append(out, home) == 0 &&
	       append(out, value + 1) == 0;
}

/* What holds a repository, or the project, cannot be read-only as a whole. */
static bool may_be_held(const struct search *s, const char *path)
{
	return !aw_path_is_within(s->project, path) && !aw_path_is_within(s->git_dir, path);
}

static int add_one(const struct search *s, const char *path)
{
	if (!aw_path_is_within(path, s->project) && !aw_path_is_within(path, s->git_dir))
		return 0;
	if (may_be_held(s, path))
		return aw_grants_add(&s->ret->paths, path, s->err);
	s->ret->is_partial = true;
	return 0;
}

/* The path as it is written and what it leads to. */
static int add(const struct search *s, const char *path)
{
	autofree char *real = realpath(path, NULL);

	if (add_one(s, path) < 0)
		return -s->err->code;
	return real == NULL ? 0 : add_one(s, real);
}

static int add_hook_link(const struct search *s, const char *dir, int dir_fd, const char *name)
{
	char target[PATH_MAX], path[PATH_MAX];
	ssize_t n = readlinkat(dir_fd, name, target, sizeof(target) - 1);

	if (n <= 0)
		return 0;
	target[n] = '\0';
	return resolve(dir, target, path) ? add(s, path) : 0;
}

/* Hooks are often links to scripts of the project: "ln -s ../../scripts/pre-commit". */
static int add_hook_links(const struct search *s, const char *hooks)
{
	DIR *dir = opendir(hooks);
	const struct dirent *entry;
	int r = 0;

	while (r == 0 && dir != NULL && (entry = readdir(dir)) != NULL)
		if (entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN)
			r = add_hook_link(s, hooks, dirfd(dir), entry->d_name);
	if (dir != NULL)
		(void)closedir(dir);
	return r;
}

static int on_hooks_path(struct search *s, const char *base, const char *value)
{
	char path[PATH_MAX];

	(void)base;
	if (!resolve(s->work_tree, value, path))
		return 0;
	return add(s, path) < 0 ? -s->err->code : add_hook_links(s, path);
}

/* A submodule's work tree: with another pointer file in it, git in the project runs what that says. */
static int on_work_tree(struct search *s, const char *base, const char *value)
{
	char path[PATH_MAX];

	(void)base;
	if (!resolve(s->git_dir, value, path) || strcmp(path, s->project) == 0 ||
	    append(path, ".git") < 0 || strcmp(path, s->git_dir) == 0)
		return 0;
	return add(s, path);
}

static int read_config(struct search *s, const char *path);

static int on_include(struct search *s, const char *base, const char *value)
{
	char path[PATH_MAX];

	if (!resolve(base, value, path))
		return 0;
	return add(s, path) < 0 ? -s->err->code : read_config(s, path);
}

/* A name that ends with the row's `name` and begins with its `first`. */
static const struct row {
	const char *first, *name;
	int (*take)(struct search *s, const char *base, const char *value);
} rows[] = {
	{ "core.hookspath", "core.hookspath", on_hooks_path },
	{ "core.worktree", "core.worktree", on_work_tree },
	{ "include.path", "include.path", on_include },
	{ "includeif.", ".path", on_include },
};

static int take_setting(struct search *s, const char *base, const struct aw_git_setting *setting)
{
	struct aw_str name = aw_str_from(setting->name);

	for (size_t i = 0; i < AW_ARRAY_LEN(rows); i++)
		if (aw_str_starts(name, rows[i].first) && aw_str_ends(name, rows[i].name))
			return rows[i].take(s, base, setting->value);
	return 0;
}

/* 1: it is there and cannot be read. (What the person may not read, their git does not.) */
static int parse(const char *path, struct aw_git_config *ret, struct aw_error *err)
{
	autofree char *text = NULL;
	autoclose int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct aw_error why;
	ssize_t n;
	int r;

	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : 1;
	n = aw_read_text(fd, AW_GIT_CONFIG_MAX, &text, &why);
	if (n == -ENOMEM)
		return aw_fail(err, ENOMEM, "read '%s'", path);
	if (n < 0)
		return 1;
	r = aw_git_config_parse((struct aw_str){ text, (size_t)n }, ret, err);
	return r == -EBADMSG ? 1 : r;
}

static int read_config(struct search *s, const char *path)
{
	autodrop(aw_git_config_fini) struct aw_git_config config = { 0 };
	char base[PATH_MAX];
	int r;

	if (s->files_left == 0) {
		s->ret->is_partial = true;
		return 0;
	}
	s->files_left--;
	r = parse(path, &config, s->err);
	if (r != 0) {
		s->ret->is_partial = true;
		return r < 0 ? r : 0;
	}
	(void)aw_str_format(base, sizeof(base), "%s", path);
	step_up(base);
	for (size_t i = 0; r == 0 && i < config.count; i++)
		r = take_setting(s, base, &config.setting[i]);
	return r;
}

static int read_own(struct search *s)
{
	char path[PATH_MAX];
	int r = 0;

	for (size_t i = 0; r == 0 && i < AW_ARRAY_LEN(own_files); i++) {
		r = aw_protect_join(s->git_dir, own_files[i], path, s->err);
		if (r == 0)
			r = read_config(s, path);
	}
	if (r == 0)
		r = aw_protect_join(s->git_dir, "hooks", path, s->err);
	return r == 0 ? add_hook_links(s, path) : r;
}

static int read_common(struct search *s)
{
	char path[PATH_MAX];
	int r = 0;

	for (size_t i = 0; r == 0 && i < AW_ARRAY_LEN(common_files); i++)
		if (resolve("/", common_files[i], path))
			r = read_config(s, path);
	return r;
}

/*
 * Where hooks run. Of a submodule it is said in its configuration; of another place than WORKTREE/.git
 * it is the project, whose .git points there.
 */
int aw_git_work_tree(const char *project, const char *git_dir, char *out, struct aw_error *err)
{
	autodrop(aw_git_config_fini) struct aw_git_config config = { 0 };
	char path[PATH_MAX];
	const char *value;

	if (aw_protect_join(git_dir, "config", path, err) < 0)
		return -err->code;
	if (parse(path, &config, err) < 0)
		return -err->code;
	value = aw_git_config_get(&config, "core.worktree");
	if (value != NULL && resolve(git_dir, value, out))
		return 0;
	if (aw_path_is_within(git_dir, project) && aw_str_ends(aw_str_from(git_dir), "/.git")) {
		(void)aw_str_format(out, PATH_MAX, "%s", git_dir);
		step_up(out);
		return 0;
	}
	return aw_str_format(out, PATH_MAX, "%s", project) < 0
		       ? aw_fail(err, ENAMETOOLONG, "'%s'", project)
		       : 0;
}

int aw_git_named_find(const char *project, const char *git_dir, struct aw_git_named *ret,
		      struct aw_error *err)
{
	char work_tree[PATH_MAX];
	struct search s = {
		.project = project,
		.git_dir = git_dir,
		.work_tree = work_tree,
		.files_left = FILES_MAX,
		.ret = ret,
		.err = err,
	};

	if (aw_git_work_tree(project, git_dir, work_tree, err) < 0 || read_own(&s) < 0)
		return -err->code;
	return read_common(&s);
}

void aw_git_named_fini(struct aw_git_named *named)
{
	aw_texts_fini(&named->paths);
	named->is_partial = false;
}
