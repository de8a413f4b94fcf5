#include "cell/rearm.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/own.h"
#include "support/inside.h"
#include "support/place.h"

#define TABLE_MAX (1024 * 1024)

static struct aw_error err;

static void finds_a_mount_by_its_whole_path(void **state)
{
	static const struct aw_str table = AW_STR(
		"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
		"30 22 8:1 /p/.git /p/.git rw - ext4 /dev/sda1 rw\n"
		"31 30 8:1 /p/a\\040b /p/a\\040b ro shared:3 - ext4 /dev/sda1 rw\n"
		"32 30 8:1 /p/new\\012line\\134 /p/new\\012line\\134 ro - ext4 /dev/sda1 rw\n"
		"33 30 8:1 /gone /p/gone//deleted ro - ext4 /dev/sda1 rw\n"
		"34 30 8:1 /last /p/last ro");

	(void)state;
	assert_true(aw_mountinfo_has(table, "/"));
	assert_true(aw_mountinfo_has(table, "/p/.git"));
	assert_true(aw_mountinfo_has(table, "/p/a b"));
	assert_true(aw_mountinfo_has(table, "/p/new\nline\\"));
	assert_true(aw_mountinfo_has(table, "/p/last"));
	assert_false(aw_mountinfo_has(table, "/p"));
	assert_false(aw_mountinfo_has(table, "/p/.gi"));
	assert_false(aw_mountinfo_has(table, "/p/.git/"));
	assert_false(aw_mountinfo_has(table, "/p/a"));
	assert_false(aw_mountinfo_has(table, "/p/gone"));
	assert_false(aw_mountinfo_has(table, ""));
}

static void a_table_that_makes_no_sense_has_nothing(void **state)
{
	static const struct aw_str tables[] = { { NULL, 0 },        AW_STR(""),
						AW_STR("\n\n\n"),   AW_STR("/p"),
						AW_STR("1 2 3 /p"), AW_STR("1 2 3 4  /p\n") };

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(tables); i++)
		assert_false(aw_mountinfo_has(tables[i], "/p"));
}

static void a_path_with_a_line_feed_cannot_be_forged_by_another(void **state)
{
	/* Somebody names a directory "x\n30 22 8:1 / /p": the kernel escapes it. */
	static const struct aw_str table =
		AW_STR("30 22 8:1 / /x\\01230\\04022\\0408:1\\040/\\040/p rw\n");

	(void)state;
	assert_false(aw_mountinfo_has(table, "/p"));
	assert_true(aw_mountinfo_has(table, "/x\n30 22 8:1 / /p"));
}

/* A process in namespaces of its own, with dir/file on a tmpfs that is mounted at the place's "cell". */
struct cell {
	pid_t pid;
	int user_ns, mount_ns;
	const char *dir, *file, *link;
};

static int set_up(struct cell *cell, const char *at)
{
	int fd;

	if (!inside_become_root() || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", at, "tmpfs", 0, NULL) < 0)
		return -1;
	fd = mkdir(cell->dir, 0755) < 0 ? -1 : open(cell->file, O_CREAT | O_CLOEXEC, 0644);
	return fd < 0 || close(fd) < 0 ? -1 : symlink("dir", cell->link);
}

static int open_namespace(pid_t pid, const char *name)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void start(struct cell *cell, struct place *p)
{
	const char *at = place_dir(p, "cell");
	char said = 'n';
	int ends[2];

	cell->dir = place_at(p, "cell/dir");
	cell->file = place_at(p, "cell/dir/file");
	cell->link = place_at(p, "cell/link");
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	cell->pid = fork();
	assert_true(cell->pid >= 0);
	if (cell->pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)!write(ends[1], set_up(cell, at) == 0 ? "y" : "n", 1);
		for (;;)
			(void)pause();
	}
	(void)close(ends[1]);
	assert_int_equal(read(ends[0], &said, 1), 1);
	(void)close(ends[0]);
	if (said != 'y') {
		(void)kill(cell->pid, SIGKILL);
		(void)waitpid(cell->pid, NULL, 0);
		print_message("skipped: no namespaces of its own for the test\n");
		skip();
	}
	cell->user_ns = open_namespace(cell->pid, "user");
	cell->mount_ns = open_namespace(cell->pid, "mnt");
}

