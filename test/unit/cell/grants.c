#include "cell/grants.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/str.h"
#include "support/torture.h"

static struct aw_error err;

static void a_path_that_is_added_twice_counts_once(void **state)
{
	autodrop(aw_texts_fini) struct aw_texts texts = { 0 };

	(void)state;
	assert_int_equal(aw_grants_add(&texts, "/a", &err), 0);
	assert_int_equal(aw_grants_add(&texts, "/b", &err), 0);
	assert_int_equal(aw_grants_add(&texts, "/a", &err), 0);
	assert_int_equal(texts.count, 2);
	assert_string_equal(texts.text[0], "/a");
	assert_true(aw_grants_has(&texts, "/b"));
	assert_false(aw_grants_has(&texts, "/"));
}

static void of_two_binds_at_one_place_the_first_stays_and_writable_wins(void **state)
{
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	(void)state;
	assert_int_equal(aw_grants_bind(&g, "/src/a", "/at", false, &err), 0);
	assert_int_equal(aw_grants_bind(&g, "/src/b", "/at", true, &err), 0);
	assert_int_equal(aw_grants_bind(&g, "/src/c", "/at", false, &err), 0);
	assert_int_equal(g.bind_count, 1);
	assert_string_equal(g.binds[0].source, "/src/a");
	assert_true(g.binds[0].is_writable);
	assert_false(g.binds[0].is_optional);
}

static void texts_are_owned_by_the_collection(void **state)
{
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };
	char text[] = "/changing";

	(void)state;
	assert_int_equal(aw_grants_bind(&g, text, text, false, &err), 0);
	assert_int_equal(aw_grants_add(&g.pins, text, &err), 0);
	assert_int_equal(aw_grants_note(&g, &err, "%s at %d", text, 7), 0);
	memset(text, 'x', sizeof(text) - 1);
	assert_string_equal(g.binds[0].at, "/changing");
	assert_string_equal(g.pins.text[0], "/changing");
	assert_string_equal(g.notes.text[0], "/changing at 7");
}

static void more_than_the_bound_is_refused(void **state)
{
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };
	char path[32];

	(void)state;
	for (unsigned i = 0; i < AW_GRANTS_MAX; i++) {
		(void)aw_str_format(path, sizeof(path), "/%u", i);
		assert_int_equal(aw_grants_add(&g.pins, path, &err), 0);
		assert_int_equal(aw_grants_bind(&g, path, path, false, &err), 0);
	}
	assert_int_equal(aw_grants_add(&g.pins, "/over", &err), -E2BIG);
	assert_non_null(strstr(err.message, "/over"));
	assert_int_equal(aw_grants_bind(&g, "/over", "/over", false, &err), -E2BIG);
	/* What is there already takes no room. */
	assert_int_equal(aw_grants_add(&g.pins, "/0", &err), 0);
	assert_int_equal(aw_grants_bind(&g, "/0", "/0", true, &err), 0);
	assert_int_equal(g.pins.count, AW_GRANTS_MAX);
}

static void an_empty_collection_may_be_dropped_twice(void **state)
{
	struct aw_grants g = { 0 };

	(void)state;
	assert_int_equal(aw_grants_add(&g.masks, "/a", &err), 0);
	aw_grants_fini(&g);
	aw_grants_fini(&g);
	assert_int_equal(g.masks.count, 0);
	assert_null(g.masks.text);
}

static int collect(void *state)
{
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };
	int r = aw_grants_bind(&g, "/a", "/b", true, &err);

	(void)state;
	if (r == 0)
		r = aw_grants_bind(&g, "/c", "/d", true, &err);
	if (r == 0)
		r = aw_grants_add(&g.path, "/bin", &err);
	if (r == 0)
		r = aw_grants_note(&g, &err, "a note of %s", "some length");
	return r;
}

static void survives_a_lack_of_memory(void **state)
{
	(void)state;
	assert_true(aw_torture(collect, NULL) >= 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_that_is_added_twice_counts_once),
		cmocka_unit_test(of_two_binds_at_one_place_the_first_stays_and_writable_wins),
		cmocka_unit_test(texts_are_owned_by_the_collection),
		cmocka_unit_test(more_than_the_bound_is_refused),
		cmocka_unit_test(an_empty_collection_may_be_dropped_twice),
		cmocka_unit_test(survives_a_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
