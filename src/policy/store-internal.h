/*
 * store - the memory of one policy: an arena, and the texts that its values point into.
 *
 * Whatever a policy holds is allocated here and goes with aw_store_drop, so that half-built policies
 * need no unwinding. Sources stay for as long as the policy: an origin is an offset in one of them.
 */
#pragma once

#include <stddef.h>

#include "base/str.h"
#include "policy/json.h"
#include "policy/net.h"

struct aw_policy_source {
	enum aw_net_layer layer;
	const char *name;     /* as a person would name it: a path, "preset balanced" */
	struct aw_json *json; /* NULL for the command line and agent profiles */
	struct aw_policy_source *next;
};

struct aw_store {
	struct aw_store_chunk *chunks;
	struct aw_policy_source *sources;
};

struct aw_store *aw_store_new(void);
void aw_store_drop(struct aw_store **slot);

/* Zeroed, aligned for any type; NULL when out of memory. @count 0 is a valid, empty array. */
void *aw_store_alloc(struct aw_store *store, size_t count, size_t size);
char *aw_store_dup(struct aw_store *store, struct aw_str text);

/* A source named @name (copied); NULL when out of memory. */
struct aw_policy_source *aw_store_source(struct aw_store *store, enum aw_net_layer layer,
					 const char *name);
