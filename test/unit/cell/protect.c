#include "cell/protect.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/str.h"
#include "support/place.h"
#include "support/torture.h"

static struct aw_error err;

static int find(struct place *p, unsigned classes, struct aw_grants *g)
{
	autoclose int fd = open(place_dir(p, "proj"), O_PATH | O_DIRECTORY | O_CLOEXEC);

	return aw_protect_find(fd, "/p", classes, g, &err);
}

static bool has(const struct aw_texts *texts, const char *path)
{
	return aw_grants_has(texts, path);
}

/* Every name of the table, as a file; where one lies in another's directory, that is made. */
static void make_all(struct place *p)
{
	size_t count;
	const struct aw_protect_name *names = aw_protect_names(&count);
	char path[256];

	for (size_t i = 0; i < count; i++) {
		(void)aw_str_format(path, sizeof(path), "proj/%s", names[i].path);
		place_file(p, path, "");
	}
}

static void each_class_holds_its_own_names_and_no_others(void **state)
{
	static const unsigned classes[] = { AW_PROTECT_EDITOR, AW_PROTECT_AGENT, AW_PROTECT_CI,
					    AW_PROTECT_SHELL };
	size_t count, found = 0;
	const struct aw_protect_name *names = aw_protect_names(&count);
	char at[256];

	make_all(*state);
	for (size_t c = 0; c < AW_ARRAY_LEN(classes); c++) {
		autodrop(aw_grants_fini) struct aw_grants g = { 0 };

		assert_int_equal(find(*state, classes[c], &g), 0);
		assert_true(g.protects.count > 0);
		for (size_t i = 0; i < count; i++) {
			(void)aw_str_format(at, sizeof(at), "/p/%s", names[i].path);
			assert_int_equal(has(&g.protects, at), names[i].class == classes[c]);
		}
		found += g.protects.count;
	}
	assert_int_equal(found, count);
}

static void the_names_that_people_expect_are_in_the_table(void **state)
{
	static const struct {
		const char *path;
		unsigned class;
	} expected[] = {
		{ ".vscode", AW_PROTECT_EDITOR },
		{ ".idea", AW_PROTECT_EDITOR },
		{ ".mcp.json", AW_PROTECT_AGENT },
		{ ".warden.json", AW_PROTECT_AGENT },
		{ ".claude/settings.json", AW_PROTECT_AGENT },
		{ ".cursor", AW_PROTECT_AGENT },
		{ ".github/workflows", AW_PROTECT_CI },
		{ ".gitlab-ci.yml", AW_PROTECT_CI },
		{ "Jenkinsfile", AW_PROTECT_CI },
		{ ".envrc", AW_PROTECT_SHELL },
		{ ".husky", AW_PROTECT_SHELL },
		{ ".bashrc", AW_PROTECT_SHELL },
	};
	size_t count, found = 0;
	const struct aw_protect_name *names = aw_protect_names(&count);

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(expected); i++)
		for (size_t k = 0; k < count; k++)
			found += strcmp(names[k].path, expected[i].path) == 0 &&
				 names[k].class == expected[i].class;
	assert_int_equal(found, AW_ARRAY_LEN(expected));
}

static void no_name_is_in_the_table_twice(void **state)
{
	size_t count;
	const struct aw_protect_name *names = aw_protect_names(&count);

	(void)state;
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(names[i].path, names[k].path);
}

static void what_is_not_there_is_not_held(void **state)
{
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	place_dir(*state, "proj/.github");
	assert_int_equal(find(*state, AW_PROTECT_ALL, &g), 0);
	assert_int_equal(g.protects.count + g.pins.count + g.notes.count, 0);
}

static void directories_on_the_way_are_pinned(void **state)
{
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	place_file(*state, "proj/.claude/settings.json", "");
	place_file(*state, "proj/.envrc", "");
	assert_int_equal(find(*state, AW_PROTECT_ALL, &g), 0);
	assert_int_equal(g.pins.count, 1);
	assert_string_equal(g.pins.text[0], "/p/.claude");
	assert_int_equal(g.protects.count, 2);
}

static void a_protected_name_that_is_a_link_is_noted(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	place_file(p, "proj/real", "");
	place_link(p, "proj/.envrc", "real");
	place_link(p, "proj/.bashrc", "/etc/passwd");
	place_link(p, "proj/.zshrc", "missing");
	assert_int_equal(find(p, AW_PROTECT_SHELL, &g), 0);
	assert_int_equal(g.protects.count + g.pins.count, 0);
	assert_int_equal(g.notes.count, 3);
	assert_non_null(strstr(g.notes.text[0], ".envrc"));
}

static void a_link_on_the_way_is_noted_and_never_pinned(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	place_file(p, "proj/inner/workflows/ci.yml", "");
	place_link(p, "proj/.github", "inner");
	place_file(p, "outer/settings.json", "");
	place_link(p, "proj/.claude", "../outer");
	assert_int_equal(find(p, AW_PROTECT_ALL, &g), 0);
	assert_int_equal(g.protects.count + g.pins.count, 0);
	assert_true(g.notes.count >= 2);
}

static int attempt(void *state)
{
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };
	const int *fd = state;

	return aw_protect_find(*fd, "/p", AW_PROTECT_ALL, &g, &err);
}

static void survives_a_lack_of_memory(void **state)
{
	struct place *p = *state;
	autoclose int fd = -EBADF;

	place_file(p, "proj/.claude/settings.json", "");
	place_link(p, "proj/.envrc", "x");
	fd = open(place_at(p, "proj"), O_PATH | O_CLOEXEC);
	assert_true(aw_torture(attempt, &fd) >= 6);
}

static void what_lies_in_a_held_directory_is_held(void **state)
{
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	place_dir(*state, "proj/.vscode");
	place_file(*state, "proj/.claude/settings.json", "");
	assert_int_equal(find(*state, AW_PROTECT_ALL, &g), 0);
	assert_true(aw_protect_is_held(&g, "/p/.vscode"));
	assert_true(aw_protect_is_held(&g, "/p/.vscode/tasks.json"));
	assert_false(aw_protect_is_held(&g, "/p/.vscode2"));
	assert_false(aw_protect_is_held(&g, "/p/.claude")); /* only pinned */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(each_class_holds_its_own_names_and_no_others),
		cmocka_unit_test(the_names_that_people_expect_are_in_the_table),
		cmocka_unit_test(no_name_is_in_the_table_twice),
		IN_PLACE(what_is_not_there_is_not_held),
		IN_PLACE(directories_on_the_way_are_pinned),
		IN_PLACE(a_protected_name_that_is_a_link_is_noted),
		IN_PLACE(a_link_on_the_way_is_noted_and_never_pinned),
		IN_PLACE(what_lies_in_a_held_directory_is_held),
		IN_PLACE(survives_a_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
