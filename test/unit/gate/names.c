#include "gate/names.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/torture.h"

static int give(struct aw_names *names, const char *text)
{
	return aw_names_give(names, aw_str_from(text));
}

static int give_number(struct aw_names *names, int number)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "n%d.example", number);
	return give(names, text);
}

static void a_name_keeps_its_address(void **state)
{
	struct aw_names names;
	uint8_t a[4], b[4];
	int one, two;

	(void)state;
	aw_names_init(&names);
	one = give(&names, "a.example");
	two = give(&names, "b.example");
	assert_true(one >= 0 && two >= 0 && one != two);
	assert_int_equal(give(&names, "a.example"), one);
	aw_names_address(one, a);
	aw_names_address(two, b);
	assert_memory_not_equal(a, b, 4);
	assert_int_equal(aw_names_find(&names, a), one);
	assert_string_equal(names.entry[aw_names_find(&names, b)].text, "b.example");
	aw_names_fini(&names);
}

static void the_first_address_is_not_that_of_lo(void **state)
{
	struct aw_names names;
	uint8_t address[4];

	(void)state;
	aw_names_init(&names);
	aw_names_address(give(&names, "a.example"), address);
	assert_memory_equal(address, ((uint8_t[]){ 198, 18, 0, 2 }), 4);
	aw_names_fini(&names);
}

static void addresses_that_stand_for_nothing_are_not_found(void **state)
{
	static const uint8_t unknown[][4] = { { 198, 18, 0, 0 },     { 198, 18, 0, 1 },
					      { 198, 18, 0, 3 },     { 198, 19, 255, 255 },
					      { 198, 17, 255, 255 }, { 127, 0, 0, 1 },
					      { 0, 0, 0, 0 },        { 255, 255, 255, 255 } };
	struct aw_names names;

	(void)state;
	aw_names_init(&names);
	assert_int_equal(give(&names, "a.example"), 0);
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		assert_int_equal(aw_names_find(&names, unknown[i]), -ENOENT);
	aw_names_fini(&names);
}

static void the_last_address_lies_inside_the_range(void **state)
{
	uint8_t address[4];

	(void)state;
	aw_names_address(AW_NAMES_MAX - 1, address);
	assert_int_equal(address[0], 198);
	assert_true(address[1] == 18 || address[1] == 19);
}

static void when_full_the_oldest_that_is_not_in_use_makes_room(void **state)
{
	struct aw_names names;

	(void)state;
	aw_names_init(&names);
	for (int i = 0; i < AW_NAMES_MAX; i++)
		assert_int_equal(give_number(&names, i), i);
	names.entry[0].users = 1;
	assert_int_equal(give(&names, "new.example"), 1);
	assert_int_equal(give_number(&names, 0), 0);
	assert_int_equal(give(&names, "newer.example"), 2);
	/* What made room is a new name when it is asked for again. */
	assert_int_equal(give_number(&names, 1), 3);
	assert_int_equal(give(&names, "new.example"), 1);
	aw_names_fini(&names);
}

static void when_all_are_in_use_there_is_no_room(void **state)
{
	struct aw_names names;

	(void)state;
	aw_names_init(&names);
	for (int i = 0; i < AW_NAMES_MAX; i++)
		assert_int_equal(give_number(&names, i), i);
	for (int i = 0; i < AW_NAMES_MAX; i++)
		names.entry[i].users = 1;
	assert_int_equal(give(&names, "new.example"), -ENOSPC);
	names.entry[7].users = 0;
	assert_int_equal(give(&names, "new.example"), 7);
	aw_names_fini(&names);
}

static int fill(void *state)
{
	struct aw_names names;
	int r = 0;

	(void)state;
	aw_names_init(&names);
	for (int i = 0; i < 70 && r >= 0; i++)
		r = give_number(&names, i);
	aw_names_fini(&names);
	return r < 0 ? r : 0;
}

static void survives_every_failing_allocation(void **state)
{
	(void)state;
	assert_true(aw_torture(fill, NULL) >= 70);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_keeps_its_address),
		cmocka_unit_test(the_first_address_is_not_that_of_lo),
		cmocka_unit_test(addresses_that_stand_for_nothing_are_not_found),
		cmocka_unit_test(the_last_address_lies_inside_the_range),
		cmocka_unit_test(when_full_the_oldest_that_is_not_in_use_makes_room),
		cmocka_unit_test(when_all_are_in_use_there_is_no_room),
		cmocka_unit_test(survives_every_failing_allocation),
	};

	return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
