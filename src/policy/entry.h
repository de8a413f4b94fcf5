/*
 * entry - one element of a list in a policy, and where it was written.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AW_POLICY_LIST_MAX 1024 /* elements of any one list in a file */

struct aw_policy_source;

struct aw_policy_origin {
	const struct aw_policy_source *source; /* NULL: a default of the program */
	uint32_t offset;                       /* in the source's text */
};

struct aw_policy_entry {
	const char *text; /* a path, a name, a variable */
	const char *host; /* mounts: the directory on the host */
	struct aw_policy_origin from;
	uint16_t port;    /* ports; domains: 0 if none was written */
	uint8_t form;     /* domains: enum aw_net_form */
	bool is_writable; /* mounts */
	bool is_private;  /* domains: answers in private ranges are accepted */
	bool is_denied;   /* domains */
};

struct aw_policy_list {
	struct aw_policy_entry *entry;
	size_t count, capacity;
	bool is_present; /* the key was written, if only as [] */
};
