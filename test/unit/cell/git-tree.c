#include "cell/git-tree.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/loop.h"
#include "base/own.h"
#include "base/str.h"
#include "cell/grants.h"
#include "support/place.h"

static struct aw_error err;

/* "d PATH" for a directory, "p PATH" for a pointer, "b PATH" for a bare one. */
struct seen {
	struct aw_git_tree tree;
	struct aw_texts texts;
	int answer;
};

static int remember(struct aw_git_tree *tree, enum aw_git_kind kind, const char *path,
		    struct aw_error *why)
{
	static const char letters[] = "dpb";
	struct seen *seen = AW_CONTAINER(tree, struct seen, tree);
	char text[512];

	(void)aw_str_format(text, sizeof(text), "%c %s", letters[kind], path);
	assert_int_equal(aw_grants_add(&seen->texts, text, why), 0);
	return seen->answer;
}

static void seen_fini(struct seen *seen)
{
	aw_texts_fini(&seen->texts);
}

static int walk(struct place *p, const char *start, struct seen *seen)
{
	autoclose int fd = open(place_dir(p, "proj"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	int answer = seen->answer;

	*seen = (struct seen){ .tree = { .found = remember }, .answer = answer };
	return aw_git_tree_walk(&seen->tree, fd, start, &err);
}

static bool has(const struct seen *seen, const char *text)
{
	return aw_grants_has(&seen->texts, text);
}

static void make_bare(struct place *p, const char *name)
{
	static const char *const parts[] = { "HEAD", "config", "objects/x", "refs/x" };
	char path[256];

	for (size_t i = 0; i < AW_ARRAY_LEN(parts); i++) {
		(void)aw_str_format(path, sizeof(path), "%s/%s", name, parts[i]);
		place_file(p, path, "");
	}
}

static void finds_each_kind_of_repository(void **state)
{
	struct place *p = *state;
	autodrop(seen_fini) struct seen seen = { 0 };

	place_dir(p, "proj/.git");
	place_dir(p, "proj/a/b/.git");
	place_file(p, "proj/lib/sub/.git", "gitdir: x");
	place_link(p, "proj/link/.git", "../a/b/.git");
	make_bare(p, "proj/store.git");
	place_file(p, "proj/tree/HEAD", "");
	place_file(p, "proj/tree/commondir", "");
	assert_int_equal(walk(p, "", &seen), 0);
	assert_int_equal(seen.texts.count, 6);
	assert_true(has(&seen, "d .git"));
	assert_true(has(&seen, "d a/b/.git"));
	assert_true(has(&seen, "p lib/sub/.git"));
	assert_true(has(&seen, "p link/.git"));
	assert_true(has(&seen, "b store.git"));
	assert_true(has(&seen, "b tree"));
}

static void the_root_may_be_one_itself(void **state)
{
	autodrop(seen_fini) struct seen seen = { 0 };

	make_bare(*state, "proj");
	assert_int_equal(walk(*state, "", &seen), 0);
	assert_int_equal(seen.texts.count, 1);
	assert_true(has(&seen, "b "));
}

static void a_part_of_the_layout_makes_no_repository(void **state)
{
	struct place *p = *state;
	autodrop(seen_fini) struct seen seen = { 0 };

	place_file(p, "proj/a/HEAD", "");
	place_file(p, "proj/b/HEAD", "");
	place_dir(p, "proj/b/objects");
	place_dir(p, "proj/c/objects");
	place_dir(p, "proj/c/refs");
	place_file(p, "proj/d/commondir", "");
	place_fifo(p, "proj/e/.git");
	assert_int_equal(walk(p, "", &seen), 0);
	assert_int_equal(seen.texts.count, 0);
}

static void large_trees_and_the_inside_of_repositories_are_left_out(void **state)
{
	struct place *p = *state;
	autodrop(seen_fini) struct seen seen = { 0 };

	make_bare(p, "proj/store.git");
	place_dir(p, "proj/store.git/objects/x1/.git");
	place_dir(p, "proj/store.git/work/.git");
	place_dir(p, "proj/node_modules/m/.git");
	place_dir(p, "proj/a/target/t/.git");
	make_bare(p, "proj/.git");
	place_dir(p, "proj/.git/x/.git");
	assert_int_equal(walk(p, "", &seen), 0);
	assert_int_equal(seen.texts.count, 3);
	assert_true(has(&seen, "d .git"));
	assert_true(has(&seen, "b store.git"));
	assert_true(has(&seen, "d store.git/work/.git"));
}

static void begins_where_it_is_told(void **state)
{
	struct place *p = *state;
	autodrop(seen_fini) struct seen seen = { 0 }, none = { 0 };

	make_bare(p, "proj/.git/modules/lib/x");
	place_dir(p, "proj/a/.git");
	assert_int_equal(walk(p, ".git/modules", &seen), 0);
	assert_int_equal(seen.texts.count, 1);
	assert_true(has(&seen, "b .git/modules/lib/x"));
	assert_int_equal(walk(p, "not/there", &none), 0);
	assert_int_equal(none.texts.count, 0);
}

static void links_are_not_followed(void **state)
{
	struct place *p = *state;
	autodrop(seen_fini) struct seen seen = { 0 }, start = { 0 };

	place_dir(p, "other/.git");
	place_link(p, "proj/out", "../other");
	place_link(p, "proj/loop", ".");
	assert_int_equal(walk(p, "", &seen), 0);
	assert_int_equal(walk(p, "out", &start), 0);
	assert_int_equal(seen.texts.count + start.texts.count, 0);
}

static void directories_nest_up_to_a_bound(void **state)
{
	struct place *p = *state;
	autodrop(seen_fini) struct seen seen = { 0 }, deeper = { 0 };
	char path[256] = "proj";

	for (unsigned i = 0; i < AW_GIT_TREE_DEPTH_MAX; i++)
		(void)aw_str_format(path + strlen(path), sizeof(path) - strlen(path), "/d");
	place_dir(p, path);
	assert_int_equal(walk(p, "", &seen), 0);
	(void)aw_str_format(path + strlen(path), sizeof(path) - strlen(path), "/.git");
	place_dir(p, path);
	assert_int_equal(walk(p, "", &seen), 0);
	assert_int_equal(seen.texts.count, 1);
	memcpy(path + strlen(path) - 4, "next", 4);
	place_dir(p, path);
	assert_int_equal(walk(p, "", &deeper), 1);
}

static void there_are_so_many_names_and_no_more(void **state)
{
	struct place *p = *state;
	autodrop(seen_fini) struct seen seen = { 0 }, more = { 0 };
	autoclose int dir = open(place_dir(p, "proj/many"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[16];

	for (unsigned i = 0; i < AW_GIT_TREE_ENTRIES_MAX - 1; i++) {
		(void)aw_str_format(name, sizeof(name), "%u", i);
		assert_int_equal(mknodat(dir, name, S_IFREG | 0600, 0), 0);
	}
	(void)walk(p, "many", &seen);
	place_dir(p, "proj/many/.git");
	place_dir(p, "proj/more/.git");
	assert_int_equal(walk(p, "", &more), 1);
}

static void one_that_is_left_out_does_not_hide_the_others(void **state)
{
	struct place *p = *state;
	autodrop(seen_fini) struct seen seen = { .answer = 1 };

	place_dir(p, "proj/a/.git");
	place_dir(p, "proj/b/.git");
	assert_int_equal(walk(p, "", &seen), 1);
	assert_int_equal(seen.texts.count, 2);
}

static void an_error_ends_it(void **state)
{
	struct place *p = *state;
	autodrop(seen_fini) struct seen seen = { .answer = -ENOMEM };

	place_dir(p, "proj/a/.git");
	place_dir(p, "proj/b/.git");
	assert_int_equal(walk(p, "", &seen), -ENOMEM);
	assert_int_equal(seen.texts.count, 1);
}

static void a_directory_that_was_closed_by_its_owner_is_told(void **state)
{
	struct place *p = *state;
	autodrop(seen_fini) struct seen seen = { 0 };

	place_dir(p, "proj/a/.git");
	assert_int_equal(chmod(place_at(p, "proj/a"), 0100), 0);
	/* Root lists it all the same. */
	assert_int_equal(walk(p, "", &seen), geteuid() == 0 ? 0 : 1);
	assert_int_equal(seen.texts.count, geteuid() == 0 ? 1 : 0);
	assert_int_equal(chmod(place_at(p, "proj/a"), 0700), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(finds_each_kind_of_repository),
		IN_PLACE(the_root_may_be_one_itself),
		IN_PLACE(a_part_of_the_layout_makes_no_repository),
		IN_PLACE(large_trees_and_the_inside_of_repositories_are_left_out),
		IN_PLACE(begins_where_it_is_told),
		IN_PLACE(links_are_not_followed),
		IN_PLACE(directories_nest_up_to_a_bound),
		IN_PLACE(there_are_so_many_names_and_no_more),
		IN_PLACE(one_that_is_left_out_does_not_hide_the_others),
		IN_PLACE(an_error_ends_it),
		IN_PLACE(a_directory_that_was_closed_by_its_owner_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
