#include "policy/json.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "support/torture.h"

static struct aw_json *parsed(const char *text)
{
	struct aw_json_fault fault;
	struct aw_json *json = NULL;

	if (aw_json_parse(text, strlen(text), &json, &fault) < 0)
		fail_msg("%s", fault.message);
	return json;
}

static struct aw_json_fault faulty(const char *text, size_t len)
{
	struct aw_json_fault fault;
	struct aw_json *json = NULL;

	assert_int_equal(aw_json_parse(text, len, &json, &fault), -EBADMSG);
	assert_null(json);
	assert_true(fault.offset <= len);
	assert_true(strlen(fault.message) > 0);
	return fault;
}

static void comments_are_blanked_byte_for_byte(void **state)
{
	const char *text = "// first\n{ /* a \"b\" */ \"k\": 1, // \xc3\xa9\n\"l\" /* \n */: 2 }//";
	autodrop(aw_json_drop) struct aw_json *json = parsed(text);

	(void)state;
	assert_int_equal(json->len, strlen(text));
	assert_int_equal(json_integer_value(json_object_get(json->root, "k")), 1);
	assert_int_equal(json_integer_value(json_object_get(json->root, "l")), 2);
	for (size_t i = 0; i < json->len; i++)
		assert_int_equal(json->text[i] == '\n', text[i] == '\n');
}

static void what_looks_like_a_comment_in_a_string_stays(void **state)
{
	autodrop(aw_json_drop) struct aw_json *json =
		parsed("{\"a\": \"http://x/*y*/\", \"b\": \"\\\"//\"}");

	(void)state;
	assert_string_equal(json_string_value(json_object_get(json->root, "a")), "http://x/*y*/");
	assert_string_equal(json_string_value(json_object_get(json->root, "b")), "\"//");
}

static void a_byte_order_mark_is_blank(void **state)
{
	autodrop(aw_json_drop) struct aw_json *json = parsed("\xef\xbb\xbf{}");

	(void)state;
	assert_true(json_is_object(json->root));
	assert_int_equal(json->nodes[0].value, 3);
}

static void every_key_and_value_has_its_place(void **state)
{
	const char *text = "{\"a\": [10, {\"b\": true}],\n \"c\": \"x\"}";
	autodrop(aw_json_drop) struct aw_json *json = parsed(text);
	uint32_t cursor = 0, a, c, element;
	unsigned line, column;

	(void)state;
	a = aw_json_member(json, 0, "a", &cursor);
	assert_int_equal(json->nodes[a].value, strchr(text, '[') - text);
	element = json->nodes[a].child;
	assert_int_equal(json->nodes[element].value, strstr(text, "10") - text);
	element = json->nodes[element].next;
	assert_int_equal(json->nodes[element].value, strstr(text, "{\"b") - text);
	assert_int_equal(json->nodes[json->nodes[element].child].value,
			 strstr(text, "true") - text);
	assert_int_equal(json->nodes[element].next, 0);
	c = aw_json_member(json, 0, "c", &cursor);
	assert_int_equal(json->nodes[c].key, strstr(text, "c\"") - text);
	aw_json_place((struct aw_str){ json->text, json->len }, json->nodes[c].value, &line,
		      &column);
	assert_int_equal(line, 2);
	assert_int_equal(column, 7);
	cursor = 0;
	assert_int_equal(aw_json_member(json, 0, "none", &cursor), 0);
}

static void members_are_found_out_of_order_and_by_meaning(void **state)
{
	autodrop(aw_json_drop) struct aw_json *json = parsed("{\"x\":1,\"\\u0061\":2,\"y\":3}");
	uint32_t cursor = 0, node;

	(void)state;
	node = aw_json_member(json, 0, "y", &cursor);
	assert_int_equal(json->text[json->nodes[node].value], '3');
	node = aw_json_member(json, 0, "a", &cursor);
	assert_int_equal(json->text[json->nodes[node].value], '2');
}

static void duplicate_keys_are_listed_and_the_last_one_counts(void **state)
{
	const char *text = "{\"a\": 1, \"b\": {\"c\": 1, \"c\": 2}, \"a\": 3}";
	autodrop(aw_json_drop) struct aw_json *json = parsed(text);
	uint32_t cursor = 0, node;

	(void)state;
	assert_int_equal(json->duplicate_count, 2);
	node = aw_json_member(json, 0, "a", &cursor);
	assert_int_equal(json->text[json->nodes[node].value], '3');
	assert_int_equal(json_integer_value(json_object_get(json->root, "a")), 3);
}

