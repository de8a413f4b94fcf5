#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "cell/git.h"
#include "cell/protect.h"
#include "cell/toolchain.h"
#include "monitor/prepare-internal.h"
#include "policy/paths.h"

/* A granted path of the project, shown at @at: a link in it could lead to anything of the person's. */
static int grant_one_inside(struct aw_prepared *p, const char *text, const char *rest,
			    bool is_writable, struct aw_error *err)
{
	char source[PATH_MAX], at[PATH_MAX];
	const char *slash = *rest != '\0' ? "/" : "";
	autofree char *real = NULL;

	if (aw_str_format(source, sizeof(source), "%s%s%s", p->workspace.path, slash, rest) < 0 ||
	    aw_str_format(at, sizeof(at), "%s%s%s", p->workspace_at, slash, rest) < 0)
		return aw_fail(err, ENAMETOOLONG, "'%s'", text);
	real = realpath(source, NULL);
	if (real == NULL)
		return aw_grants_note(&p->grants, err,
				      "the granted path %s is not there: make it "
				      "before the session",
				      text);
	if (!aw_path_is_within(real, p->workspace.path))
		return aw_refuse(err, EACCES,
				 "the granted path %s leads out of the project, by a symbolic link",
				 text);
	return aw_grants_bind(&p->grants, real, at, is_writable, err);
}

/* Where only what is granted of the project is shown. */
static int grant_inside(struct aw_prepared *p, const struct aw_policy_list *list, bool is_writable,
			struct aw_error *err)
{
	for (size_t i = 0; i < list->count; i++) {
		const char *text = list->entry[i].text, *rest = aw_path_in_workspace(text);

		if (rest == NULL) /* a place that a mount of the policy fills */
			continue;
		rest += strspn(rest, "/");
		if (grant_one_inside(p, text, rest, is_writable, err) < 0)
			return -err->code;
	}
	return 0;
}

/* What is shown to be written to, or read, is judged like a project, but for who owns it. */
static int judge_mount(const struct aw_policy_entry *m, const char *real,
		       const struct aw_workspace_host *host, struct aw_error *err)
{
	/* Of the system's directories these hold more than files: devices, sockets, other processes. */
	static const char *const live_trees[] = { "/dev", "/proc", "/run", "/sys" };
	bool is_refused = m->is_writable;
	int r;

	for (size_t i = 0; i < AW_ARRAY_LEN(live_trees); i++)
		is_refused = is_refused || aw_path_is_within(real, live_trees[i]);
	is_refused = is_refused || aw_path_is_within(host->home, real) ||
		     strcmp(real, "/tmp") == 0 || strcmp(real, "/var/tmp") == 0;
	if (!is_refused)
		return 0;
	r = aw_workspace_judge(real, 0, 0, false, host, err);
	return r < 0 ? aw_while(err, "mount '%s'", m->host) : 0;
}

static int grant_mount(struct aw_prepared *p, const struct aw_policy_entry *m, struct aw_error *err)
{
	struct aw_workspace_host host = aw_prepare_host_for_guard(p);
	autofree char *real = realpath(m->host, NULL);
	int touches;

	if (real == NULL) /* ENOENT is the command's, with an exit code of its own */
		return aw_refuse(err, EINVAL, "mount '%s': %s", m->host, strerror(errno));
	touches = aw_workspace_touches_own(real, &host, err);
	if (touches < 0)
		return touches;
	if (touches > 0)
		return aw_refuse(err, EACCES,
				 "mount '%s': Warden's own state or configuration lies there",
				 m->host);
	if (judge_mount(m, real, &host, err) < 0)
		return -err->code;
	return aw_grants_bind(&p->grants, real, m->text, m->is_writable, err);
}

static int grant_mounts(struct aw_prepared *p, struct aw_error *err)
{
	const struct aw_policy_list *mounts = &p->policy->mounts;

	for (size_t i = 0; i < mounts->count; i++)
		if (grant_mount(p, &mounts->entry[i], err) < 0)
			return -err->code;
	return 0;
}

/* With a directory on the way moved, the next session would find the path under another name. */
static int pin_above(struct aw_prepared *p, const char *path, struct aw_error *err)
{
	const struct aw_protect_place project = { p->workspace.fd, p->workspace.path,
						  p->workspace_at };
	const char *slash = strrchr(path, '/');
	autofree char *parent = slash == NULL ? NULL : strndup(path, (size_t)(slash - path));

	if (parent == NULL || aw_protect_look(p->workspace.fd, parent) != AW_PROTECT_REAL)
		return 0;
	return aw_protect_pin(&project, parent, &p->grants, err);
}

static int mask_denied(struct aw_prepared *p, struct aw_error *err)
{
	const struct aw_policy_list *deny = &p->policy->deny;

	for (size_t i = 0; i < deny->count; i++) {
		const char *rest = aw_path_in_workspace(deny->entry[i].text);
		char at[PATH_MAX];

		if (rest == NULL)
			rest = deny->entry[i].text;
		else if (aw_str_format(at, sizeof(at), "%s/%s", p->workspace_at,
				       rest + strspn(rest, "/")) < 0)
			return aw_fail(err, ENAMETOOLONG, "'%s'", deny->entry[i].text);
		else if (pin_above(p, rest + strspn(rest, "/"), err) < 0)
			return -err->code;
		else
			rest = at;
		if (aw_grants_add(&p->grants.masks, rest, err) < 0)
			return -err->code;
	}
	return 0;
}

