#include "cli/policy-edit.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "policy/json.h"
#include "support/torture.h"

/* jansson does not report every failed allocation of its own: torture is for our code. */
void *__real_malloc(size_t size);

#define TEXT_MAX 65536

static const char *const domains[] = { "capabilities", "network", "allowed_domains", NULL };
static const char *const list[] = { "list", NULL };
static const char *const project[] = { "projects", "/home/u/a \"b\"\n", "list", NULL };

static bool is_text(const void *data, const char *element)
{
	return strcmp(data, element) == 0;
}

static struct aw_edit edit_of(const char *text, const char *const *keys, const char *value)
{
	return (struct aw_edit){ aw_str_from(text), keys, is_text, value };
}

/* One change: the way, the text before and after it. */
struct change {
	const char *const *keys;
	const char *before, *after;
};

static void check(const struct change *changes, size_t count,
		  int (*change)(const struct aw_edit *, struct aw_buf *, struct aw_error *))
{
	for (size_t i = 0; i < count; i++) {
		struct aw_edit edit = edit_of(changes[i].before, changes[i].keys, "x.com");
		autodrop(aw_buf_fini) struct aw_buf text = AW_BUF_INIT(TEXT_MAX);
		struct aw_error err;

		if (change(&edit, &text, &err) < 1)
			fail_msg("%zu: %s", i, err.message);
		assert_string_equal(aw_buf_text(&text), changes[i].after);
	}
}

static int add_x(const struct aw_edit *edit, struct aw_buf *ret, struct aw_error *err)
{
	return aw_edit_add(edit, "x.com", ret, err);
}

static void added(const struct change *changes, size_t count)
{
	check(changes, count, add_x);
}

static void removed(const struct change *changes, size_t count)
{
	check(changes, count, aw_edit_remove);
}

static void an_element_is_put_behind_the_last_one_of_a_line(void **state)
{
	static const struct change changes[] = {
		{ list, "{\"list\":[\"a\"]}", "{\"list\":[\"a\", \"x.com\"]}" },
		{ list, "{\"list\": [ \"a\", \"b\" ]}\n",
		  "{\"list\": [ \"a\", \"b\", \"x.com\" ]}\n" },
		{ list, "{\"list\": [\"a\" /* why */]}",
		  "{\"list\": [\"a\", \"x.com\" /* why */]}" },
		{ list, "{\"list\": [\n  \"a\",\n  \"b\"]}",
		  "{\"list\": [\n  \"a\",\n  \"b\",\n  \"x.com\"]}" },
	};

	(void)state;
	added(changes, AW_ARRAY_LEN(changes));
}

static void an_element_gets_a_line_of_its_own_where_the_bracket_has_one(void **state)
{
	static const struct change changes[] = {
		{ list, "{\n  \"list\": [\n    \"a\"\n  ]\n}\n",
		  "{\n  \"list\": [\n    \"a\",\n    \"x.com\"\n  ]\n}\n" },
		{ list, "{\n\t\"list\": [\n\t\t\"a\", \"b\",\n\t\t\"c\"\n\t]\n}\n",
		  "{\n\t\"list\": [\n\t\t\"a\", \"b\",\n\t\t\"c\",\n\t\t\"x.com\"\n\t]\n}\n" },
		{ list, "{\n   \"list\": [\"a\",\n \"b\", \"c\"\n   ]}",
		  "{\n   \"list\": [\"a\",\n \"b\", \"c\",\n      \"x.com\"\n   ]}" },
	};

	(void)state;
	added(changes, AW_ARRAY_LEN(changes));
}

static void comments_stay_with_what_they_stand_at(void **state)
{
	static const struct change changes[] = {
		{ list, "{\n  \"list\": [\n    \"a\" // first\n    // \"b\"\n  ] // end\n}",
		  "{\n  \"list\": [\n    \"a\", // first\n    // \"b\"\n    \"x.com\"\n  ] // end\n}" },
		{ list, "// \"list\": [\n{ \"list\": [ // none yet\n] } /* ] */",
		  "// \"list\": [\n{ \"list\": [ // none yet\n  \"x.com\"\n] } /* ] */" },
		{ list, "{\"list\": [\"a//b\", \"]\" /* , */ ]}",
		  "{\"list\": [\"a//b\", \"]\", \"x.com\" /* , */ ]}" },
	};

	(void)state;
	added(changes, AW_ARRAY_LEN(changes));
}

