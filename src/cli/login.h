/*
 * login - the parts of `warden login`: its words, and a key on its way to the agent.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define AW_LOGIN_KEY_MAX 4000 /* fits a pipe that nobody reads yet */

struct aw_login_line {
	const char *agent;
	bool is_import, is_by_key;
	bool is_agreed; /* --yes: do not ask */
};

/* Read the words behind the verb; -EINVAL with a sentence. Pure. */
int aw_login_parse(char *const *args, struct aw_login_line *ret, struct aw_error *err);

/* To be wiped by the owner with explicit_bzero. */
struct aw_login_key {
	char text[AW_LOGIN_KEY_MAX + 1];
	size_t len;
};

/*
 * Read a key: from stdin, if that is not a terminal and holds one; else @from_env, the value of the
 * variable @env_name (may be NULL); else typed, unseen, at the terminal. -ENODATA: there is none;
 * -EBADMSG: it is more than one printable word.
 */
int aw_login_read_key(const char *from_env, const char *env_name, struct aw_login_key *ret,
		      struct aw_error *err);

/* Make stdin a pipe that holds the key and a newline, and ends there. */
int aw_login_put_key(const struct aw_login_key *key, struct aw_error *err);
