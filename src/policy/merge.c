#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/own.h"
#include "policy/merge-internal.h"
#include "policy/paths.h"
#include "policy/setters-internal.h"

#define AT(member) offsetof(struct aw_layer, member)

/* Parts of the state that unite and narrow alike. */
static const struct {
	size_t in_layer, in_state;
	aw_meet *meet;
} plain_lists[] = {
	{ AT(mounts), offsetof(struct aw_state, mounts), aw_meet_mount },
	{ AT(env), offsetof(struct aw_state, env), aw_meet_text },
	{ AT(degraded), offsetof(struct aw_state, degraded), aw_meet_text },
};

static struct aw_policy_list *state_list(struct aw_merge *merge, size_t offset)
{
	return (void *)((char *)&merge->state + offset);
}

static struct aw_policy_origin origin_of(const struct aw_claim *claim, size_t offset)
{
	for (size_t i = 0; i < claim->count; i++) {
		const struct aw_policy_list *list = aw_layer_list(claim->layer[i], offset);

		if (list->is_present)
			return list->count > 0
				       ? list->entry[0].from
				       : (struct aw_policy_origin){ claim->layer[i]->source, 0 };
	}
	return (struct aw_policy_origin){ NULL, 0 };
}

static int append_all(struct aw_store *store, struct aw_policy_list *list,
		      const struct aw_policy_list *more)
{
	for (size_t i = 0; i < more->count; i++)
		if (aw_list_add(store, list, &more->entry[i]) < 0)
			return -ENOMEM;
	return 0;
}

/* What a claim shows at all, and what of it may be written; a list that is not present is all. */
static int claim_paths(struct aw_merge *merge, const struct aw_claim *claim,
		       struct aw_policy_list *ret_seen, struct aw_policy_list *ret_written)
{
	int r = aw_unite(merge->store, claim, AT(read), ret_seen);

	if (r == 0)
		r = aw_unite(merge->store, claim, AT(write), ret_written);
	if (r == 0 && ret_seen->is_present)
		r = append_all(merge->store, ret_seen, ret_written);
	return r;
}

static int unite_paths(struct aw_merge *merge)
{
	struct aw_policy_origin origin = origin_of(&merge->grants, AT(read));
	int r = claim_paths(merge, &merge->grants, &merge->state.read, &merge->state.write);

	/* "The rest is hidden" and "everything may be written" cannot both hold. */
	if (r == 0 && merge->state.read.is_present && !merge->state.write.is_present)
		aw_merge_error(
			merge, &origin, "/capabilities/file_system/read_paths",
			"read_paths hides the rest of the workspace, so write_paths must say "
			"what may be written; [] for nothing");
	return r;
}

static int narrow_paths(struct aw_merge *merge, const struct aw_claim *claim)
{
	struct aw_policy_entry whole = { .text = AW_PATH_WORKSPACE };
	struct aw_policy_list seen, written;
	struct aw_policy_list *own[] = { &merge->state.read, &merge->state.write };
	int r = claim_paths(merge, claim, &seen, &written);

	if (r == 0 && seen.is_present && !written.is_present)
		written = seen;
	for (size_t i = 0; i < 2 && r == 0; i++) {
		const struct aw_policy_list *theirs = i == 0 ? &seen : &written;

		if (theirs->is_present && !own[i]->is_present &&
		    aw_list_append(merge->store, own[i], &whole) == NULL)
			return -ENOMEM;
		r = aw_narrow(merge->store, own[i], theirs, aw_meet_path, NULL);
	}
	return r;
}

/*
 * Two layers may bring the same directory to the same place, then the wider mode counts; different
 * directories at one place, or a place inside another's, cannot both be.
 */
static int settle_mounts(struct aw_merge *merge)
{
	struct aw_policy_list *mounts = &merge->state.mounts;
	struct aw_policy_list settled = { .is_present = mounts->is_present };

	for (size_t i = 0; i < mounts->count; i++) {
		struct aw_policy_entry *mount = &mounts->entry[i];
		struct aw_policy_entry *earlier = NULL;

		for (size_t j = 0; j < settled.count && earlier == NULL; j++)
			if (strcmp(settled.entry[j].text, mount->text) == 0)
				earlier = &settled.entry[j];
		if (earlier == NULL) {
			if (aw_list_append(merge->store, &settled, mount) == NULL)
				return -ENOMEM;
		} else if (strcmp(earlier->host, mount->host) == 0) {
			earlier->is_writable |= mount->is_writable;
		} else {
			aw_merge_error(merge, &mount->from, "/capabilities/file_system/mounts",
				       "two directories are mounted at the same place of the cell; "
				       "choose another \"at\"");
		}
		if (merge->workspace != NULL && aw_path_is_within(mount->host, merge->workspace))
			aw_merge_error(merge, &mount->from, "/capabilities/file_system/mounts",
				       "is a part of the project already: use write_paths or "
				       "deny_paths for it");
	}
	*mounts = settled;
	return 0;
}

static int unite_state(struct aw_merge *merge)
{
	int r = unite_paths(merge);

	for (size_t i = 0; i < AW_ARRAY_LEN(plain_lists) && r == 0; i++)
		r = aw_unite(merge->store, &merge->grants, plain_lists[i].in_layer,
			     state_list(merge, plain_lists[i].in_state));
	if (r == 0)
		r = settle_mounts(merge);
	return r == 0 ? aw_merge_net_unite(merge) : r;
}

