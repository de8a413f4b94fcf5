/*
 * live - one session from its start to its end.
 *
 *	r = aw_live_run(&prepared, &options, &outcome, err);
 *
 * Starts cell, gate and janitor, lets the agent go when all of them are ready and measured, serves
 * the links, the terminal, the control socket and the signals in one loop, and cleans up. When it
 * returns, nothing of the session is left on the host but its journal and what the agent was granted
 * to write.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "monitor/prepare.h"
#include "store/session.h"

struct aw_live_options {
	bool is_quiet, is_verbose;
	int status_fd; /* -EBADF: none */
};

struct aw_live_outcome {
	enum aw_session_end_reason reason;
	int exit_code; /* what `warden run` returns */
	char detail[AW_SESSION_DETAIL_MAX + 1];
	char id[AW_SESSION_ID_LEN + 1];
};

/* 0: @ret tells how it ended, whatever that was. -errno: it could not even be recorded. */
int aw_live_run(const struct aw_prepared *prepared, const struct aw_live_options *options,
		struct aw_live_outcome *ret, struct aw_error *err);
