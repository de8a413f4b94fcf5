#include "policy/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "base/own.h"
#include "policy/data-internal.h"
#include "policy/layer-internal.h"
#include "policy/setters-internal.h"

#define NAME_MAX_LEN 64
#define AT(member) offsetof(struct aw_agent, member)

static bool is_plain_name(struct aw_str name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];
		bool is_inner = c == '-' || c == '_' || c == '.';

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      (is_inner && i > 0)))
			return false;
	}
	return name.len > 0 && name.len <= NAME_MAX_LEN;
}

static void malformed(struct aw_keys *keys, const struct aw_key_value *value, const char *why)
{
	aw_keys_error(keys, AW_POLICY_MALFORMED, value->node, "%s", why);
}

static int set_name(struct aw_keys *keys, const struct aw_key *row,
		    const struct aw_key_value *value)
{
	if (is_plain_name(value->text))
		return aw_set_string(keys, row, value);
	malformed(keys, value, "must be a plain name: letters, digits, \"-\", \"_\", \".\"");
	return 0;
}

static int set_binary(struct aw_keys *keys, const struct aw_key *row,
		      const struct aw_key_value *value)
{
	if (is_plain_name(value->text))
		return aw_set_text_entry(keys, row, value);
	malformed(keys, value, "must be the plain name of a program, without a directory");
	return 0;
}

/* Below HOME: no way out of it, and not HOME as a whole. */
static bool is_below_home(struct aw_str path)
{
	struct aw_str part;

	if (path.len > 1024 || aw_str_starts(path, "/"))
		return false;
	while (aw_str_next(&path, '/', &part))
		if (part.len == 0 || aw_str_is(part, ".") || aw_str_is(part, ".."))
			return false;
	return true;
}

static int set_home_path(struct aw_keys *keys, const struct aw_key *row,
			 const struct aw_key_value *value)
{
	if (!is_below_home(value->text)) {
		malformed(keys, value, "must be a path below the home directory, as .config/agent");
		return 0;
	}
	return row->type == AW_KEY_STRING ? aw_set_string(keys, row, value)
					  : aw_set_text_entry(keys, row, value);
}

static int set_env_name(struct aw_keys *keys, const struct aw_key *row,
			const struct aw_key_value *value)
{
	const char *why = aw_layer_env_error(value->text);

	if (why == NULL)
		return aw_set_string(keys, row, value);
	malformed(keys, value, why);
	return 0;
}

static int set_env_value(struct aw_keys *keys, const struct aw_key *row,
			 const struct aw_key_value *value)
{
	struct aw_agent *agent = keys->target;
	const char *why = aw_layer_env_error(aw_str_from(value->key));
	struct aw_agent_env *larger;

	(void)row;
	if (why != NULL) {
		malformed(keys, value, why);
		return 0;
	}
	larger = aw_store_alloc(keys->store, agent->env_count + 1, sizeof(*larger));
	if (larger == NULL)
		return -ENOMEM;
	if (agent->env_count > 0)
		memcpy(larger, agent->env, agent->env_count * sizeof(*larger));
	larger[agent->env_count++] = (struct aw_agent_env){ value->key, value->text.ptr };
	agent->env = larger;
	return 0;
}

static const struct aw_key agent_keys[] = {
	AW_ROW("name", AW_KEY_STRING, 1, 0, NAME_MAX_LEN, AT(name), set_name),
	AW_ROW("title", AW_KEY_STRING, 1, 0, 128, AT(title), aw_set_string),
	AW_ROW("install", AW_KEY_STRING, 1, 0, 512, AT(install), aw_set_string),
	AW_ROW("binaries", AW_KEY_STRINGS, 1, 0, 16, AT(binaries), set_binary),
	AW_ROW("args", AW_KEY_STRINGS, 1, 0, 32, AT(args), aw_set_text_entry),
	AW_ROW("domains", AW_KEY_STRINGS, 1, 0, 256, AT(domains), aw_set_grant),
	AW_ROW("key_env", AW_KEY_STRINGS, 1, 0, 64, AT(key_env), aw_set_env),
	AW_ROW_OBJECT("env", 1),
	AW_ROW("env/*", AW_KEY_STRING, 1, 0, 1024, 0, set_env_value),
	AW_ROW("home_env", AW_KEY_STRING, 1, 0, 64, AT(home_env), set_env_name),
	AW_ROW("home_dir", AW_KEY_STRING, 1, 0, 1024, AT(home_dir), set_home_path),
	AW_ROW("auth_paths", AW_KEY_STRINGS, 1, 0, 32, AT(auth_paths), set_home_path),
	AW_ROW("login_paths", AW_KEY_STRINGS, 1, 0, 32, AT(login_paths), set_home_path),
	AW_ROW("import", AW_KEY_STRINGS, 1, 0, 32, AT(imports), set_home_path),
	AW_ROW("ignore_file", AW_KEY_STRING, 1, 0, 64, AT(ignore_file), set_home_path),
	AW_ROW_OBJECT("login", 1),
	AW_ROW("login/args", AW_KEY_STRINGS, 1, 0, 32, AT(login_args), aw_set_text_entry),
	AW_ROW("login/key_args", AW_KEY_STRINGS, 1, 0, 32, AT(login_key_args), aw_set_text_entry),
	AW_ROW("login/key_env", AW_KEY_STRING, 1, 0, 64, AT(login_key_env), set_env_name),
};

