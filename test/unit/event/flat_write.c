#include "event/flat.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define HEADROOM 64

static struct aw_flat flat;
static struct aw_flat_object object;

static void begin(size_t value_max)
{
	aw_flat_begin(&flat, HEADROOM, value_max);
}

static void assert_line(const char *expected)
{
	struct aw_str line = aw_flat_end(&flat, (struct aw_str){ 0 });

	assert_int_equal(line.len, strlen(expected));
	assert_memory_equal(line.ptr, expected, line.len);
}

/* Close the object and parse it again; the line must be one we accept. */
static void read_again(void)
{
	struct aw_str line = aw_flat_end(&flat, (struct aw_str){ 0 });

	assert_true(line.len <= AW_FLAT_MAX && line.ptr[line.len - 1] == '\n');
	assert_null(memchr(line.ptr, '\n', line.len - 1));
	line.len--;
	assert_int_equal(aw_flat_parse(line, &object), 0);
}

static uint64_t number(const char *key)
{
	uint64_t value = 0;

	assert_int_equal(aw_flat_get_u64(aw_flat_find(&object, key), &value), 0);
	return value;
}

static void writes_each_type(void **state)
{
	const struct aw_str list[] = { AW_STR("a"), AW_STR(""), AW_STR("b c") };

	(void)state;
	begin(AW_FLAT_MAX);
	aw_flat_add_str(&flat, "text", AW_STR("hi"));
	aw_flat_add_u64(&flat, "big", UINT64_MAX);
	aw_flat_add_i64(&flat, "small", INT64_MIN);
	aw_flat_add_bool(&flat, "yes", true);
	aw_flat_add_bool(&flat, "no", false);
	aw_flat_add_strv(&flat, "list", list, 3);
	aw_flat_add_strv(&flat, "none", NULL, 0);
	assert_line("{\"text\":\"hi\",\"big\":18446744073709551615,\"small\":-9223372036854775808,"
		    "\"yes\":true,\"no\":false,\"list\":[\"a\",\"\",\"b c\"],\"none\":[]}\n");
}

static void an_empty_string_may_have_no_memory(void **state)
{
	(void)state;
	begin(AW_FLAT_MAX);
	aw_flat_add_str(&flat, "text", (struct aw_str){ NULL, 0 });
	assert_line("{\"text\":\"\"}\n");
}

static void a_head_takes_the_place_of_the_brace(void **state)
{
	struct aw_str line;

	(void)state;
	begin(AW_FLAT_MAX);
	aw_flat_add_u64(&flat, "b", 2);
	line = aw_flat_end(&flat, AW_STR("{\"a\":1"));
	assert_int_equal(line.len, strlen("{\"a\":1,\"b\":2}\n"));
	assert_memory_equal(line.ptr, "{\"a\":1,\"b\":2}\n", line.len);
}

static void hostile_bytes_stay_inside_their_string(void **state)
{
	(void)state;
	begin(AW_FLAT_MAX);
	aw_flat_add_str(&flat, "name", AW_STR("a\n{\"kind\":\"x\"}\x1b[2J\xff\\\x7f"));
	assert_line(
		"{\"name\":\"a\\\\x0a{\\\"kind\\\":\\\"x\\\"}\\\\x1b[2J\\\\xff\\\\\\\\\\\\x7f\"}\n");
}

static void text_of_the_world_stays_readable(void **state)
{
	(void)state;
	begin(AW_FLAT_MAX);
	aw_flat_add_str(&flat, "name", AW_STR("日本/é😀"));
	assert_line("{\"name\":\"日本/é😀\"}\n");
}

static void marks_that_turn_text_round_are_escaped(void **state)
{
	(void)state;
	begin(AW_FLAT_MAX);
	aw_flat_add_str(&flat, "name", AW_STR("\u202eabc\xc2\x85"));
	assert_line("{\"name\":\"\\\\xe2\\\\x80\\\\xaeabc\\\\xc2\\\\x85\"}\n");
}

static void every_byte_comes_back(void **state)
{
	char all[512], back[1024];
	size_t len;

	(void)state;
	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (char)(i < 256 ? i : 511 - i);
	begin(AW_FLAT_MAX);
	aw_flat_add_str(&flat, "all", (struct aw_str){ all, sizeof(all) });
	read_again();
	assert_int_equal(aw_flat_bytes(object.field[0].raw, back, sizeof(back), &len), 0);
	assert_int_equal(len, sizeof(all));
	assert_memory_equal(back, all, len);
}

