/*
 * environ - the environment of the agent, built from nothing.
 *
 * Of the caller's variables only what a list names enters: terminal and locale settings, the agent's
 * own API keys, and what the policy passes. Everything else stays outside, by name unknown to the
 * agent, and is counted. What the cell itself needs (HOME, PATH, proxies, toolchains, identity) is set.
 */
#pragma once

#include "base/error.h"
#include "monitor/prepare.h"

/* Fill in prepared->env and env_left_out. The rest of @prepared is complete. */
int aw_environ_build(struct aw_prepared *prepared, char *const *caller, const char *env_file,
		     struct aw_error *err);

/*
 * Parse an env file: NAME=VALUE lines, # comments, optional "export ", quotes around the value
 * taken off. Calls @add for each; -EBADMSG names the line. Pure.
 */
int aw_environ_parse_file(struct aw_str text,
			  int (*add)(void *data, struct aw_str name, struct aw_str value),
			  void *data, struct aw_error *err);

/* The value of @name in an environment vector, or NULL. */
const char *aw_environ_get(char *const *environment, const char *name);
