#include "base/str.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct aw_str aw_str_from(const char *text)
{
	return (struct aw_str){ text, text != NULL ? strlen(text) : 0 };
}

bool aw_str_is_equal(struct aw_str a, struct aw_str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

bool aw_str_is(struct aw_str a, const char *text)
{
	return aw_str_is_equal(a, aw_str_from(text));
}

bool aw_str_starts(struct aw_str s, const char *prefix)
{
	size_t n = strlen(prefix);

	return s.len >= n && (n == 0 || memcmp(s.ptr, prefix, n) == 0);
}

bool aw_str_ends(struct aw_str s, const char *suffix)
{
	size_t n = strlen(suffix);

	return s.len >= n && (n == 0 || memcmp(s.ptr + s.len - n, suffix, n) == 0);
}

bool aw_str_next(struct aw_str *rest, char separator, struct aw_str *ret_part)
{
	const char *end;

	if (rest->ptr == NULL)
		return false;
	end = rest->len > 0 ? memchr(rest->ptr, separator, rest->len) : NULL;
	if (end == NULL) {
		*ret_part = *rest;
		*rest = (struct aw_str){ NULL, 0 };
		return true;
	}
	*ret_part = (struct aw_str){ rest->ptr, (size_t)(end - rest->ptr) };
	rest->len -= ret_part->len + 1;
	rest->ptr = end + 1;
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

struct aw_str aw_str_trim(struct aw_str s)
{
	while (s.len > 0 && is_blank(s.ptr[0])) {
		s.ptr++;
		s.len--;
	}
	while (s.len > 0 && is_blank(s.ptr[s.len - 1]))
		s.len--;
	return s;
}

int aw_str_to_u64(struct aw_str s, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;

	if (s.len == 0 || (s.len > 1 && s.ptr[0] == '0'))
		return -EBADMSG;
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] < '0' || s.ptr[i] > '9')
			return -EBADMSG;
	for (size_t i = 0; i < s.len; i++) {
		unsigned digit = (unsigned)(s.ptr[i] - '0');

		if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit, &value) || value > max)
			return -ERANGE;
	}
	*ret = value;
	return 0;
}

/* First and last allowed value of the second byte, by first byte: RFC 3629 section 4. */
static const struct {
	unsigned char first_low, first_high, second_low, second_high, len;
} utf8_forms[] = {
	{ 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 }, { 0xe1, 0xec, 0x80, 0xbf, 3 },
	{ 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 }, { 0xf0, 0xf0, 0x90, 0xbf, 4 },
	{ 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
};

static bool has_utf8_tail(const unsigned char *p, size_t len)
{
	for (size_t i = 2; i < len; i++)
		if (p[i] < 0x80 || p[i] > 0xbf)
			return false;
	return true;
}

size_t aw_str_utf8_len(struct aw_str s)
{
	const unsigned char *p = (const unsigned char *)s.ptr;

	if (s.len == 0)
		return 0;
	if (p[0] < 0x80)
		return 1;
	for (size_t i = 0; i < sizeof(utf8_forms) / sizeof(utf8_forms[0]); i++) {
		if (p[0] < utf8_forms[i].first_low || p[0] > utf8_forms[i].first_high)
			continue;
		if (s.len < utf8_forms[i].len || p[1] < utf8_forms[i].second_low ||
		    p[1] > utf8_forms[i].second_high)
			return 0;
		return has_utf8_tail(p, utf8_forms[i].len) ? utf8_forms[i].len : 0;
	}
	return 0;
}

/*
 * Beside C0 and DEL a terminal may obey C1 controls. Line and paragraph separators and the characters
 * with the Bidi_Control property (Unicode 15, PropList.txt) reorder what a person reads.
 */
static const struct {
	uint32_t first, last;
} harmful[] = {
	{ 0x00, 0x1f },     { '"', '"' },       { '\'', '\'' },
	{ '\\', '\\' },     { 0x7f, 0x9f },     { 0x061c, 0x061c },
	{ 0x200e, 0x200f }, { 0x2028, 0x202e }, { 0x2066, 0x2069 },
};

/* @len is what aw_str_utf8_len said. */
static uint32_t code_point(const unsigned char *p, size_t len)
{
	static const unsigned char lead_bits[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t code = p[0] & lead_bits[len];

	for (size_t i = 1; i < len; i++)
		code = code << 6 | (p[i] & 0x3f);
	return code;
}

static bool is_harmless(const unsigned char *p, size_t len)
{
	uint32_t code = code_point(p, len);

	for (size_t i = 0; i < sizeof(harmful) / sizeof(harmful[0]); i++)
		if (code >= harmful[i].first && code <= harmful[i].last)
			return false;
	return true;
}

static size_t escape_one(struct aw_str s, char *piece, size_t *ret_used)
{
	static const char hex[] = "0123456789abcdef";
	size_t n = aw_str_utf8_len(s), out = 0;

	if (n > 0 && is_harmless((const unsigned char *)s.ptr, n)) {
		memcpy(piece, s.ptr, n);
		*ret_used = n;
		return n;
	}
	*ret_used = n > 0 ? n : 1;
	if (s.ptr[0] == '\\' || s.ptr[0] == '\'' || s.ptr[0] == '"') {
		piece[0] = '\\';
		piece[1] = s.ptr[0];
		return 2;
	}
	for (size_t i = 0; i < *ret_used; i++) {
		unsigned char c = (unsigned char)s.ptr[i];

		piece[out++] = '\\';
		piece[out++] = 'x';
		piece[out++] = hex[c >> 4];
		piece[out++] = hex[c & 15];
	}
	return out;
}

size_t aw_str_escape(struct aw_str s, char *out, size_t size)
{
	size_t written = 0;

	while (s.len > 0) {
		char piece[16];
		size_t used, n = escape_one(s, piece, &used);

		if (written + n >= size)
			break;
		memcpy(out + written, piece, n);
		written += n;
		s.ptr += used;
		s.len -= used;
	}
	out[written] = '\0';
	return written;
}

int aw_str_format(char *out, size_t size, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(out, size, format, args);
	va_end(args);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : n;
}

char *aw_str_print(const char *format, ...)
{
	char *text = NULL;
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	return n < 0 ? NULL : text;
}

char *aw_str_dup(struct aw_str s)
{
	char *copy = malloc(s.len + 1);

	if (copy == NULL)
		return NULL;
	if (s.len > 0)
		memcpy(copy, s.ptr, s.len);
	copy[s.len] = '\0';
	return copy;
}
