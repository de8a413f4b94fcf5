#include "event/flat.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct aw_flat_object object;

static int parse(const char *text)
{
	return aw_flat_parse(aw_str_from(text), &object);
}

static void reads_each_type(void **state)
{
	uint64_t big;
	int64_t small;
	bool yes;

	(void)state;
	assert_int_equal(parse("{\"t\":\"hi\",\"n\":7,\"i\":-7,\"b\":true,\"l\":[\"a\",\"b\"]}"),
			 0);
	assert_int_equal(object.count, 5);
	assert_int_equal(aw_flat_get_u64(aw_flat_find(&object, "n"), &big), 0);
	assert_int_equal(big, 7);
	assert_int_equal(aw_flat_get_i64(aw_flat_find(&object, "i"), &small), 0);
	assert_int_equal(small, -7);
	assert_int_equal(aw_flat_get_bool(aw_flat_find(&object, "b"), &yes), 0);
	assert_true(yes);
	assert_true(aw_str_is(aw_flat_find(&object, "t")->raw, "hi"));
	assert_true(aw_str_is(aw_flat_find(&object, "l")->raw, "\"a\",\"b\""));
}

static void numbers_reach_to_their_ends(void **state)
{
	uint64_t big;
	int64_t small;

	(void)state;
	assert_int_equal(parse("{\"a\":18446744073709551615,\"b\":-9223372036854775808,"
			       "\"c\":9223372036854775807,\"d\":9223372036854775808}"),
			 0);
	assert_int_equal(aw_flat_get_u64(aw_flat_find(&object, "a"), &big), 0);
	assert_true(big == UINT64_MAX);
	assert_int_equal(aw_flat_get_i64(aw_flat_find(&object, "b"), &small), 0);
	assert_true(small == INT64_MIN);
	assert_int_equal(aw_flat_get_i64(aw_flat_find(&object, "c"), &small), 0);
	assert_true(small == INT64_MAX);
	assert_int_equal(aw_flat_get_i64(aw_flat_find(&object, "d"), &small), -ERANGE);
	assert_int_equal(aw_flat_get_u64(aw_flat_find(&object, "b"), &big), -ERANGE);
}

static void absent_and_wrong_fields_are_told_apart(void **state)
{
	uint64_t big;
	bool yes;

	(void)state;
	assert_int_equal(parse("{\"t\":\"1\"}"), 0);
	assert_int_equal(aw_flat_get_u64(aw_flat_find(&object, "x"), &big), -ENOENT);
	assert_int_equal(aw_flat_get_u64(aw_flat_find(&object, "t"), &big), -EBADMSG);
	assert_int_equal(aw_flat_get_bool(aw_flat_find(&object, "t"), &yes), -EBADMSG);
}

static const char *const never_written[] = {
	"",
	"{",
	"{}",
	"[]",
	"{\"a\"}",
	"{\"a\":}",
	"{\"a\":1",
	"{\"a\":1}}",
	"{\"a\":1} ",
	" {\"a\":1}",
	"{ \"a\":1}",
	"{\"a\" :1}",
	"{\"a\": 1}",
	"{\"a\":1,}",
	"{,\"a\":1}",
	"{\"a\":1,\"a\":2}",
	"{\"A\":1}",
	"{\"\":1}",
	"{\"a-b\":1}",
	"{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\":1}",
	"{\"a\":null}",
	"{\"a\":True}",
	"{\"a\":truex}",
	"{\"a\":{}}",
	"{\"a\":[1]}",
	"{\"a\":[[\"x\"]]}",
	"{\"a\":[\"x\",]}",
	"{\"a\":[\"x\"}",
	"{\"a\":1.5}",
	"{\"a\":1e3}",
	"{\"a\":01}",
	"{\"a\":-0}",
	"{\"a\":-}",
	"{\"a\":+1}",
	"{\"a\":18446744073709551616}",
	"{\"a\":-9223372036854775809}",
	"{\"a\":\"x}",
	"{\"a\":\"\n\"}",
	"{\"a\":\"\x1b\"}",
	"{\"a\":\"\x7f\"}",
	"{\"a\":\"\xc2\x85\"}",
	"{\"a\":\"\xe2\x80\xae\"}",
	"{\"a\":\"\xff\"}",
	"{\"a\":\"\xc3\"}",
	"{\"a\":\"\\n\"}",
	"{\"a\":\"\\u0041\"}",
	"{\"a\":\"\\/\"}",
	"{\"a\":\"\\\\\"}",
	"{\"a\":\"\\\\n\"}",
	"{\"a\":\"\\\\x1\"}",
	"{\"a\":\"\\\\x1G\"}",
	"{\"a\":\"\\\\xAA\"}",
	"{\"a\":\"\\\\...x\"}",
	"{\"a\":\"\\\\..\"}",
};