static void an_empty_list_is_filled(void **state)
{
	static const struct change changes[] = {
		{ list, "{\"list\": []}", "{\"list\": [\"x.com\"]}" },
		{ list, "{\"list\":[/* none */]}", "{\"list\":[\"x.com\"/* none */]}" },
		{ list, "{\n    \"list\": [\n    ]\n}",
		  "{\n    \"list\": [\n        \"x.com\"\n    ]\n}" },
	};

	(void)state;
	added(changes, AW_ARRAY_LEN(changes));
}

static void what_is_missing_on_the_way_is_made(void **state)
{
	static const struct change changes[] = {
		{ domains, "{}",
		  "{\"capabilities\": {\"network\": {\"allowed_domains\": [\"x.com\"]}}}" },
		{ domains, "{\n  \"version\": 1\n}\n",
		  "{\n  \"version\": 1,\n  \"capabilities\": {\n    \"network\": {\n"
		  "      \"allowed_domains\": [\n        \"x.com\"\n      ]\n    }\n  }\n}\n" },
		{ domains, "{\n  \"capabilities\": {\"network\": {\"offline\": false}}\n}",
		  "{\n  \"capabilities\": {\"network\": {\"offline\": false, "
		  "\"allowed_domains\": [\"x.com\"]}}\n}" },
		{ domains, "{\n\t\"capabilities\": {\n\t}, // caps\n\t\"version\": 1\n}",
		  "{\n\t\"capabilities\": {\n\t\t\"network\": {\n\t\t\t\"allowed_domains\": [\n"
		  "\t\t\t\t\"x.com\"\n\t\t\t]\n\t\t}\n\t}, // caps\n\t\"version\": 1\n}" },
		{ project, "{\"projects\": {}}",
		  "{\"projects\": {\"/home/u/a \\\"b\\\"\\n\": {\"list\": [\"x.com\"]}}}" },
	};

	(void)state;
	added(changes, AW_ARRAY_LEN(changes));
}

static void line_ends_of_windows_are_kept(void **state)
{
	static const struct change changes[] = {
		{ list, "{\r\n  \"list\": [\r\n    \"a\"\r\n  ]\r\n}\r\n",
		  "{\r\n  \"list\": [\r\n    \"a\",\r\n    \"x.com\"\r\n  ]\r\n}\r\n" },
		{ list, "{\r\n  \"version\": 1\r\n}",
		  "{\r\n  \"version\": 1,\r\n  \"list\": [\r\n    \"x.com\"\r\n  ]\r\n}" },
	};
	static const struct change back[] = {
		{ list,
		  "{\r\n  \"list\": [\r\n    \"a\",\r\n    \"x.com\",\r\n    \"b\"\r\n  ]\r\n}",
		  "{\r\n  \"list\": [\r\n    \"a\",\r\n    \"b\"\r\n  ]\r\n}" },
	};

	(void)state;
	added(changes, AW_ARRAY_LEN(changes));
	removed(back, AW_ARRAY_LEN(back));
}

static void a_byte_order_mark_and_escaped_keys_are_read_as_they_are_meant(void **state)
{
	static const struct change changes[] = {
		{ list, "\xef\xbb\xbf{\"l\\u0069st\": [\"a\"]}",
		  "\xef\xbb\xbf{\"l\\u0069st\": [\"a\", \"x.com\"]}" },
	};

	(void)state;
	added(changes, AW_ARRAY_LEN(changes));
}

static void an_element_goes_with_its_comma(void **state)
{
	static const struct change changes[] = {
		{ list, "{\"list\": [\"x.com\"]}", "{\"list\": []}" },
		{ list, "{\"list\": [\"x.com\", \"a\"]}", "{\"list\": [\"a\"]}" },
		{ list, "{\"list\": [\"a\", \"x.com\", \"b\"]}", "{\"list\": [\"a\", \"b\"]}" },
		{ list, "{\"list\": [\"a\", \"x.com\"]}", "{\"list\": [\"a\"]}" },
		{ list, "{\"list\": [\"a\", \"x.com\" /* x */]}", "{\"list\": [\"a\" /* x */]}" },
		{ list, "{\"list\": [\"x.com\" /* x */, \"a\"]}", "{\"list\": [/* x */ \"a\"]}" },
	};

	(void)state;
	removed(changes, AW_ARRAY_LEN(changes));
}

