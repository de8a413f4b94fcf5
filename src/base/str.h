/*
 * str - text that came from outside, and text that goes to a person.
 *
 * struct aw_str is a length and a pointer by value: it owns nothing and need not end in a NUL. What
 * came from a policy, an agent, a packet or a file name travels as one of these until it was checked.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct aw_str {
	const char *ptr;
	size_t len;
};

#define AW_STR(literal) ((struct aw_str){ (literal), sizeof(literal) - 1 })

struct aw_str aw_str_from(const char *text); /* @text NUL-terminated or NULL (empty) */
bool aw_str_is_equal(struct aw_str a, struct aw_str b);
bool aw_str_is(struct aw_str a, const char *text);
bool aw_str_starts(struct aw_str s, const char *prefix);
bool aw_str_ends(struct aw_str s, const char *suffix);

/* Split off the part before the first @separator; @rest is moved behind it. False when @rest is used up. */
bool aw_str_next(struct aw_str *rest, char separator, struct aw_str *ret_part);
struct aw_str aw_str_trim(struct aw_str s); /* blanks and tabs at both ends */

/*
 * Parse decimal digits only: no sign, no blank, no leading zero unless it is the only digit.
 * Returns 0, -EBADMSG, or -ERANGE when all are digits but the value is beyond @max.
 */
int aw_str_to_u64(struct aw_str s, uint64_t max, uint64_t *ret);

/*
 * Write @s into @out so that it cannot move a cursor, break a line, reorder it or end a quote: control
 * bytes, DEL, C1 and direction controls and bytes that are not UTF-8 become \xNN; backslash and both
 * quotes get a backslash in front. Reversible.
 * Always NUL-terminated; cut at a whole character when @size is too small. Returns the length
 * written without the NUL. @size >= 1.
 */
size_t aw_str_escape(struct aw_str s, char *out, size_t size);

/* Length in bytes (1-4) of the well-formed UTF-8 character at @s, 0 if there is none. RFC 3629. */
size_t aw_str_utf8_len(struct aw_str s);

/* snprintf that says so when it was cut: returns the length, or -ENAMETOOLONG. */
int aw_str_format(char *out, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Allocate like asprintf; NULL when out of memory. The caller frees. */
char *aw_str_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Copy @s with a NUL behind; NULL when out of memory. The caller frees. */
char *aw_str_dup(struct aw_str s);
