/*
 * journal - the writer: one line per event, appended as it happens, each tied to the one before.
 *
 *	r = aw_journal_open(&journal, dir_fd, &options, err);     makes journal-000001.ndjson
 *	r = aw_journal_append(&journal, &event, err);             as often as things happen
 *	r = aw_journal_close(&journal, err);                      writes journal.head
 *
 * One monitor writes one journal, outside the cell, into a directory that was empty. The caller
 * ends the session when a call here fails: without a journal there is no session. It ignores
 * SIGXFSZ. It needs write, ftruncate, fallocate, fdatasync, and in the directory openat, unlinkat
 * and renameat: a role that confines itself grants them.
 *
 * What it promises
 *   A line is one write(2). When append returns 0 the line is in the page cache: it survives the
 *   death of every process, kill -9 included, but not a power cut. No line is waited for on the
 *   disk, except: lines of severity breach always (fdatasync, some 0.3 to 5 ms), and first and
 *   last line if `sync_edges` asks for it. Whoever wants more calls aw_journal_sync.
 *   When a write fails or is short, what was written of the line is cut off again, so that the
 *   journal still ends in a whole line; the number is not used up. If even that fails the journal
 *   is dead and every later append says -EIO.
 *   Killed in the middle of a write, the file ends in a torn line: readers report and tolerate it.
 *   Space is reserved ahead (where the file system can): when the disk is full, append fails before
 *   anything is written, and AW_JOURNAL_LAST_SPACE bytes are left for events that say why the
 *   session ends (AW_EVENT_LAST and breaches), so that a full disk is in the journal too.
 *
 * Segments: a line that would make a segment larger than `segment_max` goes to the next one; number
 * and chain go on. Last words stay where the space is kept for them. Nothing is ever deleted.
 *
 * journal.head, one flat line, is written at the end: session, segment, seq and hash of the last
 * line. See verify.h for what it finds and what nothing here can find.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "event/event.h"

#define AW_JOURNAL_SEGMENT_MAX (64L * 1024 * 1024)
#define AW_JOURNAL_LAST_SPACE (12 * 1024)

struct aw_journal_options {
	const char *session; /* AW_EVENT_SESSION_LEN characters */
	off_t segment_max;   /* bytes, at least AW_FLAT_MAX; 0: AW_JOURNAL_SEGMENT_MAX */
	bool sync_edges;     /* fdatasync after lines of kinds with AW_EVENT_EDGE */
};

struct aw_journal {
	int dir_fd, fd; /* both its own */
	char session[AW_EVENT_SESSION_LEN + 1];
	uint32_t segment;
	uint64_t seq; /* of the last line; 0 before the first */
	struct aw_chain last;
	off_t size, reserved, segment_max;
	bool sync_edges, may_reserve, is_dead;
};

/* Make the first segment, mode 0600, in @dir_fd. -EEXIST if there is one: only one may write. */
int aw_journal_open(struct aw_journal *ret, int dir_fd, const struct aw_journal_options *options,
		    struct aw_error *err);

/*
 * Write @event, which is used up. Returns 0, or: -ENOSPC, -EDQUOT, -EFBIG, -EIO, ... and the event
 * is not in the journal, except when only a sync failed: then it is there, and the journal is dead.
 */
int aw_journal_append(struct aw_journal *journal, struct aw_event *event, struct aw_error *err);

/*
 * Wait until what this segment holds is on the disk (segments before it are left to the kernel,
 * which writes within 30 s or so). A failure kills the journal: what is lost is unknown.
 */
int aw_journal_sync(struct aw_journal *journal, struct aw_error *err);

/* Write journal.head, unless the journal is dead or empty, and let go. */
int aw_journal_close(struct aw_journal *journal, struct aw_error *err);

/* Let go without journal.head: for a role that inherited it, and after a failed open. */
void aw_journal_drop(struct aw_journal *journal);
