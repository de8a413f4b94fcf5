/*
 * scratch - a directory of a test's own, gone with all that is in it when the test ends; and the
 * files of a journal as bytes, to be changed.
 *
 *	cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
 *	static void test(void **state) { struct scratch *s = *state; ...
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "store/journal.h"

#define SESSION "k3v9x0ab"

struct scratch {
	char path[64];
	int fd;
};

int scratch_setup(void **state);
int scratch_teardown(void **state);

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

/* The bytes of a file, with a NUL behind; the caller frees. Fails the test when there is none. */
char *scratch_load(const struct scratch *scratch, const char *name, size_t *ret_len);
void scratch_store(const struct scratch *scratch, const char *name, const char *data, size_t len);
off_t scratch_size(const struct scratch *scratch, const char *name);

/* Append one event of @kind with a number and a @filler of that many bytes; as aw_journal_append. */
int scratch_append(struct aw_journal *journal, enum aw_event_kind kind, unsigned number,
		   size_t filler);

void scratch_open(const struct scratch *scratch, off_t segment_max, struct aw_journal *ret);

/* A journal of @lines lines, from session.start to session.end, with or without journal.head. */
void scratch_journal(const struct scratch *scratch, unsigned lines, off_t segment_max,
		     bool is_anchored);

/* A feature this host lacks: skip, or fail where it must work. */
void scratch_lacks(const char *reason);
