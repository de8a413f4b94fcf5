#include "cli/allowlist.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"

#define PARSE(...) parse((const char *[]){ __VA_ARGS__, NULL })
#define REFUSED(...) refused((const char *[]){ __VA_ARGS__, NULL })

static struct aw_allowlist_line line;
static struct aw_error err;

static int try_parse(const char **words)
{
	return aw_allowlist_parse((char *const *)(uintptr_t)words, &line, &err);
}

static const struct aw_allowlist_line *parse(const char **words)
{
	if (try_parse(words) < 0)
		fail_msg("%s", err.message);
	return &line;
}

static const char *refused(const char **words)
{
	assert_int_equal(try_parse(words), -EINVAL);
	return err.message;
}

static void flags_may_stand_on_either_side_of_the_host(void **state)
{
	(void)state;
	assert_string_equal(PARSE("a.com")->operand, "a.com");
	assert_int_equal(line.scope, AW_ALLOWLIST_AUTO);
	assert_false(line.is_forced);
	assert_int_equal(PARSE("--user", "a.com", "--force")->scope, AW_ALLOWLIST_USER);
	assert_true(line.is_forced);
	assert_int_equal(PARSE("a.com", "--session")->scope, AW_ALLOWLIST_SESSION);
	assert_int_equal(PARSE("a.com", "--project", "--project")->scope, AW_ALLOWLIST_PROJECT);
	assert_null(PARSE("--force")->operand);
}

static void two_places_two_hosts_and_unknown_flags_are_refused(void **state)
{
	(void)state;
	assert_non_null(strstr(REFUSED("a.com", "--user", "--session"), "one of them"));
	assert_non_null(strstr(REFUSED("a.com", "b.com"), "'b.com'"));
	assert_non_null(strstr(REFUSED("--users", "a.com"), "'--users'"));
}

/* What a scope comes to with so many sessions, so many of them here. */
static void settles(enum aw_allowlist_scope scope, size_t count, size_t here,
		    enum aw_allowlist_scope wanted, size_t wanted_count)
{
	enum aw_allowlist_scope got;
	size_t got_count;

	assert_int_equal(aw_allowlist_settle(scope, count, here, &got, &got_count, &err), 0);
	assert_int_equal(got, wanted);
	assert_int_equal(got_count, wanted_count);
}

static void without_a_word_it_is_the_one_session_there_is(void **state)
{
	(void)state;
	settles(AW_ALLOWLIST_AUTO, 1, 1, AW_ALLOWLIST_SESSION, 1);
	settles(AW_ALLOWLIST_AUTO, 1, 0, AW_ALLOWLIST_SESSION, 1);
	settles(AW_ALLOWLIST_AUTO, 5, 1, AW_ALLOWLIST_SESSION, 1);
}

static void without_a_word_and_one_session_it_is_the_users_policy(void **state)
{
	(void)state;
	settles(AW_ALLOWLIST_AUTO, 0, 0, AW_ALLOWLIST_USER, 0);
	settles(AW_ALLOWLIST_AUTO, 3, 0, AW_ALLOWLIST_USER, 3);
	settles(AW_ALLOWLIST_AUTO, 3, 2, AW_ALLOWLIST_USER, 3);
}

static void a_change_that_is_kept_reaches_the_sessions_it_is_for(void **state)
{
	(void)state;
	settles(AW_ALLOWLIST_USER, 3, 1, AW_ALLOWLIST_USER, 3);
	settles(AW_ALLOWLIST_PROJECT, 3, 1, AW_ALLOWLIST_PROJECT, 1);
	settles(AW_ALLOWLIST_PROJECT, 1, 0, AW_ALLOWLIST_PROJECT, 0);
}

static void session_means_those_here_or_the_only_one(void **state)
{
	enum aw_allowlist_scope scope;
	size_t count;

	(void)state;
	settles(AW_ALLOWLIST_SESSION, 3, 2, AW_ALLOWLIST_SESSION, 2);
	settles(AW_ALLOWLIST_SESSION, 1, 0, AW_ALLOWLIST_SESSION, 1);
	assert_int_equal(aw_allowlist_settle(AW_ALLOWLIST_SESSION, 0, 0, &scope, &count, &err),
			 -ENOENT);
	assert_string_equal(err.message, "no session is running");
	assert_int_equal(aw_allowlist_settle(AW_ALLOWLIST_SESSION, 2, 0, &scope, &count, &err),
			 -ENOENT);
	assert_non_null(strstr(err.message, "several"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flags_may_stand_on_either_side_of_the_host),
		cmocka_unit_test(two_places_two_hosts_and_unknown_flags_are_refused),
		cmocka_unit_test(without_a_word_it_is_the_one_session_there_is),
		cmocka_unit_test(without_a_word_and_one_session_it_is_the_users_policy),
		cmocka_unit_test(a_change_that_is_kept_reaches_the_sessions_it_is_for),
		cmocka_unit_test(session_means_those_here_or_the_only_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
