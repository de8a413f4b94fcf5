#include "cell/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/own.h"
#include "support/inside.h"
#include "support/place.h"

#define PROGRAM_MAX (256 * 1024 * 1024)
#define OPEN "--open"

static struct aw_error err;

/* The name of this program, without its directory. */
static const char *own_name(char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - 1);

	assert_true(n > 0);
	path[n] = '\0';
	return strrchr(path, '/') + 1;
}

static void a_program_beside_ours_is_found(void **state)
{
	char path[4096];
	autoclose int fd = aw_launch_open_program(own_name(path, sizeof(path)), &err);
	struct stat st, own;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(stat("/proc/self/exe", &own), 0);
	assert_int_equal(st.st_ino, own.st_ino);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

static void a_program_of_path_is_not(void **state)
{
	(void)state;
	assert_int_equal(setenv("PATH", "/usr/bin:/bin", 1), 0);
	assert_int_equal(aw_launch_open_program("env", &err), -ENOENT);
	assert_non_null(strstr(err.message, "reinstall"));
}

/* What a copy of this program at @program answers to: open @name beside you. Its exit code. */
static int ask_copy(const char *program, const char *name)
{
	char *const argv[] = { (char *)(uintptr_t)program, (char *)(uintptr_t)OPEN,
			       (char *)(uintptr_t)name, NULL };
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)execv(program, argv);
		_exit(99);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static const char *copy_program(struct place *p, const char *name)
{
	autofree char *bytes = NULL;
	ssize_t n = aw_read_file(AT_FDCWD, "/proc/self/exe", PROGRAM_MAX, &bytes, &err);
	const char *path;

	assert_true(n > 0);
	path = place_bytes(p, name, bytes, (size_t)n);
	assert_int_equal(chmod(path, 0755), 0);
	return path;
}

static void an_installed_program_finds_its_helpers_in_libexec(void **state)
{
	struct place *p = *state;
	const char *program = copy_program(p, "usr/bin/warden");

	assert_int_equal(ask_copy(program, "warden-cell"), ENOENT);
	place_program(p, "usr/libexec/warden/warden-cell", "");
	assert_int_equal(ask_copy(program, "warden-cell"), 0);
	/* Beside it comes first: a build directory uses its own. */
	place_program(p, "usr/bin/warden-gate", "");
	assert_int_equal(ask_copy(program, "warden-gate"), 0);
}

static void a_link_to_the_program_does_not_move_where_it_looks(void **state)
{
	struct place *p = *state;

	(void)copy_program(p, "opt/bin/warden");
	place_program(p, "elsewhere/warden-cell", "");
	assert_int_equal(
		ask_copy(place_link(p, "elsewhere/warden", "../opt/bin/warden"), "warden-cell"),
		ENOENT);
}

#define AGENT 61001

/* On a tmpfs of its own: the project root/ with a file, owned by root, as a tree of the agent's. */
static int map_owner(void *state)
{
	struct place *p = state;
	const char *dir = place_at(p, "root");
	struct stat st;
	int tree, fd;

	INSIDE(mount("tmpfs", p->path, "tmpfs", 0, "mode=0755") == 0);
	INSIDE(mkdir(dir, 0755) == 0 && close(creat(place_at(p, "root/file"), 0644)) == 0);
	tree = aw_launch_idmapped_tree(dir, 0, 0, AGENT, AGENT, &err);
	if (tree == -EINVAL) /* tmpfs learned it in Linux 6.3 */
		return INSIDE_LACKS;
	INSIDE(tree >= 0);
	INSIDE(fstatat(tree, "file", &st, 0) == 0 && st.st_uid == AGENT && st.st_gid == AGENT);
	INSIDE(setegid(AGENT) == 0 && seteuid(AGENT) == 0);
	fd = openat(tree, "new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	INSIDE(fd >= 0);
	INSIDE(seteuid(0) == 0);
	/* The agent wrote it in its own name; on disk it is root's, as everything else there. */
	INSIDE(stat(place_at(p, "root/new"), &st) == 0 && st.st_uid == 0 && st.st_gid == 0);
	return 0;
}

static void a_mapped_tree_shows_and_keeps_the_owner(void **state)
{
	struct place *p = *state;

	if (geteuid() == 0) {
		inside_check(0, map_owner, p);
		return;
	}
	/* An ordinary user may not map root, and is told so. */
	assert_int_equal(aw_launch_idmapped_tree(p->path, 0, 0, AGENT, AGENT, &err), -EPERM);
}

static void a_tree_of_what_is_not_there_is_an_error(void **state)
{
	struct place *p = *state;
	int r = aw_launch_idmapped_tree(place_at(p, "none"), geteuid(), getegid(), geteuid(),
					getegid(), &err);

	assert_int_equal(r, geteuid() == 0 ? -ENOENT : -EPERM);
}

static int open_beside(const char *name)
{
	int fd = aw_launch_open_program(name, &err);

	return fd < 0 ? -fd : close(fd);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_beside_ours_is_found),
		cmocka_unit_test(a_program_of_path_is_not),
		IN_PLACE(an_installed_program_finds_its_helpers_in_libexec),
		IN_PLACE(a_link_to_the_program_does_not_move_where_it_looks),
		IN_PLACE(a_mapped_tree_shows_and_keeps_the_owner),
		IN_PLACE(a_tree_of_what_is_not_there_is_an_error),
	};

	if (argc == 3 && strcmp(argv[1], OPEN) == 0)
		return open_beside(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
