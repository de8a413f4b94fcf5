#include "cell/program.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/str.h"
#include "support/place.h"
#include "support/torture.h"

static struct aw_error err;

/* A search with a home, a workspace and PATH=PLACE/bin of this place. */
static struct aw_program_search search_in(struct place *p)
{
	return (struct aw_program_search){
		.path = place_dir(p, "bin"),
		.home = place_dir(p, "home"),
		.workspace = place_dir(p, "home/proj"),
	};
}

static void expect_found(struct place *p, const struct aw_program_search *search, const char *name,
			 const char *where)
{
	autofree char *found = NULL;

	assert_int_equal(aw_program_find(search, name, &found, &err), 0);
	assert_string_equal(found, place_at(p, where));
}

static void expect_missing(const struct aw_program_search *search, const char *name)
{
	autofree char *found = NULL;

	assert_int_equal(aw_program_find(search, name, &found, &err), -ENOENT);
	assert_null(found);
}

static void finds_along_path_in_order(void **state)
{
	struct place *p = *state;
	struct aw_program_search search = search_in(p);
	char path[256];

	place_program(p, "second/agent", "");
	place_program(p, "third/agent", "");
	(void)snprintf(path, sizeof(path), "%s::relative:%s:%s", search.path, place_at(p, "second"),
		       place_at(p, "third"));
	search.path = path;
	expect_found(p, &search, "agent", "second/agent");
	expect_missing(&search, "other");
	assert_non_null(strstr(err.message, "'other' is not installed"));
}

static void only_an_executable_regular_file_is_a_program(void **state)
{
	struct place *p = *state;
	struct aw_program_search search = search_in(p);

	place_file(p, "bin/text", "");
	place_dir(p, "bin/directory");
	place_link(p, "bin/dangling", "nowhere");
	place_link(p, "bin/loop", "loop");
	expect_missing(&search, "text");
	expect_missing(&search, "directory");
	expect_missing(&search, "dangling");
	expect_missing(&search, "loop");
	expect_missing(&search, "");
	expect_missing(&search, ".");
}

static void links_are_followed_to_the_program(void **state)
{
	struct place *p = *state;
	struct aw_program_search search = search_in(p);

	place_program(p, "opt/agent-1.2/agent", "");
	place_link(p, "bin/current", "../opt/agent-1.2");
	place_link(p, "bin/agent", "current/agent");
	expect_found(p, &search, "agent", "opt/agent-1.2/agent");
}

static void the_homes_own_places_are_searched_last(void **state)
{
	static const char *const places[] = { ".local/bin",       "bin",        ".npm-global/bin",
					      ".bun/bin",         ".cargo/bin", ".volta/bin",
					      ".local/share/pnpm" };
	struct place *p = *state;
	struct aw_program_search search = search_in(p);
	char name[32], file[64];

	for (size_t i = 0; i < AW_ARRAY_LEN(places); i++) {
		(void)snprintf(name, sizeof(name), "agent%zu", i);
		(void)snprintf(file, sizeof(file), "home/%s/%s", places[i], name);
		place_program(p, file, "");
		expect_found(p, &search, name, file);
	}
	place_program(p, "bin/agent0", "");
	expect_found(p, &search, "agent0", "bin/agent0");
	search.path = NULL;
	expect_found(p, &search, "agent0", "home/.local/bin/agent0");
}

static void nothing_of_the_workspace_is_found(void **state)
{
	struct place *p = *state;
	struct aw_program_search search = search_in(p);

	place_program(p, "home/proj/bin/agent", "");
	place_program(p, "home/private/agent", "");
	place_link(p, "home/proj/bin/other", "../../private/agent");
	place_link(p, "bin/agent", "../home/proj/bin/agent");
	expect_missing(&search, "agent");
	/* A directory of it on PATH, by whatever name: a link in it could name any tree. */
	search.path = place_at(p, "home/proj/bin");
	expect_missing(&search, "agent");
	expect_missing(&search, "other");
	search.path = place_link(p, "elsewhere", "home/proj/bin");
	expect_missing(&search, "other");
}

static void a_name_with_a_slash_is_not_searched_for(void **state)
{
	struct place *p = *state;
	struct aw_program_search search = search_in(p);

	place_program(p, "bin/sub/agent", "");
	expect_missing(&search, "sub/agent");
	expect_found(p, &search, place_at(p, "bin/../bin/sub/agent"), "bin/sub/agent");
	place_file(p, "bin/text", "");
	expect_missing(&search, place_at(p, "bin/text"));
}

