/*
 * reader - the lines of a journal, segment after segment, in bounded memory.
 *
 *	autodrop(aw_reader_drop) struct aw_reader *reader = NULL;      64 KiB at most
 *	r = aw_reader_new(dir_fd, &reader, err);
 *	while ((r = aw_reader_next(reader, &line, err)) > 0)
 *		if (line.flaw == AW_LINE_WHOLE)
 *			print(&line.record);
 *	0: at the end, for now. aw_reader_tail says whether a torn line is left over. To follow a
 *	running session: aw_reader_wait, then aw_reader_next again.
 *
 * Nothing in a file is trusted: what is not a record is handed out with its flaw, and reading goes
 * on behind the next newline. Only regular files are read; symbolic links are refused.
 * Memory is malloc'd once. Safe beside a writer, its rotation and its cutting off of a failed line.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "event/record.h"

#define AW_READER_BUFFER (2 * AW_FLAT_MAX)

enum aw_line_flaw {
	AW_LINE_WHOLE = 0,
	AW_LINE_MALFORMED, /* no record */
	AW_LINE_VERSION,   /* a record of another version */
	AW_LINE_HOLE,      /* contains NUL bytes: blocks that never reached the disk */
	AW_LINE_LONG,      /* longer than any line of ours; `text` is empty */
	AW_LINE_TORN,      /* no newline, though another segment follows */
};

struct aw_line {
	uint32_t segment;
	uint64_t number; /* in its segment, from 1 */
	enum aw_line_flaw flaw;
	struct aw_str text;      /* without newline; hostile unless WHOLE; until the next call */
	struct aw_record record; /* only if WHOLE */
};

struct aw_reader {
	int dir_fd, fd, watch_fd; /* its own */
	uint32_t segment;
	uint64_t number;
	off_t offset;      /* in the segment, of buffer[0] */
	size_t start, len; /* unread: buffer[start..len) */
	bool is_skipping;  /* inside a line that is too long */
	bool is_final;     /* a later segment exists: this one does not grow any more */
	char buffer[AW_READER_BUFFER];
};

/* -ENOENT when there is no segment at all. */
int aw_reader_new(int dir_fd, struct aw_reader **ret, struct aw_error *err);
void aw_reader_drop(struct aw_reader **reader);

/*
 * Read on. Returns 1 and a line, or 0 at the end for now, or -errno (-EBADMSG: a segment that is
 * not a regular file, or that became shorter than what was read of it).
 */
int aw_reader_next(struct aw_reader *reader, struct aw_line *ret, struct aw_error *err);

struct aw_tail {
	uint64_t bytes; /* behind the last newline; 0: the journal ends in a whole line */
	bool has_hole;
};

/* After aw_reader_next returned 0: what stands behind the last newline, read afresh. */
int aw_reader_tail(struct aw_reader *reader, struct aw_tail *ret, struct aw_error *err);

/*
 * Wait until the directory changes, at most @timeout_ms (-1: for ever); without inotify at most
 * 200 ms. Returns 1 when something may have changed, 0 on a timeout. Sleeps without waking.
 */
int aw_reader_wait(struct aw_reader *reader, int timeout_ms, struct aw_error *err);
