#include "cell/protect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"

#define SUBMODULE_DEPTH_MAX 8
#define SUBMODULES_MAX 128

/* By directory where possible: inside a read-only directory no name can be replaced. */
static const struct aw_protect_name protected_names[] = {
	{ ".vscode", AW_PROTECT_EDITOR },
	{ ".idea", AW_PROTECT_EDITOR },
	{ ".zed", AW_PROTECT_EDITOR },
	{ ".fleet", AW_PROTECT_EDITOR },
	{ ".vimrc", AW_PROTECT_EDITOR },
	{ ".nvim.lua", AW_PROTECT_EDITOR },
	{ ".exrc", AW_PROTECT_EDITOR },
	{ ".dir-locals.el", AW_PROTECT_EDITOR },
	{ ".devcontainer", AW_PROTECT_EDITOR },
	{ ".devcontainer.json", AW_PROTECT_EDITOR },
	{ ".mcp.json", AW_PROTECT_AGENT },
	{ ".warden.json", AW_PROTECT_AGENT },
	{ ".claude/settings.json", AW_PROTECT_AGENT },
	{ ".claude/settings.local.json", AW_PROTECT_AGENT },
	{ ".claude/hooks", AW_PROTECT_AGENT },
	{ ".codex", AW_PROTECT_AGENT },
	{ ".cursor", AW_PROTECT_AGENT },
	{ ".gemini", AW_PROTECT_AGENT },
	{ ".qwen", AW_PROTECT_AGENT },
	{ ".opencode", AW_PROTECT_AGENT },
	{ "opencode.json", AW_PROTECT_AGENT },
	{ ".aider.conf.yml", AW_PROTECT_AGENT },
	{ ".github/workflows", AW_PROTECT_CI },
	{ ".github/actions", AW_PROTECT_CI },
	{ ".gitlab-ci.yml", AW_PROTECT_CI },
	{ ".circleci", AW_PROTECT_CI },
	{ ".buildkite", AW_PROTECT_CI },
	{ ".drone.yml", AW_PROTECT_CI },
	{ ".travis.yml", AW_PROTECT_CI },
	{ ".woodpecker", AW_PROTECT_CI },
	{ "azure-pipelines.yml", AW_PROTECT_CI },
	{ "bitbucket-pipelines.yml", AW_PROTECT_CI },
	{ "Jenkinsfile", AW_PROTECT_CI },
	{ ".envrc", AW_PROTECT_SHELL },
	{ ".bashrc", AW_PROTECT_SHELL },
	{ ".bash_profile", AW_PROTECT_SHELL },
	{ ".profile", AW_PROTECT_SHELL },
	{ ".zshrc", AW_PROTECT_SHELL },
	{ ".zshenv", AW_PROTECT_SHELL },
	{ ".zprofile", AW_PROTECT_SHELL },
	{ ".husky", AW_PROTECT_SHELL },
	{ "lefthook.yml", AW_PROTECT_SHELL },
	{ ".pre-commit-config.yaml", AW_PROTECT_SHELL },
	{ ".mise.toml", AW_PROTECT_SHELL },
	{ "mise.toml", AW_PROTECT_SHELL },
};

/* In a git directory: hooks and whatever configures a command that git will run. */
static const char *const git_names[] = { "hooks", "config", "config.worktree", "info/attributes" };

const struct aw_protect_name *aw_protect_names(size_t *ret_count)
{
	*ret_count = AW_ARRAY_LEN(protected_names);
	return protected_names;
}

/* Is there something real at @path below @dir_fd? 1 yes, 0 no, 2: a link is on the way. */
static int exists(int dir_fd, const char *path)
{
	struct aw_error err;
	int fd = aw_open_beneath(dir_fd, path, O_PATH | O_NOFOLLOW, &err);
	struct stat st;
	int r = 0;

	if (fd < 0)
		return err.code == EXDEV || err.code == ELOOP ? 2 : 0;
	if (fstat(fd, &st) == 0)
		r = S_ISLNK(st.st_mode) ? 2 : 1;
	(void)close(fd);
	return r;
}

/* Pin the directories between @root_at and the last name of @path. */
static int pin_between(const char *root_at, const char *path, struct aw_grants *g,
		       struct aw_error *err)
{
	char at[PATH_MAX];