static bool has_none(const char *dir, const char *name)
{
	(void)dir;
	(void)name;
	return false;
}

static bool has_lib(const char *dir, const char *name)
{
	(void)dir;
	return strcmp(name, "lib") == 0;
}

static bool has_venv(const char *dir, const char *name)
{
	return strcmp(dir, "/home/me/venv") == 0 && strcmp(name, "pyvenv.cfg") == 0;
}

static void the_tree_of_a_program_is_its_package_or_version(void **state)
{
	static const struct {
		const char *path, *tree;
		bool (*has_file)(const char *dir, const char *name);
	} rows[] = {
		{ "/home/me/.npm-global/lib/node_modules/@a/b/node_modules/c/cli.js",
		  "/home/me/.npm-global/lib/node_modules", has_none },
		{ "/home/me/.nvm/versions/node/v20.1.0/bin/node",
		  "/home/me/.nvm/versions/node/v20.1.0", has_none },
		{ "/home/me/.pyenv/versions/3.12.1/bin/python3.12",
		  "/home/me/.pyenv/versions/3.12.1", has_none },
		{ "/home/me/.local/share/uv/tools/aider/bin/aider",
		  "/home/me/.local/share/uv/tools/aider", has_none },
		{ "/home/me/.local/share/mise/installs/node/22/bin/node",
		  "/home/me/.local/share/mise/installs/node", has_none },
		{ "/home/me/venv/bin/agent", "/home/me/venv", has_venv },
		{ "/home/me/other/bin/agent", "/home/me/other/bin/agent", has_venv },
		{ "/opt/agent/bin/agent", "/opt/agent", has_lib },
		{ "/opt/agent/bin/agent", "/opt/agent/bin/agent", has_none },
		{ "/home/me/.cargo/bin/agent", "/home/me/.cargo/bin/agent", has_none },
		{ "/agent", "/agent", has_lib },
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(rows); i++) {
		autofree char *tree = aw_program_tree(rows[i].path, "/home/me", rows[i].has_file);

		assert_string_equal(tree, rows[i].tree);
	}
}

static void broad_directories_are_never_a_tree(void **state)
{
	static const char *const paths[] = {
		"/bin/agent",
		"/opt/bin/agent",
		"/srv/bin/agent",
		"/home/bin/agent",
		"/tmp/bin/agent",
		"/var/bin/agent",
		"/root/bin/agent",
		"/mnt/bin/agent",
		"/media/bin/agent",
		"/home/me/bin/agent",
		"/home/me/.local/bin/agent",
		"/home/me/.config/bin/agent",
		"/home/you/bin/agent",
		"/home/me/.local/share/bin/agent",
		"/home/me/.cache/bin/agent",
		"/usr/local/bin/agent",
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(paths); i++) {
		autofree char *tree = aw_program_tree(paths[i], "/home/me", has_lib);

		assert_string_equal(tree, paths[i]);
	}
}

static void expect_grant(struct place *p, const struct aw_grants *g, size_t index, const char *tree)
{
	assert_true(index < g->bind_count);
	assert_string_equal(g->binds[index].source, place_at(p, tree));
	assert_string_equal(g->binds[index].at, g->binds[index].source);
	assert_false(g->binds[index].is_writable);
}

static void a_chain_of_link_tree_script_and_interpreter_is_granted(void **state)
{
	struct place *p = *state;
	struct aw_program_search search = search_in(p);
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };
	autofree char *path = NULL;

	place_program(p, "home/.npm/lib/node_modules/agent/cli.js", "#!/usr/bin/env node\nx\n");
	place_link(p, "bin/agent", "../home/.npm/lib/node_modules/agent/cli.js");
	place_program(p, "home/.nvm/versions/node/v22/bin/node", "\177ELF");
	place_link(p, "bin/node", "../home/.nvm/versions/node/v22/bin/node");
	assert_int_equal(aw_program_find(&search, "agent", &path, &err), 0);
	assert_int_equal(aw_program_grant(&search, path, &g, &err), 0);
	assert_int_equal(g.bind_count, 2);
	expect_grant(p, &g, 0, "home/.npm/lib/node_modules");
	expect_grant(p, &g, 1, "home/.nvm/versions/node/v22");
	/* Inside, `env node` must find it: its directory is on PATH. */
	assert_true(aw_grants_has(&g.path, place_at(p, "home/.nvm/versions/node/v22/bin")));
}

