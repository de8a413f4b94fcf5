#include "policy/paths.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static char out[AW_PATH_MAX + 1];
static struct aw_error err;

static const char *cell(const char *text)
{
	int len = aw_path_cell(aw_str_from(text), out, &err);

	if (len >= 0)
		assert_int_equal(len, strlen(out));
	return len < 0 ? NULL : out;
}

static const char *host(const char *text)
{
	return aw_path_host(aw_str_from(text), "/home/u/", out, &err) < 0 ? NULL : out;
}

static void a_directory_with_or_without_stars_is_its_subtree(void **state)
{
	static const char *const same[] = { "/workspace/in", "/workspace/in/", "/workspace/in/*",
					    "/workspace/in/**", "//workspace/./in//*" };

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		assert_string_equal(cell(same[i]), "/workspace/in");
	assert_string_equal(cell("/"), "/");
	assert_string_equal(cell("/*"), "/");
	assert_string_equal(cell("/workspace/app/[id]"), "/workspace/app/[id]");
	assert_string_equal(cell("/workspace/a b\n\xe6\xbc\xa2"), "/workspace/a b\n\xe6\xbc\xa2");
}

static void other_patterns_and_ways_up_are_refused(void **state)
{
	static const char *const bad[] = { "/workspace/*.pem", "**/.env",       "/a/*/b", "/a/b?",
					   "/a/**/*",          "src",           "",       "~/x",
					   "/a/../b",          "/workspace/..", "*",      "/a**" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_null(cell(bad[i]));
	assert_int_equal(aw_path_cell((struct aw_str){ "/a\0b", 4 }, out, &err), -EBADMSG);
}

static void a_path_longer_than_the_kernel_takes_is_refused(void **state)
{
	char text[AW_PATH_MAX + 3];

	(void)state;
	memset(text, 'a', sizeof(text));
	text[0] = '/';
	assert_int_equal(aw_path_cell((struct aw_str){ text, AW_PATH_MAX }, out, &err),
			 AW_PATH_MAX);
	assert_int_equal(aw_path_cell((struct aw_str){ text, AW_PATH_MAX + 1 }, out, &err),
			 -EBADMSG);
}

static void a_tilde_is_the_home_that_was_given(void **state)
{
	(void)state;
	assert_string_equal(host("~/data sets/"), "/home/u/data sets");
	assert_string_equal(host("~"), "/home/u");
	assert_string_equal(host("/srv//x"), "/srv/x");
	assert_string_equal(host("/a*b"), "/a*b");
	assert_null(host("~other/x"));
	assert_null(host("x"));
	assert_null(host("~/../x"));
	assert_int_equal(aw_path_host(AW_STR("~/x"), NULL, out, &err), -EBADMSG);
}

static void within_stops_at_component_boundaries(void **state)
{
	(void)state;
	assert_true(aw_path_is_within("/a/b", "/a"));
	assert_true(aw_path_is_within("/a", "/a"));
	assert_true(aw_path_is_within("/a", "/"));
	assert_false(aw_path_is_within("/ab", "/a"));
	assert_false(aw_path_is_within("/", "/a"));
	assert_string_equal(aw_path_in_workspace("/workspace/a/b"), "a/b");
	assert_string_equal(aw_path_in_workspace("/workspace"), "");
	assert_null(aw_path_in_workspace("/workspaces"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_directory_with_or_without_stars_is_its_subtree),
		cmocka_unit_test(other_patterns_and_ways_up_are_refused),
		cmocka_unit_test(a_path_longer_than_the_kernel_takes_is_refused),
		cmocka_unit_test(a_tilde_is_the_home_that_was_given),
		cmocka_unit_test(within_stops_at_component_boundaries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
