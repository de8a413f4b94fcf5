/*
 * flat - one JSON object on one line, without nesting: how Warden writes what it must read again.
 *
 *	struct aw_flat f;
 *	aw_flat_begin(&f, 0, AW_FLAT_MAX);
 *	aw_flat_add_str(&f, "project", path);
 *	aw_flat_add_u64(&f, "started", ns);
 *	line = aw_flat_end(&f, (struct aw_str){ 0 });             {"project":"/p","started":5}\n
 *
 *	r = aw_flat_parse(line_without_newline, &object);
 *	field = aw_flat_find(&object, "project");
 *
 * Values are strings, whole numbers, booleans and lists of strings. The writer allocates nothing
 * and never fails: it has a fixed size, and what does not fit is cut and says so.
 *
 * Strings are bytes, not text. In the line they are well-formed UTF-8 and reversible, in two steps:
 *   1. control bytes, DEL, C1 controls, line and direction controls and bytes that are not UTF-8
 *      become \xNN as in aw_str_escape (two lower-case hex digits per byte), a backslash becomes \\;
 *      quotes are left alone;
 *   2. JSON: a quote becomes \", each backslash of step 1 becomes \\. There is no other escape.
 * So an ESC byte is "\\x1b" in the line, any JSON reader shows \x1b, and nothing a file name or a
 * host name contains can end a line or a string or move a cursor. Undoing step 1 gives the bytes.
 *
 * A string longer than the limit ends, at a whole character, in the mark \... (a backslash that
 * step 1 never makes) and is followed by a field KEY_total with the length in bytes of the whole
 * value. A list that is cut ends in an element with that mark; KEY_total is then the bytes of all
 * elements and KEY_items how many there were. Of each value at least AW_FLAT_SHORT bytes of
 * encoded text are kept, however long the fields before it are.
 *
 * The parser is strict: no blanks, no duplicate keys, no other escapes, no fractions, nothing
 * behind the object, no byte that the writer would have escaped. What it accepts may be printed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define AW_FLAT_MAX 16384 /* bytes of a line, its newline included */
#define AW_FLAT_FIELDS_MAX 24
#define AW_FLAT_KEY_MAX 24
#define AW_FLAT_SHORT 64
#define AW_FLAT_PARSED_MAX 80 /* fields of a parsed object: with the _total and _items of each */

struct aw_flat {
	size_t start, len; /* the text so far is data[start..len) */
	size_t value_max;
	size_t fields;
	bool is_cut; /* at least one value was */
	const char *keys[AW_FLAT_FIELDS_MAX + 1];
	char data[AW_FLAT_MAX];
};

/*
 * Start an object; @headroom bytes (<= 1024) are kept free in front for aw_flat_end, @value_max is
 * the limit of one encoded value. Up to AW_FLAT_FIELDS_MAX fields may follow, and one more of at
 * most AW_FLAT_SHORT bytes. Keys are literals of [a-z0-9_], at most AW_FLAT_KEY_MAX long, each
 * once, and none ends in _total or _items: asserted.
 */
void aw_flat_begin(struct aw_flat *flat, size_t headroom, size_t value_max);
void aw_flat_add_str(struct aw_flat *flat, const char *key, struct aw_str value);
void aw_flat_add_strv(struct aw_flat *flat, const char *key, const struct aw_str *values,
		      size_t count);
void aw_flat_add_u64(struct aw_flat *flat, const char *key, uint64_t value);
void aw_flat_add_i64(struct aw_flat *flat, const char *key, int64_t value);
void aw_flat_add_bool(struct aw_flat *flat, const char *key, bool value);

/*
 * Close an object that has a field. @head, if not empty, is put in front instead of the opening
 * brace (a brace and ready fields, without a comma at the end) and must fit the headroom. The line
 * ends in a newline and lives in @flat.
 */
struct aw_str aw_flat_end(struct aw_flat *flat, struct aw_str head);

enum aw_flat_type {
	AW_FLAT_STR = 1,
	AW_FLAT_INT,
	AW_FLAT_BOOL,
	AW_FLAT_STRV,
};

struct aw_flat_field {
	struct aw_str key;
	enum aw_flat_type type;
	struct aw_str raw; /* as in the line, without the quotes or brackets around it */
};

struct aw_flat_object {
	size_t count;
	struct aw_flat_field field[AW_FLAT_PARSED_MAX];
};

/* Parse @line (no newline); the fields point into it. Returns 0 or -EBADMSG. */
int aw_flat_parse(struct aw_str line, struct aw_flat_object *ret);

/* The field named @key, or NULL. */
const struct aw_flat_field *aw_flat_find(const struct aw_flat_object *object, const char *key);

/*
 * The value of a field that may be absent (NULL). Return 0, -ENOENT when @field is NULL, -EBADMSG
 * when it has another type, -ERANGE when the number does not fit.
 */
int aw_flat_get_u64(const struct aw_flat_field *field, uint64_t *ret);
int aw_flat_get_i64(const struct aw_flat_field *field, int64_t *ret);
int aw_flat_get_bool(const struct aw_flat_field *field, bool *ret);

/*
 * Undo the JSON step of a string or list element: text that is safe on a terminal. Always
 * NUL-terminated; returns its length, cut at @size - 1. @size >= 1.
 */
size_t aw_flat_text(struct aw_str raw, char *out, size_t size);

/*
 * Undo both steps: the bytes as they were, with a NUL behind that does not count. Returns 0, 1 when
 * the value had been cut, or -ENOBUFS when @size is not larger than the value.
 */
int aw_flat_bytes(struct aw_str raw, char *out, size_t size, size_t *ret_len);

/* Split the next element off a list's raw text. False when there is none. */
bool aw_flat_next(struct aw_str *rest, struct aw_str *ret_raw);
