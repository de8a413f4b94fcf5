/* The network part of a merge. */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "policy/merge-internal.h"

#define AT(member) offsetof(struct aw_layer, member)

static bool is_within_name(const struct aw_policy_entry *a, const struct aw_policy_entry *b)
{
	size_t a_len = strlen(a->text), b_len = strlen(b->text);

	if (a_len == b_len)
		return strcmp(a->text, b->text) == 0 &&
		       (a->form == b->form || b->form == AW_NET_APEX_AND_BELOW);
	return b->form != AW_NET_EXACT && a_len > b_len && a->text[a_len - b_len - 1] == '.' &&
	       strcmp(a->text + a_len - b_len, b->text) == 0;
}

static bool has_port(const struct aw_policy_list *list, uint16_t port)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->entry[i].port == port)
			return true;
	return false;
}

/*
 * What two patterns have in common is the narrower of them or nothing: patterns are subtrees. An entry
 * without a port stands for the allowed ports of its side; a claim that lists no ports leaves them.
 */
bool aw_meet_domain(const struct aw_policy_entry *a, const struct aw_policy_entry *b,
		    const void *context, struct aw_policy_entry *ret)
{
	const struct aw_port_lists *ports = context;

	if (is_within_name(a, b))
		*ret = *a;
	else if (is_within_name(b, a))
		*ret = *b;
	else
		return false;
	ret->port = a->port != 0 ? a->port : b->port;
	if (a->port == b->port)
		return true;
	if (a->port == 0)
		return has_port(ports->own, b->port);
	return b->port == 0 && (!ports->claim->is_present || has_port(ports->claim, a->port));
}

static int compare_entries(const void *left, const void *right)
{
	const struct aw_policy_entry *a = left, *b = right;
	int r = (int)b->is_denied - (int)a->is_denied;

	if (r == 0)
		r = strcmp(a->text, b->text);
	if (r == 0)
		r = (int)a->form - (int)b->form;
	if (r == 0)
		r = (int)a->port - (int)b->port;
	if (r == 0 && a->from.source != NULL && b->from.source != NULL)
		r = (int)a->from.source->layer - (int)b->from.source->layer;
	return r;
}

/* Sorted, each once: of two that say the same the one of the wider layer stays. */
static void sort_entries(struct aw_policy_list *list)
{
	size_t kept = 0;

	if (list->count == 0)
		return;
	qsort(list->entry, list->count, sizeof(*list->entry), compare_entries);
	for (size_t i = 1; i < list->count; i++) {
		if (aw_entry_is_same(&list->entry[kept], &list->entry[i]))
			list->entry[kept].is_private |= list->entry[i].is_private;
		else
			list->entry[++kept] = list->entry[i];
	}
	list->count = kept + 1;
}

static int append_list(struct aw_store *store, const struct aw_policy_list *more,
		       struct aw_policy_list *list)
{
	for (size_t i = 0; i < more->count; i++)
		if (aw_list_append(store, list, &more->entry[i]) == NULL)
			return -ENOMEM;
	return 0;
}

/* As aw_unite, for lists that are long: repetitions go by sorting. */
static int unite_domains(struct aw_store *store, const struct aw_claim *claim, size_t offset,
			 struct aw_policy_list *ret)
{
	*ret = (struct aw_policy_list){ 0 };
	for (size_t i = 0; i < claim->count; i++) {
		const struct aw_policy_list *list = aw_layer_list(claim->layer[i], offset);

		ret->is_present |= list->is_present;
		if (append_list(store, list, ret) < 0)
			return -ENOMEM;
	}
	sort_entries(ret);
	return 0;
}

static int unite_net(struct aw_store *store, const struct aw_claim *claim, struct aw_state *ret)
{
	int r = unite_domains(store, claim, AT(allowed), &ret->allowed);

	if (r == 0)
		r = unite_domains(store, claim, AT(private), &ret->private);
	return r == 0 ? aw_unite(store, claim, AT(ports), &ret->ports) : r;
}

int aw_merge_net_unite(struct aw_merge *merge)
{
	return unite_net(merge->store, &merge->grants, &merge->state);
}

int aw_merge_net_narrow(struct aw_merge *merge, const struct aw_claim *claim)
{
	struct aw_state theirs = { 0 };
	struct aw_state *own = &merge->state;
	struct aw_port_lists ports = { &own->ports, &theirs.ports };
	size_t before = own->allowed.count;
	char origin[256];
	int r = unite_net(merge->store, claim, &theirs);

	if (r == 0)
		r = aw_narrow(merge->store, &own->allowed, &theirs.allowed, aw_meet_domain, &ports);
	if (r == 0)
		r = aw_narrow(merge->store, &own->private, &theirs.private, aw_meet_domain, &ports);
	if (r == 0)
		r = aw_narrow(merge->store, &own->ports, &theirs.ports, aw_meet_port, NULL);
	if (r < 0 || !theirs.allowed.is_present || own->allowed.count == before)
		return r;
	aw_policy_origin_format(
		&(struct aw_policy_origin){ claim->layer[claim->count - 1]->source, 0 }, origin,
		sizeof(origin));
	return aw_remark(merge->store, &merge->policy->notes, NULL,
			 "%s leaves %zu of %zu granted names", origin, own->allowed.count, before);
}

static bool is_name_equal(const struct aw_policy_entry *a, const struct aw_policy_entry *b)
{
	return a->form == b->form && strcmp(a->text, b->text) == 0;
}

