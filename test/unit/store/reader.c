#include "store/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/proc.h"
#include "store/scratch.h"
#include "support/torture.h"

#define FIRST "journal-000001.ndjson"
#define MANY 3000

static struct aw_line line;

static struct aw_reader *open_reader(const struct scratch *s)
{
	struct aw_reader *reader = NULL;
	struct aw_error err;

	if (aw_reader_new(s->fd, &reader, &err) < 0)
		fail_msg("%s", err.message);
	return reader;
}

static int next(struct aw_reader *reader)
{
	struct aw_error err;

	return aw_reader_next(reader, &line, &err);
}

static void reads_every_line_of_every_segment(void **state)
{
	autodrop(aw_reader_drop) struct aw_reader *reader = NULL;
	struct scratch *s = *state;
	struct aw_journal journal;
	unsigned seen = 0;

	scratch_open(s, AW_FLAT_MAX, &journal);
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(scratch_append(&journal, AW_EVENT_NOTE, i, (i * 131) % 4000), 0);
	reader = open_reader(s);
	while (next(reader) > 0) {
		uint64_t number;

		assert_int_equal(line.flaw, AW_LINE_WHOLE);
		assert_int_equal(line.record.seq, seen + 1);
		assert_int_equal(
			aw_flat_get_u64(aw_flat_find(&line.record.object, "number"), &number), 0);
		assert_int_equal(number, seen);
		seen++;
	}
	assert_int_equal(seen, 200);
	assert_int_equal(line.segment, journal.segment);
	aw_journal_drop(&journal);
}

static void says_when_there_is_no_journal(void **state)
{
	struct scratch *s = *state;
	struct aw_reader *reader;
	struct aw_error err;

	scratch_store(s, "journal-1.ndjson", "", 0);
	scratch_store(s, "journal-000000.ndjson", "", 0);
	scratch_store(s, "journal-00000x.ndjson", "", 0);
	assert_int_equal(aw_reader_new(s->fd, &reader, &err), -ENOENT);
}

static void an_empty_journal_has_no_lines(void **state)
{
	autodrop(aw_reader_drop) struct aw_reader *reader = NULL;
	struct scratch *s = *state;
	struct aw_error err;
	struct aw_tail tail;

	scratch_store(s, FIRST, "", 0);
	reader = open_reader(s);
	assert_int_equal(next(reader), 0);
	assert_int_equal(aw_reader_tail(reader, &tail, &err), 0);
	assert_int_equal(tail.bytes, 0);
}

static void hostile_lines_are_handed_out_with_their_flaw(void **state)
{
	static const char text[] = "\n"
				   "{\"v\":2}\n"
				   "\x1b[2J\xff\n"
				   "a\0b\n";
	static const enum aw_line_flaw flaws[] = { AW_LINE_MALFORMED, AW_LINE_VERSION,
						   AW_LINE_MALFORMED, AW_LINE_HOLE };
	autodrop(aw_reader_drop) struct aw_reader *reader = NULL;
	struct scratch *s = *state;

	scratch_store(s, FIRST, text, sizeof(text) - 1);
	reader = open_reader(s);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(next(reader), 1);
		assert_int_equal(line.flaw, flaws[i]);
		assert_int_equal(line.number, i + 1);
		assert_int_equal(line.segment, 1);
	}
	assert_int_equal(next(reader), 0);
}

