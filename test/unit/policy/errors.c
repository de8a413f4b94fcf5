#include "policy/errors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"

static void each_is_a_line_with_its_place(void **state)
{
	struct aw_policy_errors errors = { 0 };
	autodrop(aw_buf_fini) struct aw_buf out = AW_BUF_INIT(4096);
	struct aw_policy_error head = { .kind = AW_POLICY_MALFORMED,
					.file = "/etc/p.json",
					.line = 3,
					.column = 7,
					.pointer = "/env/pass/0" };

	(void)state;
	aw_policy_errors_add(&errors, &head, "is %s", "wrong");
	head = (struct aw_policy_error){ .kind = AW_POLICY_UNREADABLE, .file = "command line" };
	aw_policy_errors_add(&errors, &head, "no");
	assert_int_equal(aw_policy_errors_print(&errors, &out), 0);
	assert_string_equal(aw_buf_text(&out), "/etc/p.json:3:7: is wrong (/env/pass/0)\n"
					       "command line: no\n");
	aw_policy_errors_fini(&errors);
	assert_int_equal(aw_policy_errors_total(&errors), 0);
}

static void the_list_is_bounded_and_counts_the_rest(void **state)
{
	struct aw_policy_errors errors = { 0 };
	autodrop(aw_buf_fini) struct aw_buf out = AW_BUF_INIT(65536);
	struct aw_policy_error head = { .kind = AW_POLICY_MALFORMED, .file = "f" };

	(void)state;
	for (int i = 0; i < AW_POLICY_ERRORS_MAX + 3; i++)
		aw_policy_errors_add(&errors, &head, "%d", i);
	assert_int_equal(errors.count, AW_POLICY_ERRORS_MAX);
	assert_int_equal(aw_policy_errors_total(&errors), AW_POLICY_ERRORS_MAX + 3);
	assert_int_equal(aw_policy_errors_print(&errors, &out), 0);
	assert_non_null(strstr(aw_buf_text(&out), "\nand 3 more\n"));
	aw_policy_errors_fini(&errors);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_a_line_with_its_place),
		cmocka_unit_test(the_list_is_bounded_and_counts_the_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
