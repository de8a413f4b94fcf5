/*
 * inside - run a piece of a test in a process of its own, or in namespaces of its own.
 *
 * An assertion of cmocka does not end a child: a body checks with INSIDE and returns. It returns 0 for
 * "all held", or what went wrong as a positive number (the line); INSIDE_LACKS where this host does not
 * give what the test needs.
 *
 *	static int body(void *state) { INSIDE(getpid() == 1); return 0; }
 *	assert_int_equal(inside_namespaces(CLONE_NEWPID, body, NULL), 0);
 */
#pragma once

#include <stdbool.h>

#define INSIDE_LACKS 32767

/* Leave the body with the line of what does not hold. */
#define INSIDE(condition)                \
	do {                             \
		if (!(condition))        \
			return __LINE__; \
	} while (0)

/* In a child of this process. */
int inside_child(int (*body)(void *state), void *state);

/*
 * In a child in a mount namespace and those of @flags; who is not root gets a user namespace, too,
 * in which it is root. With CLONE_NEWPID the body is process 1, and /proc shows it.
 */
int inside_namespaces(int flags, int (*body)(void *state), void *state);

/* As inside_namespaces; skips the test, with the reason, where no namespaces are to be had. */
void inside_check(int flags, int (*body)(void *state), void *state);

/* Make the calling process root in a user namespace of its own. False: this host does not let it. */
bool inside_become_root(void);
