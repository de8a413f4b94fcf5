/*
 * prepare-internal - prepare.c decides who runs under which policy, prepare-view.c what is seen.
 */
#pragma once

#include "monitor/prepare.h"

/* What of the host no grant may touch, as the workspace guard takes it. */
struct aw_workspace_host aw_prepare_host_for_guard(const struct aw_prepared *p);

/* Collect every grant, pin, protection and mask of the session. Needs workspace, policy and ids. */
int aw_prepare_view(struct aw_prepared *p, struct aw_error *err);
