/*
 * verify - is the journal what its writer wrote? Names each record that is not.
 *
 *	r = aw_verify(dir_fd, session_id, &result, err);
 *	result.finding_count == 0    intact
 *	result.is_torn               the last line is incomplete: a kill in the middle of a write, tolerated
 *	result.is_anchored           the end is fixed by journal.head
 *
 * Found, and named by segment, line and number:
 *   a changed byte anywhere but in the last line      the chain
 *   a line that was deleted, moved or put in           number and chain
 *   a segment that is gone, renamed or cut             number and chain
 *   NUL bytes, lines that are no records               the parser
 *   lines of another session's journal                 the session id
 *   and with journal.head: lines cut off at the end, added behind it, a change in the last line
 * A change of one line shows in the next line's prev. The line after that tells whether the line or
 * that prev was changed; where there is none, both are named.
 *
 * Not found, by anything that reads only these files:
 *   - whole lines cut off at the end of a journal without journal.head: the session still runs, its
 *     monitor was killed, or someone took the file away with them;
 *   - a change in the last line there;
 *   - a journal, with its head, that was rewritten as a whole: the chain has no secret. Whoever can
 *     write the state directory can do that. Against them keep the last hash (result.last, which a
 *     session can print at its end) somewhere else and compare.
 * The cell cannot write here, so none of these is in the agent's reach.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "event/chain.h"

#define AW_VERIFY_FINDINGS_MAX 32

enum aw_finding_kind {
	AW_FINDING_ALTERED = 1,  /* this record was changed */
	AW_FINDING_ALTERED_PAIR, /* this record or the next one was changed */
	AW_FINDING_MISSING,      /* records seq to seq_last are gone, before this place */
	AW_FINDING_MOVED,        /* record seq stands here, behind a later one */
	AW_FINDING_MALFORMED,    /* this line is no record */
	AW_FINDING_VERSION,      /* this line is of another version and was not checked */
	AW_FINDING_HOLE,         /* this line has NUL bytes: it never reached the disk whole */
	AW_FINDING_LONG,         /* this line is longer than any of ours */
	AW_FINDING_TORN,         /* this line is incomplete, though a segment follows */
	AW_FINDING_FOREIGN,      /* this record is of another session */
	AW_FINDING_CUT,          /* records seq to seq_last are gone from the end */
	AW_FINDING_BEYOND,       /* something stands behind the end; seq: the first record, or 0 */
	AW_FINDING_ANCHOR,       /* journal.head itself is malformed */
	AW_FINDING_KIND_COUNT
};

struct aw_finding {
	enum aw_finding_kind kind;
	uint32_t segment; /* where it is seen; 0: nowhere in the files */
	uint64_t line;
	uint64_t seq, seq_last; /* which record it is about; 0: unknown */
};

struct aw_verify {
	uint64_t records; /* whole lines that are records */
	uint32_t segments;
	uint64_t last_seq;
	struct aw_chain last; /* hash of the last line */
	bool is_anchored;
	bool is_torn;
	uint64_t torn_bytes;
	size_t finding_count; /* all; the first AW_VERIFY_FINDINGS_MAX are kept */
	struct aw_finding finding[AW_VERIFY_FINDINGS_MAX];
};

/*
 * Check the journal in @dir_fd; @session is the id every record must carry, or NULL. Returns 0
 * when it could be read to its end, whatever was found; -ENOENT when there is no journal; -EBADMSG
 * when a segment is not a regular file; -errno.
 */
int aw_verify(int dir_fd, const char *session, struct aw_verify *ret, struct aw_error *err);

/* One sentence for a person, NUL-terminated, cut to @size. */
void aw_finding_describe(const struct aw_finding *finding, char *out, size_t size);
