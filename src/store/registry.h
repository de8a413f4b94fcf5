/*
 * registry - all sessions of a user: list them, find one by what a person typed, sweep the dead.
 */
#pragma once

#include "store/session.h"

enum aw_registry_scope {
	AW_REGISTRY_ALIVE = 1,
	AW_REGISTRY_ALL,
};

struct aw_registry_entry {
	char id[AW_SESSION_ID_LEN + 1];
	enum aw_session_life life;
	uint64_t started_ns;
};

struct aw_registry {
	size_t count;
	struct aw_registry_entry *entry; /* newest first */
};

/*
 * List sessions. With AW_REGISTRY_ALIVE a session that ended costs one look at status.json.
 * Malformed ones are left out. The caller frees with aw_registry_fini.
 */
int aw_registry_list(const struct aw_state *state, enum aw_registry_scope scope,
		     struct aw_registry *ret, struct aw_error *err);
void aw_registry_fini(struct aw_registry *registry);

/*
 * Find the session a person means by @operand: an id, the unique beginning of one, or the project's
 * directory (any path to it; of several, a unique one in @scope). NULL or empty: the only one that
 * is there. -ENOENT none, -ENOTUNIQ several (the message lists them), -errno.
 */
int aw_registry_find(const struct aw_state *state, enum aw_registry_scope scope,
		     const char *operand, struct aw_session_meta *ret, struct aw_error *err);

enum aw_registry_depth {
	AW_REGISTRY_RUNTIME = 1, /* what is left in the runtime directories: cheap, for a start */
	AW_REGISTRY_EVERYTHING,  /* every session without a status.json too */
};

/*
 * Sweep the dead: remove RUNTIME/ID of every session whose lock nobody holds, and write a
 * status.json that says AW_SESSION_UNEXPECTED where there is none. Does nothing while a session is
 * being made. Returns how many were swept, or -errno of the first failure; the rest is done then
 * as well. Some 30 us for each session that lives: after a start rather than before it.
 */
int aw_registry_sweep(const struct aw_state *state, enum aw_registry_depth depth,
		      struct aw_error *err);
