/* The command line as a layer: the same checks as in a document, named by option. */
#include <errno.h>

#include "base/own.h"
#include "policy/domain.h"
#include "policy/layer-internal.h"
#include "policy/paths.h"

struct reader {
	struct aw_store *store;
	struct aw_layer *layer;
	struct aw_policy_errors *errors;
	const char *home;
};

static void refuse(struct reader *reader, const char *option, const char *text, const char *why)
{
	struct aw_policy_error head = { .kind = AW_POLICY_MALFORMED, .file = "command line" };
	char shown[160];

	(void)aw_str_format(head.pointer, sizeof(head.pointer), "%s", option);
	(void)aw_str_escape(aw_str_from(text), shown, sizeof(shown));
	aw_policy_errors_add(reader->errors, &head, "\"%s\" %s", shown, why);
}

/* For messages that quote the text themselves. */
static void refuse_whole(struct reader *reader, const char *option, const struct aw_error *err)
{
	struct aw_policy_error head = { .kind = AW_POLICY_MALFORMED, .file = "command line" };

	(void)aw_str_format(head.pointer, sizeof(head.pointer), "%s", option);
	aw_policy_errors_add(reader->errors, &head, "%s", err->message);
}

static int append(struct reader *reader, struct aw_policy_list *list, struct aw_policy_entry *entry)
{
	entry->from = (struct aw_policy_origin){ reader->layer->source, 0 };
	return aw_list_append(reader->store, list, entry) != NULL ? 0 : -ENOMEM;
}

static int read_domain(struct reader *reader, const char *text, enum aw_domain_use use)
{
	struct aw_policy_entry entry = { .is_denied = use == AW_DOMAIN_DENY };
	struct aw_domain domain;
	struct aw_error err;

	if (aw_domain_parse(aw_str_from(text), use, &domain, &err) < 0) {
		refuse_whole(reader, entry.is_denied ? "--deny" : "--allow", &err);
		return 0;
	}
	entry.text = aw_store_dup(reader->store, aw_str_from(domain.name));
	entry.form = domain.form;
	entry.port = domain.port;
	if (entry.text == NULL)
		return -ENOMEM;
	return append(reader, entry.is_denied ? &reader->layer->denied : &reader->layer->allowed,
		      &entry);
}

static int read_allow(struct reader *reader, const char *text)
{
	return read_domain(reader, text, AW_DOMAIN_GRANT);
}

static int read_deny(struct reader *reader, const char *text)
{
	return read_domain(reader, text, AW_DOMAIN_DENY);
}

static int read_mount(struct reader *reader, const char *text, bool is_writable)
{
	const char *option = is_writable ? "--rw" : "--ro";
	struct aw_policy_entry entry = { .is_writable = is_writable };
	char path[AW_PATH_MAX + 1];
	struct aw_error err;
	const char *why;
	int len = aw_path_host(aw_str_from(text), reader->home, path, &err);

	if (len < 0) {
		refuse_whole(reader, option, &err);
		return 0;
	}
	entry.host = aw_store_dup(reader->store, (struct aw_str){ path, (size_t)len });
	if (entry.host == NULL)
		return -ENOMEM;
	entry.text = entry.host;
	why = aw_layer_mount_error(&entry, reader->home);
	if (why == NULL)
		return append(reader, &reader->layer->mounts, &entry);
	refuse(reader, option, text, why);
	return 0;
}

static int read_ro(struct reader *reader, const char *text)
{
	return read_mount(reader, text, false);
}

static int read_rw(struct reader *reader, const char *text)
{
	return read_mount(reader, text, true);
}

static int read_env(struct reader *reader, const char *text)
{
	struct aw_policy_entry entry = { 0 };
	const char *why = aw_layer_env_error(aw_str_from(text));

	if (why != NULL) {
		refuse(reader, "--env", text, why);
		return 0;
	}
	entry.text = aw_store_dup(reader->store, aw_str_from(text));
	return entry.text != NULL ? append(reader, &reader->layer->env, &entry) : -ENOMEM;
}

static int read_preset(struct reader *reader, const char *name)
{
	for (size_t i = 0; aw_policy_preset_name(i) != NULL; i++)
		if (aw_str_is(aw_str_from(name), aw_policy_preset_name(i))) {
			reader->layer->extends = aw_policy_preset_name(i);
			return 0;
		}
	refuse(reader, "preset", name, "is none of strict, balanced, offline, learn");
	return 0;
}

static void read_limits(struct reader *reader, const struct aw_policy_command *command)
{
	for (size_t i = 0; i < AW_LIMIT_COUNT; i++)
		if (command->limit[i] != 0)
			reader->layer->limit[i] = (struct aw_layer_limit){
				command->limit[i], true, { reader->layer->source, 0 }
			};
}

int aw_layer_from_command(struct aw_store *store, const struct aw_policy_command *command,
			  const char *home, struct aw_layer **ret, struct aw_policy_errors *errors)
{
	const struct {
		const char *const *items;
		int (*read)(struct reader *reader, const char *text);
	} lists[] = {
		{ command->allow, read_allow }, { command->deny, read_deny },
		{ command->mount_ro, read_ro }, { command->mount_rw, read_rw },
		{ command->env, read_env },
	};
	struct aw_policy_source *source =
		aw_store_source(store, AW_NET_LAYER_COMMAND, "command line");
	struct reader reader = { store, NULL, errors, home };
	int r = 0;

	reader.layer = source != NULL ? aw_layer_new(store, source) : NULL;
	if (reader.layer == NULL)
		return -ENOMEM;
	reader.layer->is_offline = command->is_offline;
	read_limits(&reader, command);
	if (command->preset != NULL)
		r = read_preset(&reader, command->preset);
	for (size_t i = 0; i < AW_ARRAY_LEN(lists); i++)
		for (const char *const *item = lists[i].items; item != NULL && *item != NULL;
		     item++) {
			if (r == 0)
				r = lists[i].read(&reader, *item);
		}
	if (r == 0)
		*ret = reader.layer;
	return r;
}
