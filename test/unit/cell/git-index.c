#include "cell/git-index.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/loop.h"
#include "base/own.h"
#include "support/place.h"
#include "support/torture.h"

#define FILE_MODE 0100644u
#define LINK_MODE 0160000u

static struct aw_error err;

struct index {
	unsigned char bytes[16384];
	size_t len;
};

static void put_u32(unsigned char *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (unsigned char)(value >> (24 - 8 * i));
}

static void begin(struct index *x, uint32_t version)
{
	*x = (struct index){ .bytes = "DIRC", .len = 12 };
	put_u32(x->bytes + 4, version);
}

/* The head of an entry whose path has @len bytes. */
static void put_head(struct index *x, size_t id_len, uint32_t mode, size_t len, bool is_extended)
{
	unsigned char *entry = x->bytes + x->len;
	uint32_t flags = (uint32_t)(len < 0xfff ? len : 0xfff) | (is_extended ? 0x4000u : 0);

	put_u32(entry + 24, mode);
	memset(entry + 40, 0xab, id_len);
	entry[40 + id_len] = (unsigned char)(flags >> 8);
	entry[41 + id_len] = (unsigned char)flags;
	x->len += 42 + id_len + (is_extended ? 2 : 0);
	x->bytes[11]++;
}

static void put(struct index *x, size_t id_len, uint32_t mode, const char *path, bool is_extended)
{
	size_t start = x->len;

	put_head(x, id_len, mode, strlen(path), is_extended);
	memcpy(x->bytes + x->len, path, strlen(path));
	x->len = start + ((x->len + strlen(path) - start + 8) & ~(size_t)7);
}

/* Version 4: drop so many bytes (below 128) of the path before, and append. */
static void put_compressed(struct index *x, uint32_t mode, size_t len, unsigned char dropped,
			   const char *appended)
{
	put_head(x, 20, mode, len, false);
	x->bytes[x->len++] = dropped;
	memcpy(x->bytes + x->len, appended, strlen(appended) + 1);
	x->len += strlen(appended) + 1;
}

/* What a parser reads beyond the end, the sanitizers see. */
static int parse(const struct index *x, size_t len, struct aw_texts *ret)
{
	autofree char *copy = malloc(len + 1);

	assert_non_null(copy);
	memcpy(copy, x->bytes, len);
	*ret = (struct aw_texts){ 0 };
	return aw_git_index_parse((struct aw_str){ copy, len }, ret, &err);
}

