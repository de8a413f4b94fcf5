/*
 * What a project's .warden.json asks for beyond what the person granted.
 *
 * The file is hostile: it wants to be granted. So a request is shown as what it is, one line each,
 * escaped, with a command that does exactly that and nothing else; there is no "grant all", and a
 * relay, or what is denied or kept out by /etc, comes without a command.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/own.h"
#include "policy/domain.h"
#include "policy/merge-internal.h"
#include "policy/paths.h"

#define AT(member) offsetof(struct aw_layer, member)
#define ASKS_MAX 64 /* a person reads these; what is beyond is counted */

struct asker {
	struct aw_merge *merge;
	size_t left_out;
};

static int ask(struct asker *asker, const struct aw_policy_entry *entry, const char *command,
	       const char *wish)
{
	struct aw_policy *policy = asker->merge->policy;
	struct aw_policy_error place = { .kind = AW_POLICY_MALFORMED };

	if (policy->asks.count == ASKS_MAX) {
		asker->left_out++;
		return 0;
	}
	aw_origin_head(&entry->from, &place);
	return aw_remark(asker->merge->store, &policy->asks, command, "%s:%u asks for %s",
			 place.file, place.line, wish);
}

static bool is_met(const struct aw_policy_list *list, const struct aw_policy_entry *entry,
		   aw_meet *meet, const void *context)
{
	struct aw_policy_entry common;

	for (size_t i = 0; i < list->count; i++)
		if (meet(&list->entry[i], entry, context, &common) &&
		    aw_entry_is_same(&common, entry))
			return true;
	return false;
}

/* Whether the system's policy would take it away again. */
static bool is_kept_out(struct aw_merge *merge, size_t offset, const struct aw_policy_entry *entry,
			aw_meet *meet, const void *context)
{
	const struct aw_claim *claim = &merge->narrow[AW_NARROW_SYSTEM];
	bool is_present = false;

	for (size_t i = 0; i < claim->count; i++) {
		const struct aw_policy_list *list = aw_layer_list(claim->layer[i], offset);

		is_present |= list->is_present;
		if (is_met(list, entry, meet, context))
			return false;
	}
	return is_present;
}

static bool is_denied(const struct aw_merge *merge, const struct aw_policy_entry *entry)
{
	static const struct aw_policy_list none;
	const struct aw_port_lists ports = { &none, &none };
	const struct aw_claim *claims[] = { &merge->grants, &merge->narrow[AW_NARROW_SYSTEM] };
	struct aw_policy_entry common;

	for (size_t i = 0; i < AW_ARRAY_LEN(claims); i++)
		for (size_t j = 0; j < claims[i]->count; j++) {
			const struct aw_policy_list *denied = &claims[i]->layer[j]->denied;

			for (size_t k = 0; k < denied->count; k++) {
				struct aw_policy_entry rule = denied->entry[k];

				rule.port = rule.port == 0 ? entry->port : rule.port;
				if (aw_meet_domain(&rule, entry, &ports, &common))
					return true;
			}
		}
	return false;
}

static int ask_domain(struct asker *asker, const struct aw_policy_entry *entry)
{
	struct aw_merge *merge = asker->merge;
	const struct aw_port_lists ports = { &merge->state.ports, &merge->state.ports };
	struct aw_net_rule rule = { .form = entry->form, .port = entry->port };
	char text[AW_DOMAIN_TEXT_MAX], wish[AW_DOMAIN_TEXT_MAX + 96], command[sizeof(wish)];
	const char *kind;

	if (is_met(&merge->state.allowed, entry, aw_meet_domain, &ports))
		return 0;
	(void)aw_str_format(rule.name, sizeof(rule.name), "%s", entry->text);
	aw_net_rule_format(&rule, text, sizeof(text));
	if (aw_policy_is_relay(aw_str_from(entry->text), &kind)) {
		(void)aw_str_format(wish, sizeof(wish), "%s, a %s service: not offered", text,
				    kind);
		return ask(asker, entry, NULL, wish);
	}
	if (is_denied(merge, entry)) {
		(void)aw_str_format(wish, sizeof(wish), "%s, which is denied", text);
		return ask(asker, entry, NULL, wish);
	}
	if (is_kept_out(merge, AT(allowed), entry, aw_meet_domain, &ports)) {
		(void)aw_str_format(wish, sizeof(wish), "%s, which the system's policy keeps out",
				    text);
		return ask(asker, entry, NULL, wish);
	}
	/* A pattern must not reach the shell as a glob. */
	(void)aw_str_format(command, sizeof(command), "warden allowlist add %s%s%s --project",
			    entry->form == AW_NET_BELOW ? "'" : "", text,
			    entry->form == AW_NET_BELOW ? "'" : "");
	return ask(asker, entry, command, text);
}

/* Quoted for a shell; false for what is better not pasted into one: aw_str_escape would change it. */
static bool quote(const char *path, char *out, size_t size)
{
	char shown[AW_PATH_MAX + 1];

	(void)aw_str_escape(aw_str_from(path), shown, sizeof(shown));
	return strcmp(shown, path) == 0 && aw_str_format(out, size, "'%s'", path) >= 0;
}

