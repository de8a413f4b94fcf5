/*
 * effective - the policy that would hold in a directory, asked about hosts.
 *
 * What `warden run` would enforce there, without starting or checking anything else: for `allowlist`,
 * which must say whether an entry has the effect that a person expects of it.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "monitor/prepare.h"
#include "policy/domain.h"
#include "policy/policy.h"

struct aw_effective {
	char *project; /* canonical */
	int project_fd;
	struct aw_agent *agent;
	struct aw_policy *policy;
	struct aw_policy_errors errors; /* when aw_effective_load returned -EACCES */
};

/*
 * Load it for @dir. @agent: a profile's name; one that is unknown is none; NULL: the policy's
 * default_agent. @allow: a host as of --allow, or NULL. As aw_policy_load; fini in any case.
 */
int aw_effective_load(const struct aw_host *host, const char *dir, const char *agent,
		      const char *allow, struct aw_effective *ret, struct aw_error *err);
void aw_effective_fini(struct aw_effective *effective);

/*
 * Whether everything that @domain names is granted; without a port: on one of the allowed ports. @out
 * gets one printable line: what decided, with the file and line of the rule.
 */
bool aw_effective_grants(const struct aw_policy *policy, const struct aw_domain *domain, char *out,
			 size_t size);

/* What narrows that policy, and what else a person should know of it: on stderr. */
void aw_effective_print_notes(const struct aw_policy *policy);

/* The port that is meant where none is written: 443 if it is allowed, else the first that is. */
uint16_t aw_effective_port(const struct aw_net *net);