/* A tree that the agent may write: the project, or a directory granted beside it. */
struct tree {
	int fd;
	const char *path, *at;
};

static int find_in_tree(struct aw_prepared *p, const struct tree *tree, struct aw_error *err)
{
	struct aw_grants *g = &p->grants;
	unsigned classes = p->policy->protect;
	int r = aw_protect_find(tree->fd, tree->at, classes, g, err);

	if (r == 0 && (classes & AW_PROTECT_GIT))
		r = aw_git_find_nested(tree->fd, tree->path, tree->at, g, err);
	return r;
}

/* Which repository it belongs to is asked for the project alone: nothing above a mount is shown. */
static int find_in_mount(struct aw_prepared *p, const struct aw_view_grant *mount,
			 struct aw_error *err)
{
	autoclose int fd = open(mount->source, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const struct tree tree = { fd, mount->source, mount->at };
	struct stat st;
	int r = 0;

	if (fd < 0)
		return errno == ENOTDIR ? 0 : aw_fail(err, errno, "mount '%s'", mount->source);
	if ((p->policy->protect & AW_PROTECT_GIT) &&
	    fstatat(fd, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0)
		r = aw_git_find(fd, tree.path, tree.at, &p->grants, err);
	return r == 0 ? find_in_tree(p, &tree, err) : r;
}

static int find_protected(struct aw_prepared *p, size_t mounts_begin, size_t mounts_end,
			  struct aw_error *err)
{
	const struct tree project = { p->workspace.fd, p->workspace.path, p->workspace_at };
	struct aw_grants *g = &p->grants;
	int r = aw_git_find(project.fd, project.path, project.at, g, err);

	if (!(p->policy->protect & AW_PROTECT_GIT)) {
		aw_texts_fini(&g->pins);
		aw_texts_fini(&g->protects);
	}
	if (r == 0)
		r = find_in_tree(p, &project, err);
	for (size_t i = mounts_begin; r == 0 && i < mounts_end; i++) {
		const struct aw_view_grant mount = g->binds[i]; /* the search adds to the list */

		if (mount.is_writable)
			r = find_in_mount(p, &mount, err);
	}
	return r;
}

/*
 * Where the agent is root's stand-in, what root owns needs its owner mapped: to be written to at all,
 * and, where the policy shows it, to be the agent's own to git.
 */
static void mark_trees(struct aw_prepared *p, size_t mounts_begin, size_t mounts_end)
{
	for (size_t i = 0; p->needs_idmap && i < p->grants.bind_count; i++) {
		struct aw_view_grant *grant = &p->grants.binds[i];
		bool is_mount = i >= mounts_begin && i < mounts_end;
		struct stat st;

		grant->is_tree = (grant->is_writable || is_mount) &&
				 stat(grant->source, &st) == 0 && st.st_uid == 0;
	}
}

/* A grant that holds the project inside it would cover the project's own mount: it is left out. */
static int drop_covering(struct aw_prepared *p, struct aw_error *err)
{
	struct aw_grants *g = &p->grants;
	size_t kept = 0;
	int r = 0;

	for (size_t i = 0; i < g->bind_count; i++) {
		if (!aw_path_is_within(p->workspace_at, g->binds[i].at) ||
		    strcmp(p->workspace_at, g->binds[i].at) == 0) {
			g->binds[kept++] = g->binds[i];
			continue;
		}
		if (r == 0)
			r = aw_grants_note(g, err, "%s is not shown: the project lies inside it",
					   g->binds[i].at);
		free((char *)(uintptr_t)g->binds[i].source);
		free((char *)(uintptr_t)g->binds[i].at);
	}
	g->bind_count = kept;
	return r;
}

int aw_prepare_view(struct aw_prepared *p, struct aw_error *err)
{
	bool is_hidden = p->policy->read.is_present || p->policy->write.is_present;
	size_t mounts_begin, mounts_end;
	int r = 0;

	if (is_hidden && p->needs_idmap)
		return aw_refuse(err, ENOTSUP,
				 "read_paths and write_paths in a project that root owns: "
				 "run as a user who owns it");
	if (is_hidden)
		r = grant_inside(p, &p->policy->read, false, err);
	if (r == 0 && is_hidden)
		r = grant_inside(p, &p->policy->write, true, err);
	mounts_begin = p->grants.bind_count;
	if (r == 0)
		r = grant_mounts(p, err);
	mounts_end = p->grants.bind_count;
	if (r == 0)
		r = aw_toolchain_grant(p->host.home, &p->grants, err);
	if (r == 0)
		r = find_protected(p, mounts_begin, mounts_end, err);
	if (r == 0)
		r = mask_denied(p, err);
	mark_trees(p, mounts_begin, mounts_end);
	return r == 0 ? drop_covering(p, err) : r;
}
