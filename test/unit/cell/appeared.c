#include "cell/appeared.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/str.h"
#include "cell/git.h"
#include "support/place.h"
#include "support/torture.h"

static struct aw_error err;

/* A session over proj, shown at /p. */
struct session {
	struct place *p;
	int fd;
	struct aw_grants g;
	struct aw_appeared what;
	struct aw_texts found;
	bool is_complete;
};

static uint64_t now(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(CLOCK_REALTIME, &t), 0);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* What was there before must be older than a tick. */
static void begin_with(struct session *s, struct place *p, unsigned classes)
{
	const char *proj = place_dir(p, "proj");

	*s = (struct session){ .p = p };
	(void)usleep(25000);
	assert_int_equal(setenv("HOME", place_dir(p, "home"), 1), 0);
	s->fd = open(proj, O_PATH | O_DIRECTORY | O_CLOEXEC);
	s->what = (struct aw_appeared){
		.project = { s->fd, proj, "/p" },
		.g = &s->g,
		.since_ns = now(),
		.classes = classes,
	};
	assert_int_equal(aw_git_find(s->fd, proj, "/p", &s->g, &err), 0);
	assert_int_equal(aw_protect_find(s->fd, "/p", classes, &s->g, &err), 0);
	assert_int_equal(aw_git_find_nested(s->fd, proj, "/p", &s->g, &err), 0);
}

static void begin(struct session *s, struct place *p)
{
	begin_with(s, p, AW_PROTECT_ALL);
}

static void end(struct session *s)
{
	aw_texts_fini(&s->found);
	assert_int_equal(aw_appeared_find(&s->what, &s->found, &s->is_complete, &err), 0);
}

static void session_fini(struct session *s)
{
	aw_grants_fini(&s->g);
	aw_texts_fini(&s->found);
	(void)close(s->fd);
}

/* The session found @name and nothing else; NULL: nothing at all. */
static void expect(struct session *s, const char *name)
{
	end(s);
	assert_true(s->is_complete);
	for (size_t i = 0; i < s->found.count; i++)
		if (name == NULL || strcmp(s->found.text[i], place_at(s->p, name)) != 0)
			fail_msg("found: %s", s->found.text[i]);
	if (s->found.count != (name != NULL ? 1 : 0))
		fail_msg("not found: %s", name);
}

static void move(struct place *p, const char *from, const char *to)
{
	assert_int_equal(rename(place_at(p, from), place_at(p, to)), 0);
}

static void make_git(struct place *p, const char *name)
{
	static const char *const parts[] = { "HEAD", "config", "objects/x", "refs/x",
					     "hooks/pre-commit.sample" };
	char path[256];

	for (size_t i = 0; i < AW_ARRAY_LEN(parts); i++) {
		(void)aw_str_format(path, sizeof(path), "%s/%s", name, parts[i]);
		place_file(p, path, "");
	}
}

static void names_of_the_table_are_told_when_they_come(void **state)
{
	size_t count;
	const struct aw_protect_name *names = aw_protect_names(&count);
	char path[256];

	for (size_t i = 0; i < count; i++) {
		autodrop(session_fini) struct session s;

		begin(&s, *state);
		(void)aw_str_format(path, sizeof(path), "proj/%s", names[i].path);
		place_file(*state, path, "");
		expect(&s, path);
		assert_int_equal(unlink(place_at(*state, path)), 0);
	}
}

static void names_of_another_class_are_not(void **state)
{
	autodrop(session_fini) struct session s;

	begin_with(&s, *state, AW_PROTECT_EDITOR);
	place_file(*state, "proj/.envrc", "");
	make_git(*state, "proj/.git");
	expect(&s, NULL);
}

static void what_was_there_is_not_told_whatever_happens_in_it(void **state)
{
	struct place *p = *state;
	autodrop(session_fini) struct session s;

	place_file(p, "proj/.envrc", "");
	place_file(p, "proj/.vscode/tasks.json", "");
	make_git(p, "proj/.git");
	make_git(p, "proj/a/.git");
	make_git(p, "proj/store.git");
	place_file(p, "proj/lib/.git", "gitdir: ../x");
	begin(&s, p);
	place_file(p, "proj/.git/HEAD", "ref: refs/heads/other");
	place_file(p, "proj/.git/ORIG_HEAD", "");
	place_file(p, "proj/a/.git/COMMIT_EDITMSG", "");
	place_file(p, "proj/store.git/packed-refs", "");
	place_file(p, "proj/file", "");
	place_file(p, "proj/objects/HEAD", "");
	expect(&s, NULL);
}

