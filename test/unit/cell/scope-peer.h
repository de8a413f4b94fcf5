/*
 * scope-peer - messages of the other side of scope's conversation, for its tests.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A message of the other side; positions count from its start. */
struct scope_made {
	char data[1024];
	size_t len;
};

/* A signal of systemd's manager with the four fields of JobRemoved. */
void scope_make_signal(struct scope_made *m, const char *member, const char *unit,
		       const char *result);

/* An error in answer to the call @serial; without @words it has only its name. */
void scope_make_error(struct scope_made *m, uint32_t serial, const char *words);

/* The answer to the call @serial: a job. */
void scope_make_return(struct scope_made *m, uint32_t serial);
