#include "cell/git-named.h"

#include <errno.h>
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

static void find_in(struct place *p, const char *git_dir, struct aw_git_named *ret)
{
	*ret = (struct aw_git_named){ 0 };
	assert_int_equal(setenv("HOME", place_dir(p, "home"), 1), 0);
	assert_int_equal(aw_git_named_find(place_dir(p, "proj"), place_dir(p, git_dir), ret, &err),
			 0);
}

static bool has(struct place *p, const struct aw_git_named *named, const char *name)
{
	return aw_grants_has(&named->paths, place_at(p, name));
}

/* With this text as its configuration, proj/.git names @name, or nothing (NULL). */
static void expect(struct place *p, const char *config, const char *name)
{
	autodrop(aw_git_named_fini) struct aw_git_named named;

	place_file(p, "proj/.git/config", config);
	find_in(p, "proj/.git", &named);
	if (named.paths.count != (name != NULL ? 1 : 0) || (name != NULL && !has(p, &named, name)))
		fail_msg("%zu named, the first is %s, in: %s", named.paths.count,
			 named.paths.count > 0 ? named.paths.text[0] : "none", config);
	assert_false(named.is_partial);
}

static void a_hooks_path_is_relative_to_the_work_tree(void **state)
{
	struct place *p = *state;
	autofree char *absolute = aw_str_print("[core]\nhooksPath = %s\n", place_at(p, "proj/h"));

	expect(p, "[core]\nhooksPath = .githooks\n", "proj/.githooks");
	expect(p, "[core]\nhooksPath = ./a/../b//c/\n", "proj/b/c");
	expect(p, absolute, "proj/h");
	expect(p, "[core]\nhooksPath = ~/../proj/h\n", "proj/h");
	expect(p, "[core]\nhooksPath = ../elsewhere\n", NULL);
	expect(p, "[core]\nhooksPath = ~/hooks\n", NULL);
	expect(p, "[core]\nhooksPath = /dev/null\n", NULL);
	expect(p, "[core]\nhooksPath = ~root/hooks\n", NULL);
	expect(p, "[core]\nhooksPath = %(prefix)/hooks\n", NULL);
	expect(p, "[core]\nhooksPath =\n", NULL);
	expect(p, "[core]\nhooksPath\n", NULL);
}

static void an_include_is_relative_to_its_file(void **state)
{
	struct place *p = *state;

	expect(p, "[include]\npath = ../.gitconfig\n", "proj/.gitconfig");
	expect(p, "[include]\npath = local\n", "proj/.git/local");
	expect(p, "[includeIf \"gitdir:/nowhere/\"]\npath = ../conf\n", "proj/conf");
	expect(p, "[includeIf \"onbranch:x\"]\npath = ../conf\n", "proj/conf");
	expect(p, "[include]\nfile = ../conf\n", NULL);
}

static void other_keys_are_not_followed(void **state)
{
	struct place *p = *state;

	expect(p, "[core]\nfsmonitor = ./watch\n[alias]\nx = !./x\n[filter \"f\"]\nclean = ./f\n",
	       NULL);
}

static void all_values_are_followed(void **state)
{
	struct place *p = *state;
	autodrop(aw_git_named_fini) struct aw_git_named named;

	place_file(p, "proj/.git/config",
		   "[include]\npath = ../a\npath = ../b\n[core]\nhooksPath = c");
	place_file(p, "proj/.git/config.worktree", "[core]\nhooksPath = d\n");
	find_in(p, "proj/.git", &named);
	assert_int_equal(named.paths.count, 4);
	assert_true(has(p, &named, "proj/a"));
	assert_true(has(p, &named, "proj/b"));
	assert_true(has(p, &named, "proj/c"));
	assert_true(has(p, &named, "proj/d"));
}

static void what_is_included_is_read_in_turn(void **state)
{
	struct place *p = *state;
	autodrop(aw_git_named_fini) struct aw_git_named named;

	place_file(p, "proj/.git/config", "[include]\npath = ../conf/first\n");
	place_file(p, "proj/conf/first", "[include]\npath = second\n");
	place_file(p, "proj/conf/second", "[core]\nhooksPath = hooks\n");
	find_in(p, "proj/.git", &named);
	assert_int_equal(named.paths.count, 3);
	assert_true(has(p, &named, "proj/conf/second"));
	assert_true(has(p, &named, "proj/hooks"));
}

static void what_the_person_has_for_all_repositories_counts(void **state)
{
	struct place *p = *state;
	autodrop(aw_git_named_fini) struct aw_git_named named;

	place_file(p, "home/.gitconfig", "[core]\nhooksPath = .githooks\n[include]\npath = more\n");
	place_file(p, "home/more", "[include]\npath = ../proj/shared\n");
	place_file(p, "home/.config/git/config", "[include]\npath = ~/../proj/xdg\n");
	find_in(p, "proj/.git", &named);
	assert_int_equal(named.paths.count, 3);
	assert_true(has(p, &named, "proj/.githooks"));
	assert_true(has(p, &named, "proj/shared"));
	assert_true(has(p, &named, "proj/xdg"));
}

static void a_submodule_has_its_pointer_file_and_its_own_work_tree(void **state)
{
	struct place *p = *state;
	autodrop(aw_git_named_fini) struct aw_git_named named;

	place_file(p, "proj/.git/modules/s/config",
		   "[core]\nworktree = ../../../lib/s\nhooksPath = hooks\n");
	find_in(p, "proj/.git/modules/s", &named);
	assert_int_equal(named.paths.count, 2);
	assert_true(has(p, &named, "proj/lib/s/.git"));
	assert_true(has(p, &named, "proj/lib/s/hooks"));
}

