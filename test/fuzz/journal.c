/*
 * A journal from anywhere. A record that is accepted reads alike in a second JSON parser, is safe to
 * print and keeps its promises; the reader accounts for every byte of every segment, and verify
 * comes to a verdict on whatever stands in the files. A byte 0x1e starts the next segment, 0x1d
 * the file journal.head.
 */
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "event/record.h"
#include "fuzz.h"
#include "store/reader.h"
#include "store/verify.h"

#define SEGMENTS_MAX 4
#define NAME_SIZE 32
#define HEAD "journal.head"

static void hold_text(struct aw_str raw, const json_t *value)
{
	static char text[AW_FLAT_MAX], bytes[AW_FLAT_MAX], escaped[4 * AW_FLAT_MAX];
	size_t len, n = aw_flat_text(raw, text, sizeof(text));
	int r;

	assert(json_is_string(value) && json_string_length(value) == n);
	assert(memcmp(json_string_value(value), text, n) == 0);
	for (size_t i = 0; i < n; i++)
		assert((unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
	r = aw_flat_bytes(raw, bytes, sizeof(bytes), &len);
	assert(r == 0 || (r == 1 && n >= 4 && strcmp(text + n - 4, "\\...") == 0));
	/* What is printed never holds more than its bytes do. */
	assert(len <= n &&
	       aw_str_escape((struct aw_str){ bytes, len }, escaped, sizeof(escaped)) >= len);
}

static void hold_list(struct aw_str rest, const json_t *value)
{
	struct aw_str raw;
	size_t i = 0;

	assert(json_is_array(value));
	while (aw_flat_next(&rest, &raw))
		hold_text(raw, json_array_get(value, i++));
	assert(rest.len == 0 && i == json_array_size(value));
}

static void hold_field(const struct aw_flat_field *field, const json_t *value)
{
	int64_t number;
	bool yes;

	switch (field->type) {
	case AW_FLAT_STR:
		hold_text(field->raw, value);
		break;
	case AW_FLAT_STRV:
		hold_list(field->raw, value);
		break;
	case AW_FLAT_BOOL:
		assert(aw_flat_get_bool(field, &yes) == 0 && json_is_boolean(value));
		assert(json_is_true(value) == yes);
		break;
	case AW_FLAT_INT:
		assert(aw_flat_get_i64(field, &number) == 0 && json_is_integer(value));
		assert(json_integer_value(value) == number);
		break;
	}
}

/* The second parser has signed numbers only. */
static bool is_beyond_signed(const struct aw_flat_object *object)
{
	int64_t number;

	for (size_t i = 0; i < object->count; i++)
		if (object->field[i].type == AW_FLAT_INT &&
		    aw_flat_get_i64(&object->field[i], &number) < 0)
			return true;
	return false;
}

static void hold_record(struct aw_str line, const struct aw_record *record)
{
	const struct aw_flat_object *object = &record->object;
	json_error_t error;
	json_t *root;

	assert(object->count >= AW_RECORD_FIRST + AW_RECORD_BEHIND);
	assert(record->session.len == AW_EVENT_SESSION_LEN && record->kind_name.len > 0);
	if (is_beyond_signed(object))
		return;
	root = json_loadb(line.ptr, line.len, JSON_REJECT_DUPLICATES, &error);
	assert(root != NULL && json_object_size(root) == object->count);
	for (size_t i = 0; i < object->count; i++) {
		char key[64];

		assert(fuzz_is_inside(object->field[i].raw, line));
		assert(aw_str_format(key, sizeof(key), "%.*s", (int)object->field[i].key.len,
				     object->field[i].key.ptr) > 0);
		hold_field(&object->field[i], json_object_get(root, key));
	}
	json_decref(root);
}

static void store(int dir_fd, const char *name, struct aw_str data)
{
	autoclose int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || aw_write_all(fd, data.ptr, data.len) < 0)
		abort();
}

static void segment_name(unsigned number, char name[NAME_SIZE])
{
	(void)snprintf(name, NAME_SIZE, "journal-%06u.ndjson", number);
}

/* Make the files; *ret_bytes is what is in the segments. */
static void lay_out(int dir_fd, struct aw_str input, size_t *ret_bytes)
{
	struct aw_str head = { 0 }, part, rest = input;
	char name[NAME_SIZE];
	unsigned count = 0;

	(void)aw_str_next(&rest, 0x1d, &part);
	if (rest.ptr != NULL)
		head = rest;
	for (rest = part, *ret_bytes = 0;
	     count < SEGMENTS_MAX && aw_str_next(&rest, 0x1e, &part);) {
		segment_name(++count, name);
		store(dir_fd, name, part);
		*ret_bytes += part.len;
	}
	if (head.ptr != NULL)
		store(dir_fd, HEAD, head);
}

static void clear(int dir_fd)
{
	char name[NAME_SIZE];

	for (unsigned i = 1; i <= SEGMENTS_MAX; i++) {
		segment_name(i, name);
		(void)unlinkat(dir_fd, name, 0);
	}
	(void)unlinkat(dir_fd, HEAD, 0);
}

/* Returns how many records were whole. */
static uint64_t read_all(int dir_fd, size_t bytes)
{
	autodrop(aw_reader_drop) struct aw_reader *reader = NULL;
	struct aw_error err = { 0 };
	struct aw_line line;
	struct aw_tail tail;
	uint64_t whole = 0;
	size_t seen = 0;
	bool has_long = false;

	if (aw_reader_new(dir_fd, &reader, &err) < 0)
		abort();
	while (aw_reader_next(reader, &line, &err) > 0) {
		seen += line.text.len + (line.flaw == AW_LINE_TORN ? 0 : 1);
		has_long |= line.flaw == AW_LINE_LONG;
		if (line.flaw != AW_LINE_WHOLE)
			continue;
		whole++;
		hold_record(line.text, &line.record);
	}
	assert(aw_reader_tail(reader, &tail, &err) == 0);
	assert(has_long || seen + tail.bytes == bytes || tail.bytes >= AW_FLAT_MAX);
	return whole;
}

static char workplace[40];

static void leave_workplace(void)
{
	(void)rmdir(workplace);
}

/* In memory if there is a place, for speed. */
static int enter_workplace(void)
{
	static int fd = -EBADF;
	const char *where = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

	if (fd >= 0)
		return fd;
	(void)snprintf(workplace, sizeof(workplace), "%s/warden-fuzz-XXXXXX", where);
	if (mkdtemp(workplace) == NULL || atexit(leave_workplace) != 0)
		abort();
	fd = open(workplace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert(fd >= 0);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct aw_error err = { 0 };
	struct aw_verify result;
	char text[200];
	int dir = enter_workplace();
	size_t bytes;
	uint64_t whole;

	if (size == 0)
		return 0;
	lay_out(dir, fuzz_str(data, size), &bytes);
	whole = read_all(dir, bytes);
	assert(aw_verify(dir, NULL, &result, &err) == 0);
	assert(result.records == whole);
	for (size_t i = 0; i < result.finding_count && i < AW_VERIFY_FINDINGS_MAX; i++) {
		assert(result.finding[i].kind >= AW_FINDING_ALTERED &&
		       result.finding[i].kind < AW_FINDING_KIND_COUNT);
		aw_finding_describe(&result.finding[i], text, sizeof(text));
	}
	clear(dir);
	return 0;
}
