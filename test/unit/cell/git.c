#include "cell/git.h"

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

/* What is found for the project at @name, shown at its own path or at @at. */
static int find_at(struct place *p, const char *name, const char *at, struct aw_grants *g)
{
	const char *path = place_dir(p, name);
	autoclose int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return aw_git_find(fd, path, at != NULL ? at : path, g, &err);
}

static void find(struct place *p, struct aw_grants *g)
{
	*g = (struct aw_grants){ 0 };
	assert_int_equal(find_at(p, "proj", NULL, g), 0);
}

static void make_git_dir(struct place *p, const char *name)
{
	char file[256];
	static const char *const files[] = { "HEAD", "config", "hooks/pre-commit" };

	for (size_t i = 0; i < AW_ARRAY_LEN(files); i++) {
		(void)aw_str_format(file, sizeof(file), "%s/%s", name, files[i]);
		place_file(p, file, "");
	}
}

/* A file whose text names a path of the place. */
static void make_pointer(struct place *p, const char *name, const char *before, const char *target)
{
	char text[256];

	(void)aw_str_format(text, sizeof(text), "%s%s\n", before, place_at(p, target));
	place_file(p, name, text);
}

static bool has(struct place *p, const struct aw_texts *texts, const char *name)
{
	return aw_grants_has(texts, place_at(p, name));
}

static void shows_nothing_and_notes(const struct aw_grants *g, const char *words)
{
	assert_int_equal(g->bind_count, 0);
	assert_int_equal(g->notes.count, 1);
	if (strstr(g->notes.text[0], words) == NULL)
		fail_msg("the note says: %s", g->notes.text[0]);
}

static void a_plain_repository_is_held_where_it_is(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g;

	make_git_dir(p, "proj/.git");
	find(p, &g);
	assert_int_equal(g.bind_count, 0);
	assert_int_equal(g.notes.count, 0);
	assert_true(has(p, &g.pins, "proj/.git"));
	assert_true(has(p, &g.protects, "proj/.git/hooks"));
	assert_true(has(p, &g.protects, "proj/.git/config"));
}

static void a_project_shown_elsewhere_is_held_there(void **state)
{
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	make_git_dir(*state, "proj/.git");
	assert_int_equal(find_at(*state, "proj", "/workspace", &g), 0);
	assert_true(aw_grants_has(&g.pins, "/workspace/.git"));
	assert_true(aw_grants_has(&g.protects, "/workspace/.git/hooks"));
}

static void a_directory_without_a_repository_needs_nothing(void **state)
{
	autodrop(aw_grants_fini) struct aw_grants g;

	place_fifo(*state, "proj/.git");
	find(*state, &g);
	assert_int_equal(g.bind_count + g.pins.count + g.protects.count + g.notes.count, 0);
}

static void make_worktree(struct place *p)
{
	make_git_dir(p, "main/.git");
	make_pointer(p, "proj/.git", "gitdir: ", "main/.git/worktrees/w");
	make_pointer(p, "main/.git/worktrees/w/gitdir", "", "proj/.git");
	place_file(p, "main/.git/worktrees/w/commondir", "../..\n");
	place_file(p, "main/.git/worktrees/w/HEAD", "ref: refs/heads/w\n");
}

static void a_worktree_gets_its_common_directory(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g;

	make_worktree(p);
	find(p, &g);
	assert_int_equal(g.notes.count, 0);
	assert_int_equal(g.bind_count, 1);
	assert_string_equal(g.binds[0].source, place_at(p, "main/.git"));
	assert_string_equal(g.binds[0].at, g.binds[0].source);
	assert_true(g.binds[0].is_writable);
	assert_true(has(p, &g.pins, "main/.git"));
	assert_true(has(p, &g.protects, "main/.git/hooks"));
	assert_true(has(p, &g.protects, "main/.git/config"));
	assert_true(has(p, &g.repositories, "main/.git"));
}

