#include "cell/toolchain.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/str.h"
#include "support/place.h"
#include "support/torture.h"

static struct aw_error err;

static const char *home_of(struct place *p)
{
	return place_at(p, "");
}

static const struct aw_view_grant *bind_of(struct place *p, const struct aw_grants *g,
					   const char *name)
{
	const char *path = place_at(p, name);

	for (size_t i = 0; i < g->bind_count; i++)
		if (strcmp(g->binds[i].at, path) == 0)
			return &g->binds[i];
	return NULL;
}

static void an_empty_home_grants_nothing(void **state)
{
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	place_dir(*state, ".cargo"); /* without bin: credentials, a registry cache */
	place_file(*state, ".cargo/credentials.toml", "");
	assert_int_equal(aw_toolchain_grant(home_of(*state), &g, &err), 0);
	assert_int_equal(g.bind_count + g.path.count + g.masks.count, 0);
}

static void trees_are_granted_read_only_at_their_own_place(void **state)
{
	static const char *const trees[] = { ".rustup",    ".nvm",
					     ".pyenv",     "go/bin",
					     ".bun/bin",   ".local/share/mise",
					     ".cargo/bin", ".sdkman/candidates" };
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	for (size_t i = 0; i < AW_ARRAY_LEN(trees); i++)
		place_dir(p, trees[i]);
	assert_int_equal(aw_toolchain_grant(home_of(p), &g, &err), 0);
	assert_int_equal(g.bind_count, AW_ARRAY_LEN(trees));
	for (size_t i = 0; i < AW_ARRAY_LEN(trees); i++) {
		const struct aw_view_grant *bind = bind_of(p, &g, trees[i]);

		assert_non_null(bind);
		assert_string_equal(bind->source, bind->at);
		assert_false(bind->is_writable);
	}
	/* Of these homes, only the named parts. */
	assert_null(bind_of(p, &g, ".cargo"));
	assert_null(bind_of(p, &g, ".local/share"));
	assert_null(bind_of(p, &g, "go"));
}

static void program_directories_that_are_there_come_on_path(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	place_dir(p, ".cargo/bin");
	place_dir(p, ".pyenv"); /* without shims */
	place_dir(p, ".local/share/mise/shims");
	place_dir(p, ".nvm"); /* which is put on PATH by the shell, if at all */
	assert_int_equal(aw_toolchain_grant(home_of(p), &g, &err), 0);
	assert_int_equal(g.path.count, 2);
	assert_true(aw_grants_has(&g.path, place_at(p, ".cargo/bin")));
	assert_true(aw_grants_has(&g.path, place_at(p, ".local/share/mise/shims")));
}

static void private_things_in_a_tree_are_masked(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	place_file(p, ".nvm/.npmrc", "//registry/:_authToken=x");
	place_dir(p, ".local/share/uv/credentials");
	place_dir(p, ".local/share/uv/python");
	assert_int_equal(aw_toolchain_grant(home_of(p), &g, &err), 0);
	assert_int_equal(g.masks.count, 2);
	assert_true(aw_grants_has(&g.masks, place_at(p, ".nvm/.npmrc")));
	assert_true(aw_grants_has(&g.masks, place_at(p, ".local/share/uv/credentials")));
}

struct variables {
	char text[1024];
	int answer;
};

static int note(void *data, const char *name, const char *value)
{
	struct variables *v = data;
	size_t n = strlen(v->text);

	(void)snprintf(v->text + n, sizeof(v->text) - n, "%s=%s\n", name, value);
	return v->answer;
}

static void variables_name_the_trees_that_are_there(void **state)
{
	struct place *p = *state;
	struct variables v = { .answer = 0 };
	char expected[512];

	place_dir(p, ".rustup");
	place_dir(p, ".cargo/bin"); /* CARGO_HOME stays in the private home: it is written to */
	place_dir(p, ".local/share/uv/python");
	assert_int_equal(aw_toolchain_variables(home_of(p), note, &v), 0);
	(void)snprintf(expected, sizeof(expected), "RUSTUP_HOME=%s\nUV_PYTHON_INSTALL_DIR=%s\n",
		       place_at(p, ".rustup"), place_at(p, ".local/share/uv/python"));
	assert_string_equal(v.text, expected);
}

static void a_variable_without_its_own_place_is_not_set(void **state)
{
	struct variables v = { .answer = 0 };

	place_dir(*state, ".local/share/uv"); /* no python in it */
	assert_int_equal(aw_toolchain_variables(home_of(*state), note, &v), 0);
	assert_string_equal(v.text, "");
}

static void a_negative_answer_ends_it(void **state)
{
	struct variables v = { .answer = -ENOMEM };

	place_dir(*state, ".rustup");
	place_dir(*state, ".nvm");
	assert_int_equal(aw_toolchain_variables(home_of(*state), note, &v), -ENOMEM);
	assert_null(strstr(v.text, "NVM_DIR"));
}

static int attempt(void *state)
{
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	return aw_toolchain_grant(state, &g, &err);
}

static void survives_a_lack_of_memory(void **state)
{
	place_file(*state, ".nvm/.npmrc", "");
	place_dir(*state, ".cargo/bin");
	assert_true(aw_torture(attempt, (void *)(uintptr_t)home_of(*state)) >= 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(an_empty_home_grants_nothing),
		IN_PLACE(trees_are_granted_read_only_at_their_own_place),
		IN_PLACE(program_directories_that_are_there_come_on_path),
		IN_PLACE(private_things_in_a_tree_are_masked),
		IN_PLACE(variables_name_the_trees_that_are_there),
		IN_PLACE(a_variable_without_its_own_place_is_not_set),
		IN_PLACE(a_negative_answer_ends_it),
		IN_PLACE(survives_a_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
