#include "base/str.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "support/torture.h"

static const struct aw_str nothing = { NULL, 0 };

static void equality_is_of_length_and_bytes(void **state)
{
	(void)state;
	assert_true(aw_str_is_equal(AW_STR("a\0b"), AW_STR("a\0b")));
	assert_false(aw_str_is_equal(AW_STR("a\0b"), AW_STR("a\0c")));
	assert_false(aw_str_is_equal(AW_STR("ab"), AW_STR("a")));
	assert_true(aw_str_is(AW_STR("ab"), "ab"));
	assert_false(aw_str_is(AW_STR("ab\0"), "ab"));
	assert_true(aw_str_is_equal(nothing, AW_STR("")));
	assert_true(aw_str_is(nothing, ""));
	assert_int_equal(aw_str_from(NULL).len, 0);
	assert_int_equal(aw_str_from("abc").len, 3);
}

static void starts_and_ends_look_no_further_than_the_text(void **state)
{
	(void)state;
	assert_true(aw_str_starts(AW_STR("abc"), "ab"));
	assert_false(aw_str_starts((struct aw_str){ "abc", 1 }, "ab"));
	assert_true(aw_str_ends(AW_STR("abc"), "bc"));
	assert_false(aw_str_ends((struct aw_str){ "abc", 2 }, "bc"));
	assert_false(aw_str_ends(AW_STR("c"), "bc"));
	assert_true(aw_str_starts(nothing, ""));
	assert_true(aw_str_ends(nothing, ""));
	assert_false(aw_str_starts(nothing, "a"));
	assert_false(aw_str_ends(nothing, "a"));
}

/* The parts of @text joined by '|'. */
static const char *split(struct aw_str text, char *out, size_t size)
{
	struct aw_str part;
	size_t len = 0;

	while (aw_str_next(&text, ',', &part)) {
		assert_true(len + part.len + 1 < size);
		if (part.len > 0)
			memcpy(out + len, part.ptr, part.len);
		len += part.len;
		out[len++] = '|';
	}
	out[len] = '\0';
	return out;
}

static void splitting_keeps_empty_parts(void **state)
{
	char out[64];

	(void)state;
	assert_string_equal(split(AW_STR("a,b"), out, sizeof(out)), "a|b|");
	assert_string_equal(split(AW_STR(",a,,"), out, sizeof(out)), "|a|||");
	assert_string_equal(split(AW_STR("a"), out, sizeof(out)), "a|");
	assert_string_equal(split(AW_STR(""), out, sizeof(out)), "|");
	assert_string_equal(split(nothing, out, sizeof(out)), "");
	assert_string_equal(split((struct aw_str){ "a,b", 2 }, out, sizeof(out)), "a||");
}

static void trimming_takes_blanks_and_tabs_only(void **state)
{
	(void)state;
	assert_true(aw_str_is(aw_str_trim(AW_STR(" \t a b\t ")), "a b"));
	assert_true(aw_str_is(aw_str_trim(AW_STR("\na\r")), "\na\r"));
	assert_true(aw_str_is(aw_str_trim(AW_STR(" \t ")), ""));
	assert_true(aw_str_is(aw_str_trim(nothing), ""));
}

static void numbers_are_plain_decimal(void **state)
{
	static const struct {
		const char *text;
		uint64_t max;
		int result;
		uint64_t value;
	} rows[] = {
		{ "0", 10, 0, 0 },
		{ "10", 10, 0, 10 },
		{ "11", 10, -ERANGE, 0 },
		{ "18446744073709551615", UINT64_MAX, 0, UINT64_MAX },
		{ "18446744073709551616", UINT64_MAX, -ERANGE, 0 },
		{ "99999999999999999999999", UINT64_MAX, -ERANGE, 0 },
		{ "", 10, -EBADMSG, 0 },
		{ "00", 10, -EBADMSG, 0 },
		{ "01", 10, -EBADMSG, 0 },
		{ "+1", 10, -EBADMSG, 0 },
		{ "-1", 10, -EBADMSG, 0 },
		{ " 1", 10, -EBADMSG, 0 },
		{ "1 ", 10, -EBADMSG, 0 },
		{ "0x1", 10, -EBADMSG, 0 },
		{ "1e3", 10, -EBADMSG, 0 },
		{ "99999999999999999999999x", 10, -EBADMSG, 0 },
		{ "\xd9\xa1", 10, -EBADMSG, 0 }, /* ARABIC-INDIC DIGIT ONE */
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(rows); i++) {
		uint64_t value = 0;

		assert_int_equal(aw_str_to_u64(aw_str_from(rows[i].text), rows[i].max, &value),
				 rows[i].result);
		assert_int_equal(value, rows[i].value);
	}
}

