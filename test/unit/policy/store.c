#include "policy/store-internal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "support/torture.h"

static void memory_is_zeroed_aligned_and_of_any_size(void **state)
{
	autodrop(aw_store_drop) struct aw_store *store = aw_store_new();
	static const size_t sizes[] = { 1, 3, 16, 100, 32 * 1024, 32 * 1024 + 1, 100000, 7 };

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(sizes); i++) {
		unsigned char *p = aw_store_alloc(store, sizes[i], 1);

		assert_non_null(p);
		assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
		for (size_t j = 0; j < sizes[i]; j++)
			assert_int_equal(p[j], 0);
		memset(p, 0xff, sizes[i]);
	}
	assert_non_null(aw_store_alloc(store, 0, 8));
}

static void a_size_that_overflows_is_out_of_memory(void **state)
{
	autodrop(aw_store_drop) struct aw_store *store = aw_store_new();

	(void)state;
	assert_null(aw_store_alloc(store, SIZE_MAX / 2, 3));
	assert_null(aw_store_alloc(store, SIZE_MAX, 1));
}

static int attempt(void *state)
{
	autodrop(aw_store_drop) struct aw_store *store = aw_store_new();
	struct aw_policy_source *source;

	(void)state;
	if (store == NULL || aw_store_alloc(store, 40000, 1) == NULL)
		return -ENOMEM;
	source = aw_store_source(store, AW_NET_LAYER_USER, "name");
	if (source == NULL)
		return -ENOMEM;
	assert_string_equal(source->name, "name");
	return 0;
}

static void every_failing_allocation_is_told(void **state)
{
	(void)state;
	assert_int_equal(aw_torture(attempt, NULL), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_zeroed_aligned_and_of_any_size),
		cmocka_unit_test(a_size_that_overflows_is_out_of_memory),
		cmocka_unit_test(every_failing_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
