#include "policy/layer-internal.h"

#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "policy/paths.h"

/* Variables that Warden itself sets for the cell, and those that point at what is not in it. */
static const struct {
	const char *name, *why;
} foreign_env[] = {
	{ "ALL_PROXY", "is set by Warden: the cell has its own proxy" },
	{ "HTTP_PROXY", "is set by Warden: the cell has its own proxy" },
	{ "HTTPS_PROXY", "is set by Warden: the cell has its own proxy" },
	{ "NO_PROXY", "is set by Warden: the cell has its own proxy" },
	{ "all_proxy", "is set by Warden: the cell has its own proxy" },
	{ "http_proxy", "is set by Warden: the cell has its own proxy" },
	{ "https_proxy", "is set by Warden: the cell has its own proxy" },
	{ "no_proxy", "is set by Warden: the cell has its own proxy" },
	{ "HOME", "is set by Warden: the cell has its own home" },
	{ "PATH", "is set by Warden: it names what the cell holds" },
	{ "PWD", "is set by Warden" },
	{ "SANDBOX_RUNTIME", "is set by Warden" },
	{ "TMPDIR", "is set by Warden: the cell has its own /tmp" },
	{ "WARDEN", "is set by Warden" },
	{ "DBUS_SESSION_BUS_ADDRESS", "names a socket of the host that is not in the cell" },
	{ "DOCKER_HOST", "names a socket of the host that is not in the cell" },
	{ "GPG_AGENT_INFO", "names a socket of the host that is not in the cell" },
	{ "SSH_AUTH_SOCK", "names a socket of the host that is not in the cell" },
	{ "XDG_RUNTIME_DIR", "names a directory of the host that is not in the cell" },
};

static bool is_env_name(struct aw_str name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];
		bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';

		if (!is_letter && (i == 0 || c < '0' || c > '9'))
			return false;
	}
	return name.len > 0 && name.len <= 255;
}

const char *aw_layer_env_error(struct aw_str name)
{
	if (!is_env_name(name))
		return "is not the name of a variable: letters, digits and underscores, no value";
	for (size_t i = 0; i < AW_ARRAY_LEN(foreign_env); i++)
		if (aw_str_is(name, foreign_env[i].name))
			return foreign_env[i].why;
	return NULL;
}

/* Places in the cell that are made by Warden, and parts of the host that no mount may bring in. */
static const char *const own_places[] = {
	"/bin",  "/boot", "/dev",  "/etc", "/lib", "/lib32",   "/lib64",          "/libx32",
	"/proc", "/run",  "/sbin", "/sys", "/usr", "/var/run", AW_PATH_WORKSPACE,
};
static const char *const closed_places[] = { "/boot", "/dev", "/proc", "/run", "/sys", "/var/run" };
static const char *const closed_in_home[] = { "/.config/warden", "/.local/state/warden" };

static bool is_within_any(const char *path, const char *const *dirs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (aw_path_is_within(path, dirs[i]))
			return true;
	return false;
}

/* Whether one of the two lies within the other: a mount of either shows the other. */
static bool touches(const char *path, const char *home, const char *below)
{
	char dir[AW_PATH_MAX + 1];

	if (aw_str_format(dir, sizeof(dir), "%s%s", home, below) < 0)
		return false;
	return aw_path_is_within(path, dir) || aw_path_is_within(dir, path);
}

const char *aw_layer_mount_error(const struct aw_policy_entry *mount, const char *home)
{
	if (home != NULL && aw_path_is_within(home, mount->host))
		return "would bring in the whole home directory or more: name a directory in it";
	if (strcmp(mount->host, "/") == 0)
		return "would bring in the whole host: name a directory";
	if (is_within_any(mount->host, closed_places, AW_ARRAY_LEN(closed_places)))
		return "is a part of the host that stays out of every cell";
	for (size_t i = 0; home != NULL && i < AW_ARRAY_LEN(closed_in_home); i++)
		if (touches(mount->host, home, closed_in_home[i]))
			return "would bring in Warden's own policy or state";
	if (strcmp(mount->text, "/") == 0 ||
	    is_within_any(mount->text, own_places, AW_ARRAY_LEN(own_places)))
		return "would lie over a part of the cell that Warden makes: choose another \"at\"";
	return NULL;
}

struct aw_layer *aw_layer_new(struct aw_store *store, struct aw_policy_source *source)
{
	struct aw_layer *layer = aw_store_alloc(store, 1, sizeof(*layer));

	if (layer != NULL) {
		layer->source = source;
		layer->kind = source->layer;
	}
	return layer;
}

/* The layers that are documents; the others are never parsed here. */
static const struct {
	unsigned where;
	const char *text;
} documents[] = {
	[AW_NET_LAYER_PRESET] = { AW_IN_PRESET, "a preset" },
	[AW_NET_LAYER_USER] = { AW_IN_USER, "the user's policy" },
	[AW_NET_LAYER_SYSTEM] = { AW_IN_SYSTEM, "the system's policy" },
	[AW_NET_LAYER_PROJECT] = { AW_IN_PROJECT, "a project's policy" },
};

int aw_layer_parse(struct aw_store *store, struct aw_policy_source *source, struct aw_str text,
		   const char *home, struct aw_layer **ret, struct aw_policy_errors *errors)
{
	struct aw_layer *layer = aw_layer_new(store, source);
	struct aw_keys keys = {
		.rows = aw_layer_keys,
		.row_count = aw_layer_key_count,
		.target = layer,
		.where = documents[source->layer].where,
		.where_text = documents[source->layer].text,
		.store = store,
		.source = source,
		.errors = errors,
		.home = home,
	};
	int r;

	if (layer == NULL)
		return -ENOMEM;
	r = aw_keys_open(source, text, errors);
	if (r > 0)
		r = aw_keys_read(&keys, source->json->root, 0);
	if (r < 0)
		return r;
	*ret = layer;
	return 0;
}

int aw_layer_from_agent(struct aw_store *store, const struct aw_agent *agent, struct aw_layer **ret)
{
	struct aw_policy_source *source = aw_store_source(store, AW_NET_LAYER_AGENT, agent->origin);
	struct aw_layer *layer = source != NULL ? aw_layer_new(store, source) : NULL;

	if (layer == NULL)
		return -ENOMEM;
	/* The lists stay the agent's, which outlives the policy; nothing appends to them. */
	layer->allowed = agent->domains;
	layer->env = agent->key_env;
	*ret = layer;
	return 0;
}
