#include "base/error.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void a_failed_call_carries_the_words_of_its_errno(void **state)
{
	struct aw_error err;

	(void)state;
	assert_int_equal(aw_fail(&err, ENOENT, "open '%s'", "a"), -ENOENT);
	assert_int_equal(err.code, ENOENT);
	assert_string_equal(err.message, "open 'a': No such file or directory");
}

static void a_refusal_is_all_our_words(void **state)
{
	struct aw_error err;

	(void)state;
	assert_int_equal(aw_refuse(&err, EFBIG, "larger than %d bytes", 7), -EFBIG);
	assert_int_equal(err.code, EFBIG);
	assert_string_equal(err.message, "larger than 7 bytes");
}

static void steps_stand_in_front_outermost_first(void **state)
{
	struct aw_error err;

	(void)state;
	(void)aw_refuse(&err, EACCES, "no");
	assert_int_equal(aw_while(&err, "load %d", 1), -EACCES);
	assert_int_equal(aw_while(&err, "start"), -EACCES);
	assert_int_equal(err.code, EACCES);
	assert_string_equal(err.message, "start: load 1: no");
}

static void assert_cut(const struct aw_error *err, const char *start)
{
	size_t len = strnlen(err->message, sizeof(err->message));

	assert_int_equal(len, AW_ERROR_MESSAGE_MAX - 1);
	assert_string_equal(err->message + len - 3, "...");
	assert_memory_equal(err->message, start, strlen(start));
}

static void what_is_too_long_is_cut_and_says_so(void **state)
{
	char text[2 * AW_ERROR_MESSAGE_MAX];
	struct aw_error err;

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	(void)aw_refuse(&err, EFBIG, "%s", text);
	assert_cut(&err, "xxx");
	(void)aw_fail(&err, EFBIG, "%s", text);
	assert_cut(&err, "xxx");
	(void)aw_refuse(&err, EFBIG, "short");
	(void)aw_while(&err, "%s", text);
	assert_cut(&err, "xxx");
}

static void a_long_story_keeps_its_outermost_step(void **state)
{
	struct aw_error err;

	(void)state;
	(void)aw_refuse(&err, EFBIG, "cause");
	for (int i = 0; i < 200; i++)
		(void)aw_while(&err, "step %d", i);
	assert_cut(&err, "step 199: step 198: ");
}

static void the_longest_message_that_fits_is_not_cut(void **state)
{
	char text[AW_ERROR_MESSAGE_MAX];
	struct aw_error err;

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	(void)aw_refuse(&err, EFBIG, "%s", text);
	assert_string_equal(err.message, text);
}

static void a_story_fits_into_one_write_to_a_pipe(void **state)
{
	(void)state;
	assert_true(sizeof(struct aw_error) <= PIPE_BUF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failed_call_carries_the_words_of_its_errno),
		cmocka_unit_test(a_refusal_is_all_our_words),
		cmocka_unit_test(steps_stand_in_front_outermost_first),
		cmocka_unit_test(what_is_too_long_is_cut_and_says_so),
		cmocka_unit_test(a_long_story_keeps_its_outermost_step),
		cmocka_unit_test(the_longest_message_that_fits_is_not_cut),
		cmocka_unit_test(a_story_fits_into_one_write_to_a_pipe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