static void a_number_stops_at_its_length(void **state)
{
	uint64_t value = 0;

	(void)state;
	assert_int_equal(aw_str_to_u64((struct aw_str){ "123", 2 }, 100, &value), 0);
	assert_int_equal(value, 12);
	assert_int_equal(aw_str_to_u64(AW_STR("1\0"), 100, &value), -EBADMSG);
}

static void utf8_lengths_follow_rfc_3629(void **state)
{
	static const struct {
		const char *text;
		size_t len;
	} rows[] = {
		{ "a", 1 },
		{ "\xc2\x80", 2 },
		{ "\xdf\xbf", 2 },
		{ "\xe0\xa0\x80", 3 },
		{ "\xed\x9f\xbf", 3 },
		{ "\xee\x80\x80", 3 },
		{ "\xef\xbf\xbf", 3 },
		{ "\xf0\x90\x80\x80", 4 },
		{ "\xf4\x8f\xbf\xbf", 4 },
		{ "\x80", 0 },             /* a tail byte alone */
		{ "\xc0\x80", 0 },         /* over-long NUL */
		{ "\xc1\xbf", 0 },         /* over-long */
		{ "\xe0\x9f\xbf", 0 },     /* over-long */
		{ "\xf0\x8f\xbf\xbf", 0 }, /* over-long */
		{ "\xed\xa0\x80", 0 },     /* surrogate */
		{ "\xed\xbf\xbf", 0 },     /* surrogate */
		{ "\xf4\x90\x80\x80", 0 }, /* beyond U+10FFFF */
		{ "\xf5\x80\x80\x80", 0 },
		{ "\xff", 0 },
		{ "\xe2\x28\xa1", 0 }, /* no tail where one must be */
		{ "\xe2\x82\x28", 0 },
		{ "\xf0\x90\x80\x41", 0 },
		{ "\xe2\x82", 0 }, /* ends too early */
		{ "\xf0\x9f\x98", 0 },
		{ "\xc2", 0 },
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(rows); i++)
		assert_int_equal(aw_str_utf8_len(aw_str_from(rows[i].text)), rows[i].len);
	assert_int_equal(aw_str_utf8_len(nothing), 0);
	assert_int_equal(aw_str_utf8_len(AW_STR("\0")), 1);
	/* The character would be whole, but the text ends inside it. */
	assert_int_equal(aw_str_utf8_len((struct aw_str){ "\xe2\x82\xac", 2 }), 0);
}

static void assert_escaped(struct aw_str raw, const char *expected)
{
	char out[256];

	assert_int_equal(aw_str_escape(raw, out, sizeof(out)), strlen(expected));
	assert_string_equal(out, expected);
}

static void what_a_person_may_read_stays_as_it_is(void **state)
{
	(void)state;
	assert_escaped(AW_STR("plain text: a=b;c,d [e] $f"), "plain text: a=b;c,d [e] $f");
	assert_escaped(AW_STR("\xe6\xbc\xa2\xe5\xad\x97"), "\xe6\xbc\xa2\xe5\xad\x97");
	assert_escaped(AW_STR("\xf0\x9f\x98\x80 \xc2\xa0"), "\xf0\x9f\x98\x80 \xc2\xa0");
	assert_escaped(nothing, "");
}

static void nothing_moves_a_cursor_breaks_a_line_or_reorders_it(void **state)
{
	(void)state;
	assert_escaped(AW_STR("a\nb\r\t\0"), "a\\x0ab\\x0d\\x09\\x00");
	assert_escaped(AW_STR("\033[2J\x7f"), "\\x1b[2J\\x7f");
	assert_escaped(AW_STR("\xc2\x9b"), "\\xc2\\x9b");          /* C1 control: CSI */
	assert_escaped(AW_STR("\xd8\x9c"), "\\xd8\\x9c");          /* ARABIC LETTER MARK */
	assert_escaped(AW_STR("\xe2\x80\xa8"), "\\xe2\\x80\\xa8"); /* LINE SEPARATOR */
	assert_escaped(AW_STR("\xe2\x80\x8f"), "\\xe2\\x80\\x8f"); /* RIGHT-TO-LEFT MARK */
	assert_escaped(AW_STR("\xe2\x80\xae"), "\\xe2\\x80\\xae"); /* RIGHT-TO-LEFT OVERRIDE */
	assert_escaped(AW_STR("\xe2\x81\xa6"), "\\xe2\\x81\\xa6"); /* LEFT-TO-RIGHT ISOLATE */
}

