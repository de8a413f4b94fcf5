/*
 * run-line - the command line of `run` (and of `exec`): words in, one struct out. Pure but for two
 * questions that it asks: is this word an agent, and is it a directory.
 *
 *	warden run  [OPT] [DIR] [AGENT [ARG...]]	warden run  [OPT] [DIR] -- CMD [ARG...]
 *	warden [OPT] -- CMD...				warden [OPT] -c STRING
 *	warden AGENT [ARG...]
 *
 * Options end at AGENT or at `--`. What follows AGENT is the agent's, and one `--` directly behind
 * AGENT is dropped.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "monitor/live.h"
#include "monitor/prepare.h"

#define AW_RUN_LIST_MAX 64

struct aw_run_probe {
	bool (*is_agent)(void *data, const char *name);
	bool (*is_dir)(void *data, const char *name);
	void *data;
};

struct aw_run_line {
	struct aw_run_options run;
	struct aw_live_options live;
	bool is_dry, wants_json;
	const char *unenforced; /* an option that this version knows and cannot keep: exit 78 */
	/* what run.policy points to */
	const char *allow[AW_RUN_LIST_MAX + 1], *deny[AW_RUN_LIST_MAX + 1],
		*ro[AW_RUN_LIST_MAX + 1], *rw[AW_RUN_LIST_MAX + 1], *env[AW_RUN_LIST_MAX + 1];
	char *shell[4]; /* the command that -c stands for */
};

/*
 * @args: the words after `run`, NULL-terminated, or all words when the verb was left out (@is_short:
 * then `-c STRING` is known, and the project is the current directory). -EINVAL with a sentence. The
 * result points into @args and into itself: do not copy it.
 */
int aw_run_line_parse(char *const *args, bool is_short, const struct aw_run_probe *probe,
		      struct aw_run_line *ret, struct aw_error *err);

/* "512m", "4g", "800" (MiB) -> MiB; "90", "90s", "5m", "2h" -> seconds; "1.5" -> thousandths. -EINVAL. */
int aw_run_line_size(const char *text, uint64_t *ret_mib);
int aw_run_line_duration(const char *text, uint64_t *ret_s);
int aw_run_line_cpus(const char *text, uint64_t *ret_milli);

/* Write the help line of the @index-th option; false beyond the last. */
bool aw_run_line_help(size_t index, char *out, size_t size);
