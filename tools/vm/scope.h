/*
 * One systemd scope by hand: StartTransientUnit over a socket, without a D-Bus library.
 *
 * Part of the spike doc/spikes/cgroup-v2.md.  A scope is the only way for an ordinary user to get
 * processes out of session-N.scope into a cgroup of their own, since the common ancestor belongs to
 * root; systemd's system instance moves them on the user instance's behalf.
 *
 * D-Bus, little endian: a message is
 *   'l' TYPE FLAGS 1 | u32 body length | u32 serial | u32 length of the header fields
 *   fields, each aligned to 8: u8 code, signature (u8 length, bytes, 0), value
 *   padding to 8, body
 * Strings and object paths: u32 length, bytes, 0, aligned to 4.  Signatures: u8 length, bytes, 0.
 * Arrays: u32 length in bytes, padding to the element's alignment (not counted), elements.
 * Structs and u64 are aligned to 8; a variant is a signature and the value.
 * Before the first message the client sends 0 "AUTH EXTERNAL" CRLF "DATA" CRLF "BEGIN" CRLF; the
 * server takes the uid from SO_PEERCRED.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct scope_limits {
	uint64_t memory_bytes;
	uint64_t tasks;
	uint64_t cpu_usec_per_s; /* 0: no limit */
};

/*
 * Move `pid` to a new scope `name` of the user's (uid 0: the system's) systemd and wait until it is
 * there.  `through_bus` takes the user's bus, whose daemon passes the call on, instead of systemd's
 * own socket.  0, or -errno with systemd's own words, if any, in `why`.
 */
int scope_start(const char *name, pid_t pid, const struct scope_limits *limits, bool through_bus,
		char *why, size_t why_size);
