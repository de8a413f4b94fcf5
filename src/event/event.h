/*
 * event - what happened in a session: one record type, its kinds, and its line in the journal.
 *
 *	struct aw_event event;      16 KiB: keep one in the struct of the role that writes
 *
 *	aw_event_begin(&event, AW_EVENT_NET_REFUSED, aw_wall_ns());
 *	aw_event_add_str(&event, "host", host);         bytes as they came: escaped here, see flat.h
 *	aw_event_add_u64(&event, "port", 443);
 *	r = aw_journal_append(journal, &event, err);    store/journal.h gives it number and chain
 *
 * The line is a flat JSON object (flat.h says how strings are escaped and what is cut):
 *
 *	{"v":1,"seq":7,"time":"2026-03-01T12:00:00.123456789Z","session":"k3v9x0ab",
 *	 "kind":"net.refused","host":"evil.example","port":443,"prev":"<64 hex digits>"}
 *
 * v, seq, time, session and kind always come first and in this order, prev always last. prev is the
 * SHA-256 of the whole line before it, without its newline; 64 zeros in the first line of a
 * session. A line has at most AW_FLAT_MAX bytes with its newline, a value at most
 * AW_EVENT_VALUE_MAX encoded.
 *
 * Building allocates nothing and cannot fail; misuse of keys is asserted. The event is a plain
 * struct without an owner. Put the fields that matter most first: only they are never shortened.
 */
#pragma once

#include "event/chain.h"
#include "event/flat.h"

#define AW_EVENT_VERSION 1
#define AW_EVENT_VALUE_MAX 4096
#define AW_EVENT_HEAD_MAX 112
#define AW_EVENT_SESSION_LEN 8 /* characters of a session id: [0-9a-z] */

enum aw_event_severity {
	AW_SEVERITY_INFO = 1, /* the session does its work */
	AW_SEVERITY_NOTICE,   /* a person may want to know */
	AW_SEVERITY_DENIED,   /* something was tried and did not happen */
	AW_SEVERITY_BREACH,   /* the session ends because of it */
};

/* Whose word it may be. The monitor writes every line and holds each role to this. */
enum aw_event_source {
	AW_EVENT_BY_MONITOR = 1,
	AW_EVENT_BY_CELL = 2,
	AW_EVENT_BY_GATE = 4,
	AW_EVENT_BY_CLIENT = 8, /* a person's command at the control socket */
};

enum aw_event_trait {
	AW_EVENT_EDGE = 1, /* first or last of a session: synced if the journal is told to */
	AW_EVENT_LAST = 2, /* says why a session ends: may use the space kept for that */
};

