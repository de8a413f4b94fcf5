#include "store/verify.h"

#include <errno.h>
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

#include "base/own.h"
#include "store/scratch.h"

#define FIRST "journal-000001.ndjson"
#define LINES 5

static struct aw_verify result;

static void verify(const struct scratch *s)
{
	struct aw_error err;

	if (aw_verify(s->fd, SESSION, &result, &err) < 0)
		fail_msg("%s", err.message);
}

static void assert_finding(size_t i, enum aw_finding_kind kind, uint64_t line, uint64_t seq,
			   uint64_t seq_last)
{
	char text[160];

	assert_true(i < result.finding_count);
	aw_finding_describe(&result.finding[i], text, sizeof(text));
	if (result.finding[i].kind != kind || result.finding[i].line != line ||
	    result.finding[i].seq != seq || result.finding[i].seq_last != seq_last)
		fail_msg("finding %zu of %zu: %s (kind %d, seq %llu to %llu)", i,
			 result.finding_count, text, (int)result.finding[i].kind,
			 (unsigned long long)result.finding[i].seq,
			 (unsigned long long)result.finding[i].seq_last);
}

static void assert_only(enum aw_finding_kind kind, uint64_t line, uint64_t seq, uint64_t seq_last)
{
	assert_finding(0, kind, line, seq, seq_last);
	assert_int_equal(result.finding_count, 1);
}

/* The file as bytes and where each line begins; begins[LINES] is its end. */
struct file {
	char *data;
	size_t len, begins[LINES + 1];
};

static struct file load(const struct scratch *s)
{
	struct file f = { 0 };
	size_t line = 0;

	f.data = scratch_load(s, FIRST, &f.len);
	for (size_t i = 0; i < f.len; i++)
		if (f.data[i] == '\n')
			f.begins[++line] = i + 1;
	assert_int_equal(line, LINES);
	return f;
}

/* Write the lines in @order (from 1, 0 ends it). */
static void store_lines(const struct scratch *s, const struct file *f, const unsigned *order)
{
	autofree char *data = malloc(2 * f->len);
	size_t len = 0;

	assert_non_null(data);
	for (; *order > 0; order++) {
		size_t begin = f->begins[*order - 1], n = f->begins[*order] - begin;

		memcpy(data + len, f->data + begin, n);
		len += n;
	}
	scratch_store(s, FIRST, data, len);
}

static void a_journal_nobody_touched_is_intact(void **state)
{
	struct scratch *s = *state;

	scratch_journal(s, LINES, 0, true);
	verify(s);
	assert_int_equal(result.finding_count, 0);
	assert_int_equal(result.records, LINES);
	assert_true(result.is_anchored);
	assert_false(result.is_torn);
}

static void a_running_one_is_intact_but_has_no_end(void **state)
{
	struct scratch *s = *state;

	scratch_journal(s, LINES, 0, false);
	verify(s);
	assert_int_equal(result.finding_count, 0);
	assert_false(result.is_anchored);
}

static void no_journal_is_not_an_intact_one(void **state)
{
	struct scratch *s = *state;
	struct aw_error err;

	assert_int_equal(aw_verify(s->fd, SESSION, &result, &err), -ENOENT);
}

/* kill -9 in the middle of a write: at whatever byte, the rest holds and the tear is reported. */
static void a_cut_at_each_byte_of_the_last_line_is_tolerated(void **state)
{
	struct scratch *s = *state;
	struct file f;
	size_t last;

	scratch_journal(s, LINES, 0, false);
	f = load(s);
	last = f.begins[LINES - 1];
	for (size_t n = last; n < f.len; n++) {
		scratch_store(s, FIRST, f.data, n);
		verify(s);
		assert_int_equal(result.finding_count, 0);
		assert_int_equal(result.records, LINES - 1);
		assert_int_equal(result.torn_bytes, n - last);
		assert_int_equal(result.is_torn, n > last);
	}
	free(f.data);
}

static void the_same_cut_after_the_end_is_found(void **state)
{
	struct scratch *s = *state;
	struct file f;

	scratch_journal(s, LINES, 0, true);
	f = load(s);
	for (size_t n = f.begins[LINES - 1]; n < f.len; n++) {
		scratch_store(s, FIRST, f.data, n);
		verify(s);
		assert_only(AW_FINDING_CUT, LINES - 1, LINES, LINES);
	}
	free(f.data);
}

static void flip(int fd, const struct file *f, size_t at, int bit)
{
	char changed = (char)(f->data[at] ^ (bit < 0 ? 0 : 1 << bit));

	assert_int_equal(pwrite(fd, &changed, 1, (off_t)at), 1);
}