	for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		if (aw_str_format(at, sizeof(at), "%s/%.*s", root_at, (int)(slash - path), path) <
		    0)
			return aw_fail(err, ENAMETOOLONG, "'%s'", path);
		if (aw_grants_add(&g->pins, at, err) < 0)
			return -err->code;
	}
	return 0;
}

static int hold(int root_fd, const char *root_at, const char *path, struct aw_grants *g,
		struct aw_error *err)
{
	char at[PATH_MAX];
	int what = exists(root_fd, path);

	if (what == 0)
		return 0;
	if (what == 2)
		return aw_grants_note(g, err, "%s is a symbolic link: its target is not protected",
				      path);
	if (aw_str_format(at, sizeof(at), "%s/%s", root_at, path) < 0)
		return aw_fail(err, ENAMETOOLONG, "'%s'", path);
	if (pin_between(root_at, path, g, err) < 0)
		return -err->code;
	return aw_grants_add(&g->protects, at, err);
}

/* What a walk over submodules has left: they are found by looking, and a repository may be hostile. */
struct module_walk {
	struct aw_grants *g;
	unsigned depth_left, modules_left;
};

static int walk_modules(int dir_fd, const char *at, struct module_walk *walk, struct aw_error *err);

/* One git directory: its own names, then the git directories of its submodules. */
static int protect_one(int git_fd, const char *git_at, struct module_walk *walk,
		       struct aw_error *err)
{
	autoclose int modules = -EBADF;
	struct aw_error none;
	char at[PATH_MAX];

	if (aw_grants_add(&walk->g->pins, git_at, err) < 0)
		return -err->code;
	for (size_t i = 0; i < AW_ARRAY_LEN(git_names); i++)
		if (hold(git_fd, git_at, git_names[i], walk->g, err) < 0)
			return -err->code;
	modules = aw_open_beneath(git_fd, "modules", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, &none);
	if (modules < 0)
		return 0;
	if (aw_str_format(at, sizeof(at), "%s/modules", git_at) < 0)
		return aw_fail(err, ENAMETOOLONG, "'%s'", git_at);
	return walk_modules(modules, at, walk, err);
}

/* The name of a submodule may hold slashes: a directory without HEAD is only a level on the way. */
static int visit_module(int dir_fd, const char *dir_at, const char *name, struct module_walk *walk,
			struct aw_error *err)
{
	struct aw_error none;
	autoclose int fd =
		aw_open_beneath(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, &none);
	char at[PATH_MAX];

	if (fd < 0)
		return 0;
	if (walk->modules_left == 0)
		return aw_refuse(err, E2BIG, "more than %d directories of submodules below '%s'",
				 SUBMODULES_MAX, dir_at);
	walk->modules_left--;
	if (aw_str_format(at, sizeof(at), "%s/%s", dir_at, name) < 0)
		return aw_fail(err, ENAMETOOLONG, "'%s'", name);
	return exists(fd, "HEAD") == 1 ? protect_one(fd, at, walk, err)
				       : walk_modules(fd, at, walk, err);
}

static int walk_modules(int dir_fd, const char *at, struct module_walk *walk, struct aw_error *err)
{
	int copy = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;
	int r;

	if (dir == NULL) {
		int code = errno;

		(void)aw_fd_close(copy);
		return aw_fail(err, code, "list '%s'", at);
	}
	r = walk->depth_left == 0 ? aw_refuse(err, E2BIG, "submodules nest too deep at '%s'", at)
				  : aw_grants_add(&walk->g->pins, at, err);
	walk->depth_left--;
	while (r == 0 && (entry = readdir(dir)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = visit_module(dir_fd, at, entry->d_name, walk, err);
	walk->depth_left++;
	(void)closedir(dir);
	return r;
}

int aw_protect_git_dir(int git_fd, const char *git_at, struct aw_grants *g, struct aw_error *err)
{
	struct module_walk walk = {
		.g = g,
		.depth_left = SUBMODULE_DEPTH_MAX,
		.modules_left = SUBMODULES_MAX,
	};

	return protect_one(git_fd, git_at, &walk, err);
}

int aw_protect_find(int root_fd, const char *root_at, unsigned classes, struct aw_grants *g,
		    struct aw_error *err)
{
	for (size_t i = 0; i < AW_ARRAY_LEN(protected_names); i++) {
		if (!(classes & protected_names[i].class))
			continue;
		if (hold(root_fd, root_at, protected_names[i].path, g, err) < 0)
			return -err->code;
	}
	return 0;
}