static void a_duplicate_in_another_spelling_is_a_fault(void **state)
{
	const char *text = "{\"a\": 1, \"\\u0061\": 2}";

	(void)state;
	assert_non_null(strstr(faulty(text, strlen(text)).message, "duplicate"));
}

static void what_is_not_json_is_a_fault_with_its_place(void **state)
{
	static const char *const bad[] = {
		"",
		"{",
		"{]",
		"[1,]",
		"{\"a\" 1}",
		"{\"a\":1} x",
		"nul",
		"\"text\"",
		"{'a':1}",
		"{a:1}",
		"{\"a\":01}",
		"{\"a\":\"\\u0000\"}",
		"/",
		"{} /",
		"{} /* x",
		"{\"a\":\"x\ny\"}",
		"{\"a\":1e999}",
		"{\"a\":\"\xff\"}",
		"\"",
		"{\"",
		"{\"a\\",
		"}",
		"]]",
		"{\"a\":{}}}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		(void)faulty(bad[i], strlen(bad[i]));
	assert_int_equal(faulty("{}\0", 3).offset, 2);
	assert_int_equal(faulty("{} /* x", 7).offset, 3);
}

static void size_depth_and_number_of_values_are_bounded(void **state)
{
	autofree char *text = malloc(AW_JSON_SIZE_MAX + 2);
	autodrop(aw_json_drop) struct aw_json *json = NULL;
	struct aw_json_fault fault;
	size_t values = AW_JSON_VALUES_MAX;

	(void)state;
	assert_non_null(text);
	memset(text, ' ', AW_JSON_SIZE_MAX + 1);
	memcpy(text, "{}", 2);
	assert_int_equal(aw_json_parse(text, AW_JSON_SIZE_MAX, &json, &fault), 0);
	assert_non_null(strstr(faulty(text, AW_JSON_SIZE_MAX + 1).message, "larger"));
	aw_json_drop(&json);
	memset(text, '[', AW_JSON_DEPTH_MAX + 1);
	memset(text + AW_JSON_DEPTH_MAX + 1, ']', AW_JSON_DEPTH_MAX + 1);
	assert_int_equal(faulty(text, 2 * (AW_JSON_DEPTH_MAX + 1)).offset, AW_JSON_DEPTH_MAX);
	assert_int_equal(aw_json_parse(text + 1, 2 * AW_JSON_DEPTH_MAX, &json, &fault), 0);
	aw_json_drop(&json);
	for (size_t i = 0; i < values; i++)
		memcpy(text + 2 * i, i == 0 ? "[1" : ",1", 2);
	text[2 * values] = ']';
	assert_non_null(strstr(faulty(text, 2 * values + 1).message, "values"));
	text[2 * (values - 1)] = ']';
	assert_int_equal(aw_json_parse(text, 2 * (values - 1) + 1, &json, &fault), 0);
}

static int attempt(void *state)
{
	const char *text = "{\"a\": [1, 2.5, \"x\"], \"a\": {\"\\u0062\": null}} // c";
	autodrop(aw_json_drop) struct aw_json *json = NULL;
	struct aw_json_fault fault;

	(void)state;
	return aw_json_parse(text, strlen(text), &json, &fault);
}

static void every_failing_allocation_is_told(void **state)
{
	(void)state;
	assert_true(aw_torture(attempt, NULL) > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(comments_are_blanked_byte_for_byte),
		cmocka_unit_test(what_looks_like_a_comment_in_a_string_stays),
		cmocka_unit_test(a_byte_order_mark_is_blank),
		cmocka_unit_test(every_key_and_value_has_its_place),
		cmocka_unit_test(members_are_found_out_of_order_and_by_meaning),
		cmocka_unit_test(duplicate_keys_are_listed_and_the_last_one_counts),
		cmocka_unit_test(a_duplicate_in_another_spelling_is_a_fault),
		cmocka_unit_test(what_is_not_json_is_a_fault_with_its_place),
		cmocka_unit_test(size_depth_and_number_of_values_are_bounded),
		cmocka_unit_test(every_failing_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