static void require(struct aw_keys *keys, bool is_there, const char *key)
{
	if (!is_there)
		aw_keys_error(keys, AW_POLICY_MALFORMED, 0, "\"%s\" is missing", key);
}

static int read_profile(struct aw_agent *agent, struct aw_policy_source *source,
			struct aw_policy_errors *errors)
{
	struct aw_keys keys = {
		.rows = agent_keys,
		.row_count = AW_ARRAY_LEN(agent_keys),
		.target = agent,
		.where = 1,
		.where_text = "an agent profile",
		.store = agent->store,
		.source = source,
		.errors = errors,
	};
	size_t before = aw_policy_errors_total(errors);
	int r = aw_keys_read(&keys, source->json->root, 0);

	if (r < 0 || aw_policy_errors_total(errors) > before)
		return r;
	require(&keys, agent->name != NULL, "name");
	require(&keys, agent->title != NULL, "title");
	require(&keys, agent->install != NULL, "install");
	require(&keys, agent->binaries.count > 0, "binaries");
	if (agent->login_key_args.count > 0)
		require(&keys, agent->login_key_env != NULL, "login/key_env");
	return 0;
}

int aw_agent_parse(struct aw_str text, const char *origin, struct aw_agent **ret,
		   struct aw_policy_errors *errors, struct aw_error *err)
{
	autodrop(aw_store_drop) struct aw_store *store = aw_store_new();
	size_t before = aw_policy_errors_total(errors);
	struct aw_policy_source *source = NULL;
	struct aw_agent *agent = NULL;
	int r = -ENOMEM;

	if (store != NULL) {
		source = aw_store_source(store, AW_NET_LAYER_AGENT, origin);
		agent = aw_store_alloc(store, 1, sizeof(*agent));
	}
	if (source != NULL && agent != NULL) {
		agent->store = store;
		agent->origin = source->name;
		r = aw_keys_open(source, text, errors);
		if (r > 0)
			r = read_profile(agent, source, errors);
	}
	if (r < 0)
		return aw_fail(err, -r, "read %s", origin);
	if (aw_policy_errors_total(errors) > before)
		return aw_refuse(err, EACCES, "%s is malformed", origin);
	*ret = agent;
	store = NULL;
	return 0;
}

static int load_from_file(const char *config_dir, struct aw_str name, struct aw_agent **ret,
			  struct aw_policy_errors *errors, struct aw_error *err)
{
	autofree char *path =
		aw_str_print("%s/agents/%.*s.json", config_dir, (int)name.len, name.ptr);
	autofree char *text = NULL;
	autoclose int fd = -EBADF;
	ssize_t len;
	int r;

	if (path == NULL)
		return aw_fail(err, ENOMEM, "load an agent profile");
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? -ENOENT
							   : aw_fail(err, errno, "open '%s'", path);
	len = aw_read_text(fd, AW_JSON_SIZE_MAX, &text, err);
	if (len < 0)
		return aw_while(err, "read '%s'", path);
	r = aw_agent_parse((struct aw_str){ text, (size_t)len }, path, ret, errors, err);
	if (r == 0 && !aw_str_is(name, (*ret)->name)) {
		aw_agent_drop(ret);
		return aw_refuse(err, EACCES, "'%s' holds a profile of another name", path);
	}
	return r;
}

int aw_agent_load(const char *config_dir, struct aw_str name, struct aw_agent **ret,
		  struct aw_policy_errors *errors, struct aw_error *err)
{
	const struct aw_data *data;
	char origin[NAME_MAX_LEN + 32];
	int r = -ENOENT;

	/* Also keeps a name with a slash from being a path. */
	if (!is_plain_name(name))
		return aw_refuse(err, ENOENT, "no agent has such a name");
	if (config_dir != NULL)
		r = load_from_file(config_dir, name, ret, errors, err);
	if (r != -ENOENT)
		return r;
	data = aw_data_find(aw_data_agents, aw_data_agent_count, name);
	if (data == NULL)
		return aw_refuse(err, ENOENT, "no profile for an agent '%.*s'", (int)name.len,
				 name.ptr);
	(void)aw_str_format(origin, sizeof(origin), "agent profile %s", data->name);
	return aw_agent_parse((struct aw_str){ data->text, data->len }, origin, ret, errors, err);
}

void aw_agent_drop(struct aw_agent **slot)
{
	struct aw_agent *agent = *slot;
	struct aw_store *store;

	*slot = NULL;
	if (agent == NULL)
		return;
	/* The profile itself lies in its store. */
	store = agent->store;
	aw_store_drop(&store);
}

const char *aw_agent_name(size_t index)
{
	return index < aw_data_agent_count ? aw_data_agents[index].name : NULL;
}