static void the_pointers_of_a_worktree_are_held_too(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g;

	make_worktree(p);
	place_file(p, "main/.git/worktrees/w/config.worktree", "");
	find(p, &g);
	/* With another pointer, or another common directory, git on the host would run what they say. */
	assert_true(has(p, &g.protects, "proj/.git"));
	assert_true(has(p, &g.protects, "main/.git/worktrees/w/commondir"));
	assert_true(has(p, &g.protects, "main/.git/worktrees/w/config.worktree"));
	assert_true(has(p, &g.pins, "main/.git/worktrees/w"));
}

static void relative_pointers_are_followed(void **state)
{
	autodrop(aw_grants_fini) struct aw_grants g;

	make_worktree(*state);
	place_file(*state, "proj/.git", "gitdir: ../main/.git/worktrees/w\r\n");
	place_file(*state, "main/.git/worktrees/w/gitdir", "../../../../proj/.git\n");
	find(*state, &g);
	assert_int_equal(g.bind_count, 1);
}

static void a_submodule_gets_its_git_directory(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g;

	make_git_dir(p, "super/.git/modules/lib/x");
	place_file(p, "super/.git/modules/lib/x/config",
		   "[core]\n\tbare = false\n\tworktree = ../../../../../proj\n");
	place_file(p, "proj/.git", "gitdir: ../super/.git/modules/lib/x\n");
	find(p, &g);
	assert_int_equal(g.bind_count, 1);
	assert_string_equal(g.binds[0].source, place_at(p, "super/.git/modules/lib/x"));
	assert_true(has(p, &g.protects, "super/.git/modules/lib/x/config"));
}

static void a_pointer_to_a_repository_that_does_not_point_back_opens_nothing(void **state)
{
	static const char *const backs[] = { NULL, "", "/nowhere", "../../../../other/.git" };
	struct place *p = *state;

	make_worktree(p);
	place_file(p, "other/.git", "");
	for (size_t i = 0; i < AW_ARRAY_LEN(backs); i++) {
		autodrop(aw_grants_fini) struct aw_grants g;

		if (backs[i] != NULL)
			place_file(p, "main/.git/worktrees/w/gitdir", backs[i]);
		else
			assert_int_equal(unlink(place_at(p, "main/.git/worktrees/w/gitdir")), 0);
		find(p, &g);
		shows_nothing_and_notes(&g, "does not point back");
	}
}

static void a_pointer_to_another_repository_opens_nothing(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g;

	make_git_dir(p, "secret/.git");
	place_file(p, "secret/.git/config", "[core]\nworktree = ..\n");
	make_pointer(p, "proj/.git", "gitdir: ", "secret/.git");
	find(p, &g);
	shows_nothing_and_notes(&g, "does not point back");
}

static void a_pointer_to_a_link_is_judged_by_what_it_leads_to(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g;

	make_worktree(p);
	place_dir(p, "keys");
	place_link(p, "link", "keys");
	make_pointer(p, "proj/.git", "gitdir: ", "link");
	find(p, &g);
	shows_nothing_and_notes(&g, "does not point back");
	assert_non_null(strstr(g.notes.text[0], place_at(p, "keys")));
}

static void a_planted_common_directory_opens_nothing(void **state)
{
	static const char *const planted[] = {
		"../../../../keys",          "/",        "..", "../../worktrees",
		"../../../.git/worktrees/w", "/nowhere", ""
	};
	struct place *p = *state;

	make_worktree(p);
	place_dir(p, "keys/worktrees/w");
	for (size_t i = 0; i < AW_ARRAY_LEN(planted); i++) {
		autodrop(aw_grants_fini) struct aw_grants g;

		place_file(p, "main/.git/worktrees/w/commondir", planted[i]);
		find(p, &g);
		shows_nothing_and_notes(&g, "commondir");
	}
}

static void a_common_directory_planted_in_a_submodule_opens_nothing(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g;

	make_git_dir(p, "super/.git/modules/x");
	place_file(p, "super/.git/modules/x/config", "[core]\nworktree = ../../../../proj\n");
	place_file(p, "super/.git/modules/x/commondir", "../../../../keys\n");
	place_dir(p, "keys");
	place_file(p, "proj/.git", "gitdir: ../super/.git/modules/x\n");
	find(p, &g);
	shows_nothing_and_notes(&g, "commondir");
}

