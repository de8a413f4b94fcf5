/*
 * registered - a state directory in a scratch directory, and sessions of processes that end as told.
 */
#pragma once

#include "store/scratch.h"
#include "store/session.h"

struct registered {
	struct scratch *scratch;
	struct aw_state state;
	char home[128], runtime[128];
};

int registered_setup(void **state);
int registered_teardown(void **state);

#define IN_REGISTRY(test) \
	cmocka_unit_test_setup_teardown(test, registered_setup, registered_teardown)

/* Open the directories once more, without $XDG_RUNTIME_DIR if @is_bare. */
void registered_open(const struct registered *registered, bool is_bare, struct aw_state *ret);

/* A session of this process. */
void registered_create(const struct registered *registered, const char *project,
		       struct aw_session *ret);

/* A session whose process was killed: its lock is free, its files are there. */
void registered_kill_one(const struct registered *registered, const char *project, char id[9]);

/* Whether STATE/sessions/ID/@name, or RUNTIME/ID with an empty @name, is there. */
bool registered_has(const struct registered *registered, const char *id, const char *name);
