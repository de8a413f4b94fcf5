#include "cell/git-config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "support/torture.h"

static struct aw_error err;

/* Everything in @text as "name=value;" in its order; "name;" for a key without a value. */
static void expect(const char *text, const char *expected)
{
	autodrop(aw_git_config_fini) struct aw_git_config config = { 0 };
	char found[1024] = "";

	if (aw_git_config_parse(aw_str_from(text), &config, &err) < 0)
		fail_msg("%s in: %s", err.message, text);
	for (size_t i = 0; i < config.count; i++) {
		const struct aw_git_setting *s = &config.setting[i];
		size_t len = strlen(found);

		(void)aw_str_format(found + len, sizeof(found) - len, "%s%s%s;", s->name,
				    s->value != NULL ? "=" : "", s->value != NULL ? s->value : "");
	}
	assert_string_equal(found, expected);
}

static void expect_refusal(struct aw_str text)
{
	autodrop(aw_git_config_fini) struct aw_git_config config = { 0 };

	if (aw_git_config_parse(text, &config, &err) != -EBADMSG)
		fail_msg("taken: %.*s", (int)text.len, text.ptr);
}

static void names_are_in_lower_case_but_for_subsections(void **state)
{
	(void)state;
	expect("[CORE]\n\tHooksPath = A\n", "core.hookspath=A;");
	expect("[Remote \"Up Stream\"]\nURL = u\n", "remote.Up Stream.url=u;");
	expect("[includeIf \"gitdir:~/W/\"] path = p", "includeif.gitdir:~/W/.path=p;");
	expect("[a \"x\\\"y\\\\z\"]\nk = v\n", "a.x\"y\\z.k=v;");
	expect("[a.Old]\nk = v\n", "a.old.k=v;");
	expect("[a \"]\"]\nk = v\n", "a.].k=v;");
}

static void values_lose_blanks_quotes_and_comments(void **state)
{
	(void)state;
	expect("[a]\nk=v", "a.k=v;");
	expect("[a]\n  k  =  v w  \n", "a.k=v w;");
	expect("[a]\nk = v # c\n", "a.k=v;");
	expect("[a]\nk = v;c\n", "a.k=v;");
	expect("[a]\nk = \" v # c \" # d\n", "a.k= v # c ;");
	expect("[a]\nk = v \"\" \n", "a.k=v ;");
	expect("[a]\nk = one\\ttwo\\n\\\\\\\"\n", "a.k=one\ttwo\n\\\";");
	expect("[a]\nk =\nl\n", "a.k=;a.l;");
	expect("[a] k = v\n[b] # c\nk = w\n", "a.k=v;b.k=w;");
}

static void lines_go_on_behind_a_backslash(void **state)
{
	(void)state;
	expect("[a]\nk = one\\\n two\nl = v\n", "a.k=one two;a.l=v;");
	expect("[a]\nk = \"one\\\ntwo\"\n", "a.k=onetwo;");
	expect("[a]\nk = one\\\r\ntwo\r\n", "a.k=onetwo;");
	expect("[a]\n# c \\\nk = v\n", "a.k=v;");
	expect("[a]\nk = v # c \\\nl = w\n", "a.k=v;a.l=w;");
	expect("[a]\nk = v\\", "a.k=v;");
}

static void all_values_are_given_and_the_last_counts(void **state)
{
	static const char text[] = "[include]\npath = a\n[core]\nk = 1\n[include]\npath = b\n";
	autodrop(aw_git_config_fini) struct aw_git_config config = { 0 };

	(void)state;
	expect(text, "include.path=a;core.k=1;include.path=b;");
	assert_int_equal(aw_git_config_parse(AW_STR(text), &config, &err), 0);
	assert_string_equal(aw_git_config_get(&config, "include.path"), "b");
	assert_string_equal(aw_git_config_get(&config, "core.k"), "1");
	assert_null(aw_git_config_get(&config, "core.l"));
}

static void nothing_is_in_an_empty_text(void **state)
{
	(void)state;
	expect("", "");
	expect("\n\r\n \t\n# c\n; c", "");
	expect("\xef\xbb\xbf[a]\nk = v\n", "a.k=v;");
}

static void what_git_refuses_is_refused(void **state)
{
	static const struct aw_str bad[] = {
		AW_STR("[a\nk = v\n"),      AW_STR("[a"),
		AW_STR("[a \"b]\nk = v\n"), AW_STR("[a \"b\" ]\nk = v\n"),
		AW_STR("[a b]\nk = v\n"),   AW_STR("[a_b]\nk = v\n"),
		AW_STR("[a \"b\nc\"]\n"),   AW_STR("[a]\nk = \"v\n"),
		AW_STR("[a]\nk = \\x\n"),   AW_STR("[a]\n1k = v\n"),
		AW_STR("[a]\nk l = v\n"),   AW_STR("[a]\nk_l = v\n"),
		AW_STR("[a]\n= v\n"),       AW_STR("[a]\nk = v\0w\n"),
		AW_STR("\0[a]\nk = v\n"),   AW_STR("[a]\nk # c\n"),
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(bad); i++)
		expect_refusal(bad[i]);
}

static void a_refusal_names_the_line(void **state)
{
	(void)state;
	expect_refusal(AW_STR("[a]\n\nk = v\n!\nl = w\n"));
	assert_non_null(strstr(err.message, "line 4 "));
}

static int attempt(void *state)
{
	autodrop(aw_git_config_fini) struct aw_git_config config = { 0 };

	return aw_git_config_parse(aw_str_from(state), &config, &err);
}

static void survives_a_lack_of_memory(void **state)
{
	char text[] = "[a]\nk = v\nl\n[b \"c\"]\nk = w\n";

	(void)state;
	assert_int_equal(aw_torture(attempt, text), 2 + 3 * 2 + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_in_lower_case_but_for_subsections),
		cmocka_unit_test(values_lose_blanks_quotes_and_comments),
		cmocka_unit_test(lines_go_on_behind_a_backslash),
		cmocka_unit_test(all_values_are_given_and_the_last_counts),
		cmocka_unit_test(nothing_is_in_an_empty_text),
		cmocka_unit_test(what_git_refuses_is_refused),
		cmocka_unit_test(a_refusal_names_the_line),
		cmocka_unit_test(survives_a_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