static void expect(const struct index *x, const char *first, const char *second)
{
	autodrop(aw_texts_fini) struct aw_texts links;

	if (parse(x, x->len, &links) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(links.count, (first != NULL) + (second != NULL));
	if (first != NULL)
		assert_string_equal(links.text[0], first);
	if (second != NULL)
		assert_string_equal(links.text[1], second);
}

static void finds_what_is_a_repository_of_its_own(void **state)
{
	struct index x;

	(void)state;
	begin(&x, 2);
	expect(&x, NULL, NULL);
	put(&x, 20, FILE_MODE, "a", false);
	put(&x, 20, LINK_MODE, "lib/sub", false);
	put(&x, 20, FILE_MODE, "lib/x", false);
	put(&x, 20, LINK_MODE, "node_modules/m", false);
	expect(&x, "lib/sub", "node_modules/m");
}

static void paths_of_every_length_are_padded_as_git_does(void **state)
{
	char path[32];
	struct index x;

	(void)state;
	for (size_t len = 1; len < 20; len++) {
		memset(path, 'p', sizeof(path));
		path[len] = '\0';
		begin(&x, 2);
		put(&x, 20, LINK_MODE, path, false);
		put(&x, 20, LINK_MODE, "z", false);
		expect(&x, path, "z");
	}
}

static void a_path_may_be_longer_than_its_flags_can_say(void **state)
{
	static char path[4090];
	struct index x;

	(void)state;
	memset(path, 'p', sizeof(path) - 1);
	begin(&x, 2);
	put(&x, 20, LINK_MODE, path, false);
	put(&x, 20, LINK_MODE, "z", false);
	expect(&x, path, "z");
}

static void versions_differ_in_flags_and_paths(void **state)
{
	struct index x;

	(void)state;
	begin(&x, 3);
	put(&x, 20, LINK_MODE, "a", true);
	put(&x, 20, LINK_MODE, "b", false);
	expect(&x, "a", "b");
	begin(&x, 4);
	put_compressed(&x, FILE_MODE, 5, 0, "lib/a");
	put_compressed(&x, LINK_MODE, 7, 1, "sub");
	put_compressed(&x, LINK_MODE, 1, 7, "z");
	expect(&x, "lib/sub", "z");
}

static void ids_may_be_longer(void **state)
{
	struct index x;

	(void)state;
	begin(&x, 2);
	put(&x, 32, FILE_MODE, "file", false);
	put(&x, 32, LINK_MODE, "sub", false);
	expect(&x, "sub", NULL);
}

static void what_was_cut_is_refused(void **state)
{
	struct index x;

	(void)state;
	for (uint32_t version = 2; version <= 4; version++) {
		begin(&x, version);
		if (version == 4)
			put_compressed(&x, LINK_MODE, 3, 0, "sub");
		else
			put(&x, 20, LINK_MODE, "sub", false);
		for (size_t len = 0; len < x.len; len++) {
			autodrop(aw_texts_fini) struct aw_texts links;

			assert_int_equal(parse(&x, len, &links), -EBADMSG);
		}
	}
}

static void refuse(const struct index *x)
{
	autodrop(aw_texts_fini) struct aw_texts links;

	assert_int_equal(parse(x, x->len, &links), -EBADMSG);
}

static void what_is_no_index_is_refused(void **state)
{
	struct index x;

	(void)state;
	begin(&x, 1);
	refuse(&x);
	begin(&x, 5);
	refuse(&x);
	begin(&x, 2);
	x.bytes[0] = 'd';
	refuse(&x);
	begin(&x, 2); /* more entries than there are */
	x.bytes[8] = 0xff;
	refuse(&x);
	begin(&x, 2); /* extended flags came with version 3 */
	put(&x, 20, LINK_MODE, "a", true);
	refuse(&x);
	begin(&x, 4); /* more dropped than there was */
	put_compressed(&x, LINK_MODE, 1, 1, "z");
	refuse(&x);
	begin(&x, 2); /* a length that is not the path's */
	put(&x, 20, LINK_MODE, "a", false);
	x.bytes[12 + 61] = 2;
	refuse(&x);
}

struct seen {
	struct aw_git_tree tree;
	struct aw_texts paths;
};

static int remember(struct aw_git_tree *tree, enum aw_git_kind kind, const char *path,
		    struct aw_error *why)
{
	assert_int_equal(kind, strstr(path, "pointer") != NULL ? AW_GIT_POINTER : AW_GIT_DIRECTORY);
	return aw_grants_add(&AW_CONTAINER(tree, struct seen, tree)->paths, path, why);
}

static int walk(struct place *p, const char *at, struct aw_texts *ret)
{
	const char *proj = place_dir(p, "proj");
	autoclose int fd = open(proj, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct aw_protect_place project = { .fd = fd, .path = proj, .at = "/p" };
	struct seen seen = { .tree = { .found = remember } };
	int r = aw_git_index_walk(&seen.tree, &project, at, &err);

	*ret = seen.paths;
	return r;
}

static void make_index(struct place *p, const char *name, const char *link, const char *other)
{
	struct index x;

	begin(&x, 2);
	put(&x, 20, LINK_MODE, link, false);
	put(&x, 20, LINK_MODE, other, false);
	place_bytes(p, name, x.bytes, x.len);
}

static void tells_of_those_that_are_there(void **state)
{
	struct place *p = *state;
	autodrop(aw_texts_fini) struct aw_texts paths;

	make_index(p, "proj/.git/index", "node_modules/m", "not/there");
	make_index(p, "proj/.git/sharedindex.0123", "pointer", "../out");
	make_index(p, "proj/.git/index.lock", "lock", "lock2");
	place_dir(p, "proj/node_modules/m/.git");
	place_file(p, "proj/pointer/.git", "gitdir: x");
	place_dir(p, "proj/lock/.git");
	place_dir(p, "out/.git");
	assert_int_equal(walk(p, "/p/.git", &paths), 0);
	assert_int_equal(paths.count, 2);
	assert_true(aw_grants_has(&paths, "node_modules/m/.git"));
	assert_true(aw_grants_has(&paths, "pointer/.git"));
}

static void paths_are_below_the_work_tree(void **state)
{
	struct place *p = *state;
	autodrop(aw_texts_fini) struct aw_texts nested, module;

	make_index(p, "proj/a/.git/index", "x", "y");
	place_dir(p, "proj/a/x/.git");
	assert_int_equal(walk(p, "/p/a/.git", &nested), 0);
	assert_int_equal(nested.count, 1);
	assert_string_equal(nested.text[0], "a/x/.git");
	make_index(p, "proj/.git/modules/s/index", "x", "y");
	place_file(p, "proj/.git/modules/s/config", "[core]\nworktree = ../../../sub\n");
	place_dir(p, "proj/sub/y/.git");
	assert_int_equal(walk(p, "/p/.git/modules/s", &module), 0);
	assert_int_equal(module.count, 1);
	assert_string_equal(module.text[0], "sub/y/.git");
}

static void a_project_that_is_a_worktree_has_its_index_elsewhere(void **state)
{
	struct place *p = *state;
	autodrop(aw_texts_fini) struct aw_texts paths;

	make_index(p, "main/.git/worktrees/w/index", "x", "y");
	place_dir(p, "proj/x/.git");
	assert_int_equal(walk(p, place_at(p, "main/.git"), &paths), 0);
	assert_int_equal(paths.count, 1);
	assert_string_equal(paths.text[0], "x/.git");
}

static void an_index_that_cannot_be_read_is_told(void **state)
{
	struct place *p = *state;
	autodrop(aw_texts_fini) struct aw_texts none, bad, link;

	place_dir(p, "proj/.git");
	assert_int_equal(walk(p, "/p/.git", &none), 0);
	place_file(p, "proj/.git/index", "DIRC");
	assert_int_equal(walk(p, "/p/.git", &bad), 1);
	make_index(p, "proj/other", "x", "y");
	place_dir(p, "proj/x/.git");
	assert_int_equal(unlink(place_at(p, "proj/.git/index")), 0);
	place_link(p, "proj/.git/index", "../other");
	assert_int_equal(walk(p, "/p/.git", &link), 1);
	assert_int_equal(link.count, 0);
}

static int attempt(void *state)
{
	autodrop(aw_texts_fini) struct aw_texts links = { 0 };
	const struct index *x = state;

	return aw_git_index_parse((struct aw_str){ (const char *)x->bytes, x->len }, &links, &err);
}

static void survives_a_lack_of_memory(void **state)
{
	struct index x;

	(void)state;
	begin(&x, 2);
	put(&x, 20, LINK_MODE, "a", false);
	put(&x, 20, LINK_MODE, "b", false);
	assert_int_equal(aw_torture(attempt, &x), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_is_a_repository_of_its_own),
		cmocka_unit_test(paths_of_every_length_are_padded_as_git_does),
		cmocka_unit_test(a_path_may_be_longer_than_its_flags_can_say),
		cmocka_unit_test(versions_differ_in_flags_and_paths),
		cmocka_unit_test(ids_may_be_longer),
		cmocka_unit_test(what_was_cut_is_refused),
		cmocka_unit_test(what_is_no_index_is_refused),
		IN_PLACE(tells_of_those_that_are_there),
		IN_PLACE(paths_are_below_the_work_tree),
		IN_PLACE(a_project_that_is_a_worktree_has_its_index_elsewhere),
		IN_PLACE(an_index_that_cannot_be_read_is_told),
		cmocka_unit_test(survives_a_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
