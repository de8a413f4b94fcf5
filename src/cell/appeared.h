/*
 * appeared - what came into being in a project during a session and runs code on the host later.
 *
 * A name that does not exist cannot be held read-only without creating it. So at the end of a session
 * the project is looked through: the protected names of the table, those of each git directory that was
 * there at the start, what git configurations name, and repositories that were not there. What existed
 * at the start is known, because it was held; what is there and is not held, is new, whatever its times
 * say: a rename brings old ones along. Only where nothing could be held (links, and what lay beyond the
 * bounds of the look at the start) the time of the last change decides.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cell/grants.h"
#include "cell/protect.h"

struct aw_appeared {
	struct aw_protect_place project;
	const struct aw_grants *g; /* what was found at the start, and held */
	uint64_t since_ns;         /* wall clock */
	unsigned classes;          /* enum aw_policy_protect */
};

/*
 * Add to @ret the paths on the host of what came into being. *ret_complete is false when the look
 * stopped at a bound.
 */
int aw_appeared_find(const struct aw_appeared *what, struct aw_texts *ret, bool *ret_complete,
		     struct aw_error *err);