/* Every bit of every byte: the line that was changed is the first one that is named. */
static void any_flipped_bit_is_found_and_its_line_is_named(void **state)
{
	struct scratch *s = *state;
	autoclose int fd = -EBADF;
	struct file f;
	unsigned line = 1;

	scratch_journal(s, LINES, 0, true);
	f = load(s);
	fd = openat(s->fd, FIRST, O_WRONLY | O_CLOEXEC);
	for (size_t i = 0; i < f.len; i++) {
		line += i == f.begins[line];
		for (int bit = 0; bit < 8; bit++) {
			flip(fd, &f, i, bit);
			verify(s);
			if (result.finding_count == 0)
				fail_msg("byte %zu bit %d: not found", i, bit);
			/* The very last newline: the line is torn, and the end says it is gone. */
			if (i + 1 < f.len && result.finding[0].line != line)
				fail_msg("byte %zu bit %d of line %u: line %llu named", i, bit,
					 line, (unsigned long long)result.finding[0].line);
		}
		flip(fd, &f, i, -1);
	}
	free(f.data);
}

/* Change a digit in the middle of a line: the record stays well-formed. */
static void change_record(struct file *f, unsigned line)
{
	char *at = strstr(f->data + f->begins[line - 1], "\"number\":");

	assert_non_null(at);
	at[9] = at[9] == '9' ? '8' : '9';
}

static void a_changed_record_is_named(void **state)
{
	struct scratch *s = *state;

	scratch_journal(s, LINES, 0, true);
	for (unsigned line = 1; line <= LINES; line++) {
		struct file f = load(s);

		change_record(&f, line);
		scratch_store(s, FIRST, f.data, f.len);
		verify(s);
		assert_only(AW_FINDING_ALTERED, line, line, line);
		change_record(&f, line);
		memcpy(strstr(f.data + f.begins[line - 1], "\"number\":") + 9, &"0123456789"[line],
		       1);
		scratch_store(s, FIRST, f.data, f.len);
		free(f.data);
	}
	verify(s);
	assert_int_equal(result.finding_count, 0);
}

static void two_changed_records_are_both_named(void **state)
{
	struct scratch *s = *state;
	struct file f;

	scratch_journal(s, LINES, 0, true);
	f = load(s);
	change_record(&f, 2);
	change_record(&f, 4);
	scratch_store(s, FIRST, f.data, f.len);
	free(f.data);
	verify(s);
	assert_finding(0, AW_FINDING_ALTERED, 2, 2, 2);
	assert_finding(1, AW_FINDING_ALTERED, 4, 4, 4);
	assert_int_equal(result.finding_count, 2);
}

static void without_an_end_the_last_pair_is_named(void **state)
{
	struct scratch *s = *state;
	struct file f;

	scratch_journal(s, LINES, 0, false);
	f = load(s);
	change_record(&f, LINES - 1);
	scratch_store(s, FIRST, f.data, f.len);
	free(f.data);
	verify(s);
	assert_only(AW_FINDING_ALTERED_PAIR, LINES - 1, LINES - 1, LINES);
}

static void a_deleted_record_is_named(void **state)
{
	static const unsigned orders[][LINES + 1] = {
		{ 2, 3, 4, 5 }, { 1, 3, 4, 5 }, { 1, 2, 4, 5 }, { 1, 2, 3, 5 }
	};
	struct scratch *s = *state;
	struct file f;

	scratch_journal(s, LINES, 0, true);
	f = load(s);
	for (unsigned i = 0; i < 4; i++) {
		store_lines(s, &f, orders[i]);
		verify(s);
		assert_only(AW_FINDING_MISSING, i + 1, i + 1, i + 1);
	}
	store_lines(s, &f, (const unsigned[]){ 1, 2, 3, 4, 0 });
	verify(s);
	assert_only(AW_FINDING_CUT, 4, 5, 5);
	store_lines(s, &f, (const unsigned[]){ 1, 5, 0 });
	verify(s);
	assert_only(AW_FINDING_MISSING, 2, 2, 4);
	free(f.data);
}

static void moved_records_are_named(void **state)
{
	struct scratch *s = *state;
	struct file f;

	scratch_journal(s, LINES, 0, true);
	f = load(s);
	store_lines(s, &f, (const unsigned[]){ 1, 3, 2, 4, 5, 0 });
	verify(s);
	assert_only(AW_FINDING_MOVED, 3, 2, 2);
	store_lines(s, &f, (const unsigned[]){ 1, 4, 2, 3, 5, 0 });
	verify(s);
	assert_finding(0, AW_FINDING_MOVED, 3, 2, 2);
	assert_finding(1, AW_FINDING_MOVED, 4, 3, 3);
	assert_int_equal(result.finding_count, 2);
	free(f.data);
}

