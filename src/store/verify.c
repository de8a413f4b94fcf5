#include "store/verify.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "store/head.h"
#include "store/reader.h"

struct place {
	uint32_t segment;
	uint64_t line, seq;
};

struct verifier {
	struct aw_verify *result;
	struct aw_str session;
	struct place last;  /* of the last record */
	uint64_t bad_lines; /* since then, that are no records: their numbers are unknown */
	bool is_last_bad; /* something was found about the last record: expect no good link to it */
	bool is_pending;  /* the last record's prev does not fit the one before it ... */
	struct place before; /* ... which is here: one of the two was changed */
};

static void found(struct verifier *v, enum aw_finding_kind kind, struct place place,
		  uint64_t seq_last)
{
	struct aw_verify *result = v->result;

	if (result->finding_count < AW_VERIFY_FINDINGS_MAX)
		result->finding[result->finding_count] = (struct aw_finding){
			kind, place.segment, place.line, place.seq, seq_last,
		};
	result->finding_count++;
}

static void remove_finding(struct aw_verify *result, size_t i)
{
	memmove(&result->finding[i], &result->finding[i + 1],
		(result->finding_count - i - 1) * sizeof(result->finding[0]));
	result->finding_count--;
}

/* A record that was thought missing turned up further down: it is not missing. */
static void take_from_missing(struct aw_verify *result, uint64_t seq)
{
	/* Once findings were left out, the list is no longer complete and stays as it is. */
	if (result->finding_count > AW_VERIFY_FINDINGS_MAX)
		return;
	for (size_t i = 0; i < result->finding_count; i++) {
		struct aw_finding *finding = &result->finding[i];

		if (finding->kind != AW_FINDING_MISSING || finding->seq != seq)
			continue;
		finding->seq++;
		if (finding->seq > finding->seq_last)
			remove_finding(result, i);
		return;
	}
}

/* The record behind the pair is here: does its prev fit the pair's second, unchanged then? */
static void resolve_pair(struct verifier *v, bool is_linked, bool is_next)
{
	if (!v->is_pending)
		return;
	v->is_pending = false;
	if (is_linked) {
		found(v, AW_FINDING_ALTERED, v->before, v->before.seq);
		return;
	}
	v->is_last_bad = true;
	if (is_next)
		found(v, AW_FINDING_ALTERED, v->last, v->last.seq);
	else
		found(v, AW_FINDING_ALTERED_PAIR, v->before, v->last.seq);
}

/* The number does not follow: what does that say? Returns the number this record stands for. */
static uint64_t check_jump(struct verifier *v, struct place here, bool is_linked)
{
	uint64_t expected = v->last.seq + 1 + v->bad_lines;

	if (is_linked && v->bad_lines == 0 && !v->is_last_bad) {
		/* It stands where its writer put it, so the number itself was changed. */
		here.seq = expected;
		found(v, AW_FINDING_ALTERED, here, expected);
	} else if (here.seq > expected) {
		found(v, AW_FINDING_MISSING, (struct place){ here.segment, here.line, expected },
		      here.seq - 1);
		v->is_last_bad = false;
		return here.seq;
	} else {
		take_from_missing(v->result, here.seq);
		found(v, AW_FINDING_MOVED, here, here.seq);
		here.seq = v->last.seq;
	}
	v->is_last_bad = true;
	return here.seq;
}

static void check_record(struct verifier *v, const struct aw_line *line)
{
	struct place here = { line->segment, line->number, line->record.seq };
	bool is_linked = aw_chain_is_equal(&line->record.prev, &v->result->last);
	bool is_next = here.seq > v->last.seq && here.seq - v->last.seq - 1 <= v->bad_lines;

	resolve_pair(v, is_linked, is_next && v->bad_lines == 0);
	if (v->session.len > 0 && !aw_str_is_equal(line->record.session, v->session))
		found(v, AW_FINDING_FOREIGN, here, here.seq);
	if (!is_next) {
		here.seq = check_jump(v, here, is_linked);
	} else {
		v->is_pending = !is_linked && v->bad_lines == 0 && !v->is_last_bad;
		v->before = v->last;
		v->is_last_bad = false;
	}
	v->last = here;
	v->bad_lines = 0;
	v->result->records++;
}

static void check_line(struct verifier *v, const struct aw_line *line)
{
	static const enum aw_finding_kind kinds[] = {
		[AW_LINE_MALFORMED] = AW_FINDING_MALFORMED, [AW_LINE_VERSION] = AW_FINDING_VERSION,
		[AW_LINE_HOLE] = AW_FINDING_HOLE,           [AW_LINE_LONG] = AW_FINDING_LONG,
		[AW_LINE_TORN] = AW_FINDING_TORN,
	};

	if (line->flaw == AW_LINE_WHOLE) {
		check_record(v, line);
	} else {
		resolve_pair(v, false, false);
		found(v, kinds[line->flaw], (struct place){ line->segment, line->number, 0 }, 0);
		v->bad_lines++;
	}
	aw_chain_hash(line->text, &v->result->last);
	v->result->segments = line->segment;
}

