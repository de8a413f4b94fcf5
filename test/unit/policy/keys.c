#include "policy/keys-internal.h"

#include "policy-support.h"

static bool is_below(const char *path, const char *parent)
{
	size_t len = strlen(parent);

	return strncmp(path, parent, len) == 0 && path[len] == '/';
}

/* The walk takes the rows behind an object's as its members: this is what holds the table to it. */
static void rows_stand_in_tree_order_and_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < aw_layer_key_count; i++) {
		const char *path = aw_layer_keys[i].path, *slash = strrchr(path, '/');
		size_t parent = i;

		for (size_t j = 0; j < i; j++) {
			const char *other = aw_layer_keys[j].path;

			assert_string_not_equal(path, other);
			if (is_below(path, other))
				parent = j;
		}
		assert_true(slash == NULL || parent < i);
		for (size_t j = parent + 1; j < i; j++)
			assert_true(is_below(aw_layer_keys[j].path, aw_layer_keys[parent].path));
	}
}

static void a_row_that_needs_something_says_what_to_do_instead(void **state)
{
	(void)state;
	for (size_t i = 0; i < aw_layer_key_count; i++) {
		const struct aw_key *row = &aw_layer_keys[i];

		assert_int_equal(row->needs != NULL, row->instead != NULL);
		/* What is refused is not stored, and what is a word has words. */
		assert_false(row->needs != NULL && row->set != NULL);
		assert_int_equal(row->type == AW_KEY_WORD || row->type == AW_KEY_WORDS,
				 row->words != NULL);
		assert_true(row->where != 0);
	}
}

static void a_list_grows_and_is_present_when_it_has_something(void **state)
{
	autodrop(aw_store_drop) struct aw_store *store = aw_store_new();
	struct aw_policy_list list = { 0 };

	(void)state;
	for (uint16_t i = 0; i < 100; i++) {
		struct aw_policy_entry entry = { .port = i };

		assert_non_null(aw_list_append(store, &list, &entry));
	}
	assert_true(list.is_present);
	assert_int_equal(list.count, 100);
	for (uint16_t i = 0; i < 100; i++)
		assert_int_equal(list.entry[i].port, i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_stand_in_tree_order_and_once),
		cmocka_unit_test(a_row_that_needs_something_says_what_to_do_instead),
		cmocka_unit_test(a_list_grows_and_is_present_when_it_has_something),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