static void a_common_directory_that_is_a_link_is_not_read(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g;

	make_worktree(p);
	place_file(p, "text", "../..\n");
	assert_int_equal(unlink(place_at(p, "main/.git/worktrees/w/commondir")), 0);
	place_link(p, "main/.git/worktrees/w/commondir", "../../../../text");
	find(p, &g);
	shows_nothing_and_notes(&g, "commondir");
}

static void what_is_no_pointer_is_said_to_be_none(void **state)
{
	static char long_line[16384];
	static const struct {
		const char *text;
		size_t len; /* 0: that of the text */
	} lines[] = {
		{ "", 0 },
		{ "gitdir:", 0 },
		{ "gitdir=../main/.git", 0 },
		{ " gitdir: ../main/.git", 0 },
		{ "gitdir: ../main/.git/worktrees/w\0/../../x\n", 43 },
		{ "\0gitdir: ../main/.git/worktrees/w\n", 34 },
		{ long_line, sizeof(long_line) },
	};
	struct place *p = *state;

	make_worktree(p);
	memset(long_line, 'x', sizeof(long_line));
	memcpy(long_line, "gitdir: ", 8);
	for (size_t i = 0; i < AW_ARRAY_LEN(lines); i++) {
		autodrop(aw_grants_fini) struct aw_grants g;
		size_t len = lines[i].len > 0 ? lines[i].len : strlen(lines[i].text);

		place_bytes(p, "proj/.git", lines[i].text, len);
		find(p, &g);
		shows_nothing_and_notes(&g, "not a pointer");
	}
}

static void a_pointer_to_nowhere_is_noted(void **state)
{
	static char long_line[6000] = "gitdir: ";
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g, longer;

	place_file(p, "proj/.git", "gitdir: ../not/there\n");
	find(p, &g);
	shows_nothing_and_notes(&g, "not there");
	memset(long_line + 8, 'x', sizeof(long_line) - 9);
	place_file(p, "proj/.git", long_line);
	find(p, &longer);
	shows_nothing_and_notes(&longer, "not there");
}

static void a_git_directory_inside_the_project_is_held_and_not_shown_again(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	make_git_dir(p, "proj/store.git");
	place_file(p, "proj/.git", "gitdir: store.git\n");
	assert_int_equal(find_at(p, "proj", "/workspace", &g), 0);
	assert_int_equal(g.bind_count, 0);
	assert_true(aw_grants_has(&g.pins, "/workspace/store.git"));
	assert_true(aw_grants_has(&g.protects, "/workspace/store.git/hooks"));
	assert_true(aw_grants_has(&g.protects, "/workspace/.git"));
}

static void a_link_at_dot_git_is_not_followed(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g;

	make_git_dir(p, "elsewhere");
	place_dir(p, "proj");
	place_link(p, "proj/.git", "../elsewhere");
	find(p, &g);
	shows_nothing_and_notes(&g, "symbolic link");
	assert_int_equal(g.pins.count + g.protects.count, 0);
}

static void a_repository_further_up_is_named_but_not_shown(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	make_git_dir(p, "mono/.git");
	assert_int_equal(find_at(p, "mono/packages/api", NULL, &g), 0);
	shows_nothing_and_notes(&g, "part of the repository");
	assert_non_null(strstr(g.notes.text[0], place_at(p, "mono/.git")));
}

static void notes_show_no_control_characters(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g;

	place_dir(p, "\033[2J");
	place_file(p, "proj/.git", "gitdir: ../\033[2J\n");
	find(p, &g);
	shows_nothing_and_notes(&g, "does not point back");
	assert_null(strchr(g.notes.text[0], '\033'));
}

static void anothers_git_directory_is_not_opened(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g;

	if (geteuid() == 0) {
		/* Root is refused nothing: what a user gets is the other half of this test. */
		make_worktree(p);
		assert_int_equal(chown(place_at(p, "main/.git/worktrees/w"), 12345, 12345), 0);
		find(p, &g);
		assert_int_equal(g.bind_count, 1);
		return;
	}
	place_file(p, "proj/.git", "gitdir: /usr\n");
	find(p, &g);
	shows_nothing_and_notes(&g, "not there");
}

