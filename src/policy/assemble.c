#include "policy/assemble-internal.h"

#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "policy/data-internal.h"
#include "policy/merge-internal.h"
#include "policy/show-internal.h"

#define PRESET_DEPTH_MAX 4

struct assembly {
	const struct aw_policy_sources *sources;
	const struct aw_layers *layers;
	const struct aw_layer *directory, *agent_entry;
	struct aw_store *store;
	struct aw_policy_errors *errors;
	struct aw_error *err;
};

static const struct aw_layer *find_branch(const struct aw_layer *layer,
					  enum aw_layer_branch_kind kind, const char *name)
{
	if (layer == NULL || name == NULL)
		return NULL;
	for (struct aw_layer_branch *b = layer->branches; b != NULL; b = b->next)
		if (b->kind == kind && strcmp(b->name, name) == 0)
			return b->layer;
	return NULL;
}

static void claim_add(struct aw_claim *claim, const struct aw_layer *layer)
{
	if (layer != NULL && claim->count < AW_CLAIM_LAYERS_MAX)
		claim->layer[claim->count++] = layer;
}

/* Add the preset @name, what it extends in front of it. */
static int add_preset(struct assembly *assembly, struct aw_claim *claim, const char *name,
		      unsigned depth)
{
	const struct aw_data *data =
		aw_data_find(aw_data_presets, aw_data_preset_count, aw_str_from(name));
	struct aw_policy_source *source;
	struct aw_layer *layer = NULL;
	char origin[64];
	int r;

	/* Both are our own mistakes: presets are compiled in, and a word of the table was checked. */
	if (data == NULL || depth == PRESET_DEPTH_MAX)
		return aw_refuse(assembly->err, EINVAL, "preset '%s' cannot be resolved", name);
	(void)aw_str_format(origin, sizeof(origin), "preset %s", name);
	source = aw_store_source(assembly->store, AW_NET_LAYER_PRESET, origin);
	if (source == NULL)
		return -ENOMEM;
	r = aw_layer_parse(assembly->store, source, (struct aw_str){ data->text, data->len },
			   assembly->sources->home, &layer, assembly->errors);
	if (r == 0 && layer->extends != NULL)
		r = add_preset(assembly, claim, layer->extends, depth + 1);
	if (r == 0)
		claim_add(claim, layer);
	return r;
}

static const char *choose_preset(const struct assembly *assembly)
{
	const struct aw_layers *layers = assembly->layers;
	const struct aw_layer *const by_rank[] = { layers->command, assembly->directory,
						   layers->user };

	for (size_t i = 0; i < AW_ARRAY_LEN(by_rank); i++)
		if (by_rank[i] != NULL && by_rank[i]->extends != NULL)
			return by_rank[i]->extends;
	return "balanced";
}

static int make_claims(struct assembly *assembly, struct aw_merge *merge)
{
	const struct aw_layers *layers = assembly->layers;
	struct {
		struct aw_claim *claim;
		const struct aw_layer *layer;
	} narrowing[] = {
		{ &merge->narrow[AW_NARROW_SYSTEM], layers->system },
		{ &merge->narrow[AW_NARROW_PROJECT], layers->project },
	};
	int r;

	merge->policy->preset = choose_preset(assembly);
	r = add_preset(assembly, &merge->grants, merge->policy->preset, 0);
	claim_add(&merge->grants, layers->agent);
	claim_add(&merge->grants, layers->user);
	claim_add(&merge->grants, assembly->agent_entry);
	claim_add(&merge->grants, assembly->directory);
	claim_add(&merge->grants, layers->command);
	for (size_t i = 0; i < AW_ARRAY_LEN(narrowing) && r == 0; i++) {
		if (narrowing[i].layer == NULL)
			continue;
		if (narrowing[i].layer->extends != NULL)
			r = add_preset(assembly, narrowing[i].claim, narrowing[i].layer->extends,
				       0);
		claim_add(narrowing[i].claim, narrowing[i].layer);
	}
	merge->project = layers->project;
	return r;
}

int aw_policy_assemble(const struct aw_policy_sources *sources, const struct aw_layers *layers,
		       struct aw_policy *policy, struct aw_policy_errors *errors,
		       struct aw_error *err)
{
	struct assembly assembly = { sources, layers, NULL, NULL, policy->store, errors, err };
	struct aw_merge merge = {
		.store = policy->store,
		.policy = policy,
		.errors = errors,
		.workspace = sources->workspace,
	};
	int r;

	if (sources->agent != NULL)
		assembly.agent_entry =
			find_branch(layers->user, AW_BRANCH_AGENT, sources->agent->name);
	assembly.directory = find_branch(layers->user, AW_BRANCH_DIRECTORY, sources->workspace);
	r = make_claims(&assembly, &merge);
	if (r == 0)
		r = aw_merge_run(&merge);
	return r == 0 ? aw_policy_seal(policy) : r;
}