static int grant_script(struct place *p, const char *first_line, struct aw_grants *g)
{
	struct aw_program_search search = search_in(p);

	return aw_program_grant(&search, place_program(p, "opt/script", first_line), g, &err);
}

static void the_first_line_of_a_script_is_read_as_kernel_and_env_do(void **state)
{
	static const struct {
		const char *line;
		bool needs_tool;
	} lines[] = {
		{ "#!/usr/bin/env tool\n", true },
		{ "#! /usr/bin/env tool\n", true },
		{ "#!/usr/bin/env\ttool\n", true },
		{ "#!/usr/bin/env   tool --flag\n", true },
		{ "#!/usr/bin/env -S tool --flag\n", true },
		{ "#!/usr/bin/env -S -i A=b tool\n", true },
		{ "#!/usr/bin/env -S\tA=b\ttool x\n", true },
		{ "#!/usr/bin/env tool", true },
		{ "#!/bin/sh\ntool\n", false },
		{ "#!/usr/bin/env\n", false },
		{ "#!\n", false },
		{ "#!", false },
		{ " #!/usr/bin/env tool\n", false },
		{ "", false },
		{ "tool\n", false },
	};
	struct place *p = *state;

	place_program(p, "bin/tool", "");
	for (size_t i = 0; i < AW_ARRAY_LEN(lines); i++) {
		autodrop(aw_grants_fini) struct aw_grants g = { 0 };

		if (grant_script(p, lines[i].line, &g) != 0)
			fail_msg("'%s': %s", lines[i].line, err.message);
		if (g.bind_count != (lines[i].needs_tool ? 2 : 1))
			fail_msg("'%s' gives %zu grants", lines[i].line, g.bind_count);
	}
}

static void a_missing_interpreter_is_named(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	assert_int_equal(grant_script(p, "#!/usr/bin/env no-such-tool\n", &g), -ENOENT);
	assert_non_null(strstr(err.message, "no-such-tool"));
	assert_non_null(strstr(err.message, "opt/script"));
	assert_int_equal(grant_script(p, "#!/no/such/tool\n", &g), -ENOENT);
	place_dir(p, "opt/tree");
	/* A directory is no interpreter, and would be a grant. */
	assert_int_equal(grant_script(p, "#!/etc\n", &g), -ENOENT);
}

static void loops_end(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };
	char line[256];

	(void)snprintf(line, sizeof(line), "#!%s\n", place_at(p, "opt/script"));
	assert_int_equal(grant_script(p, line, &g), -ELOOP);
	assert_int_equal(g.bind_count, 1);
}

static void an_interpreter_in_the_workspace_grants_nothing(void **state)
{
	struct place *p = *state;
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };
	char line[256];

	place_program(p, "home/private/key", "");
	place_link(p, "home/proj/python", "../private/key");
	(void)snprintf(line, sizeof(line), "#!%s\n", place_at(p, "home/proj/python"));
	assert_int_equal(grant_script(p, line, &g), 0);
	assert_int_equal(g.bind_count, 1);
	expect_grant(p, &g, 0, "opt/script");
}

/* A 64-bit ELF file that has a header and one or two program headers; -1 in @type leaves one out. */
struct elf {
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr[2];
	char interpreter[128];
};

static struct elf elf_with(const char *interpreter)
{
	struct elf elf = {
		.ehdr = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64 },
			  .e_phoff = offsetof(struct elf, phdr),
			  .e_phnum = 2 },
		.phdr = { { .p_type = PT_LOAD },
			  { .p_type = PT_INTERP,
			    .p_offset = offsetof(struct elf, interpreter),
			    .p_filesz = strlen(interpreter) + 1 } },
	};

	(void)snprintf(elf.interpreter, sizeof(elf.interpreter), "%s", interpreter);
	return elf;
}

static size_t grants_of_elf(struct place *p, const struct elf *elf, size_t len)
{
	struct aw_program_search search = search_in(p);
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	place_program(p, "opt/binary", "");
	place_bytes(p, "opt/binary", elf, len);
	assert_int_equal(aw_program_grant(&search, place_at(p, "opt/binary"), &g, &err), 0);
	return g.bind_count;
}

