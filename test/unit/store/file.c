#include "store/file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "store/scratch.h"
#include "support/torture.h"

static struct aw_error err;

static void assert_content(const struct scratch *s, const char *name, const char *expected)
{
	autofree char *text = NULL;

	assert_int_equal(aw_file_read(s->fd, name, 100, &text, &err), strlen(expected));
	assert_string_equal(text, expected);
}

static void what_was_written_is_read(void **state)
{
	struct scratch *s = *state;
	struct stat st;

	assert_int_equal(aw_file_replace(s->fd, "f", AW_STR("one"), &err), 0);
	assert_content(s, "f", "one");
	assert_int_equal(aw_file_replace(s->fd, "f", AW_STR("two!"), &err), 0);
	assert_content(s, "f", "two!");
	assert_int_equal(fstatat(s->fd, "f", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(faccessat(s->fd, ".f.new", F_OK, 0), -1);
}

static void what_a_killed_writer_left_is_replaced(void **state)
{
	struct scratch *s = *state;

	scratch_store(s, ".f.new", "half", 4);
	assert_int_equal(aw_file_replace(s->fd, "f", AW_STR("whole"), &err), 0);
	assert_content(s, "f", "whole");
}

static void planted_links_are_not_followed(void **state)
{
	struct scratch *s = *state;
	char *text;

	scratch_store(s, "victim", "v", 1);
	assert_int_equal(symlinkat("victim", s->fd, ".f.new"), 0);
	assert_int_equal(symlinkat("victim", s->fd, "f"), 0);
	assert_int_equal(aw_file_read(s->fd, "f", 100, &text, &err), -ELOOP);
	assert_int_equal(aw_file_replace(s->fd, "f", AW_STR("ours"), &err), 0);
	assert_content(s, "f", "ours");
	assert_content(s, "victim", "v");
}

static void only_small_regular_files_are_read(void **state)
{
	struct scratch *s = *state;
	char *text;

	assert_int_equal(aw_file_read(s->fd, "none", 100, &text, &err), -ENOENT);
	assert_int_equal(mkfifoat(s->fd, "fifo", 0600), 0);
	assert_int_equal(aw_file_read(s->fd, "fifo", 100, &text, &err), -EBADMSG);
	assert_int_equal(mkdirat(s->fd, "dir", 0700), 0);
	assert_int_equal(aw_file_read(s->fd, "dir", 100, &text, &err), -EBADMSG);
	scratch_store(s, "big", "12345", 5);
	assert_int_equal(aw_file_read(s->fd, "big", 4, &text, &err), -EFBIG);
}

static void a_name_that_is_too_long_is_refused(void **state)
{
	struct scratch *s = *state;
	char name[AW_FILE_NAME_MAX + 10];

	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(aw_file_replace(s->fd, name, AW_STR("x"), &err), -ENAMETOOLONG);
}

static void without_space_the_old_content_stays(void **state)
{
	struct scratch *s = *state;
	struct rlimit limit, small;
	int r;

	(void)sigaction(SIGXFSZ, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	assert_int_equal(aw_file_replace(s->fd, "f", AW_STR("old"), &err), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	small = limit;
	small.rlim_cur = 2;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	r = aw_file_replace(s->fd, "f", AW_STR("newer"), &err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(r, -EFBIG);
	assert_content(s, "f", "old");
	assert_int_equal(faccessat(s->fd, ".f.new", F_OK, 0), -1);
}

static void replace_until_killed(const struct scratch *s, struct aw_str a, struct aw_str b)
{
	for (;;)
		if (aw_file_replace(s->fd, "f", b, &err) < 0 ||
		    aw_file_replace(s->fd, "f", a, &err) < 0)
			_exit(1);
}

/* Whenever the writer is killed, a reader sees one whole content or the other. */
static void a_reader_never_sees_half_a_file(void **state)
{
	static char a[5000], b[9000];
	struct scratch *s = *state;

	memset(a, 'a', sizeof(a));
	memset(b, 'b', sizeof(b));
	scratch_store(s, "f", a, sizeof(a));
	for (unsigned round = 0; round < 40; round++) {
		autofree char *text = NULL;
		ssize_t n;
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0)
			replace_until_killed(s, (struct aw_str){ a, sizeof(a) },
					     (struct aw_str){ b, sizeof(b) });
		(void)usleep(500 + round * 97);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		n = aw_file_read(s->fd, "f", 1 << 16, &text, &err);
		assert_true(n == sizeof(a) || n == sizeof(b));
		assert_memory_equal(text, n == sizeof(a) ? a : b, (size_t)n);
	}
}

static int attempt(void *state)
{
	const struct scratch *s = state;
	autofree char *text = NULL;
	struct aw_error ignored;
	ssize_t n = aw_file_read(s->fd, "f", 100, &text, &ignored);

	return n < 0 ? (int)n : 0;
}

static void out_of_memory_is_told(void **state)
{
	struct scratch *s = *state;

	scratch_store(s, "f", "x", 1);
	assert_true(aw_torture(attempt, s) >= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SCRATCH(what_was_written_is_read),
		IN_SCRATCH(what_a_killed_writer_left_is_replaced),
		IN_SCRATCH(planted_links_are_not_followed),
		IN_SCRATCH(only_small_regular_files_are_read),
		IN_SCRATCH(a_name_that_is_too_long_is_refused),
		IN_SCRATCH(without_space_the_old_content_stays),
		IN_SCRATCH(a_reader_never_sees_half_a_file),
		IN_SCRATCH(out_of_memory_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
