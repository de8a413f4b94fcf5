#include "store/journal.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "store/head.h"
#include "store/segment-internal.h"

#define RESERVE_STEP (16 * 1024)

static int create_segment(int dir_fd, uint32_t number, struct aw_error *err)
{
	char name[AW_SEGMENT_NAME_LEN + 1];
	int fd;

	if (number > AW_SEGMENT_MAX)
		return aw_refuse(err, EOVERFLOW, "the journal has %d segments", AW_SEGMENT_MAX);
	aw_segment_name(number, name);
	fd = openat(dir_fd, name, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	return fd < 0 ? aw_fail(err, errno, "create '%s'", name) : fd;
}

int aw_journal_open(struct aw_journal *ret, int dir_fd, const struct aw_journal_options *options,
		    struct aw_error *err)
{
	struct aw_journal journal = {
		.fd = -EBADF,
		.segment = 1,
		.segment_max = options->segment_max,
		.sync_edges = options->sync_edges,
		.may_reserve = true,
	};
	autoclose int dir = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);

	assert(strlen(options->session) == AW_EVENT_SESSION_LEN);
	memcpy(journal.session, options->session, AW_EVENT_SESSION_LEN + 1);
	if (journal.segment_max == 0)
		journal.segment_max = AW_JOURNAL_SEGMENT_MAX;
	assert(journal.segment_max >= AW_FLAT_MAX);
	if (dir < 0)
		return aw_fail(err, errno, "open the journal's directory");
	journal.fd = create_segment(dir, journal.segment, err);
	if (journal.fd < 0)
		return aw_while(err, "open the journal");
	journal.dir_fd = AW_TAKE_FD(dir);
	*ret = journal;
	return 0;
}

/* Reserve up to @end. Where the file system cannot, the journal does without. */
static int reserve(struct aw_journal *journal, off_t end, struct aw_error *err)
{
	off_t more = end - journal->reserved;

	if (!journal->may_reserve || more <= 0)
		return 0;
	if (more < RESERVE_STEP)
		more = RESERVE_STEP;
	if (fallocate(journal->fd, FALLOC_FL_KEEP_SIZE, journal->reserved, more) == 0) {
		journal->reserved += more;
		return 0;
	}
	if (errno == ENOSPC || errno == EDQUOT || errno == EIO)
		return aw_fail(err, errno, "reserve space for the journal");
	journal->may_reserve = false;
	return 0;
}

static int prepare_segment(const struct aw_journal *journal, size_t len, struct aw_journal *next,
			   struct aw_error *err)
{
	*next = *journal;
	next->fd = create_segment(journal->dir_fd, journal->segment + 1, err);
	if (next->fd < 0)
		return next->fd;
	next->segment++;
	next->size = next->reserved = 0;
	return reserve(next, (off_t)len + AW_JOURNAL_LAST_SPACE, err);
}

/* The old segment and its space for last words are given up only when the new one has its own. */
static int start_segment(struct aw_journal *journal, size_t len, struct aw_error *err)
{
	char name[AW_SEGMENT_NAME_LEN + 1];
	struct aw_journal next;
	int r = prepare_segment(journal, len, &next, err);

	if (r == 0) {
		(void)close(journal->fd);
		*journal = next;
		return 0;
	}
	if (next.fd >= 0) {
		aw_segment_name(next.segment, name);
		(void)unlinkat(journal->dir_fd, name, 0);
		(void)close(next.fd);
	}
	return r;
}

static bool is_last_word(enum aw_event_kind kind)
{
	const struct aw_event_info *info = aw_event_info(kind);

	return (info->traits & AW_EVENT_LAST) != 0 || info->severity == AW_SEVERITY_BREACH;
}

static int make_room(struct aw_journal *journal, enum aw_event_kind kind, size_t len,
		     struct aw_error *err)
{
	off_t wanted = journal->size + (off_t)len;

	if (is_last_word(kind))
		return 0;
	if (wanted > journal->segment_max && journal->size > 0)
		return start_segment(journal, len, err);
	return reserve(journal, wanted + AW_JOURNAL_LAST_SPACE, err);
}

static int write_line(struct aw_journal *journal, struct aw_str line, struct aw_error *err)
{
	int r = aw_write_all(journal->fd, line.ptr, line.len);

	if (r == 0) {
		journal->size += (off_t)line.len;
		return 0;
	}
	if (ftruncate(journal->fd, journal->size) < 0)
		journal->is_dead = true;
	/* The cut gave back the reserved blocks as well. */
	journal->reserved = journal->size;
	return aw_fail(err, -r, "write to the journal");
}

static bool is_synced(const struct aw_journal *journal, enum aw_event_kind kind)
{
	const struct aw_event_info *info = aw_event_info(kind);

	return info->severity == AW_SEVERITY_BREACH ||
	       (journal->sync_edges && (info->traits & AW_EVENT_EDGE) != 0);
}

int aw_journal_append(struct aw_journal *journal, struct aw_event *event, struct aw_error *err)
{
	struct aw_str line;
	int r;

	if (journal->is_dead)
		return aw_refuse(err, EIO, "the journal is dead");
	line = aw_event_seal(event, journal->session, journal->seq + 1, &journal->last);
	r = make_room(journal, event->kind, line.len, err);
	if (r < 0)
		return r;
	r = write_line(journal, line, err);
	if (r < 0)
		return r;
	journal->seq++;
	aw_chain_hash((struct aw_str){ line.ptr, line.len - 1 }, &journal->last);
	return is_synced(journal, event->kind) ? aw_journal_sync(journal, err) : 0;
}

int aw_journal_sync(struct aw_journal *journal, struct aw_error *err)
{
	if (journal->is_dead)
		return aw_refuse(err, EIO, "the journal is dead");
	if (fdatasync(journal->fd) == 0)
		return 0;
	/* The kernel reports a lost page once and then forgets it: there is no second try. */
	journal->is_dead = true;
	return aw_fail(err, errno, "sync the journal");
}

static int write_head(const struct aw_journal *journal, struct aw_error *err)
{
	const struct aw_head head = {
		.segment = journal->segment,
		.seq = journal->seq,
		.last = journal->last,
	};
	int r = aw_head_write(journal->dir_fd, journal->session, &head, err);

	/*
	 * On a full disk the head gets what was kept for last words. Not done otherwise: to cut blocks
	 * off behind the end takes ext4 some 0.1 ms, at a moment when a person waits.
	 */
	if ((r != -ENOSPC && r != -EDQUOT) || ftruncate(journal->fd, journal->size) < 0)
		return r;
	return aw_head_write(journal->dir_fd, journal->session, &head, err);
}

int aw_journal_close(struct aw_journal *journal, struct aw_error *err)
{
	int r = journal->is_dead || journal->seq == 0 ? 0 : write_head(journal, err);

	aw_journal_drop(journal);
	return r;
}

void aw_journal_drop(struct aw_journal *journal)
{
	journal->fd = aw_fd_close(journal->fd);
	journal->dir_fd = aw_fd_close(journal->dir_fd);
}
