#include "event/time.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define NS UINT64_C(1000000000)

static void known_moments_have_their_names(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} known[] = {
		{ 0, "1970-01-01T00:00:00.000000000Z" },
		{ 951782400 * NS + 1, "2000-02-29T00:00:00.000000001Z" },
		{ 1772366400 * NS + 123456789, "2026-03-01T12:00:00.123456789Z" },
		{ UINT64_C(4107542399) * NS + 999999999, "2100-02-28T23:59:59.999999999Z" },
		{ UINT64_C(4107542400) * NS, "2100-03-01T00:00:00.000000000Z" },
	};
	char text[AW_TIME_LEN + 1];
	uint64_t ns;

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		aw_time_format(known[i].ns, text);
		assert_string_equal(text, known[i].text);
		assert_int_equal(aw_time_parse(aw_str_from(text), &ns), 0);
		assert_true(ns == known[i].ns);
	}
}

/* The C library is the second opinion, over every day until 2200. */
static void agrees_with_the_c_library_on_every_day(void **state)
{
	char text[AW_TIME_LEN + 1], expected[64];

	(void)state;
	for (time_t t = 43199; t < 230 * 365L * 86400; t += 86400) {
		struct tm tm;

		assert_non_null(gmtime_r(&t, &tm));
		assert_true(strftime(expected, sizeof(expected), "%FT%T.000000000Z", &tm) > 0);
		aw_time_format((uint64_t)t * NS, text);
		assert_string_equal(text, expected);
	}
}

static void the_last_moment_is_written_whole(void **state)
{
	char text[AW_TIME_LEN + 1];

	(void)state;
	aw_time_format(UINT64_MAX, text);
	assert_string_equal(text, "2554-07-21T23:34:33.709551615Z");
}

static void refuses_what_is_no_moment(void **state)
{
	static const char *const bad[] = {
		"",
		"2026-03-01T12:00:00Z",
		"2026-03-01T12:00:00.123Z",
		"2026-03-01 12:00:00.000000000Z",
		"2026-03-01T12:00:00.000000000z",
		"2026-03-01T12:00:00.000000000Z ",
		"2026-02-29T12:00:00.000000000Z",
		"2026-13-01T12:00:00.000000000Z",
		"2026-00-01T12:00:00.000000000Z",
		"2026-01-00T12:00:00.000000000Z",
		"2026-01-01T24:00:00.000000000Z",
		"2026-01-01T12:60:00.000000000Z",
		"2026-01-01T12:00:60.000000000Z",
		"1969-12-31T23:59:59.000000000Z",
		"9999-01-01T00:00:00.000000000Z",
		"2026-01-01T12:00:00.00000000/Z",
		"-026-01-01T12:00:00.000000000Z",
	};
	uint64_t ns;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (aw_time_parse(aw_str_from(bad[i]), &ns) != -EBADMSG)
			fail_msg("accepted: %s", bad[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_moments_have_their_names),
		cmocka_unit_test(agrees_with_the_c_library_on_every_day),
		cmocka_unit_test(the_last_moment_is_written_whole),
		cmocka_unit_test(refuses_what_is_no_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