static int ask_mount(struct asker *asker, const struct aw_policy_entry *entry)
{
	struct aw_merge *merge = asker->merge;
	char quoted[300], shown[200], wish[300], command[400];
	bool is_same_place = strcmp(entry->text, entry->host) == 0;

	for (size_t i = 0; i < merge->state.mounts.count; i++) {
		const struct aw_policy_entry *mount = &merge->state.mounts.entry[i];

		if (aw_path_is_within(entry->host, mount->host) &&
		    mount->is_writable >= entry->is_writable)
			return 0;
	}
	(void)aw_str_escape(aw_str_from(entry->host), shown, sizeof(shown));
	(void)aw_str_format(wish, sizeof(wish), "the directory %s, %s", shown,
			    entry->is_writable ? "writable" : "read-only");
	if (!is_same_place || !quote(entry->host, quoted, sizeof(quoted)))
		return ask(asker, entry, "an element of \"mounts\" in your own policy", wish);
	(void)aw_str_format(command, sizeof(command), "warden run %s %s",
			    entry->is_writable ? "--rw" : "--ro", quoted);
	return ask(asker, entry, command, wish);
}

static int ask_env(struct asker *asker, const struct aw_policy_entry *entry)
{
	char wish[300], command[300];

	if (is_met(&asker->merge->state.env, entry, aw_meet_text, NULL))
		return 0;
	(void)aw_str_format(wish, sizeof(wish), "the variable %s", entry->text);
	(void)aw_str_format(command, sizeof(command), "warden run --env %s", entry->text);
	return ask(asker, entry, command, wish);
}

static int ask_port(struct asker *asker, const struct aw_policy_entry *entry)
{
	char wish[80];

	if (is_met(&asker->merge->state.ports, entry, aw_meet_port, NULL))
		return 0;
	(void)aw_str_format(wish, sizeof(wish), "port %u of every granted name", entry->port);
	return ask(asker, entry, "\"allowed_ports\" in your own policy", wish);
}

static int ask_private(struct asker *asker, const struct aw_policy_entry *entry)
{
	static const struct aw_policy_list none;
	const struct aw_port_lists ports = { &none, &none };
	char wish[AW_DOMAIN_TEXT_MAX + 64];

	if (is_met(&asker->merge->state.private, entry, aw_meet_domain, &ports))
		return 0;
	(void)aw_str_format(wish, sizeof(wish), "private addresses behind %s", entry->text);
	return ask(asker, entry, "\"allow_private\" in your own policy", wish);
}

static int ask_degraded(struct asker *asker, const struct aw_policy_entry *entry)
{
	char wish[80];

	if (is_met(&asker->merge->state.degraded, entry, aw_meet_text, NULL))
		return 0;
	(void)aw_str_format(wish, sizeof(wish), "starting without %s", entry->text);
	return ask(asker, entry, "\"allow_degraded\" in your own policy", wish);
}

static int ask_path(struct asker *asker, const struct aw_policy_list *granted, const char *key,
		    const struct aw_policy_entry *entry)
{
	char shown[200], wish[300], command[80];

	if (!granted->is_present || is_met(granted, entry, aw_meet_path, NULL))
		return 0;
	(void)aw_str_escape(aw_str_from(entry->text), shown, sizeof(shown));
	(void)aw_str_format(wish, sizeof(wish), "%s in %s", shown, key);
	(void)aw_str_format(command, sizeof(command), "\"%s\" in your own policy", key);
	return ask(asker, entry, command, wish);
}

static int ask_read(struct asker *asker, const struct aw_policy_entry *entry)
{
	return ask_path(asker, &asker->merge->state.read, "read_paths", entry);
}

static int ask_write(struct asker *asker, const struct aw_policy_entry *entry)
{
	return ask_path(asker, &asker->merge->state.write, "write_paths", entry);
}

int aw_merge_asks(struct aw_merge *merge)
{
	static const struct {
		size_t offset;
		int (*ask)(struct asker *asker, const struct aw_policy_entry *entry);
	} kinds[] = {
		{ AT(read), ask_read },       { AT(write), ask_write },
		{ AT(mounts), ask_mount },    { AT(allowed), ask_domain },
		{ AT(private), ask_private }, { AT(ports), ask_port },
		{ AT(env), ask_env },         { AT(degraded), ask_degraded },
	};
	struct asker asker = { merge, 0 };
	int r = 0;

	if (merge->project == NULL)
		return 0;
	for (size_t i = 0; i < AW_ARRAY_LEN(kinds); i++) {
		const struct aw_policy_list *list = aw_layer_list(merge->project, kinds[i].offset);

		for (size_t j = 0; j < list->count && r == 0; j++)
			r = kinds[i].ask(&asker, &list->entry[j]);
	}
	if (r == 0 && asker.left_out > 0)
		r = aw_remark(merge->store, &merge->policy->asks, NULL,
			      "%s asks for %zu things more", merge->project->source->name,
			      asker.left_out);
	return r;
}
