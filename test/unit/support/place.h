/*
 * place - a directory of a test's own below /tmp, gone with all that is in it when the test ends.
 *
 *	static void test(void **state) { struct place *p = *state; ... place_file(p, "a/b", "text"); }
 *	... IN_PLACE(test) in the list of tests
 *
 * Names are relative to the place; directories on the way are made. Everything here fails the test
 * that cannot have it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct place {
	char *path; /* canonical */
	int fd;
	char **text; /* what place_at gave out */
	size_t text_count;
};

int place_setup(void **state);
int place_teardown(void **state);

#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, place_setup, place_teardown)

/* The absolute path of a name; it lives as long as the place. */
const char *place_at(struct place *place, const char *name);

const char *place_dir(struct place *place, const char *name);
const char *place_file(struct place *place, const char *name, const char *content);
const char *place_bytes(struct place *place, const char *name, const void *bytes, size_t len);
const char *place_program(struct place *place, const char *name, const char *content);
const char *place_link(struct place *place, const char *name, const char *target);
void place_fifo(struct place *place, const char *name);

/* What a file has in it, up to a NUL; NULL: it is not there. */
const char *place_read(struct place *place, const char *name);
bool place_has(const struct place *place, const char *name);
mode_t place_mode(const struct place *place, const char *name); /* 0: it is not there */
