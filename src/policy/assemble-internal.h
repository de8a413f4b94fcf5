/*
 * assemble - parsed layers to a policy: choose presets, form the claims, merge, compute the digest.
 *
 * Between reading files (load.c) and merging: pure, so that tests and the fuzzer start here.
 */
#pragma once

#include "policy/layer-internal.h"

/* Those that there are; NULL for the others. */
struct aw_layers {
	struct aw_layer *system, *user, *project, *command, *agent;
};

/*
 * Fill @policy, whose store is set. 0, -ENOMEM, -EINVAL for a preset that is not there. Contradictions
 * go to @errors.
 */
int aw_policy_assemble(const struct aw_policy_sources *sources, const struct aw_layers *layers,
		       struct aw_policy *policy, struct aw_policy_errors *errors,
		       struct aw_error *err);
