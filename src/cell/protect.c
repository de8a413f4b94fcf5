#include "cell/protect.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "cell/hardlink.h"
#include "policy/paths.h"

/*
 * What is run by opening the folder, entering it, or using version control: not what is run by building
 * the project, since its own code is then run as well, and that the agent is here to write.
 * By directory where possible: inside a read-only directory no name can be replaced.
 */
static const struct aw_protect_name protected_names[] = {
	{ ".vscode", AW_PROTECT_EDITOR },
	{ ".idea", AW_PROTECT_EDITOR },
	{ ".zed", AW_PROTECT_EDITOR },
	{ ".fleet", AW_PROTECT_EDITOR },
	{ ".vimrc", AW_PROTECT_EDITOR },
	{ ".nvim.lua", AW_PROTECT_EDITOR },
	{ ".nvimrc", AW_PROTECT_EDITOR },
	{ ".lvimrc", AW_PROTECT_EDITOR },
	{ ".exrc", AW_PROTECT_EDITOR },
	{ ".helix", AW_PROTECT_EDITOR },
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
	{ ".windsurf", AW_PROTECT_AGENT },
	{ ".roo", AW_PROTECT_AGENT },
	{ ".kiro", AW_PROTECT_AGENT },
	{ ".continue", AW_PROTECT_AGENT },
	{ ".amazonq", AW_PROTECT_AGENT },
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
	{ "lefthook.yaml", AW_PROTECT_SHELL },
	{ ".lefthook.yml", AW_PROTECT_SHELL },
	{ ".pre-commit-config.yaml", AW_PROTECT_SHELL },
	{ ".mise.toml", AW_PROTECT_SHELL },
	{ ".mise.local.toml", AW_PROTECT_SHELL },
	{ "mise.toml", AW_PROTECT_SHELL },
	{ "mise.local.toml", AW_PROTECT_SHELL },
	{ ".mise/config.toml", AW_PROTECT_SHELL },
	{ ".config/mise.toml", AW_PROTECT_SHELL },
	{ ".autoenv.zsh", AW_PROTECT_SHELL },
	{ ".hg/hgrc", AW_PROTECT_SHELL },
};

const struct aw_protect_name *aw_protect_names(size_t *ret_count)
{
	*ret_count = AW_ARRAY_LEN(protected_names);
	return protected_names;
}

/* O_PATH or a directory: what lies behind a link is not what was asked for. */
static int open_plain(int dir_fd, const char *path, unsigned flags)
{
	struct open_how how = {
		.flags = flags | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
	};
	long fd;

	do
		fd = syscall(SYS_openat2, dir_fd, *path != '\0' ? path : ".", &how, sizeof(how));
	while (fd < 0 && (errno == EINTR || errno == EAGAIN));
	return fd < 0 ? -errno : (int)fd;
}

enum aw_protect_sight aw_protect_look(int dir_fd, const char *path)
{
	autoclose int fd = open_plain(dir_fd, path, O_PATH);
	struct stat st;

	if (fd < 0)
		return fd == -ELOOP ? AW_PROTECT_LINK : AW_PROTECT_NOTHING;
	return fstat(fd, &st) == 0 && S_ISLNK(st.st_mode) ? AW_PROTECT_LINK : AW_PROTECT_REAL;
}

DIR *aw_protect_list(int dir_fd, const char *path)
{
	int fd = open_plain(dir_fd, path, O_RDONLY | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (fd < 0)
		errno = -fd;
	else if (dir == NULL)
		(void)aw_fd_close(fd);
	return dir;
}

int aw_protect_join(const char *dir, const char *name, char *out, struct aw_error *err)
{
	const char *slash = *dir != '\0' && *name != '\0' ? "/" : "";

	return aw_str_format(out, PATH_MAX, "%s%s%s", dir, slash, name) < 0
		       ? aw_fail(err, ENAMETOOLONG, "'%s'", name)
		       : 0;
}

/* Pin the directories between the place and the last name of @path. */
static int pin_between(const struct aw_protect_place *place, const char *path, struct aw_grants *g,
		       struct aw_error *err)
{
	char at[PATH_MAX];

	for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		if (aw_str_format(at, sizeof(at), "%s/%.*s", place->at, (int)(slash - path), path) <
		    0)
			return aw_fail(err, ENAMETOOLONG, "'%s'", path);
		if (aw_grants_add(&g->pins, at, err) < 0)
			return -err->code;
	}
	return 0;
}

int aw_protect_pin(const struct aw_protect_place *place, const char *path, struct aw_grants *g,
		   struct aw_error *err)
{
	char at[PATH_MAX];

	if (aw_protect_join(place->at, path, at, err) < 0 || pin_between(place, path, g, err) < 0)
		return -err->code;
	return aw_grants_add(&g->pins, at, err);
}

int aw_protect_hold(const struct aw_protect_place *place, const char *path, struct aw_grants *g,
		    struct aw_error *err)
{
	enum aw_protect_sight what = aw_protect_look(place->fd, path);
	char at[PATH_MAX], shown[512];

	if (what == AW_PROTECT_NOTHING)
		return 0;
	if (what == AW_PROTECT_LINK) {
		(void)aw_str_escape(aw_str_from(path), shown, sizeof(shown));
		return aw_grants_note(g, err, "%s is a symbolic link: its target is not protected",
				      shown);
	}
	if (aw_protect_join(place->at, path, at, err) < 0 || pin_between(place, path, g, err) < 0)
		return -err->code;
	if (aw_grants_has(&g->protects, at))
		return 0;
	return aw_grants_add(&g->protects, at, err) < 0 ? -err->code
							: aw_hardlink_find(place, path, g, err);
}

bool aw_protect_is_held(const struct aw_grants *g, const char *at)
{
	for (size_t i = 0; i < g->protects.count; i++)
		if (aw_path_is_within(at, g->protects.text[i]))
			return true;
	return false;
}

int aw_protect_find(int root_fd, const char *root_at, unsigned classes, struct aw_grants *g,
		    struct aw_error *err)
{
	const struct aw_protect_place root = { .fd = root_fd, .at = root_at };

	for (size_t i = 0; i < AW_ARRAY_LEN(protected_names); i++) {
		if (!(classes & protected_names[i].class))
			continue;
		if (aw_protect_hold(&root, protected_names[i].path, g, err) < 0)
			return -err->code;
	}
	return 0;
}
