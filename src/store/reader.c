#include "store/reader.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "store/segment-internal.h"

#define WITHOUT_INOTIFY_MS 200

static int open_segment(struct aw_reader *reader, uint32_t number, struct aw_error *err)
{
	char name[AW_SEGMENT_NAME_LEN + 1];
	autoclose int fd = -EBADF;
	struct stat st;

	aw_segment_name(number, name);
	fd = openat(reader->dir_fd, name,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return aw_fail(err, errno, "open '%s'", name);
	if (fstat(fd, &st) < 0)
		return aw_fail(err, errno, "fstat '%s'", name);
	if (!S_ISREG(st.st_mode))
		return aw_refuse(err, EBADMSG, "'%s' is not a regular file", name);
	(void)aw_fd_close(reader->fd);
	reader->fd = AW_TAKE_FD(fd);
	reader->segment = number;
	reader->number = 0;
	reader->offset = 0;
	reader->start = reader->len = 0;
	reader->is_skipping = reader->is_final = false;
	return 0;
}

int aw_reader_new(int dir_fd, struct aw_reader **ret, struct aw_error *err)
{
	autodrop(aw_reader_drop) struct aw_reader *reader = malloc(sizeof(*reader));
	uint32_t first;
	int r;

	if (reader == NULL)
		return aw_fail(err, ENOMEM, "read the journal");
	reader->fd = reader->watch_fd = -EBADF;
	reader->dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
	if (reader->dir_fd < 0)
		return aw_fail(err, errno, "open the journal's directory");
	r = aw_segment_next(reader->dir_fd, 0, &first, err);
	if (r == 0)
		return aw_refuse(err, ENOENT, "there is no journal");
	if (r > 0)
		r = open_segment(reader, first, err);
	if (r < 0)
		return r;
	*ret = AW_TAKE_PTR(reader);
	return 0;
}

void aw_reader_drop(struct aw_reader **reader)
{
	if (*reader == NULL)
		return;
	(void)aw_fd_close((*reader)->fd);
	(void)aw_fd_close((*reader)->dir_fd);
	(void)aw_fd_close((*reader)->watch_fd);
	free(*reader);
	*reader = NULL;
}

static void forget(struct aw_reader *reader, size_t keep_from)
{
	memmove(reader->buffer, reader->buffer + keep_from, reader->len - keep_from);
	reader->offset += (off_t)keep_from;
	reader->len -= keep_from;
	reader->start = 0;
}

/* Read more of the segment. Returns 1, 0 at its end, or -errno. */
static int fill(struct aw_reader *reader, struct aw_error *err)
{
	struct stat st;
	ssize_t n;

	forget(reader, reader->start);
	do
		n = pread(reader->fd, reader->buffer + reader->len,
			  sizeof(reader->buffer) - reader->len,
			  reader->offset + (off_t)reader->len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return aw_fail(err, errno, "read segment %u of the journal", reader->segment);
	reader->len += (size_t)n;
	if (n > 0)
		return 1;
	if (fstat(reader->fd, &st) < 0)
		return aw_fail(err, errno, "fstat segment %u of the journal", reader->segment);
	/* The part of a line that a writer took back is not missed; whole lines are. */
	if (st.st_size < reader->offset)
		return aw_refuse(err, EBADMSG, "segment %u of the journal became shorter",
				 reader->segment);
	return 0;
}

static void hand_out(struct aw_reader *reader, size_t len, enum aw_line_flaw flaw,
		     struct aw_line *ret)
{
	struct aw_str text = { reader->buffer + reader->start, len };

	ret->segment = reader->segment;
	ret->number = ++reader->number;
	ret->flaw = flaw;
	if (reader->is_skipping) {
		ret->flaw = AW_LINE_LONG;
		text.len = 0;
	}
	ret->text = text;
	reader->start += len;
	reader->is_skipping = false;
}

static enum aw_line_flaw examine(struct aw_str text, struct aw_record *ret)
{
	int r;

	if (text.len > 0 && memchr(text.ptr, '\0', text.len) != NULL)
		return AW_LINE_HOLE;
	r = aw_record_parse(text, ret);
	if (r == -EPROTONOSUPPORT)
		return AW_LINE_VERSION;
	return r < 0 ? AW_LINE_MALFORMED : AW_LINE_WHOLE;
}

/* Hand out the next line that is whole in the buffer. */
static bool take_line(struct aw_reader *reader, struct aw_line *ret)
{
	char *begin = reader->buffer + reader->start;
	size_t unread = reader->len - reader->start;
	char *newline = unread > 0 ? memchr(begin, '\n', unread) : NULL;

	if (newline != NULL) {
		reader->is_skipping |= newline - begin >= AW_FLAT_MAX;
		hand_out(reader, (size_t)(newline - begin), AW_LINE_WHOLE, ret);
		reader->start++;
		if (ret->flaw == AW_LINE_WHOLE)
			ret->flaw = examine(ret->text, &ret->record);
		return true;
	}
	if (unread >= AW_FLAT_MAX || reader->is_skipping) {
		reader->is_skipping = true;
		reader->start = reader->len;
	}
	return false;
}

/*
 * At the end of a segment. A writer makes the next one only behind a whole line, so once that
 * exists this one is read once more, to its true end. Returns 1 to read on, 0 at the end for now.
 */
static int advance(struct aw_reader *reader, struct aw_error *err)
{
	uint32_t next;
	int r = aw_segment_next(reader->dir_fd, reader->segment, &next, err);

	if (r <= 0)
		return r;
	if (!reader->is_final) {
		reader->is_final = true;
		return 1;
	}
	r = open_segment(reader, next, err);
	return r < 0 ? r : 1;
}

int aw_reader_next(struct aw_reader *reader, struct aw_line *ret, struct aw_error *err)
{
	int r;

	for (;;) {
		if (take_line(reader, ret))
			return 1;
		r = fill(reader, err);
		if (r < 0)
			return r;
		if (r > 0)
			continue;
		if (reader->is_final && (reader->len > 0 || reader->is_skipping)) {
			hand_out(reader, reader->len, AW_LINE_TORN, ret);
			return 1;
		}
		r = advance(reader, err);
		if (r <= 0)
			break;
	}
	/* The start of a line may still be taken back by its writer: read it afresh next time. */
	reader->len = reader->start;
	return r;
}

int aw_reader_tail(struct aw_reader *reader, struct aw_tail *ret, struct aw_error *err)
{
	struct aw_tail tail = { 0 };
	char block[4096];
	ssize_t n;

	if (reader->is_skipping)
		tail.bytes = AW_FLAT_MAX; /* at least; what it was is gone from memory */
	for (off_t at = reader->offset + (off_t)reader->start;; at += n) {
		n = pread(reader->fd, block, sizeof(block), at);
		if (n < 0)
			return aw_fail(err, errno, "read the end of the journal");
		if (n == 0)
			break;
		tail.bytes += (uint64_t)n;
		tail.has_hole |= memchr(block, '\0', (size_t)n) != NULL;
	}
	*ret = tail;
	return 0;
}

static int watch(const struct aw_reader *reader)
{
	char path[64];
	autoclose int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", reader->dir_fd);
	if (fd < 0 || inotify_add_watch(fd, path, IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0)
		return -errno;
	return AW_TAKE_FD(fd);
}

int aw_reader_wait(struct aw_reader *reader, int timeout_ms, struct aw_error *err)
{
	struct pollfd wait = { .events = POLLIN };
	char events[4096];
	int r;

	if (reader->watch_fd < 0) {
		/* What happened before the watch is not told: the first wait only sets it up. */
		reader->watch_fd = watch(reader);
		if (reader->watch_fd >= 0)
			return 1;
		if (timeout_ms < 0 || timeout_ms > WITHOUT_INOTIFY_MS)
			timeout_ms = WITHOUT_INOTIFY_MS;
	}
	wait.fd = reader->watch_fd; /* a negative one is left out by poll */
	r = poll(&wait, 1, timeout_ms);
	if (r < 0 && errno != EINTR)
		return aw_fail(err, errno, "wait for the journal");
	if (r > 0 && read(reader->watch_fd, events, sizeof(events)) < 0 && errno != EAGAIN)
		return aw_fail(err, errno, "read what happened to the journal");
	return r > 0 || reader->watch_fd < 0 ? 1 : 0;
}
