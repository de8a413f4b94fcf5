/*
 * layer - what one document says, before any merging: a preset, the user's policy, a project's.
 */
#pragma once

#include "policy/keys-internal.h"

/* Which kinds of document may hold a key: bits of struct aw_key.where. */
enum aw_layer_where {
	AW_IN_PRESET = 1 << 0,
	AW_IN_USER = 1 << 1,
	AW_IN_DIRECTORY = 1 << 2, /* an element of the user's "projects" */
	AW_IN_AGENT = 1 << 3,     /* an element of the user's "agents" */
	AW_IN_SYSTEM = 1 << 4,
	AW_IN_PROJECT = 1 << 5,
};

enum aw_layer_branch_kind {
	AW_BRANCH_AGENT = 1,
	AW_BRANCH_DIRECTORY,
};

struct aw_layer_branch {
	enum aw_layer_branch_kind kind;
	const char *name; /* agent's name, or normalised host path */
	struct aw_layer *layer;
	struct aw_layer_branch *next;
};

struct aw_layer_limit {
	uint64_t value; /* 0: none */
	bool is_set;
	struct aw_policy_origin from;
};

struct aw_layer {
	struct aw_policy_source *source;
	enum aw_net_layer kind;
	const char *extends, *default_agent;
	struct aw_policy_list read, write, deny, mounts, env;
	struct aw_policy_list allowed, denied, private; /* text: normalised name; form, port */
	struct aw_policy_list ports, blocked;           /* port */
	struct aw_policy_list protect, degraded;        /* text: the word; port: its bit's index */
	bool is_offline;
	struct aw_layer_limit limit[AW_LIMIT_COUNT];
	struct aw_layer_branch *branches;
};

extern const struct aw_key aw_layer_keys[];
extern const size_t aw_layer_key_count;

struct aw_layer *aw_layer_new(struct aw_store *store, struct aw_policy_source *source);

/* 0, or -ENOMEM; what is wrong with @text goes to @errors. */
int aw_layer_parse(struct aw_store *store, struct aw_policy_source *source, struct aw_str text,
		   const char *home, struct aw_layer **ret, struct aw_policy_errors *errors);

/* The layer of an agent's profile, and that of the command line. Their lists live in @store. */
int aw_layer_from_agent(struct aw_store *store, const struct aw_agent *agent,
			struct aw_layer **ret);
int aw_layer_from_command(struct aw_store *store, const struct aw_policy_command *command,
			  const char *home, struct aw_layer **ret, struct aw_policy_errors *errors);

/* Shared by the table and the command line: NULL or what is wrong with it. */
const char *aw_layer_env_error(struct aw_str name);
const char *aw_layer_mount_error(const struct aw_policy_entry *mount, const char *home);
