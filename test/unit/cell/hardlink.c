#include "cell/hardlink.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/str.h"
#include "support/place.h"

static struct aw_error err;

static void find(struct place *p, const char *path, struct aw_grants *g)
{
	autoclose int fd = open(place_dir(p, "proj"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct aw_protect_place place = { .fd = fd, .at = "/p" };

	*g = (struct aw_grants){ 0 };
	assert_int_equal(aw_hardlink_find(&place, path, g, &err), 0);
}

static void name_again(struct place *p, const char *name, const char *other)
{
	assert_int_equal(link(place_file(p, name, ""), place_at(p, other)), 0);
}

static void a_file_with_one_name_is_nothing_to_speak_of(void **state)
{
	autodrop(aw_grants_fini) struct aw_grants g, none;

	place_file(*state, "proj/.envrc", "");
	find(*state, ".envrc", &g);
	assert_int_equal(g.linked.count + g.notes.count, 0);
	find(*state, "not-there", &none);
	assert_int_equal(none.linked.count + none.notes.count, 0);
}

static void a_file_with_two_names_is_remembered_and_noted(void **state)
{
	autodrop(aw_grants_fini) struct aw_grants g;

	name_again(*state, "proj/.envrc", "proj/.cache");
	find(*state, ".envrc", &g);
	assert_int_equal(g.linked.count, 1);
	assert_string_equal(g.linked.text[0], "/p/.envrc");
	assert_int_equal(g.notes.count, 1);
	assert_non_null(strstr(g.notes.text[0], "another name"));
}

static void files_in_a_directory_are_found(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g;

	place_file(p, "proj/.vscode/one", "");
	name_again(p, "proj/.vscode/two", "proj/a");
	name_again(p, "proj/.vscode/deep/three", "proj/b");
	place_link(p, "proj/.vscode/link", "../a");
	find(p, ".vscode", &g);
	assert_int_equal(g.linked.count, 2);
	assert_true(aw_grants_has(&g.linked, "/p/.vscode/two"));
	assert_true(aw_grants_has(&g.linked, "/p/.vscode/deep/three"));
}

static void a_large_directory_is_noted(void **state)
{
	autodrop(aw_grants_fini) struct aw_grants g, more;
	char name[64];

	for (unsigned i = 0; i < AW_HARDLINK_NAMES_MAX - 1; i++) {
		(void)aw_str_format(name, sizeof(name), "proj/.idea/%u", i);
		place_file(*state, name, "");
	}
	find(*state, ".idea", &g);
	assert_int_equal(g.notes.count, 0);
	place_file(*state, "proj/.idea/more", "");
	find(*state, ".idea", &more);
	assert_int_equal(more.notes.count, 1);
	assert_non_null(strstr(more.notes.text[0], "too large"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(a_file_with_one_name_is_nothing_to_speak_of),
		IN_PLACE(a_file_with_two_names_is_remembered_and_noted),
		IN_PLACE(files_in_a_directory_are_found),
		IN_PLACE(a_large_directory_is_noted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
