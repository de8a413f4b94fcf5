/*
 * user-policy - the user's own policy file, CONFIG/policy.json, changed by a command.
 *
 * One host is added to allowed_domains or taken out: of the whole policy, or of the entry that
 * "projects" has for one directory (whatever way that is spelled). The file is made if it is missing.
 * What was written by hand stays (policy-edit.h). The new text is held to the table of keys before it
 * replaces the old one: a new file of mode 0600 beside it, synced, then renamed. A symbolic link stays
 * one: what it leads to is replaced.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "policy/domain.h"
#include "policy/errors.h"

struct aw_user_policy_change {
	const char *config_dir, *home;
	const char *project; /* canonical; NULL: for every project */
	const struct aw_domain *domain;
	bool is_removed;
};

/*
 * Returns 1 when the file was changed, 0 when there was nothing to change. -EACCES with @errors: the
 * policy has errors, before or because of the change; -EBADMSG, -ENOTDIR: the text is not one that can
 * be edited; -EPERM: it is another user's; -errno. Unless 1 is returned the file is as it was.
 */
int aw_user_policy_change(const struct aw_user_policy_change *change,
			  struct aw_policy_errors *errors, struct aw_error *err);
