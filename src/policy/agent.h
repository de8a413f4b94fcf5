/*
 * agent - what Warden knows about one coding agent: how to find, start, log in and quieten it.
 *
 * Profiles are JSON files of the same kind as policies, held to a table of keys: the ones of
 * data/agents are part of the program, the user's own are CONFIG/agents/NAME.json and win over those.
 * A profile grants domains and environment variables like any other layer of a policy; /etc and the
 * project narrow it.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "base/str.h"
#include "policy/entry.h"
#include "policy/errors.h"

struct aw_store;

struct aw_agent_env {
	const char *name, *value;
};

struct aw_agent {
	const char *name;               /* what the user types: "claude" */
	const char *title;              /* "Claude Code" */
	const char *origin;             /* "agent profile claude", or the user's file */
	const char *install;            /* a command or sentence: how to get it */
	struct aw_policy_list binaries; /* names to look for, the first found is started */
	struct aw_policy_list args;     /* put between the binary and the user's arguments */
	struct aw_policy_list domains;  /* entries as in allowed_domains */
	struct aw_policy_list key_env;  /* API keys: passed if set on the host */
	const struct aw_agent_env *env; /* set inside */
	size_t env_count;
	const char *home_env;              /* variable that moves the state directory, NULL */
	const char *home_dir;              /* its default below HOME, NULL */
	struct aw_policy_list auth_paths;  /* login state below HOME: shared per user and agent */
	struct aw_policy_list login_paths; /* likewise, but taken over from `warden login` alone */
	struct aw_policy_list imports;     /* below HOME: host settings that only inform */
	const char *ignore_file;           /* honoured by the agent in a project, NULL */
	struct aw_policy_list login_args;  /* after the binary, for `warden login`; may be empty */
	struct aw_policy_list login_key_args; /* likewise; the key is written to its stdin */
	const char *login_key_env;            /* the variable that holds that key, NULL */
	struct aw_store *store;
};

/*
 * Find the profile @name: CONFIG_DIR/agents/NAME.json, else the built-in. -ENOENT if there is none,
 * -EACCES with @errors if it is malformed, -ENOMEM. @config_dir may be NULL.
 */
int aw_agent_load(const char *config_dir, struct aw_str name, struct aw_agent **ret,
		  struct aw_policy_errors *errors, struct aw_error *err);

/* Parse one profile; pure. @origin names it in errors. */
int aw_agent_parse(struct aw_str text, const char *origin, struct aw_agent **ret,
		   struct aw_policy_errors *errors, struct aw_error *err);
void aw_agent_drop(struct aw_agent **slot);

/* Names of the built-in profiles in alphabetical order; NULL beyond the last. */
const char *aw_agent_name(size_t index);
