#include "policy/setters-internal.h"

#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "policy/domain.h"
#include "policy/layer-internal.h"
#include "policy/paths.h"

const char *const aw_preset_words[] = { "strict", "balanced", "offline", "learn", NULL };
const char *const aw_protect_words[] = { "git", "editor", "agent", "ci", "shell", NULL };
const char *const aw_degraded_words[] = { "limits",      "landlock",         "protect", "audit",
					  "canary.home", "canary.workspace", NULL };

static void *target_of(struct aw_keys *keys, const struct aw_key *row)
{
	return (char *)keys->target + row->offset;
}

static void malformed(struct aw_keys *keys, const struct aw_key_value *value, const char *why)
{
	aw_keys_error(keys, AW_POLICY_MALFORMED, value->node, "%s", why);
}

static int append(struct aw_keys *keys, const struct aw_key *row, const struct aw_key_value *value,
		  struct aw_policy_entry *entry)
{
	struct aw_policy_list *list = target_of(keys, row);

	entry->from = aw_keys_origin(keys, value->node);
	return aw_list_append(keys->store, list, entry) != NULL ? 0 : -ENOMEM;
}

/* A JSON text may hold no NUL (jansson refuses it), so these are C strings of the same length. */
int aw_set_string(struct aw_keys *keys, const struct aw_key *row, const struct aw_key_value *value)
{
	const char **target = target_of(keys, row);

	*target = value->text.ptr;
	return 0;
}

int aw_set_word(struct aw_keys *keys, const struct aw_key *row, const struct aw_key_value *value)
{
	const char **target = target_of(keys, row);

	*target = row->words[value->number];
	return 0;
}

int aw_set_bool(struct aw_keys *keys, const struct aw_key *row, const struct aw_key_value *value)
{
	bool *target = target_of(keys, row);

	*target = value->number != 0;
	return 0;
}

int aw_set_text_entry(struct aw_keys *keys, const struct aw_key *row,
		      const struct aw_key_value *value)
{
	struct aw_policy_entry entry = { .text = value->text.ptr };

	return append(keys, row, value, &entry);
}

int aw_set_word_entry(struct aw_keys *keys, const struct aw_key *row,
		      const struct aw_key_value *value)
{
	struct aw_policy_entry entry = { .text = value->text.ptr, .port = (uint16_t)value->number };

	return append(keys, row, value, &entry);
}

static int normalise_cell(struct aw_keys *keys, const struct aw_key_value *value, const char **ret)
{
	char path[AW_PATH_MAX + 1];
	struct aw_error err;
	int len = aw_path_cell(value->text, path, &err);

	*ret = NULL;
	if (len < 0) {
		malformed(keys, value, err.message);
		return 0;
	}
	*ret = aw_store_dup(keys->store, (struct aw_str){ path, (size_t)len });
	return *ret != NULL ? 0 : -ENOMEM;
}

int aw_set_cell_path(struct aw_keys *keys, const struct aw_key *row,
		     const struct aw_key_value *value)
{
	return normalise_cell(keys, value, target_of(keys, row));
}

int aw_set_host_path(struct aw_keys *keys, const struct aw_key *row,
		     const struct aw_key_value *value)
{
	const char **target = target_of(keys, row);
	char path[AW_PATH_MAX + 1];
	struct aw_error err;
	int len = aw_path_host(value->text, keys->home, path, &err);

	if (len < 0) {
		malformed(keys, value, err.message);
		return 0;
	}
	*target = aw_store_dup(keys->store, (struct aw_str){ path, (size_t)len });
	return *target != NULL ? 0 : -ENOMEM;
}

int aw_set_project_path(struct aw_keys *keys, const struct aw_key *row,
			const struct aw_key_value *value)
{
	struct aw_policy_entry entry = { 0 };
	int r = normalise_cell(keys, value, &entry.text);

	if (r < 0 || entry.text == NULL)
		return r;
	if (aw_path_in_workspace(entry.text) == NULL) {
		malformed(keys, value,
			  "lies outside /workspace: bring a directory of the host in with "
			  "\"mounts\"; system files are readable anyway");
		return 0;
	}
	return append(keys, row, value, &entry);
}

/* A pattern in deny_paths is right JSON and right policy, only not enforced yet. */
static bool has_pattern(struct aw_str text)
{
	if (aw_str_ends(text, "/*"))
		text.len -= 2;
	else if (aw_str_ends(text, "/**"))
		text.len -= 3;
	return memchr(text.ptr, '*', text.len) != NULL || memchr(text.ptr, '?', text.len) != NULL;
}

int aw_set_deny_path(struct aw_keys *keys, const struct aw_key *row,
		     const struct aw_key_value *value)
{
	struct aw_policy_entry entry = { 0 };
	int r;

	if (has_pattern(value->text)) {
		aw_keys_error(keys, AW_POLICY_UNENFORCED, value->node,
			      "patterns in deny_paths are not enforced by this version: name the "
			      "files or directories, as /workspace/.env");
		return 0;
	}
	r = normalise_cell(keys, value, &entry.text);
	if (r < 0 || entry.text == NULL)
		return r;
	if (strcmp(entry.text, "/") == 0 || strcmp(entry.text, AW_PATH_WORKSPACE) == 0) {
		malformed(keys, value, "would hide everything the agent is started for");
		return 0;
	}
	return append(keys, row, value, &entry);
}