static void find_nested(struct place *p, struct aw_grants *g)
{
	const char *path = place_dir(p, "proj");
	autoclose int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	*g = (struct aw_grants){ 0 };
	assert_int_equal(aw_git_find(fd, path, path, g, &err), 0);
	assert_int_equal(aw_git_find_nested(fd, path, path, g, &err), 0);
}

static void nested_repositories_are_held(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g;

	make_git_dir(p, "proj/.git");
	make_git_dir(p, "proj/a/b/.git");
	make_git_dir(p, "proj/store.git");
	place_dir(p, "proj/store.git/objects");
	place_dir(p, "proj/store.git/refs");
	place_file(p, "proj/tree/.git", "gitdir: ../.git/worktrees/tree\n");
	find_nested(p, &g);
	assert_int_equal(g.notes.count, 0);
	assert_false(g.has_unseen_repositories);
	assert_int_equal(g.repositories.count, 3);
	assert_true(has(p, &g.protects, "proj/a/b/.git/config"));
	assert_true(has(p, &g.protects, "proj/a/b/.git/hooks"));
	assert_true(has(p, &g.pins, "proj/a"));
	assert_true(has(p, &g.pins, "proj/a/b"));
	assert_true(has(p, &g.protects, "proj/store.git/config"));
	assert_true(has(p, &g.protects, "proj/tree/.git"));
}

static void so_many_nested_repositories_are_held_and_the_rest_is_noted(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g, more;
	char name[64];

	for (unsigned i = 0; i < AW_GIT_NESTED_MAX; i++) {
		(void)aw_str_format(name, sizeof(name), "proj/%u/.git", i);
		make_git_dir(p, name);
	}
	find_nested(p, &g);
	assert_int_equal(g.repositories.count, AW_GIT_NESTED_MAX);
	assert_int_equal(g.notes.count, 0);
	make_git_dir(p, "proj/more/.git");
	find_nested(p, &more);
	assert_int_equal(more.repositories.count, AW_GIT_NESTED_MAX);
	assert_true(more.has_unseen_repositories);
	shows_nothing_and_notes(&more, "too large to be looked through for nested repositories");
}

/* Name and e-mail for a ~/.gitconfig with this text. */
static void expect_identity(struct place *p, const char *text, const char *name, const char *email)
{
	autofree char *found_name = NULL, *found_email = NULL;

	place_file(p, ".gitconfig", text);
	aw_git_identity(place_at(p, ""), &found_name, &found_email);
	if (name == NULL)
		assert_null(found_name);
	else
		assert_string_equal(found_name != NULL ? found_name : "(none)", name);
	if (email == NULL)
		assert_null(found_email);
	else
		assert_string_equal(found_email != NULL ? found_email : "(none)", email);
}

static void reads_the_identity_as_git_does(void **state)
{
	static const struct {
		const char *text, *name;
	} rows[] = {
		{ "[user]\n\tname = Jane Doe\n", "Jane Doe" },
		{ "[user]\nname=Jane\n", "Jane" },
		{ "[USER]\nNAME = Jane\n", "Jane" },
		{ "[user] name = Jane\n", "Jane" },
		{ "[user] # mine\nname = Jane # me\n", "Jane" },
		{ "[user]\nname = Jane ; me\n", "Jane" },
		{ "[user]\nname = \"Jane # Doe; \" # me\n", "Jane # Doe; " },
		{ "[user]\nname = \"Jane\" Doe\n", "Jane Doe" },
		{ "[user]\nname = Jane \\\"J\\\" D\\\\oe\n", "Jane \"J\" D\\oe" },
		{ "[user]\r\nname = Jane\r\n", "Jane" },
		{ "[user]\nname = Jane \\\n Doe\n", "Jane  Doe" },
		{ "[user]\nname = A\n[core]\n[user]\nname = B\n", "B" },
		{ "[user]\nname = A\nname = B", "B" },
		{ "; [user]\n# [user]\nname = A\n", NULL },
		{ "[user \"work\"]\nname = A\n", NULL },
		{ "[users]\nname = A\n[use]\nname = B\n", NULL },
		{ "[user\nname = A\n", NULL },
		{ "[core]\nname = A\n", NULL },
		{ "[user]\nfullname = A\nnam = B\nname\n", NULL },
		{ "[include]\npath = other\n[includeIf \"gitdir:/\"]\npath = other\n", NULL },
		{ "", NULL },
	};

	place_file(*state, "other", "[user]\nname = Included\n");
	for (size_t i = 0; i < AW_ARRAY_LEN(rows); i++)
		expect_identity(*state, rows[i].text, rows[i].name, NULL);
}

