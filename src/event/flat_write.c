#include "event/flat.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/*
 * A field is never larger than this beside the part of its value above AW_FLAT_SHORT: key, quotes,
 * brackets, and KEY_total and KEY_items with a number each.
 */
#define FIELD_MIN 208
#define LONG_LIMIT (AW_FLAT_MAX - (AW_FLAT_FIELDS_MAX + 1) * FIELD_MIN)
#define HEADROOM_MAX 1024
#define MARK "\\\\..."
#define MARK_LEN (sizeof(MARK) - 1)
#define MARK_ELEMENT_LEN (MARK_LEN + 3)

_Static_assert(2 * (AW_FLAT_KEY_MAX + 30) + AW_FLAT_KEY_MAX + 7 + AW_FLAT_SHORT <= FIELD_MIN,
	       "a field with nothing but a short value fits its share");

static void put(struct aw_flat *flat, const char *data, size_t len)
{
	assert(len <= sizeof(flat->data) - flat->len);
	memcpy(flat->data + flat->len, data, len);
	flat->len += len;
}

static void put_text(struct aw_flat *flat, const char *text)
{
	put(flat, text, strlen(text));
}

static bool is_key(const char *key)
{
	struct aw_str s = aw_str_from(key);

	if (s.len == 0 || s.len > AW_FLAT_KEY_MAX || aw_str_ends(s, "_total") ||
	    aw_str_ends(s, "_items"))
		return false;
	return strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_") == s.len;
}

static void put_key(struct aw_flat *flat, const char *key)
{
	assert(is_key(key) && flat->fields < AW_FLAT_FIELDS_MAX + 1);
	for (size_t i = 0; i < flat->fields; i++)
		assert(strcmp(flat->keys[i], key) != 0);
	flat->keys[flat->fields++] = key;
	put_text(flat, ",\"");
	put_text(flat, key);
	put_text(flat, "\":");
}

static void put_extra(struct aw_flat *flat, const char *key, const char *suffix, uint64_t value)
{
	char text[AW_FLAT_KEY_MAX + 40];

	(void)snprintf(text, sizeof(text), ",\"%s%s\":%llu", key, suffix,
		       (unsigned long long)value);
	put_text(flat, text);
}

/* How long the next value may be, so that every field still to come has its share. */
static size_t value_room(const struct aw_flat *flat)
{
	size_t room = flat->len < LONG_LIMIT ? LONG_LIMIT - flat->len : 0;

	if (room < AW_FLAT_SHORT)
		room = AW_FLAT_SHORT;
	return room < flat->value_max ? room : flat->value_max;
}

static bool is_plain(char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* Encode the first character (or stray byte) of @s; a byte becomes 5 at most. */
static size_t encode_one(struct aw_str s, char piece[32], size_t *ret_used)
{
	char escaped[24];
	size_t n = aw_str_utf8_len(s), out = 0;

	*ret_used = n > 0 ? n : 1;
	if (is_plain(s.ptr[0])) {
		piece[0] = s.ptr[0];
		return 1;
	}
	if (s.ptr[0] == '"') {
		memcpy(piece, "\\\"", 2);
		return 2;
	}
	n = aw_str_escape((struct aw_str){ s.ptr, *ret_used }, escaped, sizeof(escaped));
	for (size_t i = 0; i < n; i++) {
		if (escaped[i] == '\\')
			piece[out++] = '\\';
		piece[out++] = escaped[i];
	}
	return out;
}

/* Put @s encoded into at most @max bytes, with the mark if it is cut: returns false then. */
static bool put_encoded(struct aw_flat *flat, struct aw_str s, size_t max)
{
	size_t begin = flat->len, safe = begin;

	while (s.len > 0) {
		char piece[32];
		size_t used, n = encode_one(s, piece, &used);

		if (flat->len - begin + MARK_LEN <= max)
			safe = flat->len;
		if (flat->len - begin + n > max) {
			flat->len = safe;
			put(flat, MARK, MARK_LEN);
			return false;
		}
		put(flat, piece, n);
		s.ptr += used;
		s.len -= used;
	}
	return true;
}

void aw_flat_begin(struct aw_flat *flat, size_t headroom, size_t value_max)
{
	assert(headroom <= HEADROOM_MAX && value_max >= AW_FLAT_SHORT);
	flat->start = flat->len = headroom;
	flat->value_max = value_max;
	flat->fields = 0;
	flat->is_cut = false;
}

void aw_flat_add_str(struct aw_flat *flat, const char *key, struct aw_str value)
{
	bool is_whole;

	put_key(flat, key);
	put(flat, "\"", 1);
	is_whole = put_encoded(flat, value, value_room(flat));
	put(flat, "\"", 1);
	if (is_whole)
		return;
	flat->is_cut = true;
	put_extra(flat, key, "_total", value.len);
}

static bool put_elements(struct aw_flat *flat, const struct aw_str *values, size_t count)
{
	size_t end = flat->len + value_room(flat);

	for (size_t i = 0; i < count; i++) {
		bool is_whole;

		/* Besides this element, the mark as an element of its own must fit behind it. */
		if (flat->len + 2 * MARK_ELEMENT_LEN > end) {
			put_text(flat, i > 0 ? ",\"" MARK "\"" : "\"" MARK "\"");
			return false;
		}
		put_text(flat, i > 0 ? ",\"" : "\"");
		is_whole = put_encoded(flat, values[i], end - flat->len - 1 - MARK_ELEMENT_LEN);
		put(flat, "\"", 1);
		if (!is_whole)
			return false;
	}
	return true;
}

void aw_flat_add_strv(struct aw_flat *flat, const char *key, const struct aw_str *values,
		      size_t count)
{
	uint64_t total = 0;
	bool is_whole;

	put_key(flat, key);
	put(flat, "[", 1);
	is_whole = put_elements(flat, values, count);
	put(flat, "]", 1);
	if (is_whole)
		return;
	flat->is_cut = true;
	for (size_t i = 0; i < count; i++)
		total += values[i].len;
	put_extra(flat, key, "_total", total);
	put_extra(flat, key, "_items", count);
}

void aw_flat_add_u64(struct aw_flat *flat, const char *key, uint64_t value)
{
	char digits[24];

	put_key(flat, key);
	(void)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);
	put_text(flat, digits);
}

void aw_flat_add_i64(struct aw_flat *flat, const char *key, int64_t value)
{
	char digits[24];

	put_key(flat, key);
	(void)snprintf(digits, sizeof(digits), "%lld", (long long)value);
	put_text(flat, digits);
}

void aw_flat_add_bool(struct aw_flat *flat, const char *key, bool value)
{
	put_key(flat, key);
	put_text(flat, value ? "true" : "false");
}

struct aw_str aw_flat_end(struct aw_flat *flat, struct aw_str head)
{
	assert(flat->fields > 0 && head.len <= flat->start);
	put(flat, "}\n", 2);
	if (head.len == 0) {
		flat->data[flat->start] = '{'; /* in place of the first field's comma */
	} else {
		flat->start -= head.len;
		memcpy(flat->data + flat->start, head.ptr, head.len);
	}
	return (struct aw_str){ flat->data + flat->start, flat->len - flat->start };
}
