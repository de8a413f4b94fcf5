/*
 * record - a line of a journal, read back. Pure: no file, no allocation.
 *
 * Only what aw_event_seal can have written is a record: the fixed fields in their places, the rest
 * a flat object (flat.h). Everything in it is safe to print.
 */
#pragma once

#include "event/event.h"

struct aw_record {
	uint64_t seq;
	uint64_t wall_ns;
	struct aw_str session;
	struct aw_str kind_name;
	enum aw_event_kind kind; /* AW_EVENT_UNKNOWN for a name this build does not know */
	struct aw_chain prev;
	struct aw_flat_object object; /* every field, in order; points into the line */
};

/* Fields in front of and behind those that an event has for itself. */
#define AW_RECORD_FIRST 5
#define AW_RECORD_BEHIND 1

/*
 * Parse @line, without its newline; @ret points into it. Returns 0, -EBADMSG, or -EPROTONOSUPPORT
 * for a line that says another version of itself.
 */
int aw_record_parse(struct aw_str line, struct aw_record *ret);