/* Around the limit and around the size of the buffer; the line behind is read whole again. */
static void a_line_of_any_length_is_survived(void **state)
{
	static const size_t sizes[] = { AW_FLAT_MAX - 2,      AW_FLAT_MAX - 1,
					AW_FLAT_MAX,          AW_FLAT_MAX + 1,
					AW_READER_BUFFER - 1, AW_READER_BUFFER,
					AW_READER_BUFFER + 1, 10 * AW_READER_BUFFER + 7 };
	struct scratch *s = *state;
	autofree char *data = malloc(11 * AW_READER_BUFFER);

	assert_non_null(data);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		autodrop(aw_reader_drop) struct aw_reader *reader = NULL;
		bool is_long = sizes[i] >= AW_FLAT_MAX;

		memset(data, 'x', sizes[i]);
		memcpy(data + sizes[i], "\n{\"v\":9}\n", 9);
		scratch_store(s, FIRST, data, sizes[i] + 9);
		reader = open_reader(s);
		assert_int_equal(next(reader), 1);
		assert_int_equal(line.flaw, is_long ? AW_LINE_LONG : AW_LINE_MALFORMED);
		assert_int_equal(line.text.len, is_long ? 0 : sizes[i]);
		assert_int_equal(next(reader), 1);
		assert_int_equal(line.flaw, AW_LINE_VERSION);
		assert_int_equal(line.number, 2);
		assert_int_equal(next(reader), 0);
	}
}

static void an_endless_line_is_a_tail_of_bounded_memory(void **state)
{
	autodrop(aw_reader_drop) struct aw_reader *reader = NULL;
	struct scratch *s = *state;
	struct aw_error err;
	struct aw_tail tail;

	autofree char *data = malloc(1 << 20);

	assert_non_null(data);
	memset(data, 'x', 1 << 20);
	scratch_store(s, FIRST, data, 1 << 20);
	reader = open_reader(s);
	assert_int_equal(next(reader), 0);
	assert_int_equal(aw_reader_tail(reader, &tail, &err), 0);
	assert_true(tail.bytes >= AW_FLAT_MAX);
}

static void what_is_no_regular_file_is_refused(void **state)
{
	struct scratch *s = *state;
	struct aw_reader *reader;
	struct aw_error err;

	assert_int_equal(symlinkat("/etc/passwd", s->fd, FIRST), 0);
	assert_int_equal(aw_reader_new(s->fd, &reader, &err), -ELOOP);
	assert_int_equal(unlinkat(s->fd, FIRST, 0), 0);
	assert_int_equal(mkfifoat(s->fd, FIRST, 0600), 0);
	assert_int_equal(aw_reader_new(s->fd, &reader, &err), -EBADMSG);
}

static void a_torn_line_before_another_segment_is_handed_out(void **state)
{
	autodrop(aw_reader_drop) struct aw_reader *reader = NULL;
	struct scratch *s = *state;

	scratch_store(s, FIRST, "{\"v\":2}\npart", 12);
	scratch_store(s, "journal-000004.ndjson", "{\"v\":2}\n", 8);
	reader = open_reader(s);
	assert_int_equal(next(reader), 1);
	assert_int_equal(next(reader), 1);
	assert_int_equal(line.flaw, AW_LINE_TORN);
	assert_true(aw_str_is(line.text, "part"));
	assert_int_equal(next(reader), 1);
	assert_int_equal(line.segment, 4);
	assert_int_equal(line.number, 1);
	assert_int_equal(next(reader), 0);
}

static void a_part_that_the_writer_takes_back_is_forgotten(void **state)
{
	autodrop(aw_reader_drop) struct aw_reader *reader = NULL;
	struct scratch *s = *state;
	struct aw_error err;
	struct aw_tail tail;

	scratch_store(s, FIRST, "{\"v\":2}\n{\"par", 13);
	reader = open_reader(s);
	assert_int_equal(next(reader), 1);
	assert_int_equal(next(reader), 0);
	assert_int_equal(aw_reader_tail(reader, &tail, &err), 0);
	assert_int_equal(tail.bytes, 5);
	scratch_store(s, FIRST, "{\"v\":2}\n{\"v\":3}\n", 16);
	assert_int_equal(next(reader), 1);
	assert_true(aw_str_is(line.text, "{\"v\":3}"));
	assert_int_equal(next(reader), 0);
}