/* How the last line compares with the head. */
static void check_end(struct verifier *v, const struct aw_head *head)
{
	uint64_t last = v->last.seq + v->bad_lines;
	bool is_same = aw_chain_is_equal(&head->last, &v->result->last);

	if (head->seq > last) {
		resolve_pair(v, false, false);
		found(v, AW_FINDING_CUT, (struct place){ v->last.segment, v->last.line, last + 1 },
		      head->seq);
	} else if (head->seq < last) {
		resolve_pair(v, false, false);
		found(v, AW_FINDING_BEYOND,
		      (struct place){ v->last.segment, v->last.line, head->seq + 1 }, last);
	} else if (v->is_pending) {
		resolve_pair(v, is_same, true);
	} else if (!is_same && !v->is_last_bad && v->bad_lines == 0) {
		found(v, AW_FINDING_ALTERED, v->last, last);
	}
}

static int check_anchor(struct verifier *v, int dir_fd, struct aw_error *err)
{
	struct aw_head head;
	int r = aw_head_read(dir_fd, &head, err);

	if (r == -ENOENT) {
		resolve_pair(v, false, false);
		return 0;
	}
	if (r == -EBADMSG || r == -ELOOP || r == -EFBIG) {
		resolve_pair(v, false, false);
		found(v, AW_FINDING_ANCHOR, (struct place){ 0 }, 0);
		return 0;
	}
	if (r < 0)
		return r;
	v->result->is_anchored = true;
	check_end(v, &head);
	if (v->result->is_torn && head.seq <= v->last.seq)
		found(v, AW_FINDING_BEYOND, (struct place){ v->last.segment, v->last.line + 1, 0 },
		      0);
	return 0;
}

static int check_tail(struct verifier *v, struct aw_reader *reader, struct aw_error *err)
{
	struct aw_tail tail;
	int r = aw_reader_tail(reader, &tail, err);

	if (r < 0)
		return r;
	v->result->is_torn = tail.bytes > 0;
	v->result->torn_bytes = tail.bytes;
	if (tail.has_hole)
		found(v, AW_FINDING_HOLE, (struct place){ reader->segment, reader->number + 1, 0 },
		      0);
	return 0;
}

int aw_verify(int dir_fd, const char *session, struct aw_verify *ret, struct aw_error *err)
{
	autodrop(aw_reader_drop) struct aw_reader *reader = NULL;
	struct verifier v = { .result = ret, .session = aw_str_from(session) };
	struct aw_line line;
	int r;

	*ret = (struct aw_verify){ 0 };
	r = aw_reader_new(dir_fd, &reader, err);
	if (r < 0)
		return r;
	while ((r = aw_reader_next(reader, &line, err)) > 0)
		check_line(&v, &line);
	if (r == 0)
		r = check_tail(&v, reader, err);
	if (r == 0)
		r = check_anchor(&v, dir_fd, err);
	ret->last_seq = v.last.seq;
	return r < 0 ? aw_while(err, "verify the journal") : 0;
}

/* text, seq, middle, seq_last, end; a sentence stops where its row does. */
static const struct {
	const char *text, *middle, *end;
} sentences[AW_FINDING_KIND_COUNT] = {
	[AW_FINDING_ALTERED] = { "record ", " was changed", NULL },
	[AW_FINDING_ALTERED_PAIR] = { "record ", " or the one behind it (", ") was changed" },
	[AW_FINDING_MISSING] = { "records ", " to ", " are missing before this line" },
	[AW_FINDING_MOVED] = { "record ", " stands behind a later one", NULL },
	[AW_FINDING_MALFORMED] = { "not a record", NULL, NULL },
	[AW_FINDING_VERSION] = { "a record of another version, not checked", NULL, NULL },
	[AW_FINDING_HOLE] = { "NUL bytes: this part never reached the disk", NULL, NULL },
	[AW_FINDING_LONG] = { "longer than any record", NULL, NULL },
	[AW_FINDING_TORN] = { "incomplete, though another segment follows", NULL, NULL },
	[AW_FINDING_FOREIGN] = { "record ", " belongs to another session", NULL },
	[AW_FINDING_CUT] = { "records ", " to ", " are missing behind this line" },
	[AW_FINDING_BEYOND] = { "the journal goes on behind its end", NULL, NULL },
	[AW_FINDING_ANCHOR] = { "journal.head is malformed: the end is unknown", NULL, NULL },
};

void aw_finding_describe(const struct aw_finding *finding, char *out, size_t size)
{
	unsigned long long seq = finding->seq, seq_last = finding->seq_last;
	const char *text = sentences[finding->kind].text;
	const char *middle = sentences[finding->kind].middle;
	const char *end = sentences[finding->kind].end;
	char place[64] = "";

	if (finding->segment > 0)
		(void)snprintf(place, sizeof(place), "journal-%06u.ndjson:%llu: ", finding->segment,
			       (unsigned long long)finding->line);
	if (middle == NULL)
		(void)snprintf(out, size, "%s%s", place, text);
	else if (end == NULL)
		(void)snprintf(out, size, "%s%s%llu%s", place, text, seq, middle);
	else
		(void)snprintf(out, size, "%s%s%llu%s%llu%s", place, text, seq, middle, seq_last,
			       end);
}