static void refuses_what_the_writer_never_writes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(never_written) / sizeof(never_written[0]); i++)
		if (parse(never_written[i]) != -EBADMSG)
			fail_msg("accepted: %s", never_written[i]);
}

static void a_nul_is_no_character(void **state)
{
	(void)state;
	assert_int_equal(aw_flat_parse(AW_STR("{\"a\":\"x\0y\"}"), &object), -EBADMSG);
	assert_int_equal(aw_flat_parse((struct aw_str){ NULL, 0 }, &object), -EBADMSG);
}

/* Whatever a valid line is cut to, it is no longer one. */
static void no_beginning_of_a_line_is_a_line(void **state)
{
	static const char whole[] =
		"{\"t\":\"a\\\\x1b\\\"\",\"n\":-12,\"b\":false,\"l\":[\"é\",\"\\\\...\"]}";

	(void)state;
	assert_int_equal(parse(whole), 0);
	for (size_t n = 0; n < sizeof(whole) - 1; n++)
		assert_int_equal(aw_flat_parse((struct aw_str){ whole, n }, &object), -EBADMSG);
}

static void more_fields_than_we_ever_write_are_refused(void **state)
{
	char text[2048];
	size_t at = 0;

	(void)state;
	for (int i = 0; i < AW_FLAT_PARSED_MAX; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%c\"k%d\":1",
				       i == 0 ? '{' : ',', i);
	text[at] = '}';
	assert_int_equal(aw_flat_parse((struct aw_str){ text, at + 1 }, &object), 0);
	memcpy(text + at, ",\"more\":1}", 11);
	assert_int_equal(parse(text), -EBADMSG);
}

static void bytes_and_text_come_back(void **state)
{
	char out[64];
	size_t len;

	(void)state;
	assert_int_equal(parse("{\"t\":\"a\\\"\\\\\\\\b\\\\x00\\\\xffé\"}"), 0);
	assert_int_equal(aw_flat_bytes(object.field[0].raw, out, sizeof(out), &len), 0);
	assert_int_equal(len, 8);
	assert_memory_equal(out, "a\"\\b\0\xffé", 9);
	assert_int_equal(aw_flat_text(object.field[0].raw, out, sizeof(out)), 15);
	assert_string_equal(out, "a\"\\\\b\\x00\\xffé");
}

static void small_buffers_are_not_overrun(void **state)
{
	char out[16];
	size_t len;

	(void)state;
	assert_int_equal(parse("{\"t\":\"aéb\"}"), 0);
	for (size_t size = 0; size <= 4; size++)
		assert_int_equal(aw_flat_bytes(object.field[0].raw, out, size, &len), -ENOBUFS);
	assert_int_equal(aw_flat_bytes(object.field[0].raw, out, 5, &len), 0);
	assert_int_equal(aw_flat_text(object.field[0].raw, out, 3), 1); /* not half of the é */
	assert_string_equal(out, "a");
	assert_int_equal(aw_flat_text(object.field[0].raw, out, 1), 0);
	assert_string_equal(out, "");
}

static void a_list_gives_its_elements_in_order(void **state)
{
	static const char *const expected[] = { "a,b", "", "[\\\"" };
	struct aw_str rest, raw;
	size_t i = 0;

	(void)state;
	assert_int_equal(parse("{\"l\":[\"a,b\",\"\",\"[\\\"\"],\"e\":[]}"), 0);
	for (rest = object.field[0].raw; aw_flat_next(&rest, &raw); i++)
		assert_true(i < 3 && aw_str_is(raw, expected[i]));
	assert_int_equal(i, 3);
	rest = object.field[1].raw;
	assert_false(aw_flat_next(&rest, &raw));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_each_type),
		cmocka_unit_test(numbers_reach_to_their_ends),
		cmocka_unit_test(absent_and_wrong_fields_are_told_apart),
		cmocka_unit_test(refuses_what_the_writer_never_writes),
		cmocka_unit_test(a_nul_is_no_character),
		cmocka_unit_test(no_beginning_of_a_line_is_a_line),
		cmocka_unit_test(more_fields_than_we_ever_write_are_refused),
		cmocka_unit_test(bytes_and_text_come_back),
		cmocka_unit_test(small_buffers_are_not_overrun),
		cmocka_unit_test(a_list_gives_its_elements_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