static void a_file_that_lost_what_was_read_is_an_error(void **state)
{
	autodrop(aw_reader_drop) struct aw_reader *reader = NULL;
	struct scratch *s = *state;

	scratch_store(s, FIRST, "{\"v\":2}\n", 8);
	reader = open_reader(s);
	assert_int_equal(next(reader), 1);
	scratch_store(s, FIRST, "{", 1);
	assert_int_equal(next(reader), -EBADMSG);
}

static void write_slowly(const struct scratch *s)
{
	struct aw_journal journal;

	scratch_open(s, 4 * AW_FLAT_MAX, &journal);
	for (unsigned i = 0; i < MANY; i++) {
		if (scratch_append(&journal, AW_EVENT_NOTE, i, (i * 37) % 900) < 0)
			_exit(1);
		if (i % 500 == 0)
			(void)usleep(2000);
	}
	_exit(0);
}

static void wait_for_file(const struct scratch *s)
{
	while (faccessat(s->fd, FIRST, F_OK, 0) < 0)
		(void)usleep(500);
}

static void follows_a_running_writer_over_its_segments(void **state)
{
	autodrop(aw_reader_drop) struct aw_reader *reader = NULL;
	struct scratch *s = *state;
	struct aw_error err;
	uint64_t seen = 0;
	int status, r = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		write_slowly(s);
	wait_for_file(s);
	reader = open_reader(s);
	while (seen < MANY && r >= 0) {
		r = next(reader);
		if (r > 0) {
			assert_int_equal(line.flaw, AW_LINE_WHOLE);
			assert_int_equal(line.record.seq, ++seen);
			continue;
		}
		r = aw_reader_wait(reader, 10000, &err);
		assert_int_equal(r, 1); /* a timeout: what was written did not wake us */
	}
	assert_int_equal(seen, MANY);
	assert_true(line.segment > 3);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void waiting_sleeps_while_nothing_happens(void **state)
{
	autodrop(aw_reader_drop) struct aw_reader *reader = NULL;
	struct scratch *s = *state;
	struct aw_error err;
	uint64_t before;

	scratch_journal(s, 2, 0, false);
	reader = open_reader(s);
	assert_int_equal(aw_reader_wait(reader, 0, &err), 1); /* sets the watch up */
	before = aw_now_ns();
	assert_int_equal(aw_reader_wait(reader, 30, &err), 0);
	assert_true(aw_now_ns() - before >= 29000000);
	scratch_store(s, FIRST, "{\"v\":2}\n", 8);
	assert_int_equal(aw_reader_wait(reader, 10000, &err), 1);
}

static int attempt(void *state)
{
	autodrop(aw_reader_drop) struct aw_reader *reader = NULL;
	const struct scratch *s = state;
	struct aw_error err;

	return aw_reader_new(s->fd, &reader, &err);
}

static void out_of_memory_is_told(void **state)
{
	struct scratch *s = *state;

	scratch_journal(s, 2, 0, false);
	assert_true(aw_torture(attempt, s) >= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SCRATCH(reads_every_line_of_every_segment),
		IN_SCRATCH(says_when_there_is_no_journal),
		IN_SCRATCH(an_empty_journal_has_no_lines),
		IN_SCRATCH(hostile_lines_are_handed_out_with_their_flaw),
		IN_SCRATCH(a_line_of_any_length_is_survived),
		IN_SCRATCH(an_endless_line_is_a_tail_of_bounded_memory),
		IN_SCRATCH(what_is_no_regular_file_is_refused),
		IN_SCRATCH(a_torn_line_before_another_segment_is_handed_out),
		IN_SCRATCH(a_part_that_the_writer_takes_back_is_forgotten),
		IN_SCRATCH(a_file_that_lost_what_was_read_is_an_error),
		IN_SCRATCH(follows_a_running_writer_over_its_segments),
		IN_SCRATCH(waiting_sleeps_while_nothing_happens),
		IN_SCRATCH(out_of_memory_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