static void the_line_of_an_element_goes_with_it(void **state)
{
	static const struct change changes[] = {
		{ list, "{\n  \"list\": [\n    \"x.com\"\n  ]\n}", "{\n  \"list\": [\n  ]\n}" },
		{ list, "{\n  \"list\": [\n    \"a\",\n    \"x.com\"\n  ]\n}",
		  "{\n  \"list\": [\n    \"a\"\n  ]\n}" },
		{ list, "{\n  \"list\": [\n    \"a\", // first\n    \"x.com\"\n  ]\n}",
		  "{\n  \"list\": [\n    \"a\" // first\n  ]\n}" },
		{ list, "{\n  \"list\": [\n    \"x.com\",  \n    \"a\"\n  ]\n}",
		  "{\n  \"list\": [\n    \"a\"\n  ]\n}" },
	};

	(void)state;
	removed(changes, AW_ARRAY_LEN(changes));
}

static void a_comment_of_the_person_outlives_its_element(void **state)
{
	static const struct change changes[] = {
		{ list, "{\"list\": [\n  \"x.com\", // why\n  \"a\"\n]}",
		  "{\"list\": [\n  // why\n  \"a\"\n]}" },
	};

	(void)state;
	removed(changes, AW_ARRAY_LEN(changes));
}

static void every_element_that_is_meant_goes(void **state)
{
	struct aw_edit edit =
		edit_of("{\"list\": [\"x.com\", 1, \"a\", \"x.com\", \"x.com\"]}", list, "x.com");
	autodrop(aw_buf_fini) struct aw_buf text = AW_BUF_INIT(TEXT_MAX);
	struct aw_error err;

	(void)state;
	assert_int_equal(aw_edit_remove(&edit, &text, &err), 3);
	assert_string_equal(aw_buf_text(&text), "{\"list\": [1, \"a\"]}");
}

static void what_is_there_is_not_added_and_what_is_not_is_not_removed(void **state)
{
	struct aw_edit there = edit_of("{\"list\": [\"x.com\"]}", list, "x.com");
	struct aw_edit other = edit_of("{\"list\": [\"x.com\"]}", list, "y.com");
	struct aw_edit nowhere = edit_of("{\"version\": 1}", domains, "x.com");
	autodrop(aw_buf_fini) struct aw_buf text = AW_BUF_INIT(TEXT_MAX);
	struct aw_error err;

	(void)state;
	assert_int_equal(aw_edit_add(&there, "x.com", &text, &err), 0);
	assert_int_equal(aw_edit_remove(&other, &text, &err), 0);
	assert_int_equal(aw_edit_remove(&nowhere, &text, &err), 0);
	assert_int_equal(text.len, 0);
}

static void a_text_that_is_no_policy_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *text, *told;
	} bad[] = {
		{ "", "line 1" },
		{ "// only a comment\n", "line 2" },
		{ "{\n  \"list\": [\"a\",]\n}", "line 2" },
		{ "{\n  \"list\": [\"a\"],\n}", "line 3" },
		{ "{\"list\": [\n\"a\" \"b\"]}", "line 2" },
		{ "{\"list\": []", "line 1" },
		{ "{\"list\": [],\n\"list\": []}", "twice" },
		{ "{\"list\": [] // }", "line 1" },
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(bad); i++) {
		struct aw_edit edit = edit_of(bad[i].text, list, "x.com");
		autodrop(aw_buf_fini) struct aw_buf text = AW_BUF_INIT(TEXT_MAX);
		struct aw_error err;

		assert_int_equal(aw_edit_add(&edit, "x.com", &text, &err), -EBADMSG);
		if (strstr(err.message, bad[i].told) == NULL)
			fail_msg("%zu: %s", i, err.message);
		assert_int_equal(aw_edit_remove(&edit, &text, &err), -EBADMSG);
	}
}

static void another_thing_on_the_way_is_refused_by_name(void **state)
{
	static const struct {
		const char *text, *told;
	} bad[] = {
		{ "[]", "\"the policy\" is no object" },
		{ "{\"capabilities\": []}", "\"capabilities\" is no object" },
		{ "{\"capabilities\": {\"network\": null}}", "\"network\" is no object" },
		{ "{\"capabilities\": {\"network\": {\"allowed_domains\": \"a\"}}}",
		  "\"allowed_domains\" is no list" },
		{ "{\"capabilities\": {\"network\": {\"allowed_domains\": {}}}}",
		  "\"allowed_domains\" is no list" },
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(bad); i++) {
		struct aw_edit edit = edit_of(bad[i].text, domains, "x.com");
		autodrop(aw_buf_fini) struct aw_buf text = AW_BUF_INIT(TEXT_MAX);
		struct aw_error err;

		assert_int_equal(aw_edit_add(&edit, "x.com", &text, &err), -ENOTDIR);
		assert_string_equal(err.message, bad[i].told);
	}
}