/* The one table of kinds: enum, name, severity, who may say it, traits. */
#define AW_EVENT_KINDS(X)                                                                       \
	X(SESSION_START, "session.start", INFO, AW_EVENT_BY_MONITOR, AW_EVENT_EDGE)             \
	X(SESSION_READY, "session.ready", INFO, AW_EVENT_BY_MONITOR, 0)                         \
	X(SESSION_END, "session.end", INFO, AW_EVENT_BY_MONITOR, AW_EVENT_EDGE | AW_EVENT_LAST) \
	X(SESSION_REFUSED, "session.refused", DENIED, AW_EVENT_BY_MONITOR | AW_EVENT_BY_CELL,   \
	  AW_EVENT_LAST)                                                                        \
	X(DEGRADED, "degraded", NOTICE, AW_EVENT_BY_MONITOR | AW_EVENT_BY_CELL, 0)              \
	X(POSTURE_CHECK, "posture.check", INFO, AW_EVENT_BY_MONITOR | AW_EVENT_BY_CELL, 0)      \
	X(NET_CONNECT, "net.connect", INFO, AW_EVENT_BY_GATE, 0)                                \
	X(NET_REFUSED, "net.refused", DENIED, AW_EVENT_BY_GATE, 0)                              \
	X(NET_FAILED, "net.failed", NOTICE, AW_EVENT_BY_GATE, 0)                                \
	X(NET_CLOSE, "net.close", INFO, AW_EVENT_BY_GATE, 0)                                    \
	X(DNS_QUERY, "dns.query", INFO, AW_EVENT_BY_GATE, 0)                                    \
	X(DNS_REFUSED, "dns.refused", DENIED, AW_EVENT_BY_GATE, 0)                              \
	X(ALLOWLIST_CHANGED, "allowlist.changed", NOTICE,                                       \
	  AW_EVENT_BY_MONITOR | AW_EVENT_BY_CLIENT, 0)                                          \
	X(EXEC_START, "exec.start", INFO, AW_EVENT_BY_MONITOR | AW_EVENT_BY_CELL, 0)            \
	X(EXEC_END, "exec.end", INFO, AW_EVENT_BY_MONITOR | AW_EVENT_BY_CELL, 0)                \
	X(PROTECT_DETACHED, "protect.detached", NOTICE, AW_EVENT_BY_MONITOR, 0)                 \
	X(PROTECT_REARMED, "protect.rearmed", NOTICE, AW_EVENT_BY_MONITOR, 0)                   \
	X(PROTECT_REVERTED, "protect.reverted", DENIED, AW_EVENT_BY_MONITOR, 0)                 \
	X(PROTECT_CREATED, "protect.created", DENIED, AW_EVENT_BY_MONITOR, 0)                   \
	X(LIMIT_HIT, "limit.hit", NOTICE, AW_EVENT_BY_MONITOR | AW_EVENT_BY_CELL, 0)            \
	X(GATE_DIED, "gate.died", NOTICE, AW_EVENT_BY_MONITOR, AW_EVENT_LAST)                   \
	X(BREACH, "breach", BREACH, AW_EVENT_BY_MONITOR, AW_EVENT_LAST)                         \
	X(NOTE, "note", INFO, AW_EVENT_BY_MONITOR | AW_EVENT_BY_CLIENT, 0)

enum aw_event_kind {
	AW_EVENT_UNKNOWN, /* read from a journal of another version; never written */
#define AW_EVENT_ENUM(kind, name, severity, sources, traits) AW_EVENT_##kind,
	AW_EVENT_KINDS(AW_EVENT_ENUM)
#undef AW_EVENT_ENUM
	AW_EVENT_KIND_COUNT
};

struct aw_event_info {
	const char *name;
	enum aw_event_severity severity;
	unsigned sources; /* of enum aw_event_source */
	unsigned traits;  /* of enum aw_event_trait */
};

struct aw_event {
	enum aw_event_kind kind;
	uint64_t wall_ns;
	struct aw_flat flat;
};

/* What the table says of @kind; of AW_EVENT_UNKNOWN: "unknown", a notice that nobody may say. */
const struct aw_event_info *aw_event_info(enum aw_event_kind kind);

/* AW_EVENT_UNKNOWN when there is none of that name. */
enum aw_event_kind aw_event_kind_find(struct aw_str name);

/* Whether a record of @kind may go back to the word of @source. */
bool aw_event_may_come_from(enum aw_event_kind kind, enum aw_event_source source);

const char *aw_event_severity_name(enum aw_event_severity severity);

/* Start an event that happened at @wall_ns (aw_wall_ns). At most 23 fields may be added. */
void aw_event_begin(struct aw_event *event, enum aw_event_kind kind, uint64_t wall_ns);
void aw_event_add_str(struct aw_event *event, const char *key, struct aw_str value);
void aw_event_add_strv(struct aw_event *event, const char *key, const struct aw_str *values,
		       size_t count);
void aw_event_add_u64(struct aw_event *event, const char *key, uint64_t value);
void aw_event_add_i64(struct aw_event *event, const char *key, int64_t value);
void aw_event_add_bool(struct aw_event *event, const char *key, bool value);

/*
 * Finish the line, once: number, time and session in front, the chain behind. For the journal.
 * Returns the line with its newline; it lives in @event.
 */
struct aw_str aw_event_seal(struct aw_event *event, const char *session, uint64_t seq,
			    const struct aw_chain *prev);