static void an_old_name_that_came_by_rename_is_told(void **state)
{
	struct place *p = *state;
	autodrop(session_fini) struct session s;

	place_file(p, "proj/old", "");
	begin(&s, p);
	move(p, "proj/old", "proj/.envrc");
	s.what.since_ns = UINT64_MAX; /* no time tells that */
	expect(&s, "proj/.envrc");
}

static void files_that_come_into_a_git_directory_are_told(void **state)
{
	static const char *const names[] = { "commondir", "config.worktree", "info/attributes" };
	char path[256];

	make_git(*state, "proj/.git");
	make_git(*state, "proj/a/b/.git");
	for (size_t i = 0; i < AW_ARRAY_LEN(names); i++) {
		for (unsigned is_nested = 0; is_nested < 2; is_nested++) {
			autodrop(session_fini) struct session s;

			begin(&s, *state);
			(void)aw_str_format(path, sizeof(path), "proj/%s.git/%s",
					    is_nested ? "a/b/" : "", names[i]);
			place_file(*state, path, "");
			expect(&s, path);
			assert_int_equal(unlink(place_at(*state, path)), 0);
		}
	}
}

static void new_hooks_are_told_but_for_samples(void **state)
{
	struct place *p = *state;
	autodrop(session_fini) struct session s;

	place_file(p, "proj/.git/HEAD", "");
	place_file(p, "proj/.git/old/pre-commit", "");
	place_file(p, "proj/.git/old/pre-push.sample", "");
	place_file(p, "proj/.git/old/.hidden", "");
	begin(&s, p);
	move(p, "proj/.git/old", "proj/.git/hooks");
	expect(&s, "proj/.git/hooks/pre-commit");
}

static void hooks_that_are_a_link_are_told_as_such(void **state)
{
	struct place *p = *state;
	autodrop(session_fini) struct session s;

	place_file(p, "proj/.git/HEAD", "");
	begin(&s, p);
	place_link(p, "proj/.git/hooks", "../evil");
	expect(&s, "proj/.git/hooks");
}

static void a_repository_where_there_was_none_is_told(void **state)
{
	autodrop(session_fini) struct session s;

	begin(&s, *state);
	make_git(*state, "proj/.git");
	expect(&s, "proj/.git");
}

static void a_pointer_where_there_was_none_is_told(void **state)
{
	autodrop(session_fini) struct session s;

	begin(&s, *state);
	place_file(*state, "proj/.git", "gitdir: evil");
	expect(&s, "proj/.git");
}

static void nested_repositories_are_told_when_they_come(void **state)
{
	struct place *p = *state;
	autodrop(session_fini) struct session made, moved, pointer, link;

	begin(&made, p);
	make_git(p, "proj/a/b/.git");
	expect(&made, "proj/a/b/.git");
	place_file(p, "proj/old/config", "");
	begin(&moved, p);
	move(p, "proj/old", "proj/a/.git");
	expect(&moved, "proj/a/.git");
	begin(&pointer, p);
	place_file(p, "proj/c/.git", "gitdir: x");
	expect(&pointer, "proj/c/.git");
	begin(&link, p);
	place_link(p, "proj/d/.git", "../a");
	expect(&link, "proj/d/.git");
}

static void a_repository_that_came_with_its_folder_is_told(void **state)
{
	struct place *p = *state;
	autodrop(session_fini) struct session s;

	make_git(p, "proj/node_modules/x/.git");
	begin(&s, p);
	move(p, "proj/node_modules/x", "proj/x");
	s.what.since_ns = UINT64_MAX;
	expect(&s, "proj/x/.git");
}

