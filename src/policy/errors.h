/*
 * errors - everything that is wrong with a policy, at once.
 *
 * A person who wrote a policy wants the whole list with its places, not the first complaint. The
 * list is bounded; what did not fit is counted. Messages are printable: what came from a file is
 * escaped.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"

#define AW_POLICY_ERRORS_MAX 64

enum aw_policy_error_kind {
	AW_POLICY_MALFORMED =
		1,            /* not JSON, unknown key, wrong type, out of range, contradiction */
	AW_POLICY_UNENFORCED, /* right, but this version has nothing that would enforce it */
	AW_POLICY_UNREADABLE, /* a file that is there and cannot be trusted or read */
};

struct aw_policy_error {
	enum aw_policy_error_kind kind;
	char file[192];        /* a path, "preset balanced", "command line" */
	unsigned line, column; /* from 1; 0: the whole file or the command line */
	char pointer[192];     /* JSON pointer (RFC 6901) or the option's name; may be empty */
	char message[384];
};

struct aw_policy_errors {
	struct aw_policy_error *item;
	size_t count;
	size_t dropped; /* beyond the bound, or for want of memory */
};

/* Add one; @head gives everything but the message. Never fails: see `dropped`. */
void aw_policy_errors_add(struct aw_policy_errors *errors, const struct aw_policy_error *head,
			  const char *format, ...) __attribute__((format(printf, 3, 4)));
void aw_policy_errors_fini(struct aw_policy_errors *errors);

static inline size_t aw_policy_errors_total(const struct aw_policy_errors *errors)
{
	return errors->count + errors->dropped;
}

/* "file:line:column: message (pointer)", one line each, in the order of the files. -ENOMEM, -ENOBUFS. */
int aw_policy_errors_print(const struct aw_policy_errors *errors, struct aw_buf *out);