static void a_long_value_is_cut_and_says_how_long_it_was(void **state)
{
	char text[200], back[400];
	size_t len;

	(void)state;
	memset(text, 'x', sizeof(text));
	begin(100);
	aw_flat_add_str(&flat, "t", (struct aw_str){ text, sizeof(text) });
	assert_true(flat.is_cut);
	read_again();
	assert_int_equal(object.field[0].raw.len, 100);
	assert_int_equal(number("t_total"), sizeof(text));
	assert_int_equal(aw_flat_bytes(object.field[0].raw, back, sizeof(back), &len), 1);
	assert_int_equal(len, 95);
	assert_memory_equal(back, text, len);
	assert_int_equal(aw_flat_text(object.field[0].raw, back, sizeof(back)), 99);
	assert_string_equal(back + 95, "\\...");
}

static void a_value_that_just_fits_is_not_cut(void **state)
{
	char text[100];

	(void)state;
	memset(text, 'x', sizeof(text));
	begin(sizeof(text));
	aw_flat_add_str(&flat, "t", (struct aw_str){ text, sizeof(text) });
	assert_false(flat.is_cut);
	read_again();
	assert_int_equal(object.count, 1);
}

/* At every limit, whatever the characters are wide. */
static void cuts_fall_between_characters(void **state)
{
	const char *const units[] = { "é", "日", "😀", "\\", "\x01", "\"", "\xff" };
	char text[512], back[1024];
	size_t len;

	(void)state;
	for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++) {
		size_t width = strlen(units[u]), total = 0;

		for (; total + width < 300; total += width)
			memcpy(text + total, units[u], width);
		for (size_t max = AW_FLAT_SHORT; max < 100; max++) {
			begin(max);
			aw_flat_add_str(&flat, "t", (struct aw_str){ text, total });
			read_again();
			assert_true(object.field[0].raw.len <= max);
			assert_int_equal(
				aw_flat_bytes(object.field[0].raw, back, sizeof(back), &len), 1);
			assert_true(len > 0 && len % width == 0);
			assert_memory_equal(back, text, len);
			assert_int_equal(number("t_total"), total);
		}
	}
}

static void a_long_list_is_cut_and_says_how_long_it_was(void **state)
{
	struct aw_str list[100], raw, rest;
	char back[64];
	size_t len, seen = 0;

	(void)state;
	for (size_t i = 0; i < 100; i++)
		list[i] = AW_STR("0123456789");
	begin(200);
	aw_flat_add_strv(&flat, "argv", list, 100);
	read_again();
	assert_true(object.field[0].raw.len <= 200);
	assert_int_equal(number("argv_items"), 100);
	assert_int_equal(number("argv_total"), 1000);
	for (rest = object.field[0].raw; aw_flat_next(&rest, &raw); seen++)
		if (aw_flat_bytes(raw, back, sizeof(back), &len) == 1)
			break;
	assert_true(seen > 5); /* whole ones, then one with the mark */
	assert_true(len < 10);
	assert_int_equal(rest.len, 0);
}

static void a_list_that_just_fits_is_not_cut(void **state)
{
	const struct aw_str list[] = { AW_STR("0123456789"), AW_STR("0123456789"),
				       AW_STR("0123456789") };

	(void)state;
	begin(AW_FLAT_SHORT);
	aw_flat_add_strv(&flat, "argv", list, 3);
	read_again();
	assert_int_equal(object.count, 1);
}

static void a_huge_element_leaves_room_for_the_mark(void **state)
{
	static char huge[20000];
	const struct aw_str list[] = { { huge, sizeof(huge) }, AW_STR("second") };

	(void)state;
	memset(huge, '"', sizeof(huge));
	begin(AW_FLAT_MAX);
	aw_flat_add_strv(&flat, "argv", list, 2);
	read_again();
	assert_int_equal(number("argv_items"), 2);
	assert_int_equal(number("argv_total"), sizeof(huge) + 6);
}

