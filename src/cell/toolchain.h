/*
 * toolchain - compilers and runtimes that a person keeps in the home directory.
 *
 * Version managers put them below $HOME, of which a cell sees nothing. The trees that hold programs
 * and nothing private are granted read-only at their own places; what is private in them is masked.
 */
#pragma once

#include "base/error.h"
#include "cell/grants.h"

/* Grant what @home has of the table, and add its program directories to PATH. */
int aw_toolchain_grant(const char *home, struct aw_grants *g, struct aw_error *err);

/*
 * Variables that tell a tool where its tree is, since HOME is another one inside: called with
 * NAME and VALUE for each tree that is there; a negative return ends it.
 */
int aw_toolchain_variables(const char *home,
			   int (*add)(void *data, const char *name, const char *value), void *data);
