/*
 * prepare - everything about a session that is decided before anything is started.
 *
 * From what a person typed (struct aw_run_options) to what will be done (struct aw_prepared): the
 * project is checked, the policy merged, the agent's program found, every path and variable that the
 * cell will have is listed. Nothing is created or started here, so that `--dry-run`, `policy show` and
 * `run` tell the same truth.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "cell/grants.h"
#include "cell/workspace.h"
#include "policy/policy.h"

struct aw_run_options {
	const char *dir;   /* NULL: the current directory */
	const char *agent; /* name of a profile; NULL: `command` is a command */
	char *const *
		command; /* NULL-terminated; with an agent: its arguments; NULL: default agent or shell */
	const char *profile; /* --profile NAME: of another agent; NULL */
	bool no_profile, is_ephemeral, allow_secrets;
	bool is_login; /* `command` is the agent's own login: its profile's args are left out */
	bool (*confirm)(const char *question); /* ask the person; NULL: nobody is there to ask */
	const char *policy_file, *env_file;    /* NULL */
	struct aw_policy_command policy;       /* --allow, --deny, -m, ... */
	char *const *environment;              /* the caller's */
};

/* Where things are on this host, from the environment. */
struct aw_host {
	char *home, *config_dir, *program_dir, *state_dir;
	const char *xdg_state_home, *xdg_runtime_dir; /* may be NULL */
};

struct aw_prepared {
	struct aw_host host;
	struct aw_workspace workspace;
	char *workspace_at; /* in the cell */
	const char *home_at;
	struct aw_agent *agent;
	struct aw_policy *policy;
	struct aw_policy_errors errors; /* all of them, when aw_prepare returned -EACCES */
	struct aw_grants grants;
	char **argv, **env; /* of the agent; owned */
	const char
		*agent_name; /* for the registry and for people: profile, or the command's name */
	bool is_ephemeral, is_login;
	bool is_root_started; /* real root: the agent runs as another uid */
	bool needs_idmap;     /* root owns the project */
	uid_t outside_uid;    /* of the agent */
	gid_t outside_gid;
	dev_t workspace_device;
	ino_t workspace_inode;
	struct aw_texts env_left_out; /* names of variables of the caller that do not enter */
};

int aw_host_find(char *const *environment, struct aw_host *ret, struct aw_error *err);
void aw_host_fini(struct aw_host *host);

/*
 * -EACCES: refused by policy or by the workspace guard (exit 78), with `errors` filled if it was the
 * policy; -ENOENT: no such agent or project, in words; -errno.
 */
int aw_prepare(const struct aw_run_options *options, struct aw_prepared *ret, struct aw_error *err);
void aw_prepared_fini(struct aw_prepared *prepared);
