#include "store/scratch.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/proc.h"
#include "store/session-internal.h"

int scratch_setup(void **state)
{
	struct scratch *scratch = calloc(1, sizeof(*scratch));

	assert_non_null(scratch);
	(void)snprintf(scratch->path, sizeof(scratch->path), "/tmp/warden-unit-XXXXXX");
	assert_non_null(mkdtemp(scratch->path));
	scratch->fd = open(scratch->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(scratch->fd >= 0);
	*state = scratch;
	return 0;
}

int scratch_teardown(void **state)
{
	struct scratch *scratch = *state;
	struct aw_error err;

	(void)close(scratch->fd);
	assert_int_equal(aw_session_remove_tree(AT_FDCWD, scratch->path, &err), 0);
	free(scratch);
	return 0;
}

char *scratch_load(const struct scratch *scratch, const char *name, size_t *ret_len)
{
	struct aw_error err;
	char *text;
	ssize_t n = aw_read_file(scratch->fd, name, 1 << 24, &text, &err);

	if (n < 0)
		fail_msg("%s", err.message);
	*ret_len = (size_t)n;
	return text;
}

void scratch_store(const struct scratch *scratch, const char *name, const char *data, size_t len)
{
	autoclose int fd =
		openat(scratch->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(aw_write_all(fd, data, len), 0);
}

off_t scratch_size(const struct scratch *scratch, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(scratch->fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_size;
}

int scratch_append(struct aw_journal *journal, enum aw_event_kind kind, unsigned number,
		   size_t filler)
{
	static struct aw_event event;
	static char text[8192];
	struct aw_error err;

	memset(text, 'x', sizeof(text));
	assert_true(filler <= sizeof(text));
	aw_event_begin(&event, kind, aw_wall_ns());
	aw_event_add_u64(&event, "number", number);
	if (filler > 0)
		aw_event_add_str(&event, "text", (struct aw_str){ text, filler });
	return aw_journal_append(journal, &event, &err);
}

void scratch_open(const struct scratch *scratch, off_t segment_max, struct aw_journal *ret)
{
	const struct aw_journal_options options = { .session = SESSION,
						    .segment_max = segment_max };
	struct aw_error err;

	assert_int_equal(aw_journal_open(ret, scratch->fd, &options, &err), 0);
}

void scratch_journal(const struct scratch *scratch, unsigned lines, off_t segment_max,
		     bool is_anchored)
{
	struct aw_journal journal;
	struct aw_error err;

	scratch_open(scratch, segment_max, &journal);
	for (unsigned i = 1; i <= lines; i++) {
		enum aw_event_kind kind = i == 1       ? AW_EVENT_SESSION_START
					  : i == lines ? AW_EVENT_SESSION_END
						       : AW_EVENT_NOTE;

		assert_int_equal(scratch_append(&journal, kind, i, 0), 0);
	}
	if (is_anchored)
		assert_int_equal(aw_journal_close(&journal, &err), 0);
	else
		aw_journal_drop(&journal);
}

void scratch_lacks(const char *reason)
{
	const char *must_work = getenv("AW_MUST_WORK");

	if (must_work != NULL && strcmp(must_work, "1") == 0)
		fail_msg("%s", reason);
	print_message("skipped: %s\n", reason);
	skip();
}
