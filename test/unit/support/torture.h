/*
 * torture - fail the first, the second, ... the last allocation of a piece of code.
 *
 *	static int attempt(void *state)
 *	{
 *		autofree char *text = aw_str_print("x");
 *
 *		return text != NULL ? 0 : -ENOMEM;
 *	}
 *
 *	assert_int_equal(aw_torture(attempt, NULL), 1);
 *
 * The attempt frees what it got; the sanitizer build finds what it does not. Each run with a failing
 * allocation must return -ENOMEM, and the run after the last must return >= 0: otherwise the test
 * fails. Counted are malloc, calloc, realloc, reallocarray, strdup, strndup, asprintf and vasprintf of
 * the code under test and of libraries that are linked statically (the linker's --wrap).
 */
#pragma once

/* Returns how many allocations @attempt makes. */
int aw_torture(int (*attempt)(void *state), void *state);
