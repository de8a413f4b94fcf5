/*
 * merge - many layers to one policy: united where they grant, met where they narrow.
 *
 *	grants = preset + agent + user + directory + command line       (a claim of several layers)
 *	state  = united grants, then for /etc and for the project: narrowed to their claim
 *
 * A key that a narrowing claim does not hold narrows nothing; one it holds, if only as an empty list,
 * leaves what both name. Lists in a state are never changed in place, so a copy of the struct is a
 * snapshot.
 */
#pragma once

#include "policy/layer-internal.h"

#define AW_CLAIM_LAYERS_MAX 16

struct aw_claim {
	const struct aw_layer *layer[AW_CLAIM_LAYERS_MAX];
	size_t count;
};

/* What is still open while claims are applied. */
struct aw_state {
	struct aw_policy_list read, write, mounts, env, degraded;
	struct aw_policy_list allowed, private, ports;
};

struct aw_merge {
	struct aw_store *store;
	struct aw_policy *policy;
	struct aw_policy_errors *errors;
	struct aw_claim grants;
	struct aw_claim narrow[2];      /* the system's, the project's; either may be empty */
	const struct aw_layer *project; /* the project's own layer, for its asks; NULL */
	struct aw_state state;
	const char *workspace; /* host path; NULL */
};

enum {
	AW_NARROW_SYSTEM,
	AW_NARROW_PROJECT
};

/* Fill merge->policy. 0 or -ENOMEM; contradictions go to merge->errors. */
int aw_merge_run(struct aw_merge *merge);

/* The network part: unite and narrow the state's lists, then make policy->net of it. */
int aw_merge_net_unite(struct aw_merge *merge);
int aw_merge_net_narrow(struct aw_merge *merge, const struct aw_claim *claim);
int aw_merge_net_finish(struct aw_merge *merge);

/* Compare the project's wishes with merge->state and list in policy->asks what goes beyond it. */
int aw_merge_asks(struct aw_merge *merge);

/* Both say whether two entries of a kind have something in common, and what. */
typedef bool aw_meet(const struct aw_policy_entry *a, const struct aw_policy_entry *b,
		     const void *context, struct aw_policy_entry *ret);

bool aw_meet_path(const struct aw_policy_entry *a, const struct aw_policy_entry *b,
		  const void *context, struct aw_policy_entry *ret);
bool aw_meet_text(const struct aw_policy_entry *a, const struct aw_policy_entry *b,
		  const void *context, struct aw_policy_entry *ret);
bool aw_meet_mount(const struct aw_policy_entry *a, const struct aw_policy_entry *b,
		   const void *context, struct aw_policy_entry *ret);
bool aw_meet_port(const struct aw_policy_entry *a, const struct aw_policy_entry *b,
		  const void *context, struct aw_policy_entry *ret);

/* @context: the two lists of allowed ports, a struct aw_port_lists. */
struct aw_port_lists {
	const struct aw_policy_list *own, *claim;
};
bool aw_meet_domain(const struct aw_policy_entry *a, const struct aw_policy_entry *b,
		    const void *context, struct aw_policy_entry *ret);

bool aw_entry_is_same(const struct aw_policy_entry *a, const struct aw_policy_entry *b);

/* The list at @offset of a layer. */
const struct aw_policy_list *aw_layer_list(const struct aw_layer *layer, size_t offset);

/* Append unless the same is there. */
int aw_list_add(struct aw_store *store, struct aw_policy_list *list,
		const struct aw_policy_entry *entry);

/* All entries of one list (at @offset of struct aw_layer) of all layers, without repetitions. */
int aw_unite(struct aw_store *store, const struct aw_claim *claim, size_t offset,
	     struct aw_policy_list *ret);

/* Leave of *@list what it has in common with @claim; a claim that is not present leaves all. */
int aw_narrow(struct aw_store *store, struct aw_policy_list *list,
	      const struct aw_policy_list *claim, aw_meet *meet, const void *context);

int aw_remark(struct aw_store *store, struct aw_policy_remarks *remarks, const char *command,
	      const char *format, ...) __attribute__((format(printf, 4, 5)));

/* A contradiction between layers, reported at the place of one of them. */
void aw_merge_error(struct aw_merge *merge, const struct aw_policy_origin *origin,
		    const char *pointer, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
