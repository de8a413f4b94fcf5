/*
 * program - find an agent's program on the host and everything it needs to start.
 *
 * A program is often a link into a version manager's tree, to a script whose first line names another
 * program, in a package whose files lie around it. Each hop is followed here, on the host, and what is
 * not part of the system is granted read-only at its own place; so that inside, `exec` finds what it
 * would find outside. Never by a name inside the project: what the agent can write is no program of
 * the person's.
 */
#pragma once

#include "base/error.h"
#include "cell/grants.h"

struct aw_program_search {
	const char *path;      /* the caller's PATH; NULL: none */
	const char *home;      /* places of the person's own programs are looked at, too */
	const char *workspace; /* nothing below it is found */
};

/*
 * Find @name. Returns 0 and its canonical path (the caller frees); -ENOENT. A name with a slash is
 * not searched for, and may lie anywhere.
 */
int aw_program_find(const struct aw_program_search *search, const char *name, char **ret,
		    struct aw_error *err);

/*
 * Grant what the program at the canonical @path needs beyond the system: its package or version tree,
 * its interpreters (up to 8 hops), its ELF interpreter. -ENOENT names the hop that is missing.
 */
int aw_program_grant(const struct aw_program_search *search, const char *path, struct aw_grants *g,
		     struct aw_error *err);

/* The tree that @path is part of: the part of @path to grant. Pure but for @has_file. */
char *aw_program_tree(const char *path, const char *home,
		      bool (*has_file)(const char *dir, const char *name));
