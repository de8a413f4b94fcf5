/*
 * cli - the verbs: each is one function in one file, all in one table, and this is what they share.
 *
 * A verb gets the words behind it, NULL-terminated, and returns the exit code. Messages for a person
 * go to stderr, answers to stdout. Exit codes: DESIGN and warden(1), here as names.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "monitor/prepare.h"
#include "store/registry.h"

enum aw_exit {
	AW_EXIT_OK = 0,
	AW_EXIT_NO = 1,       /* a check that answers no */
	AW_EXIT_REFUSED = 78, /* posture or policy: nothing was started */
	AW_EXIT_USAGE = 125,  /* usage, or Warden itself failed */
	AW_EXIT_NOT_EXECUTABLE = 126,
	AW_EXIT_NOT_FOUND = 127,
};

struct aw_verb {
	const char *name;
	int (*run)(char *const *args); /* NULL: named in the documents, not in this version */
	const char *usage, *summary;
};

const struct aw_verb *aw_verbs(size_t *ret_count);

int aw_verb_run(char *const *args);
int aw_verb_run_short(char *const *args); /* without the word "run" */
int aw_verb_exec(char *const *args);
int aw_verb_status(char *const *args);
int aw_verb_ps(char *const *args);
int aw_verb_stop(char *const *args);
int aw_verb_down(char *const *args);
int aw_verb_logs(char *const *args);
int aw_verb_login(char *const *args);
int aw_verb_allowlist(char *const *args);
int aw_verb_policy(char *const *args);
int aw_verb_doctor(char *const *args);
int aw_verb_audit(char *const *args);
int aw_verb_version(char *const *args);
int aw_verb_help(char *const *args);
int aw_verb_build(char *const *args);
int aw_verb_up(char *const *args);

/* "warden: MESSAGE" on stderr; returns @code. */
int aw_cli_fail(int code, const struct aw_error *err);
int aw_cli_usage(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Host facts and the state directories of the caller. */
struct aw_cli_place {
	struct aw_host host;
	struct aw_state state;
};

int aw_cli_open_place(struct aw_cli_place *ret, struct aw_error *err);
void aw_cli_close_place(struct aw_cli_place *place);

/* Find a session that runs and connect to its control socket. Returns the link. */
int aw_cli_connect(const struct aw_state *state, const char *operand, struct aw_session_meta *ret,
		   struct aw_error *err);

/* Whether @name is an agent profile, the user's own or a built-in. */
bool aw_cli_is_agent(const char *config_dir, const char *name);

/* All that is wrong with a policy, on stderr. */
void aw_cli_print_errors(const struct aw_policy_errors *errors);
