/* Reading the files of a policy: whom to trust with which, then parse and merge. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/own.h"
#include "policy/assemble-internal.h"
#include "policy/paths.h"

#define OVERFLOW_UID 65534 /* /proc/sys/kernel/overflowuid, as every distribution leaves it */

struct loader {
	const struct aw_policy_sources *sources;
	struct aw_store *store;
	struct aw_policy_errors *errors;
	struct aw_error *err;
	struct aw_layers layers;
};

static void unreadable(struct loader *loader, const char *path, const char *why)
{
	struct aw_policy_error head = { .kind = AW_POLICY_UNREADABLE };

	(void)aw_str_escape(aw_str_from(path), head.file, sizeof(head.file));
	aw_policy_errors_add(loader->errors, &head, "%s", why);
}

/* 1 with *ret_fd, 0 when there is none (or it cannot be opened: reported). */
static int open_file(struct loader *loader, const char *path, bool must_exist, int *ret_fd)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct aw_error err;

	if (fd >= 0) {
		*ret_fd = fd;
		return 1;
	}
	if (must_exist || (errno != ENOENT && errno != ENOTDIR)) {
		(void)aw_fail(&err, errno, "cannot be opened");
		unreadable(loader, path, err.message);
	}
	return 0;
}

static int parse_fd(struct loader *loader, int fd, enum aw_net_layer layer, const char *path,
		    struct aw_layer **ret)
{
	autofree char *text = NULL;
	struct aw_policy_source *source;
	struct aw_error err;
	ssize_t len = aw_read_text(fd, AW_JSON_SIZE_MAX, &text, &err);

	if (len < 0) {
		unreadable(loader, path, err.message);
		return len == -ENOMEM ? -ENOMEM : 0;
	}
	source = aw_store_source(loader->store, layer, path);
	if (source == NULL)
		return -ENOMEM;
	return aw_layer_parse(loader->store, source, (struct aw_str){ text, (size_t)len },
			      loader->sources->home, ret, loader->errors);
}

/* Inside a user namespace that does not map root, root's files show the overflow uid. */
static const char *system_error(const struct stat *st)
{
	if (st->st_uid != 0 && st->st_uid != OVERFLOW_UID)
		return "does not belong to root";
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return "can be written by others than root";
	return NULL;
}

static const char *user_error(const struct stat *st)
{
	if (st->st_uid != geteuid() && st->st_uid != 0 && st->st_uid != OVERFLOW_UID)
		return "belongs to another user";
	if (st->st_mode & S_IWOTH)
		return "can be written by everyone";
	return NULL;
}

/* The agent may write in the workspace: a policy that lies there would be its own. */
static int is_in_workspace(struct loader *loader, int fd, bool *ret)
{
	const char *workspace = loader->sources->workspace;
	char link[64], real[AW_PATH_MAX + 1];
	ssize_t len;

	*ret = false;
	if (workspace == NULL)
		return 0;
	(void)aw_str_format(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, real, sizeof(real) - 1);
	if (len < 0)
		return aw_fail(loader->err, errno, "find where a policy lies");
	real[len] = '\0';
	*ret = aw_path_is_within(real, workspace);
	return 0;
}

static int load_file(struct loader *loader, const char *path, bool must_exist,
		     enum aw_net_layer layer, struct aw_layer **ret)
{
	autoclose int fd = -EBADF;
	struct stat st;
	bool is_inside = false;
	const char *why;
	int r = 0;

	if (open_file(loader, path, must_exist, &fd) == 0)
		return 0;
	if (fstat(fd, &st) < 0)
		return aw_fail(loader->err, errno, "fstat '%s'", path);
	why = layer == AW_NET_LAYER_SYSTEM ? system_error(&st) : user_error(&st);
	if (layer == AW_NET_LAYER_USER)
		r = is_in_workspace(loader, fd, &is_inside);
	if (r < 0)
		return r;
	if (is_inside)
		why = "lies in the workspace, where the agent may write: keep it outside";
	if (why != NULL) {
		unreadable(loader, path, why);
		return 0;
	}
	return parse_fd(loader, fd, layer, path, ret);
}

static int load_user(struct loader *loader)
{
	autofree char *path = NULL;

	if (loader->sources->policy_file != NULL)
		return load_file(loader, loader->sources->policy_file, true, AW_NET_LAYER_USER,
				 &loader->layers.user);
	if (loader->sources->config_dir == NULL)
		return 0;
	path = aw_str_print("%s/policy.json", loader->sources->config_dir);
	if (path == NULL)
		return -ENOMEM;
	return load_file(loader, path, false, AW_NET_LAYER_USER, &loader->layers.user);
}

/* Hostile: no link is followed, nothing blocks, and nobody's ownership makes it more trusted. */
static int load_project(struct loader *loader)
{
	autoclose int fd = -EBADF;
	struct aw_error err;

	if (loader->sources->workspace_fd < 0)
		return 0;
	fd = aw_open_beneath(loader->sources->workspace_fd, AW_POLICY_PROJECT_FILE,
			     O_RDONLY | O_NOFOLLOW, &err);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0) {
		unreadable(loader, AW_POLICY_PROJECT_FILE,
			   fd == -ELOOP ? "is a symbolic link: a project's policy must be a file"
					: err.message);
		return 0;
	}
	return parse_fd(loader, fd, AW_NET_LAYER_PROJECT, AW_POLICY_PROJECT_FILE,
			&loader->layers.project);
}

static int read_layers(struct loader *loader)
{
	const struct aw_policy_sources *sources = loader->sources;
	const char *system = sources->system_file;
	int r = load_file(loader, system != NULL ? system : AW_POLICY_SYSTEM_FILE, false,
			  AW_NET_LAYER_SYSTEM, &loader->layers.system);

	if (r == 0)
		r = load_user(loader);
	if (r == 0)
		r = load_project(loader);
	if (r == 0)
		r = aw_layer_from_command(loader->store, &sources->command, sources->home,
					  &loader->layers.command, loader->errors);
	if (r == 0 && sources->agent != NULL)
		r = aw_layer_from_agent(loader->store, sources->agent, &loader->layers.agent);
	return r;
}

int aw_policy_load(const struct aw_policy_sources *sources, struct aw_policy **ret,
		   struct aw_policy_errors *errors, struct aw_error *err)
{
	autodrop(aw_store_drop) struct aw_store *store = aw_store_new();
	autodrop(aw_policy_drop) struct aw_policy *policy = NULL;
	struct loader loader = { .sources = sources, .store = store, .errors = errors, .err = err };
	int r;

	err->code = 0;
	if (store != NULL)
		policy = aw_store_alloc(store, 1, sizeof(*policy));
	if (policy == NULL)
		return aw_fail(err, ENOMEM, "load the policy");
	policy->store = AW_TAKE_PTR(store);
	policy->agent = sources->agent;
	r = read_layers(&loader);
	/* Layers with errors in them would only bring up errors that follow from those. */
	if (r == 0 && aw_policy_errors_total(errors) == 0)
		r = aw_policy_assemble(sources, &loader.layers, policy, errors, err);
	if (r < 0)
		return err->code != 0 ? aw_while(err, "load the policy")
				      : aw_fail(err, -r, "load the policy");
	if (aw_policy_errors_total(errors) > 0)
		return aw_refuse(err, EACCES, "the policy has %zu %s",
				 aw_policy_errors_total(errors),
				 aw_policy_errors_total(errors) == 1 ? "error" : "errors");
	*ret = AW_TAKE_PTR(policy);
	return 0;
}