static void a_record_that_stands_twice_is_named(void **state)
{
	struct scratch *s = *state;
	struct file f;

	scratch_journal(s, LINES, 0, true);
	f = load(s);
	store_lines(s, &f, (const unsigned[]){ 1, 2, 3, 2, 4, 5, 0 });
	verify(s);
	assert_only(AW_FINDING_MOVED, 4, 2, 2);
	free(f.data);
}

static void a_line_that_was_put_in_is_named(void **state)
{
	struct scratch *s = *state;
	struct file f;
	autofree char *data = NULL;
	size_t at;

	scratch_journal(s, LINES, 0, true);
	f = load(s);
	data = malloc(f.len + 8);
	assert_non_null(data);
	at = f.begins[2];
	memcpy(data, f.data, at);
	memcpy(data + at, "forged\n", 7);
	memcpy(data + at + 7, f.data + at, f.len - at);
	scratch_store(s, FIRST, data, f.len + 7);
	verify(s);
	assert_only(AW_FINDING_MALFORMED, 3, 0, 0);
	free(f.data);
}

static void what_stands_behind_the_end_is_found(void **state)
{
	struct scratch *s = *state;
	struct file f;

	scratch_journal(s, LINES, 0, true);
	f = load(s);
	store_lines(s, &f, (const unsigned[]){ 1, 2, 3, 4, 5, 5, 0 });
	verify(s);
	assert_only(AW_FINDING_MOVED, 6, 5, 5);
	f.data = realloc(f.data, f.len + 3);
	assert_non_null(f.data);
	memcpy(f.data + f.len, "x\n", 2);
	scratch_store(s, FIRST, f.data, f.len + 2);
	verify(s);
	assert_finding(0, AW_FINDING_MALFORMED, 6, 0, 0);
	assert_finding(1, AW_FINDING_BEYOND, 5, 6, 6);
	scratch_store(s, FIRST, f.data, f.len + 1);
	verify(s);
	assert_only(AW_FINDING_BEYOND, 6, 0, 0);
	free(f.data);
}

static void a_hole_is_named(void **state)
{
	struct scratch *s = *state;
	struct file f;

	scratch_journal(s, LINES, 0, true);
	f = load(s);
	memset(f.data + f.begins[2] + 10, 0, 20);
	scratch_store(s, FIRST, f.data, f.len);
	verify(s);
	assert_only(AW_FINDING_HOLE, 3, 0, 0);
	free(f.data);
}

static void a_hole_at_the_end_is_no_mere_tear(void **state)
{
	struct scratch *s = *state;
	struct file f;

	scratch_journal(s, LINES, 0, false);
	f = load(s);
	memset(f.data + f.begins[4], 0, f.len - f.begins[4]);
	scratch_store(s, FIRST, f.data, f.len);
	verify(s);
	assert_only(AW_FINDING_HOLE, 5, 0, 0);
	assert_true(result.is_torn);
	free(f.data);
}

static void a_line_of_another_version_is_named(void **state)
{
	struct scratch *s = *state;
	struct file f;

	scratch_journal(s, LINES, 0, true);
	f = load(s);
	f.data[f.begins[1] + 5] = '2';
	scratch_store(s, FIRST, f.data, f.len);
	verify(s);
	assert_only(AW_FINDING_VERSION, 2, 0, 0);
	free(f.data);
}

static void the_journal_of_another_session_is_named(void **state)
{
	struct scratch *s = *state;
	struct aw_error err;

	scratch_journal(s, LINES, 0, true);
	assert_int_equal(aw_verify(s->fd, "00000000", &result, &err), 0);
	assert_int_equal(result.finding_count, LINES);
	assert_finding(0, AW_FINDING_FOREIGN, 1, 1, 1);
	assert_int_equal(aw_verify(s->fd, NULL, &result, &err), 0);
	assert_int_equal(result.finding_count, 0);
}

static void fill_segments(const struct scratch *s)
{
	struct aw_journal journal;
	struct aw_error err;

	scratch_open(s, AW_FLAT_MAX, &journal);
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(scratch_append(&journal, AW_EVENT_NOTE, i, 1000), 0);
	assert_true(journal.segment > 2);
	assert_int_equal(aw_journal_close(&journal, &err), 0);
}

static void a_missing_segment_is_named_by_its_records(void **state)
{
	struct scratch *s = *state;

	fill_segments(s);
	assert_int_equal(unlinkat(s->fd, "journal-000002.ndjson", 0), 0);
	verify(s);
	assert_int_equal(result.finding_count, 1);
	assert_int_equal(result.finding[0].kind, AW_FINDING_MISSING);
	assert_int_equal(result.finding[0].segment, 3);
	assert_int_equal(result.finding[0].line, 1);
	assert_true(result.finding[0].seq > 1 &&
		    result.finding[0].seq_last > result.finding[0].seq);
}

