#pragma once

#include "policy/policy.h"

/* Compute the digest of a finished policy. -ENOMEM, -ENOBUFS. */
int aw_policy_seal(struct aw_policy *policy);