static void the_interpreter_of_an_elf_file_is_granted(void **state)
{
	struct place *p = *state;
	struct elf elf = elf_with(place_program(p, "home/.nix/ld.so", ""));

	assert_int_equal(grants_of_elf(p, &elf, sizeof(elf)), 2);
	elf = elf_with("/usr/bin/env"); /* the system's: every cell has it */
	assert_int_equal(grants_of_elf(p, &elf, sizeof(elf)), 1);
}

static void a_malformed_elf_file_is_taken_for_one_without_interpreter(void **state)
{
	struct place *p = *state;
	struct elf good = elf_with(place_program(p, "home/.nix/ld.so", "")), elf;

	elf = good;
	elf.ehdr.e_ident[EI_CLASS] = ELFCLASS32;
	assert_int_equal(grants_of_elf(p, &elf, sizeof(elf)), 1);
	elf = good;
	elf.ehdr.e_phoff = UINT64_MAX - 100;
	assert_int_equal(grants_of_elf(p, &elf, sizeof(elf)), 1);
	elf = good;
	elf.ehdr.e_phnum = 0;
	assert_int_equal(grants_of_elf(p, &elf, sizeof(elf)), 1);
	elf = good;
	elf.phdr[1].p_offset = UINT64_MAX;
	assert_int_equal(grants_of_elf(p, &elf, sizeof(elf)), 1);
	elf = good;
	elf.phdr[1].p_filesz = UINT64_MAX;
	assert_int_equal(grants_of_elf(p, &elf, sizeof(elf)), 1);
	elf = good;
	elf.phdr[1].p_filesz = 0;
	assert_int_equal(grants_of_elf(p, &elf, sizeof(elf)), 1);
	elf = good;
	elf.ehdr.e_phnum = UINT16_MAX;
	elf.phdr[1].p_type = PT_LOAD;
	assert_int_equal(grants_of_elf(p, &elf, sizeof(elf)), 1);
	for (size_t len = 0; len < offsetof(struct elf, interpreter); len++)
		assert_int_equal(grants_of_elf(p, &good, len), 1);
}

static void a_program_of_the_system_needs_no_grant(void **state)
{
	struct aw_program_search search = search_in(*state);
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };

	assert_int_equal(aw_program_grant(&search, "/usr/bin/env", &g, &err), 0);
	assert_int_equal(g.bind_count + g.path.count, 0);
}

static void a_program_that_may_not_be_read_is_granted_alone(void **state)
{
	struct place *p = *state;
	struct aw_program_search search = search_in(p);
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };
	const char *path = place_program(p, "opt/secret", "");

	assert_int_equal(chmod(path, 0111), 0);
	assert_int_equal(aw_program_grant(&search, path, &g, &err), 0);
	assert_int_equal(g.bind_count, 1);
}

struct attempt {
	struct aw_program_search search;
	const char *path;
};

static int attempt(void *state)
{
	autodrop(aw_grants_fini) struct aw_grants g = { 0 };
	const struct attempt *a = state;

	return aw_program_grant(&a->search, a->path, &g, &err);
}

static void survives_a_lack_of_memory(void **state)
{
	struct place *p = *state;
	struct attempt a = { search_in(p), place_program(p, "opt/x", "#!/usr/bin/env tool\n") };

	place_program(p, "bin/tool", "");
	assert_true(aw_torture(attempt, &a) >= 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(finds_along_path_in_order),
		IN_PLACE(only_an_executable_regular_file_is_a_program),
		IN_PLACE(links_are_followed_to_the_program),
		IN_PLACE(the_homes_own_places_are_searched_last),
		IN_PLACE(nothing_of_the_workspace_is_found),
		IN_PLACE(a_name_with_a_slash_is_not_searched_for),
		cmocka_unit_test(the_tree_of_a_program_is_its_package_or_version),
		cmocka_unit_test(broad_directories_are_never_a_tree),
		IN_PLACE(a_chain_of_link_tree_script_and_interpreter_is_granted),
		IN_PLACE(the_first_line_of_a_script_is_read_as_kernel_and_env_do),
		IN_PLACE(a_missing_interpreter_is_named),
		IN_PLACE(loops_end),
		IN_PLACE(an_interpreter_in_the_workspace_grants_nothing),
		IN_PLACE(the_interpreter_of_an_elf_file_is_granted),
		IN_PLACE(a_malformed_elf_file_is_taken_for_one_without_interpreter),
		IN_PLACE(a_program_of_the_system_needs_no_grant),
		IN_PLACE(a_program_that_may_not_be_read_is_granted_alone),
		IN_PLACE(survives_a_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