static void a_segment_cut_in_the_middle_is_named(void **state)
{
	struct scratch *s = *state;
	autofree char *data = NULL;
	size_t len;

	fill_segments(s);
	data = scratch_load(s, FIRST, &len);
	scratch_store(s, FIRST, data, len - 10);
	verify(s);
	assert_int_equal(result.finding_count, 1);
	assert_int_equal(result.finding[0].kind, AW_FINDING_TORN);
	assert_int_equal(result.finding[0].segment, 1);
	scratch_store(s, FIRST, data, len - 2500);
	verify(s);
	assert_int_equal(result.finding_count, 2);
	assert_int_equal(result.finding[1].kind, AW_FINDING_MISSING);
	assert_int_equal(result.finding[1].segment, 2);
}

static void a_broken_head_is_told(void **state)
{
	struct scratch *s = *state;

	scratch_journal(s, LINES, 0, true);
	scratch_store(s, "journal.head", "{}\n", 3);
	verify(s);
	assert_only(AW_FINDING_ANCHOR, 0, 0, 0);
	assert_int_equal(unlinkat(s->fd, "journal.head", 0), 0);
	assert_int_equal(symlinkat("/etc/passwd", s->fd, "journal.head"), 0);
	verify(s);
	assert_only(AW_FINDING_ANCHOR, 0, 0, 0);
}

static void a_segment_that_is_no_file_is_refused(void **state)
{
	struct scratch *s = *state;
	struct aw_error err;

	assert_int_equal(symlinkat("/etc/passwd", s->fd, FIRST), 0);
	assert_int_equal(aw_verify(s->fd, SESSION, &result, &err), -ELOOP);
	assert_int_equal(unlinkat(s->fd, FIRST, 0), 0);
	assert_int_equal(mkfifoat(s->fd, FIRST, 0600), 0);
	assert_int_equal(aw_verify(s->fd, SESSION, &result, &err), -EBADMSG);
}

static void more_findings_than_are_kept_are_counted(void **state)
{
	struct scratch *s = *state;
	char text[200];

	memset(text, '\n', sizeof(text));
	scratch_store(s, FIRST, text, sizeof(text));
	verify(s);
	assert_int_equal(result.finding_count, sizeof(text));
	assert_finding(AW_VERIFY_FINDINGS_MAX - 1, AW_FINDING_MALFORMED, AW_VERIFY_FINDINGS_MAX, 0,
		       0);
}

static void a_finding_is_a_sentence(void **state)
{
	struct aw_finding finding = { AW_FINDING_MISSING, 2, 14, 7, 9 };
	char text[160];

	(void)state;
	aw_finding_describe(&finding, text, sizeof(text));
	assert_string_equal(text, "journal-000002.ndjson:14: records 7 to 9 are missing before "
				  "this line");
	for (int kind = AW_FINDING_ALTERED; kind < AW_FINDING_KIND_COUNT; kind++) {
		finding.kind = (enum aw_finding_kind)kind;
		aw_finding_describe(&finding, text, sizeof(text));
		assert_true(strlen(text) > strlen("journal-000002.ndjson:14: ") + 5);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SCRATCH(a_journal_nobody_touched_is_intact),
		IN_SCRATCH(a_running_one_is_intact_but_has_no_end),
		IN_SCRATCH(no_journal_is_not_an_intact_one),
		IN_SCRATCH(a_cut_at_each_byte_of_the_last_line_is_tolerated),
		IN_SCRATCH(the_same_cut_after_the_end_is_found),
		IN_SCRATCH(any_flipped_bit_is_found_and_its_line_is_named),
		IN_SCRATCH(a_changed_record_is_named),
		IN_SCRATCH(two_changed_records_are_both_named),
		IN_SCRATCH(without_an_end_the_last_pair_is_named),
		IN_SCRATCH(a_deleted_record_is_named),
		IN_SCRATCH(moved_records_are_named),
		IN_SCRATCH(a_record_that_stands_twice_is_named),
		IN_SCRATCH(a_line_that_was_put_in_is_named),
		IN_SCRATCH(what_stands_behind_the_end_is_found),
		IN_SCRATCH(a_hole_is_named),
		IN_SCRATCH(a_hole_at_the_end_is_no_mere_tear),
		IN_SCRATCH(a_line_of_another_version_is_named),
		IN_SCRATCH(the_journal_of_another_session_is_named),
		IN_SCRATCH(a_missing_segment_is_named_by_its_records),
		IN_SCRATCH(a_segment_cut_in_the_middle_is_named),
		IN_SCRATCH(a_broken_head_is_told),
		IN_SCRATCH(a_segment_that_is_no_file_is_refused),
		IN_SCRATCH(more_findings_than_are_kept_are_counted),
		cmocka_unit_test(a_finding_is_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
