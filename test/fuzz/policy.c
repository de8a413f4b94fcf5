/*
 * Policies: a user's, a project's and a system's text with NULs between them. Whatever they say, an
 * accepted policy can be shown, read again and mapped by gate, every error has a printable place, and
 * neither the project nor the system brings in anything that the user alone did not grant.
 */
#include <stdlib.h>

#include "base/own.h"
#include "fuzz.h"
#include "policy/assemble-internal.h"

struct trial {
	struct aw_str text[3];
	struct aw_policy_errors errors;
	struct aw_policy *policy;
};

static const enum aw_net_layer kinds[] = { AW_NET_LAYER_USER, AW_NET_LAYER_PROJECT,
					   AW_NET_LAYER_SYSTEM };

static void parse(struct trial *trial, struct aw_store *store, size_t which, struct aw_layer **ret)
{
	struct aw_policy_source *source = aw_store_source(store, kinds[which], "fuzz.json");

	if (source == NULL ||
	    aw_layer_parse(store, source, trial->text[which], "/home/u", ret, &trial->errors) < 0)
		abort();
}

/* With the first @count texts. */
static void build(struct trial *trial, size_t count)
{
	struct aw_policy_sources sources = { .home = "/home/u", .workspace = "/home/u/p" };
	struct aw_store *store = aw_store_new();
	struct aw_layers layers = { 0 };
	struct aw_layer **slots[] = { &layers.user, &layers.project, &layers.system };
	struct aw_error err;

	trial->policy = store != NULL ? aw_store_alloc(store, 1, sizeof(*trial->policy)) : NULL;
	if (trial->policy == NULL)
		abort();
	trial->policy->store = store;
	for (size_t i = 0; i < count; i++)
		if (trial->text[i].len > 0)
			parse(trial, store, i, slots[i]);
	if (aw_policy_errors_total(&trial->errors) > 0)
		return;
	if (aw_policy_assemble(&sources, &layers, trial->policy, &trial->errors, &err) < 0)
		abort();
}

static void hold_errors(const struct aw_policy_errors *errors)
{
	for (size_t i = 0; i < errors->count; i++) {
		const struct aw_policy_error *error = &errors->item[i];

		assert(error->message[0] != '\0');
		for (const char *c = error->message; *c != '\0'; c++)
			assert((unsigned char)*c >= 0x20);
		for (const char *c = error->pointer; *c != '\0'; c++)
			assert((unsigned char)*c >= 0x20);
	}
}

static void hold_policy(const struct aw_policy *policy)
{
	autodrop(aw_buf_fini) struct aw_buf out = AW_BUF_INIT(8 << 20);
	struct aw_policy_errors errors = { 0 };
	struct aw_error err;

	assert(aw_net_check(policy->net, aw_net_size(policy->net), &err) == 0);
	assert(policy->rules.count == policy->net->rule_count);
	assert(aw_policy_show(policy, true, &out) == 0);
	/* Only a list can have grown beyond what one file may hold. */
	if (policy->rules.count < 256 && policy->read.count < 256 && policy->deny.count < 256)
		assert(aw_policy_check(aw_buf_str(&out), AW_NET_LAYER_USER, "shown", "/home/u",
				       &errors, &err) == 0);
}

/* What @narrow grants @wide grants: asked for the rule's name, or one below it. */
static void hold_narrower(const struct aw_policy *narrow, const struct aw_policy *wide)
{
	for (uint32_t i = 0; i < narrow->net->rule_count; i++) {
		const struct aw_net_rule *rule = &narrow->net->rules[i];
		struct aw_net_verdict theirs, ours;
		char name[AW_NET_NAME_MAX + 3];

		(void)aw_str_format(name, sizeof(name), "%s%s",
				    rule->form == AW_NET_BELOW ? "x." : "", rule->name);
		aw_net_decide(narrow->net, aw_str_from(name), rule->port, &theirs);
		aw_net_decide(wide->net, aw_str_from(name), rule->port, &ours);
		if (theirs.reason != AW_NET_GRANTED)
			continue;
		assert(ours.reason == AW_NET_GRANTED);
		assert(!theirs.may_be_private || ours.may_be_private);
	}
	assert(wide->has_network || !narrow->has_network);
	assert(narrow->net->port_count <= wide->net->port_count);
	assert(narrow->mounts.count <= wide->mounts.count);
	assert(narrow->env.count <= wide->env.count);
	assert((narrow->degraded & ~wide->degraded) == 0);
	assert((wide->protect & ~narrow->protect) == 0);
	for (size_t i = 0; i < AW_LIMIT_COUNT; i++)
		assert(wide->limit[i] == 0 ||
		       (narrow->limit[i] != 0 && narrow->limit[i] <= wide->limit[i]));
	assert(narrow->read.is_present || !wide->read.is_present);
	assert(narrow->write.is_present || !wide->write.is_present);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct aw_str rest = fuzz_str(data, size);
	struct trial alone = { 0 }, all = { 0 };

	for (size_t i = 0; i < 3 && aw_str_next(&rest, '\0', &all.text[i]); i++)
		alone.text[i] = all.text[i];
	build(&alone, 1);
	build(&all, 3);
	hold_errors(&alone.errors);
	hold_errors(&all.errors);
	if (aw_policy_errors_total(&alone.errors) == 0)
		hold_policy(alone.policy);
	if (aw_policy_errors_total(&all.errors) == 0) {
		hold_policy(all.policy);
		hold_narrower(all.policy, alone.policy);
	}
	aw_policy_errors_fini(&alone.errors);
	aw_policy_errors_fini(&all.errors);
	aw_policy_drop(&alone.policy);
	aw_policy_drop(&all.policy);
	return 0;
}