static void the_dotfile_wins_over_the_xdg_file_key_by_key(void **state)
{
	place_file(*state, ".config/git/config", "[user]\nname = Xdg\nemail = xdg@example.org\n");
	expect_identity(*state, "", "Xdg", "xdg@example.org");
	expect_identity(*state, "[user]\nname = Dot\n", "Dot", "xdg@example.org");
	expect_identity(*state, "[user]\nemail = dot@example.org\n", "Xdg", "dot@example.org");
}

static void without_a_configuration_there_is_no_identity(void **state)
{
	autofree char *name = NULL, *email = NULL;

	aw_git_identity(place_at(*state, "none"), &name, &email);
	assert_null(name);
	assert_null(email);
}

static int attempt(void *state)
{
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };
	const char *path = state;
	autoclose int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = aw_git_find(fd, path, path, &g, &err);

	/* Where a pointer could not be read for want of memory it counts as none: nothing is shown. */
	return r == 0 && g.bind_count == 0 ? -ENOMEM : r;
}

static void survives_a_lack_of_memory(void **state)
{
	make_worktree(*state);
	assert_true(aw_torture(attempt, (void *)(uintptr_t)place_at(*state, "proj")) > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(a_plain_repository_is_held_where_it_is),
		IN_PLACE(a_project_shown_elsewhere_is_held_there),
		IN_PLACE(a_directory_without_a_repository_needs_nothing),
		IN_PLACE(a_worktree_gets_its_common_directory),
		IN_PLACE(the_pointers_of_a_worktree_are_held_too),
		IN_PLACE(relative_pointers_are_followed),
		IN_PLACE(a_submodule_gets_its_git_directory),
		IN_PLACE(a_pointer_to_a_repository_that_does_not_point_back_opens_nothing),
		IN_PLACE(a_pointer_to_another_repository_opens_nothing),
		IN_PLACE(a_pointer_to_a_link_is_judged_by_what_it_leads_to),
		IN_PLACE(a_planted_common_directory_opens_nothing),
		IN_PLACE(a_common_directory_planted_in_a_submodule_opens_nothing),
		IN_PLACE(a_common_directory_that_is_a_link_is_not_read),
		IN_PLACE(what_is_no_pointer_is_said_to_be_none),
		IN_PLACE(a_pointer_to_nowhere_is_noted),
		IN_PLACE(a_git_directory_inside_the_project_is_held_and_not_shown_again),
		IN_PLACE(a_link_at_dot_git_is_not_followed),
		IN_PLACE(a_repository_further_up_is_named_but_not_shown),
		IN_PLACE(notes_show_no_control_characters),
		IN_PLACE(anothers_git_directory_is_not_opened),
		IN_PLACE(nested_repositories_are_held),
		IN_PLACE(so_many_nested_repositories_are_held_and_the_rest_is_noted),
		IN_PLACE(reads_the_identity_as_git_does),
		IN_PLACE(the_dotfile_wins_over_the_xdg_file_key_by_key),
		IN_PLACE(without_a_configuration_there_is_no_identity),
		IN_PLACE(survives_a_lack_of_memory),
	};

	/* What git is told for all repositories is not this test's. */
	(void)setenv("HOME", "/nonexistent", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