int aw_set_mount(struct aw_keys *keys, const struct aw_key *row, const struct aw_key_value *value)
{
	struct aw_policy_entry entry = keys->element;
	const char *why;

	/* Without the member, or with one that was reported already. */
	if (entry.host == NULL) {
		if (json_object_get(value->json, "host") == NULL)
			malformed(keys, value, "a mount needs \"host\", a directory of the host");
		return 0;
	}
	if (entry.text == NULL && json_object_get(value->json, "at") != NULL)
		return 0;
	if (entry.text == NULL)
		entry.text = entry.host;
	why = aw_layer_mount_error(&entry, keys->home);
	if (why != NULL) {
		malformed(keys, value, why);
		return 0;
	}
	return append(keys, row, value, &entry);
}

static int append_domain(struct aw_keys *keys, const struct aw_key *row,
			 const struct aw_key_value *value, enum aw_domain_use use)
{
	struct aw_policy_entry entry = { 0 };
	struct aw_domain domain;
	struct aw_error err;

	if (aw_domain_parse(value->text, use, &domain, &err) < 0) {
		malformed(keys, value, err.message);
		return 0;
	}
	entry.text = aw_store_dup(keys->store, aw_str_from(domain.name));
	if (entry.text == NULL)
		return -ENOMEM;
	entry.form = domain.form;
	entry.port = domain.port;
	entry.is_denied = use == AW_DOMAIN_DENY;
	return append(keys, row, value, &entry);
}

int aw_set_grant(struct aw_keys *keys, const struct aw_key *row, const struct aw_key_value *value)
{
	return append_domain(keys, row, value, AW_DOMAIN_GRANT);
}

int aw_set_denial(struct aw_keys *keys, const struct aw_key *row, const struct aw_key_value *value)
{
	return append_domain(keys, row, value, AW_DOMAIN_DENY);
}

int aw_set_port(struct aw_keys *keys, const struct aw_key *row, const struct aw_key_value *value)
{
	const struct aw_policy_list *list = target_of(keys, row);
	struct aw_policy_entry entry = { .port = (uint16_t)value->number };

	if (list->count == AW_NET_PORTS_MAX) {
		malformed(keys, value, "is beyond the 64 ports that a list may have");
		return 0;
	}
	return append(keys, row, value, &entry);
}

int aw_set_env(struct aw_keys *keys, const struct aw_key *row, const struct aw_key_value *value)
{
	struct aw_policy_entry entry = { .text = value->text.ptr };
	const char *why = aw_layer_env_error(value->text);

	if (why != NULL) {
		malformed(keys, value, why);
		return 0;
	}
	return append(keys, row, value, &entry);
}

int aw_set_limit(struct aw_keys *keys, const struct aw_key *row, const struct aw_key_value *value)
{
	struct aw_layer *layer = keys->target;

	layer->limit[row->offset] = (struct aw_layer_limit){
		.value = (uint64_t)value->number,
		.is_set = true,
		.from = aw_keys_origin(keys, value->node),
	};
	return 0;
}

static int name_branch(struct aw_keys *keys, const struct aw_key_value *value,
		       struct aw_layer_branch *branch)
{
	char path[AW_PATH_MAX + 1];
	struct aw_error err;
	int len;

	branch->name = value->key;
	if (branch->kind == AW_BRANCH_AGENT)
		return 1;
	len = aw_path_host(aw_str_from(value->key), keys->home, path, &err);
	if (len < 0) {
		malformed(keys, value, err.message);
		return 0;
	}
	branch->name = aw_store_dup(keys->store, (struct aw_str){ path, (size_t)len });
	return branch->name != NULL ? 1 : -ENOMEM;
}

/* An element of "agents" or "projects" is a policy of its own, without those two. */
int aw_set_branch(struct aw_keys *keys, const struct aw_key *row, const struct aw_key_value *value)
{
	struct aw_layer_branch *branch = aw_store_alloc(keys->store, 1, sizeof(*branch));
	struct aw_layer *owner = keys->target;
	unsigned where = keys->where;
	const char *where_text = keys->where_text;
	int r;

	if (branch == NULL)
		return -ENOMEM;
	branch->kind = (enum aw_layer_branch_kind)row->offset;
	r = name_branch(keys, value, branch);
	if (r <= 0)
		return r;
	branch->layer = aw_layer_new(keys->store, keys->source);
	if (branch->layer == NULL)
		return -ENOMEM;
	if (branch->kind == AW_BRANCH_DIRECTORY)
		branch->layer->kind = AW_NET_LAYER_DIRECTORY;
	keys->target = branch->layer;
	keys->where = branch->kind == AW_BRANCH_AGENT ? AW_IN_AGENT : AW_IN_DIRECTORY;
	keys->where_text =
		branch->kind == AW_BRANCH_AGENT ? "an agent's entry" : "a directory's entry";
	r = aw_keys_read(keys, value->json, value->node);
	keys->target = owner;
	keys->where = where;
	keys->where_text = where_text;
	branch->next = owner->branches;
	owner->branches = branch;
	return r;
}
