#include "base/buf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "support/torture.h"

static void assert_content(const struct aw_buf *b, const char *text)
{
	assert_int_equal(b->len, strlen(text));
	assert_true(aw_str_is(aw_buf_str(b), text));
}

static void appends_bytes_text_and_formats(void **state)
{
	autodrop(aw_buf_fini) struct aw_buf b = AW_BUF_INIT(64);

	(void)state;
	assert_int_equal(aw_buf_append(&b, "a\0b", 3), 0);
	assert_int_equal(b.len, 3);
	assert_memory_equal(b.data, "a\0b", 3);
	aw_buf_consume(&b, 3);
	assert_int_equal(aw_buf_append_str(&b, "text"), 0);
	assert_int_equal(aw_buf_printf(&b, " %s=%d", "x", 5), 0);
	assert_content(&b, "text x=5");
}

static void an_empty_buffer_is_empty_text(void **state)
{
	autodrop(aw_buf_fini) struct aw_buf b = AW_BUF_INIT(8);

	(void)state;
	assert_int_equal(aw_buf_append(&b, NULL, 0), 0);
	aw_buf_consume(&b, 0);
	assert_null(b.data);
	assert_string_equal(aw_buf_text(&b), "");
	assert_int_equal(b.len, 0);
}

static void takes_exactly_its_maximum_and_not_a_byte_more(void **state)
{
	autodrop(aw_buf_fini) struct aw_buf b = AW_BUF_INIT(4);

	(void)state;
	assert_int_equal(aw_buf_append_str(&b, "abcde"), -ENOBUFS);
	assert_int_equal(aw_buf_append_str(&b, "abcd"), 0);
	assert_int_equal(aw_buf_append_str(&b, "e"), -ENOBUFS);
	assert_int_equal(aw_buf_printf(&b, "%d", 1), -ENOBUFS);
	assert_content(&b, "abcd");
}

static void a_length_that_would_wrap_is_refused(void **state)
{
	autodrop(aw_buf_fini) struct aw_buf b = AW_BUF_INIT(16);

	(void)state;
	assert_int_equal(aw_buf_append_str(&b, "abcd"), 0);
	assert_int_equal(aw_buf_reserve(&b, SIZE_MAX), -ENOBUFS);
	assert_int_equal(aw_buf_reserve(&b, SIZE_MAX - 3), -ENOBUFS);
	assert_content(&b, "abcd");
}

static void never_holds_more_memory_than_its_maximum(void **state)
{
	autodrop(aw_buf_fini) struct aw_buf b = AW_BUF_INIT(1000);

	(void)state;
	for (size_t i = 0; i < 1000; i++) {
		assert_int_equal(aw_buf_append(&b, "x", 1), 0);
		assert_true(b.len <= b.capacity && b.capacity <= 1000);
	}
}

static void reserved_room_may_be_written_to(void **state)
{
	autodrop(aw_buf_fini) struct aw_buf b = AW_BUF_INIT(5000);

	(void)state;
	assert_int_equal(aw_buf_append_str(&b, "ab"), 0);
	assert_int_equal(aw_buf_reserve(&b, 4998), 0);
	memset(b.data + b.len, 'x', 4998);
	b.len += 4998;
	assert_int_equal(b.data[1], 'b');
	assert_int_equal(b.data[4999], 'x');
}

static void consuming_keeps_the_rest_in_order(void **state)
{
	autodrop(aw_buf_fini) struct aw_buf b = AW_BUF_INIT(64);

	(void)state;
	assert_int_equal(aw_buf_append_str(&b, "headtail"), 0);
	aw_buf_consume(&b, 4);
	assert_content(&b, "tail");
	aw_buf_consume(&b, 4);
	assert_int_equal(b.len, 0);
}

static void text_ends_in_a_nul_that_does_not_count(void **state)
{
	autodrop(aw_buf_fini) struct aw_buf b = AW_BUF_INIT(5);

	(void)state;
	assert_int_equal(aw_buf_append_str(&b, "abcd"), 0);
	assert_string_equal(aw_buf_text(&b), "abcd");
	assert_int_equal(b.len, 4);
	assert_int_equal(aw_buf_append_str(&b, "e"), 0);
	assert_null(aw_buf_text(&b));
}

static void finished_twice_is_finished_once(void **state)
{
	struct aw_buf b = AW_BUF_INIT(8);

	(void)state;
	assert_int_equal(aw_buf_append_str(&b, "a"), 0);
	aw_buf_fini(&b);
	aw_buf_fini(&b);
	assert_int_equal(b.len, 0);
	assert_int_equal(aw_buf_append_str(&b, "again"), 0);
	assert_content(&b, "again");
	aw_buf_fini(&b);
}

static int fill(void *state)
{
	autodrop(aw_buf_fini) struct aw_buf b = AW_BUF_INIT(1 << 16);
	int r = 0;

	(void)state;
	for (int i = 0; r == 0 && i < 300; i++) {
		size_t before = b.len;

		r = aw_buf_printf(&b, "line %d\n", i);
		if (r < 0)
			assert_int_equal(b.len, before);
	}
	if (r == 0 && aw_buf_text(&b) == NULL)
		r = -ENOMEM;
	return r;
}

static void out_of_memory_changes_nothing(void **state)
{
	(void)state;
	/* One for each line and at least two to grow. */
	assert_true(aw_torture(fill, NULL) >= 302);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(appends_bytes_text_and_formats),
		cmocka_unit_test(an_empty_buffer_is_empty_text),
		cmocka_unit_test(takes_exactly_its_maximum_and_not_a_byte_more),
		cmocka_unit_test(a_length_that_would_wrap_is_refused),
		cmocka_unit_test(never_holds_more_memory_than_its_maximum),
		cmocka_unit_test(reserved_room_may_be_written_to),
		cmocka_unit_test(consuming_keeps_the_rest_in_order),
		cmocka_unit_test(text_ends_in_a_nul_that_does_not_count),
		cmocka_unit_test(finished_twice_is_finished_once),
		cmocka_unit_test(out_of_memory_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