static void what_has_no_json_form_is_refused(void **state)
{
	static const char *const bytes[] = { "projects", "/home/\xff", NULL };
	struct aw_edit edit = edit_of("{}", bytes, "x.com");
	struct aw_edit value = edit_of("{}", list, "\xc3(");
	autodrop(aw_buf_fini) struct aw_buf text = AW_BUF_INIT(TEXT_MAX);
	struct aw_error err;

	(void)state;
	assert_int_equal(aw_edit_add(&edit, "x.com", &text, &err), -EBADMSG);
	assert_int_equal(aw_edit_add(&value, "\xc3(", &text, &err), -EBADMSG);
}

static void a_text_beyond_the_bound_is_refused(void **state)
{
	struct aw_edit edit = edit_of("{\"list\": [\"a\"]}", list, "x.com");
	autodrop(aw_buf_fini) struct aw_buf text = AW_BUF_INIT(20);
	struct aw_error err;

	(void)state;
	assert_int_equal(aw_edit_add(&edit, "x.com", &text, &err), -ENOBUFS);
}

static void added_and_removed_again_the_text_is_what_it_was(void **state)
{
	static const char *const texts[] = {
		"{\"list\": [\"a\"]}",
		"{\n  \"list\": [\n    \"a\", // one\n    \"b\"\n  ]\n}\n",
		"{\"list\": [\n\t\"a\" /* x */ // y\n]}",
		"{\"list\": []}",
		"{\r\n \"list\": [\r\n  \"a\"\r\n ]\r\n}",
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(texts); i++) {
		struct aw_edit edit = edit_of(texts[i], list, "x.com");
		autodrop(aw_buf_fini) struct aw_buf more = AW_BUF_INIT(TEXT_MAX);
		autodrop(aw_buf_fini) struct aw_buf less = AW_BUF_INIT(TEXT_MAX);
		struct aw_error err;

		assert_int_equal(aw_edit_add(&edit, "x.com", &more, &err), 1);
		edit.text = aw_buf_str(&more);
		assert_int_equal(aw_edit_remove(&edit, &less, &err), 1);
		assert_string_equal(aw_buf_text(&less), texts[i]);
	}
}

static int attempt(void *state)
{
	struct aw_edit edit = edit_of("{\"list\": [\"a\", \"x.com\"]}", list, "x.com");
	autodrop(aw_buf_fini) struct aw_buf text = AW_BUF_INIT(TEXT_MAX);
	struct aw_error err;
	int r;

	(void)state;
	r = aw_edit_remove(&edit, &text, &err);
	if (r < 0)
		return r;
	edit.text = AW_STR("{\"version\": 1}");
	edit.keys = domains;
	aw_buf_fini(&text);
	return aw_edit_add(&edit, "x.com", &text, &err);
}

static void every_failed_allocation_is_reported(void **state)
{
	(void)state;
	json_set_alloc_funcs(__real_malloc, free);
	assert_true(aw_torture(attempt, NULL) > 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_element_is_put_behind_the_last_one_of_a_line),
		cmocka_unit_test(an_element_gets_a_line_of_its_own_where_the_bracket_has_one),
		cmocka_unit_test(comments_stay_with_what_they_stand_at),
		cmocka_unit_test(an_empty_list_is_filled),
		cmocka_unit_test(what_is_missing_on_the_way_is_made),
		cmocka_unit_test(line_ends_of_windows_are_kept),
		cmocka_unit_test(a_byte_order_mark_and_escaped_keys_are_read_as_they_are_meant),
		cmocka_unit_test(an_element_goes_with_its_comma),
		cmocka_unit_test(the_line_of_an_element_goes_with_it),
		cmocka_unit_test(a_comment_of_the_person_outlives_its_element),
		cmocka_unit_test(every_element_that_is_meant_goes),
		cmocka_unit_test(what_is_there_is_not_added_and_what_is_not_is_not_removed),
		cmocka_unit_test(a_text_that_is_no_policy_is_refused_with_its_line),
		cmocka_unit_test(another_thing_on_the_way_is_refused_by_name),
		cmocka_unit_test(what_has_no_json_form_is_refused),
		cmocka_unit_test(a_text_beyond_the_bound_is_refused),
		cmocka_unit_test(added_and_removed_again_the_text_is_what_it_was),
		cmocka_unit_test(every_failed_allocation_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