/* allow_private grants nothing: it marks what is granted, or the part of it that it names. */
static int mark_private(struct aw_merge *merge, struct aw_policy_list *rules,
			const struct aw_policy_entry *private)
{
	static const struct aw_policy_list none;
	const struct aw_port_lists ports = { &none, &none };
	size_t count = rules->count;
	bool is_granted = false;
	char origin[256];

	for (size_t i = 0; i < count; i++) {
		struct aw_policy_entry common, any_port = *private;

		any_port.port = rules->entry[i].port;
		if (!aw_meet_domain(&rules->entry[i], &any_port, &ports, &common))
			continue;
		is_granted = true;
		common.is_private = true;
		if (is_name_equal(&common, &rules->entry[i]))
			rules->entry[i].is_private = true;
		else if (aw_list_append(merge->store, rules, &common) == NULL)
			return -ENOMEM;
	}
	if (is_granted)
		return 0;
	aw_policy_origin_format(&private->from, origin, sizeof(origin));
	return aw_remark(merge->store, &merge->policy->notes, NULL,
			 "allow_private names %s (%s), but nothing grants it", private->text,
			 origin);
}

static const struct aw_layer *find_offline(const struct aw_merge *merge)
{
	const struct aw_claim *claims[] = { &merge->grants, &merge->narrow[0], &merge->narrow[1] };

	for (size_t i = 0; i < AW_ARRAY_LEN(claims); i++)
		for (size_t j = 0; j < claims[i]->count; j++)
			if (claims[i]->layer[j]->is_offline)
				return claims[i]->layer[j];
	return NULL;
}

/* Denials and blocked ports of every layer, whichever side it is on. */
static int append_everywhere(const struct aw_merge *merge, size_t offset,
			     struct aw_policy_list *list)
{
	const struct aw_claim *claims[] = { &merge->grants, &merge->narrow[0], &merge->narrow[1] };
	int r = 0;

	for (size_t i = 0; i < AW_ARRAY_LEN(claims); i++)
		for (size_t j = 0; j < claims[i]->count && r == 0; j++)
			r = append_list(merge->store, aw_layer_list(claims[i]->layer[j], offset),
					list);
	return r;
}

static int compare_ports(const void *a, const void *b)
{
	return *(const uint16_t *)a - *(const uint16_t *)b;
}

/* Into an ascending array of AW_NET_PORTS_MAX; what does not fit is an error of @pointer's key. */
static uint16_t fill_ports(struct aw_merge *merge, const struct aw_policy_list *list,
			   const char *pointer, uint16_t *ports)
{
	size_t count = 0;

	for (size_t i = 0; i < list->count; i++) {
		bool is_there = false;

		for (size_t j = 0; j < count; j++)
			is_there |= ports[j] == list->entry[i].port;
		if (is_there)
			continue;
		if (count == AW_NET_PORTS_MAX) {
			aw_merge_error(merge, &list->entry[i].from, pointer,
				       "all layers together name more than %d ports",
				       AW_NET_PORTS_MAX);
			break;
		}
		ports[count++] = list->entry[i].port;
	}
	qsort(ports, count, sizeof(*ports), compare_ports);
	return (uint16_t)count;
}

static struct aw_net_rule rule_of(const struct aw_policy_entry *entry)
{
	struct aw_net_rule rule = {
		.form = entry->form,
		.layer = (uint8_t)(entry->from.source != NULL ? entry->from.source->layer
							      : AW_NET_LAYER_PRESET),
		.is_denied = entry->is_denied,
		.may_be_private = entry->is_private,
		.port = entry->port,
	};

	assert(strlen(entry->text) < sizeof(rule.name)); /* it was normalised */
	memcpy(rule.name, entry->text, strlen(entry->text) + 1);
	return rule;
}

static int make_rules(struct aw_merge *merge)
{
	struct aw_policy_list *rules = &merge->policy->rules;
	const struct aw_layer *offline = find_offline(merge);
	int r = 0;

	if (offline == NULL)
		*rules = merge->state.allowed;
	else
		r = aw_remark(merge->store, &merge->policy->notes, NULL,
			      "no network: %s says offline", offline->source->name);
	for (size_t i = 0; i < merge->state.private.count && r == 0 && offline == NULL; i++)
		r = mark_private(merge, rules, &merge->state.private.entry[i]);
	if (r == 0)
		r = append_everywhere(merge, AT(denied), rules);
	sort_entries(rules);
	return r;
}

int aw_merge_net_finish(struct aw_merge *merge)
{
	struct aw_policy *policy = merge->policy;
	struct aw_policy_list blocked = { 0 };
	struct aw_net *net;
	int r = make_rules(merge);

	if (r == 0)
		r = append_everywhere(merge, AT(blocked), &blocked);
	net = r == 0 ? calloc(1, sizeof(*net)) : NULL;
	if (net == NULL)
		return -ENOMEM;
	policy->net = net;
	net->magic = AW_NET_MAGIC;
	net->size = sizeof(*net);
	net->port_count = fill_ports(merge, &merge->state.ports,
				     "/capabilities/network/allowed_ports", net->ports);
	net->blocked_count =
		fill_ports(merge, &blocked, "/capabilities/network/blocked_ports", net->blocked);
	if (policy->rules.count > AW_NET_RULES_MAX) {
		aw_merge_error(merge, &policy->rules.entry[AW_NET_RULES_MAX].from,
			       "/capabilities/network",
			       "all layers together have more than %d rules", AW_NET_RULES_MAX);
		return 0;
	}
	for (size_t i = 0; i < policy->rules.count; i++)
		net->rules[i] = rule_of(&policy->rules.entry[i]);
	net->rule_count = (uint32_t)policy->rules.count;
	policy->has_network = aw_net_listen_ports(net, (uint16_t[1]){ 0 }, 1) > 0;
	return 0;
}