/* The worst an agent can do: every field as long and as expensive as it can be made. */
static void every_field_keeps_its_share(void **state)
{
	static char hostile[20000];
	static const char *const keys[AW_FLAT_FIELDS_MAX] = {
		"aaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbb", "cccccccccccccccccccccccc",
		"dddddddddddddddddddddddd", "eeeeeeeeeeeeeeeeeeeeeeee", "ffffffffffffffffffffffff",
		"gggggggggggggggggggggggg", "hhhhhhhhhhhhhhhhhhhhhhhh", "iiiiiiiiiiiiiiiiiiiiiiii",
		"jjjjjjjjjjjjjjjjjjjjjjjj", "kkkkkkkkkkkkkkkkkkkkkkkk", "llllllllllllllllllllllll",
		"mmmmmmmmmmmmmmmmmmmmmmmm", "nnnnnnnnnnnnnnnnnnnnnnnn", "oooooooooooooooooooooooo",
		"pppppppppppppppppppppppp", "qqqqqqqqqqqqqqqqqqqqqqqq", "rrrrrrrrrrrrrrrrrrrrrrrr",
		"ssssssssssssssssssssssss", "tttttttttttttttttttttttt", "uuuuuuuuuuuuuuuuuuuuuuuu",
		"vvvvvvvvvvvvvvvvvvvvvvvv", "wwwwwwwwwwwwwwwwwwwwwwww", "xxxxxxxxxxxxxxxxxxxxxxxx",
	};
	struct aw_str value = { hostile, sizeof(hostile) };
	const struct aw_str list[] = { value, value, value };
	char zeros[AW_FLAT_SHORT];

	(void)state;
	memset(hostile, 0xff, sizeof(hostile));
	memset(zeros, '0', sizeof(zeros));
	aw_flat_begin(&flat, 1024, 4096);
	for (size_t i = 0; i < AW_FLAT_FIELDS_MAX; i++) {
		if (i % 2 == 0)
			aw_flat_add_strv(&flat, keys[i], list, 3);
		else
			aw_flat_add_str(&flat, keys[i], value);
	}
	aw_flat_add_str(&flat, "prev", (struct aw_str){ zeros, sizeof(zeros) });
	read_again();
	for (size_t i = 0; i < AW_FLAT_FIELDS_MAX; i++)
		assert_true(aw_flat_find(&object, keys[i])->raw.len >= AW_FLAT_SHORT - 24);
	assert_int_equal(aw_flat_find(&object, "prev")->raw.len, AW_FLAT_SHORT);
}

static void ends_by_assert(void (*mistake)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)close(STDERR_FILENO);
		(void)sigaction(SIGABRT, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
		mistake();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void the_same_key_twice(void)
{
	begin(AW_FLAT_MAX);
	aw_flat_add_u64(&flat, "a", 1);
	aw_flat_add_u64(&flat, "a", 2);
}

static void a_key_like_our_own_suffix(void)
{
	begin(AW_FLAT_MAX);
	aw_flat_add_u64(&flat, "a_total", 1);
}

static void a_key_with_a_quote(void)
{
	begin(AW_FLAT_MAX);
	aw_flat_add_u64(&flat, "a\"b", 1);
}

static void an_object_without_fields(void)
{
	begin(AW_FLAT_MAX);
	(void)aw_flat_end(&flat, (struct aw_str){ 0 });
}

static void our_mistakes_are_asserted(void **state)
{
	(void)state;
	ends_by_assert(the_same_key_twice);
	ends_by_assert(a_key_like_our_own_suffix);
	ends_by_assert(a_key_with_a_quote);
	ends_by_assert(an_object_without_fields);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_each_type),
		cmocka_unit_test(an_empty_string_may_have_no_memory),
		cmocka_unit_test(a_head_takes_the_place_of_the_brace),
		cmocka_unit_test(hostile_bytes_stay_inside_their_string),
		cmocka_unit_test(text_of_the_world_stays_readable),
		cmocka_unit_test(marks_that_turn_text_round_are_escaped),
		cmocka_unit_test(every_byte_comes_back),
		cmocka_unit_test(a_long_value_is_cut_and_says_how_long_it_was),
		cmocka_unit_test(a_value_that_just_fits_is_not_cut),
		cmocka_unit_test(cuts_fall_between_characters),
		cmocka_unit_test(a_long_list_is_cut_and_says_how_long_it_was),
		cmocka_unit_test(a_list_that_just_fits_is_not_cut),
		cmocka_unit_test(a_huge_element_leaves_room_for_the_mark),
		cmocka_unit_test(every_field_keeps_its_share),
		cmocka_unit_test(our_mistakes_are_asserted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