static void bytes_that_are_not_utf8_are_shown_one_by_one(void **state)
{
	(void)state;
	assert_escaped(AW_STR("\xff\xc0\x80"), "\\xff\\xc0\\x80");
	assert_escaped(AW_STR("\xe2\x82x"), "\\xe2\\x82x");
	assert_escaped((struct aw_str){ "\xe2\x82\xac", 2 }, "\\xe2\\x82");
}

static void no_name_ends_the_quotes_around_it(void **state)
{
	(void)state;
	assert_escaped(AW_STR("a': ok"), "a\\': ok");
	assert_escaped(AW_STR("a\"b"), "a\\\"b");
	assert_escaped(AW_STR("\\"), "\\\\");
	/* Spelled by hand, an escape is told from one of ours. */
	assert_escaped(AW_STR("\\x0a"), "\\\\x0a");
}

static void different_texts_escape_differently(void **state)
{
	char seen[256][8];

	(void)state;
	for (int i = 0; i < 256; i++) {
		char c = (char)i;

		(void)aw_str_escape((struct aw_str){ &c, 1 }, seen[i], sizeof(seen[i]));
		for (int j = 0; j < i; j++)
			assert_string_not_equal(seen[i], seen[j]);
	}
}

static void escaping_cuts_between_characters(void **state)
{
	char out[8];

	(void)state;
	memset(out, '#', sizeof(out));
	assert_int_equal(aw_str_escape(AW_STR("ab\n"), out, 6), 2);
	assert_string_equal(out, "ab");
	assert_int_equal(out[6], '#');
	assert_int_equal(aw_str_escape(AW_STR("ab\n"), out, 7), 6);
	assert_string_equal(out, "ab\\x0a");
	assert_int_equal(aw_str_escape(AW_STR("\xe2\x82\xac"), out, 3), 0);
	assert_int_equal(aw_str_escape(AW_STR("abc"), out, 1), 0);
	assert_string_equal(out, "");
}

static void formatting_says_when_it_was_cut(void **state)
{
	char out[4];

	(void)state;
	assert_int_equal(aw_str_format(out, sizeof(out), "%d", 123), 3);
	assert_string_equal(out, "123");
	assert_int_equal(aw_str_format(out, sizeof(out), "%d", 1234), -ENAMETOOLONG);
}

static void copies_end_in_a_nul(void **state)
{
	autofree char *copy = aw_str_dup((struct aw_str){ "abc", 2 });
	autofree char *empty = aw_str_dup(nothing);
	autofree char *printed = aw_str_print("%s-%d", "a", 1);

	(void)state;
	assert_string_equal(copy, "ab");
	assert_string_equal(empty, "");
	assert_string_equal(printed, "a-1");
}

static int copy_and_print(void *state)
{
	autofree char *copy = aw_str_dup(AW_STR("abc"));
	autofree char *printed = NULL;

	(void)state;
	if (copy == NULL)
		return -ENOMEM;
	printed = aw_str_print("%s", copy);
	return printed != NULL ? 0 : -ENOMEM;
}

static void out_of_memory_is_null(void **state)
{
	(void)state;
	assert_int_equal(aw_torture(copy_and_print, NULL), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equality_is_of_length_and_bytes),
		cmocka_unit_test(starts_and_ends_look_no_further_than_the_text),
		cmocka_unit_test(splitting_keeps_empty_parts),
		cmocka_unit_test(trimming_takes_blanks_and_tabs_only),
		cmocka_unit_test(numbers_are_plain_decimal),
		cmocka_unit_test(a_number_stops_at_its_length),
		cmocka_unit_test(utf8_lengths_follow_rfc_3629),
		cmocka_unit_test(what_a_person_may_read_stays_as_it_is),
		cmocka_unit_test(nothing_moves_a_cursor_breaks_a_line_or_reorders_it),
		cmocka_unit_test(bytes_that_are_not_utf8_are_shown_one_by_one),
		cmocka_unit_test(no_name_ends_the_quotes_around_it),
		cmocka_unit_test(different_texts_escape_differently),
		cmocka_unit_test(escaping_cuts_between_characters),
		cmocka_unit_test(formatting_says_when_it_was_cut),
		cmocka_unit_test(copies_end_in_a_nul),
		cmocka_unit_test(out_of_memory_is_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
