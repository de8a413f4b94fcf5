#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/scratch.h"
#include "store/session-internal.h"

static struct aw_error err;

static bool is_there(const struct scratch *s, const char *path)
{
	return faccessat(s->fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void removes_everything_inside(void **state)
{
	struct scratch *s = *state;

	assert_int_equal(mkdirat(s->fd, "t", 0700), 0);
	assert_int_equal(mkdirat(s->fd, "t/a", 0700), 0);
	assert_int_equal(mkdirat(s->fd, "t/a/b", 0700), 0);
	assert_int_equal(mkfifoat(s->fd, "t/a/fifo", 0600), 0);
	for (int i = 0; i < 300; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "t/a/b/file-%d", i);
		scratch_store(s, name, "", 0);
	}
	assert_int_equal(aw_session_remove_tree(s->fd, "t", &err), 0);
	assert_false(is_there(s, "t"));
}

static void what_is_gone_already_is_no_failure(void **state)
{
	struct scratch *s = *state;

	assert_int_equal(aw_session_remove_tree(s->fd, "t", &err), 0);
}

static void links_are_removed_and_never_followed(void **state)
{
	struct scratch *s = *state;

	assert_int_equal(mkdirat(s->fd, "t", 0700), 0);
	assert_int_equal(mkdirat(s->fd, "other", 0700), 0);
	scratch_store(s, "other/kept", "", 0);
	assert_int_equal(symlinkat("../other", s->fd, "t/link"), 0);
	assert_int_equal(aw_session_remove_tree(s->fd, "t", &err), 0);
	assert_true(is_there(s, "other/kept"));
	assert_int_equal(symlinkat("other", s->fd, "t"), 0);
	assert_true(aw_session_remove_tree(s->fd, "t", &err) < 0);
	assert_true(is_there(s, "other/kept"));
}

static void depth_has_a_limit(void **state)
{
	struct scratch *s = *state;
	char path[64] = "t";

	assert_int_equal(mkdirat(s->fd, path, 0700), 0);
	for (int i = 0; i < 8; i++) {
		(void)snprintf(path + 1 + 2 * i, sizeof(path) - 1 - 2 * (size_t)i, "/d");
		assert_int_equal(mkdirat(s->fd, path, 0700), 0);
	}
	assert_int_equal(aw_session_remove_tree(s->fd, "t", &err), -EMLINK);
	assert_int_equal(unlinkat(s->fd, path, AT_REMOVEDIR), 0);
	assert_int_equal(aw_session_remove_tree(s->fd, "t", &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SCRATCH(removes_everything_inside),
		IN_SCRATCH(what_is_gone_already_is_no_failure),
		IN_SCRATCH(links_are_removed_and_never_followed),
		IN_SCRATCH(depth_has_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
