#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/keys-internal.h"

static const char *const names[] = { "allowed_domains", "denied_domains", "env", "audit" };

static const char *nearest(const char *key)
{
	return aw_nearest(key, names, 4);
}

static void a_slip_finds_the_word_that_was_meant(void **state)
{
	(void)state;
	assert_string_equal(nearest("alowed_domains"), "allowed_domains");
	assert_string_equal(nearest("allowed_domain"), "allowed_domains");
	assert_string_equal(nearest("denied_doamins"), "denied_domains");
	assert_string_equal(nearest("enc"), "env");
	assert_string_equal(nearest("nev"), "env");
}

static void another_word_finds_nothing(void **state)
{
	(void)state;
	assert_null(nearest("x"));
	assert_null(nearest("abc"));
	assert_null(nearest("network"));
	assert_null(nearest(""));
	assert_null(nearest("a_name_that_is_longer_than_any_key_of_the_policy"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slip_finds_the_word_that_was_meant),
		cmocka_unit_test(another_word_finds_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
