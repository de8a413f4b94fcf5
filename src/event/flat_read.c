#include "event/flat.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define KEY_SEEN_MAX (AW_FLAT_KEY_MAX + 6) /* with _total or _items */

struct cursor {
	const char *p, *end;
};

static bool take(struct cursor *c, char wanted)
{
	if (c->p == c->end || *c->p != wanted)
		return false;
	c->p++;
	return true;
}

static bool starts(const char *p, const char *end, const char *text)
{
	return aw_str_starts((struct aw_str){ p, (size_t)(end - p) }, text);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Length of the escape at @p, which is a backslash; 0 if the writer makes no such escape. */
static size_t escape_len(const char *p, const char *end)
{
	if (starts(p, end, "\\\""))
		return 2;
	if (starts(p, end, "\\\\\\\\"))
		return 4;
	if (starts(p, end, "\\\\...\""))
		return 5; /* the mark stands right before the closing quote only */
	if (starts(p, end, "\\\\x") && end - p >= 5 && hex_digit(p[3]) >= 0 && hex_digit(p[4]) >= 0)
		return 5;
	return 0;
}

/* Length of the next character of a string, 0 if it may not stand there. */
static size_t piece_len(const char *p, const char *end)
{
	char escaped[24];
	size_t n;

	if (*p == '\\')
		return escape_len(p, end);
	if ((unsigned char)*p < 0x80)
		return *p >= 0x20 && *p != 0x7f ? 1 : 0;
	n = aw_str_utf8_len((struct aw_str){ p, (size_t)(end - p) });
	if (n == 0 || aw_str_escape((struct aw_str){ p, n }, escaped, sizeof(escaped)) != n)
		return 0;
	return n;
}

static bool take_string(struct cursor *c, struct aw_str *ret_raw)
{
	const char *begin;

	if (!take(c, '"'))
		return false;
	begin = c->p;
	while (c->p < c->end && *c->p != '"') {
		size_t n = piece_len(c->p, c->end);

		if (n == 0)
			return false;
		c->p += n;
	}
	*ret_raw = (struct aw_str){ begin, (size_t)(c->p - begin) };
	return take(c, '"');
}

static bool take_list(struct cursor *c, struct aw_str *ret_raw)
{
	const char *begin;
	struct aw_str element;

	if (!take(c, '['))
		return false;
	begin = c->p;
	if (take(c, ']')) {
		*ret_raw = (struct aw_str){ begin, 0 };
		return true;
	}
	do {
		if (!take_string(c, &element))
			return false;
	} while (take(c, ','));
	*ret_raw = (struct aw_str){ begin, (size_t)(c->p - begin) };
	return take(c, ']');
}

static bool take_number(struct cursor *c, struct aw_str *ret_raw)
{
	const char *begin = c->p;
	struct aw_str digits;
	uint64_t value;

	(void)take(c, '-');
	digits.ptr = c->p;
	while (c->p < c->end && *c->p >= '0' && *c->p <= '9')
		c->p++;
	digits.len = (size_t)(c->p - digits.ptr);
	*ret_raw = (struct aw_str){ begin, (size_t)(c->p - begin) };
	if (digits.ptr == begin)
		return aw_str_to_u64(digits, UINT64_MAX, &value) == 0;
	/* "-0" is nothing the writer makes. */
	return aw_str_to_u64(digits, (uint64_t)INT64_MAX + 1, &value) == 0 && value != 0;
}

static bool take_bool(struct cursor *c, struct aw_str *ret_raw)
{
	size_t n = starts(c->p, c->end, "true") ? 4 : 5;

	if (n == 5 && !starts(c->p, c->end, "false"))
		return false;
	*ret_raw = (struct aw_str){ c->p, n };
	c->p += n;
	return true;
}

static bool take_value(struct cursor *c, struct aw_flat_field *field)
{
	if (c->p == c->end)
		return false;
	switch (*c->p) {
	case '"':
		field->type = AW_FLAT_STR;
		return take_string(c, &field->raw);
	case '[':
		field->type = AW_FLAT_STRV;
		return take_list(c, &field->raw);
	case 't':
	case 'f':
		field->type = AW_FLAT_BOOL;
		return take_bool(c, &field->raw);
	default:
		field->type = AW_FLAT_INT;
		return take_number(c, &field->raw);
	}
}

static bool take_key(struct cursor *c, struct aw_str *ret)
{
	const char *begin;

	if (!take(c, '"'))
		return false;
	begin = c->p;
	while (c->p < c->end &&
	       (hex_digit(*c->p) >= 0 || *c->p == '_' || (*c->p >= 'a' && *c->p <= 'z')))
		c->p++;
	*ret = (struct aw_str){ begin, (size_t)(c->p - begin) };
	return ret->len > 0 && ret->len <= KEY_SEEN_MAX && take(c, '"') && take(c, ':');
}

static bool is_new(const struct aw_flat_object *object, struct aw_str key)
{
	for (size_t i = 0; i < object->count; i++)
		if (aw_str_is_equal(object->field[i].key, key))
			return false;
	return true;
}

int aw_flat_parse(struct aw_str line, struct aw_flat_object *ret)
{
	struct cursor c = { line.ptr, line.len > 0 ? line.ptr + line.len : line.ptr };

	ret->count = 0;
	if (!take(&c, '{'))
		return -EBADMSG;
	do {
		struct aw_flat_field *field = &ret->field[ret->count];

		if (ret->count == AW_FLAT_PARSED_MAX || !take_key(&c, &field->key) ||
		    !is_new(ret, field->key) || !take_value(&c, field))
			return -EBADMSG;
		ret->count++;
	} while (take(&c, ','));
	return take(&c, '}') && c.p == c.end ? 0 : -EBADMSG;
}

const struct aw_flat_field *aw_flat_find(const struct aw_flat_object *object, const char *key)
{
	for (size_t i = 0; i < object->count; i++)
		if (aw_str_is(object->field[i].key, key))
			return &object->field[i];
	return NULL;
}

static int check_type(const struct aw_flat_field *field, enum aw_flat_type type)
{
	if (field == NULL)
		return -ENOENT;
	return field->type == type ? 0 : -EBADMSG;
}

int aw_flat_get_u64(const struct aw_flat_field *field, uint64_t *ret)
{
	int r = check_type(field, AW_FLAT_INT);

	if (r < 0)
		return r;
	return field->raw.ptr[0] == '-' ? -ERANGE : aw_str_to_u64(field->raw, UINT64_MAX, ret);
}

int aw_flat_get_i64(const struct aw_flat_field *field, int64_t *ret)
{
	struct aw_str digits;
	uint64_t value;
	bool is_negative;
	int r = check_type(field, AW_FLAT_INT);

	if (r < 0)
		return r;
	digits = field->raw;
	is_negative = digits.ptr[0] == '-';
	if (is_negative)
		digits = (struct aw_str){ digits.ptr + 1, digits.len - 1 };
	r = aw_str_to_u64(digits, (uint64_t)INT64_MAX + (is_negative ? 1 : 0), &value);
	if (r < 0)
		return r;
	*ret = is_negative ? -(int64_t)(value - 1) - 1 : (int64_t)value;
	return 0;
}

int aw_flat_get_bool(const struct aw_flat_field *field, bool *ret)
{
	int r = check_type(field, AW_FLAT_BOOL);

	if (r < 0)
		return r;
	*ret = field->raw.ptr[0] == 't';
	return 0;
}

size_t aw_flat_text(struct aw_str raw, char *out, size_t size)
{
	size_t written = 0;

	while (raw.len > 0) {
		/* An escape of the JSON step is a backslash and the character it stands for. */
		size_t skip = raw.ptr[0] == '\\' && raw.len > 1 ? 1 : 0;
		size_t n = skip > 0 ? 1 : aw_str_utf8_len(raw);

		if (n == 0 || written + n >= size)
			break;
		memcpy(out + written, raw.ptr + skip, n);
		written += n;
		raw.ptr += skip + n;
		raw.len -= skip + n;
	}
	out[written] = '\0';
	return written;
}

static char byte_of(struct aw_str raw, size_t *ret_used)
{
	if (raw.ptr[0] != '\\' || raw.len < 2) {
		*ret_used = 1;
		return raw.ptr[0];
	}
	if (raw.ptr[1] == '"') {
		*ret_used = 2;
		return '"';
	}
	if (raw.len >= 5 && raw.ptr[2] == 'x') {
		*ret_used = 5;
		return (char)(hex_digit(raw.ptr[3]) * 16 + hex_digit(raw.ptr[4]));
	}
	*ret_used = raw.len < 4 ? raw.len : 4;
	return '\\';
}

int aw_flat_bytes(struct aw_str raw, char *out, size_t size, size_t *ret_len)
{
	size_t written = 0;
	bool was_cut = false;

	while (raw.len > 0) {
		size_t used;
		char byte;

		if (aw_str_is(raw, "\\\\...")) {
			was_cut = true;
			break;
		}
		byte = byte_of(raw, &used);
		if (written + 1 >= size)
			return -ENOBUFS;
		out[written++] = byte;
		raw.ptr += used;
		raw.len -= used;
	}
	if (size == 0)
		return -ENOBUFS;
	out[written] = '\0';
	*ret_len = written;
	return was_cut ? 1 : 0;
}

bool aw_flat_next(struct aw_str *rest, struct aw_str *ret_raw)
{
	struct cursor c = { rest->ptr, rest->len > 0 ? rest->ptr + rest->len : rest->ptr };

	if (rest->len == 0 || !take_string(&c, ret_raw))
		return false;
	(void)take(&c, ',');
	*rest = (struct aw_str){ c.p, (size_t)(c.end - c.p) };
	return true;
}
