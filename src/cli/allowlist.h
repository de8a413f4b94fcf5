/*
 * allowlist - the parts of `warden allowlist`: its words, the sessions it changes, what it shows.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "cli/cli.h"
#include "policy/domain.h"
#include "store/session.h"

/* Where a change is kept. */
enum aw_allowlist_scope {
	AW_ALLOWLIST_AUTO = 0, /* the one session there is, else the user's policy */
	AW_ALLOWLIST_SESSION,  /* until the session ends */
	AW_ALLOWLIST_PROJECT,  /* the user's policy, for this directory */
	AW_ALLOWLIST_USER,     /* the user's policy */
};

struct aw_allowlist_line {
	enum aw_allowlist_scope scope;
	bool is_forced;
	const char *operand; /* NULL: none */
};

/* Read the words behind the sub-command; -EINVAL with a sentence. Pure. */
int aw_allowlist_parse(char *const *args, struct aw_allowlist_line *ret, struct aw_error *err);

/* The sessions that run, those whose project holds the current directory first. */
struct aw_allowlist_sessions {
	struct aw_session_meta *meta;
	size_t count, here;
};

int aw_allowlist_find_sessions(const struct aw_state *state, const char *here,
			       struct aw_allowlist_sessions *ret, struct aw_error *err);
void aw_allowlist_drop_sessions(struct aw_allowlist_sessions *sessions);

/*
 * Settle what @scope means and to how many of the first sessions it applies. -ENOENT: --session and
 * there is none, or more than one and none of them here. Pure.
 */
int aw_allowlist_settle(enum aw_allowlist_scope scope, size_t count, size_t here,
			enum aw_allowlist_scope *ret_scope, size_t *ret_count,
			struct aw_error *err);

/*
 * Grant @domain in a running session, or take it back there. -EACCES: a policy that narrows this one
 * keeps it out; -ENOTCONN: the session is offline; -ENOENT: there is no such rule to take back.
 */
int aw_allowlist_tell(const struct aw_cli_place *place, const struct aw_session_meta *meta,
		      const struct aw_domain *domain, bool is_removal, struct aw_error *err);

/* `allowlist list` and `allowlist test`, for the current directory; exit codes. */
int aw_allowlist_list(const struct aw_host *host);
int aw_allowlist_test(const struct aw_host *host, const char *text);