static int narrow_state(struct aw_merge *merge, const struct aw_claim *claim)
{
	int r = narrow_paths(merge, claim);

	for (size_t i = 0; i < AW_ARRAY_LEN(plain_lists) && r == 0; i++) {
		struct aw_policy_list theirs;

		r = aw_unite(merge->store, claim, plain_lists[i].in_layer, &theirs);
		if (r == 0)
			r = aw_narrow(merge->store, state_list(merge, plain_lists[i].in_state),
				      &theirs, plain_lists[i].meet, NULL);
	}
	return r == 0 ? aw_merge_net_narrow(merge, claim) : r;
}

static unsigned mask_of(const struct aw_policy_list *list)
{
	unsigned mask = 0;

	for (size_t i = 0; i < list->count; i++)
		mask |= 1u << list->entry[i].port;
	return mask;
}

/* Protection that nobody mentions is on. A narrowing claim can only add to it. */
static int unite_protect(struct aw_merge *merge)
{
	struct aw_policy_list list;
	int r = aw_unite(merge->store, &merge->grants, AT(protect), &list);

	merge->policy->protect = list.is_present ? mask_of(&list) : AW_PROTECT_ALL;
	for (size_t i = 0; i < 2 && r == 0; i++) {
		r = aw_unite(merge->store, &merge->narrow[i], AT(protect), &list);
		merge->policy->protect |= mask_of(&list);
	}
	return r;
}

static int unite_deny(struct aw_merge *merge)
{
	struct aw_policy_list *deny = &merge->policy->deny;
	int r = aw_unite(merge->store, &merge->grants, AT(deny), deny);

	for (size_t i = 0; i < 2 && r == 0; i++) {
		struct aw_policy_list list;

		r = aw_unite(merge->store, &merge->narrow[i], AT(deny), &list);
		if (r == 0)
			r = append_all(merge->store, deny, &list);
	}
	return r;
}

static bool is_smaller(uint64_t a, uint64_t b)
{
	return a != 0 && (b == 0 || a < b);
}

static void take_smaller(struct aw_layer_limit *limit, const struct aw_layer *layer, size_t which)
{
	const struct aw_layer_limit *own = &layer->limit[which];

	if (own->is_set && (!limit->is_set || is_smaller(own->value, limit->value)))
		*limit = *own;
}

static bool is_default_layer(const struct aw_layer *layer)
{
	return layer->kind == AW_NET_LAYER_PRESET || layer->kind == AW_NET_LAYER_AGENT;
}

static int note_smaller(struct aw_merge *merge, size_t which, const struct aw_layer_limit *limit)
{
	const struct aw_layer *command = merge->grants.layer[merge->grants.count - 1];
	uint64_t asked = command->limit[which].value;
	char origin[256];

	if (!command->limit[which].is_set || limit->value == asked)
		return 0;
	aw_policy_origin_format(&limit->from, origin, sizeof(origin));
	return aw_remark(merge->store, &merge->policy->notes, NULL,
			 "%s: the command line says %llu, but %s says %llu and the smaller holds",
			 aw_policy_limit_key((enum aw_policy_limit)which),
			 (unsigned long long)asked, origin, (unsigned long long)limit->value);
}

/* A preset's limit is what holds where nobody wrote one; of what was written the smallest holds. */
static int settle_limit(struct aw_merge *merge, size_t which)
{
	struct aw_layer_limit limit = { .is_set = false };
	const struct aw_claim *grants = &merge->grants;

	for (size_t i = 0; i < grants->count; i++)
		if (!is_default_layer(grants->layer[i]))
			take_smaller(&limit, grants->layer[i], which);
	for (size_t i = grants->count; i > 0 && !limit.is_set; i--)
		limit = grants->layer[i - 1]->limit[which];
	for (size_t i = 0; i < 2; i++)
		for (size_t j = 0; j < merge->narrow[i].count; j++)
			take_smaller(&limit, merge->narrow[i].layer[j], which);
	merge->policy->limit[which] = limit.value;
	merge->policy->limit_from[which] = limit.from;
	return note_smaller(merge, which, &limit);
}

static void take_state(struct aw_merge *merge)
{
	struct aw_policy *policy = merge->policy;

	policy->read = merge->state.read;
	policy->write = merge->state.write;
	policy->mounts = merge->state.mounts;
	policy->env = merge->state.env;
	policy->degraded = mask_of(&merge->state.degraded);
	for (size_t i = 0; i < merge->grants.count; i++)
		if (merge->grants.layer[i]->default_agent != NULL)
			policy->default_agent = merge->grants.layer[i]->default_agent;
}

int aw_merge_run(struct aw_merge *merge)
{
	int r = unite_state(merge);

	if (r == 0)
		r = narrow_state(merge, &merge->narrow[AW_NARROW_SYSTEM]);
	if (r == 0)
		r = aw_merge_asks(merge);
	if (r == 0)
		r = narrow_state(merge, &merge->narrow[AW_NARROW_PROJECT]);
	if (r == 0)
		r = unite_deny(merge);
	if (r == 0)
		r = unite_protect(merge);
	for (size_t i = 0; i < AW_LIMIT_COUNT && r == 0; i++)
		r = settle_limit(merge, i);
	if (r == 0)
		r = aw_merge_net_finish(merge);
	if (r == 0)
		take_state(merge);
	return r;
}
