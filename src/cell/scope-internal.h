/*
 * scope-internal - the bytes of scope's conversation with systemd. Pure.
 *
 * D-Bus, in the byte order of this machine:
 *
 *	'l' or 'B', TYPE, FLAGS, 1 | u32 body length | u32 serial | u32 length of the fields
 *	fields, each aligned to 8: u8 code, signature, value | padding to 8 | body
 *
 * Text and object paths: u32 length, bytes, 0, aligned to 4. Signatures: u8 length, bytes, 0. Arrays: u32
 * length in bytes, padding to the element's alignment (which the length leaves out), elements. Structs
 * and u64 are aligned to 8; a variant is a signature and a value. All of it counts from the start of
 * the message. https://dbus.freedesktop.org/doc/dbus-specification.html
 */
#pragma once

#include "cell/scope.h"

/* A manager's signal about a big unit can be long; the longest that were seen have a few KiB. */
#define AW_SCOPE_MESSAGE_MAX (1024 * 1024)

enum aw_scope_message_type {
	AW_SCOPE_CALL = 1,
	AW_SCOPE_RETURN,
	AW_SCOPE_ERROR,
	AW_SCOPE_SIGNAL
};

/* The serial numbers of what we send. */
enum aw_scope_serial {
	AW_SCOPE_HELLO = 1,
	AW_SCOPE_SUBSCRIBE,
	AW_SCOPE_MATCH,
	AW_SCOPE_ASK
};

/* What is looked at of a message; the texts point into it and may be empty. */
struct aw_scope_message {
	unsigned type;
	uint32_t answers; /* a serial of ours; 0: none */
	struct aw_str member, error_name;
	struct aw_str text; /* the body's first text, if it starts with one: an error's words */
	struct aw_str unit, result; /* of the signal JobRemoved */
};

/* Everything that we say before the first answer: greeting, on a bus its calls, then what we ask. */
int aw_scope_write_start(struct aw_buf *out, bool is_bus, const char *unit, pid_t pid,
			 const struct aw_scope_property *properties, size_t count);
int aw_scope_write_stop(struct aw_buf *out, bool is_bus, const char *unit);

/*
 * Parse the message at the start of @data. Returns its length, 0 when not all of it is there yet, or
 * -EPROTO.
 */
ssize_t aw_scope_parse(const char *data, size_t len, struct aw_scope_message *ret);