static void a_work_tree_outside_of_the_project_is_nobodys(void **state)
{
	struct place *p = *state;

	expect(p, "[core]\nworktree = ../../other\n", NULL);
	expect(p, "[core]\nworktree = ..\n", NULL);
}

static void a_nested_repository_has_the_folder_that_it_is_in(void **state)
{
	struct place *p = *state;
	autodrop(aw_git_named_fini) struct aw_git_named named;

	place_file(p, "proj/a/.git/config", "[core]\nhooksPath = hooks\n");
	find_in(p, "proj/a/.git", &named);
	assert_int_equal(named.paths.count, 1);
	assert_true(has(p, &named, "proj/a/hooks"));
}

static void a_git_directory_elsewhere_names_what_lies_in_it_and_in_the_project(void **state)
{
	struct place *p = *state;
	autodrop(aw_git_named_fini) struct aw_git_named named;

	place_file(p, "main/.git/config",
		   "[core]\nhooksPath = hooks\n[include]\npath = own\npath = ../other\n");
	find_in(p, "main/.git", &named);
	assert_int_equal(named.paths.count, 2);
	assert_true(has(p, &named, "proj/hooks"));
	assert_true(has(p, &named, "main/.git/own"));
}

static void hooks_that_are_links_name_what_they_lead_to(void **state)
{
	struct place *p = *state;
	autodrop(aw_git_named_fini) struct aw_git_named named;

	place_file(p, "proj/scripts/check", "");
	place_link(p, "proj/.git/hooks/pre-commit", "../../scripts/check");
	place_link(p, "proj/.git/hooks/pre-push", "../../scripts/not-there");
	place_link(p, "proj/.git/hooks/post-merge", "/bin/true");
	place_file(p, "proj/.git/config", "[core]\nhooksPath = h\n");
	place_link(p, "proj/h/pre-rebase", place_at(p, "proj/scripts/other"));
	find_in(p, "proj/.git", &named);
	assert_int_equal(named.paths.count, 4);
	assert_true(has(p, &named, "proj/scripts/check"));
	assert_true(has(p, &named, "proj/scripts/not-there"));
	assert_true(has(p, &named, "proj/h"));
	assert_true(has(p, &named, "proj/scripts/other"));
}

static void a_link_is_named_with_what_it_leads_to(void **state)
{
	struct place *p = *state;
	autodrop(aw_git_named_fini) struct aw_git_named named;

	place_dir(p, "proj/real");
	place_link(p, "proj/hooks", "real");
	place_file(p, "proj/.git/config", "[core]\nhooksPath = hooks\n");
	find_in(p, "proj/.git", &named);
	assert_int_equal(named.paths.count, 2);
	assert_true(has(p, &named, "proj/hooks"));
	assert_true(has(p, &named, "proj/real"));
}

static void what_cannot_be_held_or_read_is_said(void **state)
{
	static const char *const configs[] = {
		"[core]\nhooksPath = .\n",    "[core]\nhooksPath = .git\n",
		"[core\nhooksPath = h\n",     "[include]\npath = config\n",
		"[include]\npath = ../bad\n",
	};
	struct place *p = *state;

	place_file(p, "proj/bad", "!");
	for (size_t i = 0; i < AW_ARRAY_LEN(configs); i++) {
		autodrop(aw_git_named_fini) struct aw_git_named named;

		place_file(p, "proj/.git/config", configs[i]);
		find_in(p, "proj/.git", &named);
		if (!named.is_partial)
			fail_msg("not said of: %s", configs[i]);
	}
}

static void a_fifo_in_the_place_of_a_file_holds_nobody(void **state)
{
	struct place *p = *state;
	autodrop(aw_git_named_fini) struct aw_git_named named;

	place_fifo(p, "proj/.git/config");
	find_in(p, "proj/.git", &named);
	assert_true(named.is_partial);
}

static int attempt(void *state)
{
	autodrop(aw_git_named_fini) struct aw_git_named named = { 0 };
	const char *const *paths = state;

	return aw_git_named_find(paths[0], paths[1], &named, &err);
}

static void survives_a_lack_of_memory(void **state)
{
	struct place *p = *state;
	const char *paths[] = { place_at(p, "proj"), place_at(p, "proj/.git") };

	assert_int_equal(setenv("HOME", place_dir(p, "home"), 1), 0);
	place_file(p, "proj/.git/config", "[include]\npath = ../conf\n");
	place_file(p, "proj/conf", "[core]\nhooksPath = hooks\n");
	assert_true(aw_torture(attempt, paths) >= 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(a_hooks_path_is_relative_to_the_work_tree),
		IN_PLACE(an_include_is_relative_to_its_file),
		IN_PLACE(other_keys_are_not_followed),
		IN_PLACE(all_values_are_followed),
		IN_PLACE(what_is_included_is_read_in_turn),
		IN_PLACE(what_the_person_has_for_all_repositories_counts),
		IN_PLACE(a_submodule_has_its_pointer_file_and_its_own_work_tree),
		IN_PLACE(a_work_tree_outside_of_the_project_is_nobodys),
		IN_PLACE(a_nested_repository_has_the_folder_that_it_is_in),
		IN_PLACE(a_git_directory_elsewhere_names_what_lies_in_it_and_in_the_project),
		IN_PLACE(hooks_that_are_links_name_what_they_lead_to),
		IN_PLACE(a_link_is_named_with_what_it_leads_to),
		IN_PLACE(what_cannot_be_held_or_read_is_said),
		IN_PLACE(a_fifo_in_the_place_of_a_file_holds_nobody),
		IN_PLACE(survives_a_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
