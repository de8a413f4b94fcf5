#include "cell/git-dir.h"

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

/* Hold a git directory of the project at @proj, shown at /p. */
static int hold_path(const char *proj, const char *path, struct aw_grants *g)
{
	autoclose int fd = open(proj, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct aw_protect_place project = { .fd = fd, .path = proj, .at = "/p" };
	struct aw_git_hold hold = {
		.project = &project,
		.g = g,
		.depth_left = AW_GIT_MODULE_DEPTH_MAX,
		.dirs_left = AW_GIT_DIRS_MAX + 1,
	};

	return aw_git_dir_hold(&hold, &project, path, &err);
}

static int find_git(struct place *p, struct aw_grants *g)
{
	place_dir(p, "proj/.git");
	return hold_path(place_at(p, "proj"), ".git", g);
}

static bool has(const struct aw_texts *texts, const char *path)
{
	return aw_grants_has(texts, path);
}

static void a_git_directory_is_pinned_with_what_runs_code_in_it(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	place_file(p, "proj/.git/HEAD", "");
	place_file(p, "proj/.git/config", "");
	place_file(p, "proj/.git/config.worktree", "");
	place_file(p, "proj/.git/commondir", "");
	place_file(p, "proj/.git/hooks/pre-commit", "");
	place_file(p, "proj/.git/info/attributes", "");
	place_file(p, "proj/.git/info/exclude", "");
	place_dir(p, "proj/.git/objects");
	assert_int_equal(find_git(p, &g), 0);
	assert_int_equal(g.pins.count, 2);
	assert_string_equal(g.pins.text[0], "/p/.git"); /* before what lies in it */
	assert_string_equal(g.pins.text[1], "/p/.git/info");
	assert_int_equal(g.protects.count, 5);
	assert_true(has(&g.protects, "/p/.git/hooks"));
	assert_true(has(&g.protects, "/p/.git/config"));
	assert_true(has(&g.protects, "/p/.git/config.worktree"));
	assert_true(has(&g.protects, "/p/.git/commondir"));
	assert_true(has(&g.protects, "/p/.git/info/attributes"));
}

static void submodules_are_found_with_slashes_in_their_names_and_in_one_another(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	place_file(p, "proj/.git/modules/libs/deep/zlib/HEAD", "");
	place_file(p, "proj/.git/modules/libs/deep/zlib/config", "");
	place_file(p, "proj/.git/modules/libs/deep/zlib/modules/inner/HEAD", "");
	place_file(p, "proj/.git/modules/libs/deep/zlib/modules/inner/hooks/x", "");
	assert_int_equal(find_git(p, &g), 0);
	assert_true(has(&g.protects, "/p/.git/modules/libs/deep/zlib/config"));
	assert_true(has(&g.protects, "/p/.git/modules/libs/deep/zlib/modules/inner/hooks"));
	/* Every directory from .git down to them is a mount point, or it could be moved away. */
	assert_true(has(&g.pins, "/p/.git/modules"));
	assert_true(has(&g.pins, "/p/.git/modules/libs"));
	assert_true(has(&g.pins, "/p/.git/modules/libs/deep"));
	assert_true(has(&g.pins, "/p/.git/modules/libs/deep/zlib"));
	assert_true(has(&g.pins, "/p/.git/modules/libs/deep/zlib/modules"));
	assert_true(has(&g.pins, "/p/.git/modules/libs/deep/zlib/modules/inner"));
}

static void other_worktrees_of_the_repository_are_held(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	place_file(p, "proj/.git/worktrees/a/commondir", "../..");
	place_file(p, "proj/.git/worktrees/b/commondir", "../..");
	place_file(p, "proj/.git/worktrees/b/config.worktree", "");
	place_file(p, "proj/.git/worktrees/file", "");
	assert_int_equal(find_git(p, &g), 0);
	assert_true(has(&g.protects, "/p/.git/worktrees/a/commondir"));
	assert_true(has(&g.protects, "/p/.git/worktrees/b/config.worktree"));
	assert_true(has(&g.pins, "/p/.git/worktrees"));
	assert_true(has(&g.pins, "/p/.git/worktrees/b"));
	assert_false(has(&g.pins, "/p/.git/worktrees/file"));
}

static void links_among_the_modules_are_not_followed(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	place_file(p, "proj/.git/HEAD", "");
	place_file(p, "proj/.git/modules/real/HEAD", "");
	place_link(p, "proj/.git/modules/loop", "..");
	place_link(p, "proj/.git/modules/out", "/usr");
	place_link(p, "proj/.git/modules/real/modules", "../../modules");
	place_link(p, "proj/.git/hooks", "/etc");
	assert_int_equal(find_git(p, &g), 0);
	assert_false(has(&g.pins, "/p/.git/modules/loop"));
	assert_false(has(&g.pins, "/p/.git/modules/out"));
	assert_true(has(&g.pins, "/p/.git/modules/real"));
	assert_false(has(&g.pins, "/p/.git/modules/real/modules"));
	assert_int_equal(g.notes.count, 1);
	assert_non_null(strstr(g.notes.text[0], "hooks"));
}

/* git/modules/d/d/.../d, @depth levels below modules. */
static void make_deep(struct place *p, unsigned depth)
{
	char path[512] = "proj/.git/modules";

	for (unsigned i = 0; i < depth; i++)
		(void)aw_str_format(path + strlen(path), sizeof(path) - strlen(path), "/d");
	place_dir(p, path);
}

static void directories_nest_up_to_a_bound(void **state)
{
	autodrop(aw_grants_fini) struct aw_grants g = { 0 }, deeper = { 0 };

	make_deep(*state, 7);
	assert_int_equal(find_git(*state, &g), 0);
	assert_int_equal(g.pins.count, 9);
	make_deep(*state, 8);
	assert_int_equal(find_git(*state, &deeper), -E2BIG);
	assert_non_null(strstr(err.message, "nest too deep"));
}

static void there_are_so_many_directories_and_no_more(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g = { 0 }, more = { 0 };
	char path[64];

	for (unsigned i = 0; i < 128; i++) {
		(void)aw_str_format(path, sizeof(path), "proj/.git/%s/%u/HEAD",
				    i % 2 == 0 ? "modules" : "worktrees", i);
		place_file(p, path, "");
	}
	assert_int_equal(find_git(p, &g), 0);
	place_file(p, "proj/.git/worktrees/over/HEAD", "");
	assert_int_equal(find_git(p, &more), -E2BIG);
	assert_non_null(strstr(err.message, "more than 128"));
}

static void directories_on_the_way_to_it_are_pinned(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	place_file(p, "proj/a/b/.git/config", "");
	assert_int_equal(hold_path(place_at(p, "proj"), "a/b/.git", &g), 0);
	assert_true(has(&g.pins, "/p/a"));
	assert_true(has(&g.pins, "/p/a/b"));
	assert_true(has(&g.pins, "/p/a/b/.git"));
	assert_true(has(&g.protects, "/p/a/b/.git/config"));
	assert_true(has(&g.repositories, "/p/a/b/.git"));
	assert_int_equal(g.repositories.count, 1); /* what is only on the way is none */
}

static void a_project_that_is_a_bare_repository_is_held_without_a_pin_of_its_own(void **state)
{
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	place_file(*state, "proj/config", "");
	assert_int_equal(hold_path(place_at(*state, "proj"), "", &g), 0);
	assert_int_equal(g.pins.count, 0);
	assert_true(has(&g.protects, "/p/config"));
	assert_true(has(&g.repositories, "/p"));
}

static void the_pointer_file_of_a_submodule_is_held_with_the_way_to_it(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	place_file(p, "proj/.git/modules/sub/HEAD", "");
	place_file(p, "proj/.git/modules/sub/config", "[core]\nworktree = ../../../lib/sub\n");
	place_file(p, "proj/lib/sub/.git", "gitdir: ../../.git/modules/sub\n");
	assert_int_equal(find_git(p, &g), 0);
	assert_true(has(&g.protects, "/p/lib/sub/.git"));
	assert_true(has(&g.pins, "/p/lib"));
	assert_true(has(&g.pins, "/p/lib/sub"));
}

static void what_the_configuration_names_is_held(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	place_file(
		p, "proj/.git/config",
		"[core]\nhooksPath = tools/hooks\n[include]\npath = ../.gitconfig\npath = own\n");
	place_file(p, "proj/.git/own", "");
	place_file(p, "proj/.gitconfig", "");
	place_file(p, "proj/tools/hooks/pre-commit", "");
	assert_int_equal(find_git(p, &g), 0);
	assert_true(has(&g.protects, "/p/tools/hooks"));
	assert_true(has(&g.pins, "/p/tools"));
	assert_true(has(&g.protects, "/p/.gitconfig"));
	assert_true(has(&g.protects, "/p/.git/own"));
	assert_int_equal(g.notes.count, 0);
}

static void a_named_link_is_noted_and_its_target_held(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	place_file(p, "proj/.git/config", "[core]\nhooksPath = hooks\n");
	place_file(p, "proj/real/pre-commit", "");
	place_link(p, "proj/hooks", "real");
	assert_int_equal(find_git(p, &g), 0);
	assert_true(has(&g.protects, "/p/real"));
	assert_int_equal(g.notes.count, 1);
	assert_non_null(strstr(g.notes.text[0], "the link is not"));
}

static void what_is_named_and_cannot_be_held_is_noted(void **state)
{
	static const char *const configs[] = { "[core]\nhooksPath = .\n", "[core\n",
					       "[include]\npath = config\n" };
	struct place *p = *state;

	for (size_t i = 0; i < AW_ARRAY_LEN(configs); i++) {
		autodrop(aw_grants_fini) struct aw_grants g = { 0 };

		place_file(p, "proj/.git/config", configs[i]);
		assert_int_equal(find_git(p, &g), 0);
		assert_true(has(&g.protects, "/p/.git/config"));
		assert_int_equal(g.protects.count, 1);
		assert_int_equal(g.notes.count, 1);
		assert_non_null(strstr(g.notes.text[0], "can be held"));
	}
}

static int attempt(void *state)
{
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	return hold_path(state, ".git", &g);
}

static void survives_a_lack_of_memory(void **state)
{
	struct place *p = *state;

	place_file(p, "proj/.git/worktrees/a/commondir", "");
	place_file(p, "proj/.git/modules/x/HEAD", "");
	place_file(p, "proj/.git/config", "[include]\npath = ../conf\n");
	place_file(p, "proj/conf", "[core]\nhooksPath = hooks\n");
	assert_true(aw_torture(attempt, (void *)(uintptr_t)place_at(p, "proj")) >= 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(a_git_directory_is_pinned_with_what_runs_code_in_it),
		IN_PLACE(submodules_are_found_with_slashes_in_their_names_and_in_one_another),
		IN_PLACE(other_worktrees_of_the_repository_are_held),
		IN_PLACE(links_among_the_modules_are_not_followed),
		IN_PLACE(directories_nest_up_to_a_bound),
		IN_PLACE(there_are_so_many_directories_and_no_more),
		IN_PLACE(directories_on_the_way_to_it_are_pinned),
		IN_PLACE(a_project_that_is_a_bare_repository_is_held_without_a_pin_of_its_own),
		IN_PLACE(the_pointer_file_of_a_submodule_is_held_with_the_way_to_it),
		IN_PLACE(what_the_configuration_names_is_held),
		IN_PLACE(a_named_link_is_noted_and_its_target_held),
		IN_PLACE(what_is_named_and_cannot_be_held_is_noted),
		IN_PLACE(survives_a_lack_of_memory),
	};

	/* What git is told for all repositories is not this test's. */
	(void)setenv("HOME", "/nonexistent", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
