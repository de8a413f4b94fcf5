#include "wire/http.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"

static void tokens_compare_without_case(void **state)
{
	(void)state;
	assert_true(aw_http_token_is(AW_STR("Content-LENGTH"), "content-length"));
	assert_false(aw_http_token_is(AW_STR("Content-Lengt"), "content-length"));
	assert_false(aw_http_token_is(AW_STR("Content_Length"), "content-length"));
}

static void a_list_has_a_token_only_as_a_whole_element(void **state)
{
	(void)state;
	assert_true(aw_http_list_has(AW_STR("keep-alive, Upgrade"), "upgrade"));
	assert_true(aw_http_list_has(AW_STR(",,\tclose ,x"), "close"));
	assert_false(aw_http_list_has(AW_STR("close-not, not close"), "close"));
	assert_false(aw_http_list_has(AW_STR(""), "close"));
}

static void fields_come_one_by_one_without_the_blanks_around_values(void **state)
{
	struct aw_str rest = AW_STR("A: 1\r\nb:\t x y \t\r\nC:\r\nd:e:f\r\n\r\n");
	static const char *const expected[][2] = {
		{ "A", "1" }, { "b", "x y" }, { "C", "" }, { "d", "e:f" }
	};
	struct aw_str name, value;

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(expected); i++) {
		assert_true(aw_http_field_next(&rest, &name, &value));
		assert_true(aw_str_is(name, expected[i][0]));
		assert_true(aw_str_is(value, expected[i][1]));
	}
	assert_false(aw_http_field_next(&rest, &name, &value));
}

static void every_flaw_has_a_text_and_an_error_status(void **state)
{
	(void)state;
	for (int flaw = AW_HTTP_FLAW_NONE + 1; flaw < AW_HTTP_FLAW_COUNT; flaw++) {
		const char *text = aw_http_flaw_text((enum aw_http_flaw)flaw);
		unsigned status = aw_http_flaw_status((enum aw_http_flaw)flaw);

		assert_non_null(text);
		assert_true(strlen(text) > 5);
		assert_true(status >= 400 && status <= 505);
		for (int other = 0; other < flaw; other++)
			assert_string_not_equal(text, aw_http_flaw_text((enum aw_http_flaw)other));
	}
	assert_string_equal(aw_http_flaw_text(AW_HTTP_FLAW_COUNT), "unknown");
	assert_int_equal(aw_http_flaw_status(AW_HTTP_FLAW_COUNT), 400);
}

static void the_status_says_whose_limit_it_was(void **state)
{
	(void)state;
	assert_int_equal(aw_http_flaw_status(AW_HTTP_FLAW_HEAD_SIZE), 431);
	assert_int_equal(aw_http_flaw_status(AW_HTTP_FLAW_VERSION), 505);
	assert_int_equal(aw_http_flaw_status(AW_HTTP_FLAW_CODING), 501);
	assert_int_equal(aw_http_flaw_status(AW_HTTP_FLAW_HOST_TWICE), 400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_compare_without_case),
		cmocka_unit_test(a_list_has_a_token_only_as_a_whole_element),
		cmocka_unit_test(fields_come_one_by_one_without_the_blanks_around_values),
		cmocka_unit_test(every_flaw_has_a_text_and_an_error_status),
		cmocka_unit_test(the_status_says_whose_limit_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