static void end(struct cell *cell)
{
	(void)kill(cell->pid, SIGKILL);
	(void)waitpid(cell->pid, NULL, 0);
	(void)close(cell->user_ns);
	(void)close(cell->mount_ns);
}

static bool has_mount(const struct cell *cell, const char *path)
{
	autofree char *table = NULL;
	char name[64];
	ssize_t n;

	(void)snprintf(name, sizeof(name), "/proc/%d/mountinfo", (int)cell->pid);
	n = aw_read_file(AT_FDCWD, name, TABLE_MAX, &table, &err);
	assert_true(n > 0);
	return aw_mountinfo_has((struct aw_str){ table, (size_t)n }, path);
}

/* In the cell: 0, or the errno with which writing the file or moving the directory fails. */
static int write_file(void *state)
{
	const struct cell *cell = state;
	int fd;

	if (setns(cell->user_ns, CLONE_NEWUSER) < 0 || setns(cell->mount_ns, CLONE_NEWNS) < 0)
		return -1;
	fd = open(cell->file, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? errno : 0;
}

static int move_directory(void *state)
{
	const struct cell *cell = state;
	char other[256];

	if (setns(cell->user_ns, CLONE_NEWUSER) < 0 || setns(cell->mount_ns, CLONE_NEWNS) < 0)
		return -1;
	(void)snprintf(other, sizeof(other), "%s-moved", cell->dir);
	if (rename(cell->dir, other) < 0)
		return errno;
	return rename(other, cell->dir) < 0 ? -1 : 0;
}

static void puts_a_pin_and_a_protection_back(void **state)
{
	struct cell cell;

	start(&cell, *state);
	{
		struct aw_rearm_point points[] = { { cell.dir, false }, { cell.file, true } };

		assert_int_equal(inside_child(write_file, &cell), 0);
		assert_int_equal(inside_child(move_directory, &cell), 0);
		assert_int_equal(aw_rearm(cell.user_ns, cell.mount_ns, points, 2, &err), 0);
	}
	assert_true(has_mount(&cell, cell.dir));
	assert_true(has_mount(&cell, cell.file));
	assert_int_equal(inside_child(write_file, &cell), EROFS);
	assert_int_equal(inside_child(move_directory, &cell), EBUSY);
	end(&cell);
}

static void a_point_that_is_not_there_is_skipped(void **state)
{
	struct cell cell;

	start(&cell, *state);
	{
		struct aw_rearm_point points[] = { { place_at(*state, "cell/none"), true },
						   { cell.file, true } };

		assert_int_equal(aw_rearm(cell.user_ns, cell.mount_ns, points, 2, &err), 0);
	}
	assert_true(has_mount(&cell, cell.file));
	end(&cell);
}

static void a_link_in_a_point_is_not_followed(void **state)
{
	struct cell cell;

	start(&cell, *state);
	{
		struct aw_rearm_point points[] = { { place_at(*state, "cell/link/file"), true } };

		assert_int_equal(aw_rearm(cell.user_ns, cell.mount_ns, points, 1, &err), -ELOOP);
		assert_non_null(strstr(err.message, "cell/link/file"));
	}
	assert_false(has_mount(&cell, cell.file));
	end(&cell);
}

static void what_is_no_namespace_is_refused(void **state)
{
	struct aw_rearm_point point = { "/", true };
	autoclose int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(aw_rearm(fd, fd, &point, 1, &err), -EINVAL);
	assert_non_null(strstr(err.message, "namespaces"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_a_mount_by_its_whole_path),
		cmocka_unit_test(a_table_that_makes_no_sense_has_nothing),
		cmocka_unit_test(a_path_with_a_line_feed_cannot_be_forged_by_another),
		IN_PLACE(puts_a_pin_and_a_protection_back),
		IN_PLACE(a_point_that_is_not_there_is_skipped),
		IN_PLACE(a_link_in_a_point_is_not_followed),
		cmocka_unit_test(what_is_no_namespace_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