static void bare_layouts_are_told_when_they_are_complete(void **state)
{
	struct place *p = *state;
	autodrop(session_fini) struct session s, root;

	place_file(p, "proj/a/config", "");
	place_dir(p, "proj/a/objects");
	place_dir(p, "proj/a/refs");
	begin(&s, p);
	place_file(p, "proj/a/HEAD", "");
	expect(&s, "proj/a");
	begin(&root, p);
	make_git(p, "proj");
	expect(&root, "proj");
}

/* The directory of a nested repository is pinned, and is none itself. */
static void a_bare_layout_around_a_nested_repository_is_told(void **state)
{
	struct place *p = *state;
	autodrop(session_fini) struct session s;

	make_git(p, "proj/a/.git");
	begin(&s, p);
	make_git(p, "proj/a");
	expect(&s, "proj/a");
}

static void git_directories_of_new_submodules_are_told(void **state)
{
	struct place *p = *state;
	autodrop(session_fini) struct session s;

	make_git(p, "proj/.git");
	make_git(p, "proj/.git/modules/old");
	begin(&s, p);
	make_git(p, "proj/.git/modules/lib/new");
	expect(&s, "proj/.git/modules/lib/new");
}

static void the_names_of_worktrees_are_told_when_they_come(void **state)
{
	struct place *p = *state;
	autodrop(session_fini) struct session s;

	make_git(p, "proj/.git");
	place_file(p, "proj/.git/worktrees/w/commondir", "../..");
	begin(&s, p);
	place_file(p, "proj/.git/worktrees/new/commondir", "../..");
	place_file(p, "proj/.git/worktrees/w/config.worktree", "");
	expect(&s, "proj/.git/worktrees/w/config.worktree");
}

static void what_a_configuration_names_is_told_when_it_comes(void **state)
{
	struct place *p = *state;
	autodrop(session_fini) struct session s, hook;

	make_git(p, "proj/.git");
	place_file(p, "proj/.git/config", "[include]\npath = ../conf\n[core]\nhooksPath = h/x\n");
	place_file(p, "proj/old/x/pre-commit", "");
	begin(&s, p);
	place_file(p, "proj/conf", "");
	expect(&s, "proj/conf");
	begin(&hook, p);
	move(p, "proj/old", "proj/h");
	hook.what.since_ns = UINT64_MAX;
	expect(&hook, "proj/h/x");
}

static void a_link_is_told_when_it_or_its_target_changed(void **state)
{
	struct place *p = *state;
	autodrop(session_fini) struct session same, target, other;

	place_file(p, "proj/real", "");
	place_link(p, "proj/.envrc", "real");
	begin(&same, p);
	expect(&same, NULL);
	begin(&target, p);
	place_file(p, "proj/real", "changed");
	expect(&target, "proj/.envrc");
	begin(&other, p);
	place_link(p, "proj/new", "elsewhere");
	move(p, "proj/new", "proj/.envrc");
	expect(&other, "proj/.envrc");
}

static void a_link_on_the_way_is_told_when_it_changed(void **state)
{
	struct place *p = *state;
	autodrop(session_fini) struct session s;

	place_file(p, "proj/one/settings.json", "");
	place_file(p, "proj/two/settings.json", "");
	place_link(p, "proj/.claude", "one");
	begin(&s, p);
	expect(&s, NULL);
	place_link(p, "proj/new", "two");
	move(p, "proj/new", "proj/.claude");
	expect(&s, "proj/.claude/settings.json");
}

static void a_common_directory_elsewhere_is_looked_through(void **state)
{
	struct place *p = *state;
	autodrop(session_fini) struct session s, module;
	char text[256];

	make_git(p, "main/.git");
	place_file(p, "main/.git/worktrees/w/commondir", "../..\n");
	(void)aw_str_format(text, sizeof(text), "%s\n", place_at(p, "proj/.git"));
	place_file(p, "main/.git/worktrees/w/gitdir", text);
	place_file(p, "proj/.git", "gitdir: ../main/.git/worktrees/w\n");
	begin(&s, p);
	place_file(p, "main/.git/commondir", "../evil");
	expect(&s, "main/.git/commondir");
	begin(&module, p);
	make_git(p, "main/.git/modules/new");
	expect(&module, "main/.git/modules/new");
}

