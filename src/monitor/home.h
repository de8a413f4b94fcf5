/*
 * home - the agent's private home of a project, and its login, which all projects share.
 *
 *	STATE/homes/NAME-HASH/		one per project: caches, history, the agent's own settings
 *	STATE/logins/AGENT/		what `auth_paths` and `login_paths` of its profile name, one per user
 *
 * Login files are copied in before a session and, if they changed, back after it. They are not
 * mounted: agents replace them by rename, which a mounted file does not survive. What comes back was
 * in the agent's hands: only regular files of bounded size, opened without following links, and of
 * `login_paths`, which can hold more than a login, only after `warden login`. A credential that an agent
 * renews (or exchanges) in one project is the one that it has in the others: THREAT-MODEL says so.
 */
#pragma once

#include "base/error.h"
#include "monitor/prepare.h"
#include "store/state.h"

/*
 * Make the home if needed, owned by the agent's id, with the login in it. *ret is its path (the caller
 * frees), NULL for an ephemeral session.
 */
int aw_home_prepare(const struct aw_prepared *prepared, const struct aw_state *state, char **ret,
		    struct aw_error *err);

/* After the session: take the login back if the agent renewed it. Returns how many files changed. */
int aw_home_take_login(const struct aw_prepared *prepared, const struct aw_state *state,
		       const char *home, struct aw_error *err);

/* Copy the login files of @agent from the host's own home to the shared place. Returns how many. */
int aw_home_import_login(const struct aw_agent *agent, const char *host_home,
			 const struct aw_state *state, struct aw_error *err);