static void a_held_file_that_was_written_by_another_name_is_told(void **state)
{
	struct place *p = *state;
	autodrop(session_fini) struct session same, written;

	place_file(p, "proj/.envrc", "");
	assert_int_equal(link(place_at(p, "proj/.envrc"), place_at(p, "proj/cache")), 0);
	begin(&same, p);
	expect(&same, NULL);
	begin(&written, p);
	place_file(p, "proj/cache", "changed");
	expect(&written, "proj/.envrc");
}

/* An index is made by hand in its own test; here it is enough that it is asked. */
static void an_index_that_became_no_index_is_said(void **state)
{
	struct place *p = *state;
	autodrop(session_fini) struct session s;

	make_git(p, "proj/.git");
	begin(&s, p);
	place_file(p, "proj/.git/index", "DIRC");
	end(&s);
	assert_false(s.is_complete);
}

static void what_could_not_be_held_is_judged_by_its_change(void **state)
{
	struct place *p = *state;
	autodrop(session_fini) struct session s;
	char path[64];

	for (unsigned i = 0; i < AW_GIT_NESTED_MAX + 1; i++) {
		(void)aw_str_format(path, sizeof(path), "proj/r%u/.git", i);
		make_git(p, path);
	}
	begin(&s, p);
	assert_true(s.g.has_unseen_repositories);
	assert_int_equal(s.g.repositories.count, AW_GIT_NESTED_MAX);
	expect(&s, NULL);
	for (unsigned i = 0; i < AW_GIT_NESTED_MAX + 1; i++) {
		(void)aw_str_format(path, sizeof(path), "proj/r%u/.git/config", i);
		place_file(p, path, "changed");
	}
	end(&s);
	assert_int_equal(s.found.count, 1);
	assert_non_null(strstr(s.found.text[0], "/.git"));
}

static int attempt(void *state)
{
	struct session *s = state;
	struct aw_texts found = { 0 };
	bool is_complete;
	int r = aw_appeared_find(&s->what, &found, &is_complete, &err);

	aw_texts_fini(&found);
	return r;
}

static void survives_a_lack_of_memory(void **state)
{
	struct place *p = *state;
	autodrop(session_fini) struct session s;

	make_git(p, "proj/.git");
	place_file(p, "proj/.git/config", "[core]\nhooksPath = h\n");
	begin(&s, p);
	make_git(p, "proj/.git/modules/new");
	place_file(p, "proj/.git/commondir", "");
	place_file(p, "proj/h/x", "");
	make_git(p, "proj/a/.git");
	assert_true(aw_torture(attempt, &s) >= 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(names_of_the_table_are_told_when_they_come),
		IN_PLACE(names_of_another_class_are_not),
		IN_PLACE(what_was_there_is_not_told_whatever_happens_in_it),
		IN_PLACE(an_old_name_that_came_by_rename_is_told),
		IN_PLACE(files_that_come_into_a_git_directory_are_told),
		IN_PLACE(new_hooks_are_told_but_for_samples),
		IN_PLACE(hooks_that_are_a_link_are_told_as_such),
		IN_PLACE(a_repository_where_there_was_none_is_told),
		IN_PLACE(a_pointer_where_there_was_none_is_told),
		IN_PLACE(nested_repositories_are_told_when_they_come),
		IN_PLACE(a_repository_that_came_with_its_folder_is_told),
		IN_PLACE(bare_layouts_are_told_when_they_are_complete),
		IN_PLACE(a_bare_layout_around_a_nested_repository_is_told),
		IN_PLACE(git_directories_of_new_submodules_are_told),
		IN_PLACE(the_names_of_worktrees_are_told_when_they_come),
		IN_PLACE(what_a_configuration_names_is_told_when_it_comes),
		IN_PLACE(a_link_is_told_when_it_or_its_target_changed),
		IN_PLACE(a_link_on_the_way_is_told_when_it_changed),
		IN_PLACE(a_common_directory_elsewhere_is_looked_through),
		IN_PLACE(a_held_file_that_was_written_by_another_name_is_told),
		IN_PLACE(an_index_that_became_no_index_is_said),
		IN_PLACE(what_could_not_be_held_is_judged_by_its_change),
		IN_PLACE(survives_a_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
