#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "support/torture.h"

/*
 * Each test has a folder of its own:   in/file ("text\n")  in/up -> ..  in/abs -> /  in/self -> file
 *                                      in/fifo  in/proc -> /proc/self/root  secret
 */
struct place {
	char path[64];
	int top, in; /* O_PATH descriptors */
	struct aw_error err;
};

static void put(int dir_fd, const char *name, const char *text)
{
	autoclose int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(aw_write_all(fd, text, strlen(text)), 0);
}

static int set_up(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	(void)snprintf(p->path, sizeof(p->path), "/tmp/warden-unit-fd-XXXXXX");
	assert_non_null(mkdtemp(p->path));
	p->top = open(p->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(p->top, "in", 0700), 0);
	p->in = openat(p->top, "in", O_PATH | O_DIRECTORY | O_CLOEXEC);
	put(p->top, "secret", "secret\n");
	put(p->in, "file", "text\n");
	assert_int_equal(symlinkat("..", p->in, "up"), 0);
	assert_int_equal(symlinkat("/", p->in, "abs"), 0);
	assert_int_equal(symlinkat("file", p->in, "self"), 0);
	assert_int_equal(symlinkat("/proc/self/root", p->in, "proc"), 0);
	assert_int_equal(mkfifoat(p->in, "fifo", 0600), 0);
	*state = p;
	return 0;
}

static void remove_tree(const char *path)
{
	pid_t child = fork();

	if (child == 0) {
		(void)execlp("rm", "rm", "-rf", "--", path, (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static int tear_down(void **state)
{
	struct place *p = *state;

	(void)aw_fd_close(p->top);
	(void)aw_fd_close(p->in);
	remove_tree(p->path);
	free(p);
	return 0;
}

static void assert_not_open(int number)
{
	assert_int_equal(fcntl(number, F_GETFD), -1);
	assert_int_equal(errno, EBADF);
}

static void opens_what_is_beneath(void **state)
{
	static const char *const names[] = { "file", "./file", "self", "../in/file" };
	struct place *p = *state;

	for (size_t i = 0; i < 3; i++) {
		autoclose int fd = aw_open_beneath(p->in, names[i], O_RDONLY, &p->err);

		assert_true(fd >= 0);
		assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	}
	/* Out and in again is out. */
	assert_int_equal(aw_open_beneath(p->in, names[3], O_RDONLY, &p->err), -EXDEV);
}

static void no_path_leads_out(void **state)
{
	static const char *const names[] = {
		"..",      "../secret", "up/secret", "abs/etc/passwd", "/",       "/etc/passwd",
		"./up/..", "up",        "abs/..",    "self/../../x",   "up/in/up"
	};
	struct place *p = *state;

	for (size_t i = 0; i < AW_ARRAY_LEN(names); i++) {
		int r = aw_open_beneath(p->in, names[i], O_PATH, &p->err);

		/* A path through a file ends there before it could leave. */
		assert_int_equal(r, strncmp(names[i], "self/", 5) == 0 ? -ENOTDIR : -EXDEV);
		assert_int_equal(p->err.code, -r);
		assert_non_null(strstr(p->err.message, names[i]));
	}
	/* The control: plain openat does leave. */
	assert_int_equal(faccessat(p->in, "up/secret", R_OK, 0), 0);
}

static void no_magic_link_is_followed(void **state)
{
	struct place *p = *state;
	autoclose int proc = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	autoclose int plain = openat(proc, "root", O_PATH | O_CLOEXEC);

	assert_true(plain >= 0);
	assert_int_equal(aw_open_beneath(proc, "root", O_PATH, &p->err), -ELOOP);
	assert_int_equal(aw_open_beneath(proc, "cwd/x", O_PATH, &p->err), -ELOOP);
	assert_int_equal(aw_open_beneath(p->in, "proc/etc", O_PATH, &p->err), -EXDEV);
}

static void a_fifo_does_not_hold_us(void **state)
{
	struct place *p = *state;
	autoclose int fd = aw_open_beneath(p->in, "fifo", O_RDONLY, &p->err);
	char *text = NULL;

	assert_true(fd >= 0);
	assert_int_equal(aw_read_text(fd, 100, &text, &p->err), -EBADMSG);
	assert_null(text);
	fd = aw_fd_close(fd);
	assert_int_equal(aw_open_beneath(p->in, "fifo", O_WRONLY, &p->err), -ENXIO);
}

/* A child that holds a write lease on in/file until it is killed. */
static pid_t lease(struct place *p)
{
	int ready[2];
	char byte = 0;
	pid_t child;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		int fd = openat(p->in, "file", O_RDWR | O_CLOEXEC);

		byte = fcntl(fd, F_SETLEASE, F_WRLCK) == 0 ? 'y' : 'n';
		(void)sigaction(SIGIO, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
		if (write(ready[1], &byte, 1) != 1)
			_exit(1);
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)aw_fd_close(ready[0]);
	(void)aw_fd_close(ready[1]);
	if (byte == 'y')
		return child;
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	return -1;
}

static void a_lease_does_not_hold_us(void **state)
{
	struct place *p = *state;
	pid_t holder = lease(p);
	int r;

	if (holder < 0) {
		print_message("the file system has no leases\n");
		skip();
	}
	(void)alarm(20);
	r = aw_open_beneath(p->in, "file", O_RDONLY, &p->err);
	(void)alarm(0);
	(void)kill(holder, SIGKILL);
	(void)waitpid(holder, NULL, 0);
	assert_int_equal(r, -EAGAIN);
}

static void creates_without_set_id_bits(void **state)
{
	struct place *p = *state;
	autoclose int fd = -EBADF;
	mode_t mask = umask(022);
	struct stat st;

	fd = aw_create_beneath(p->in, "new", O_WRONLY | O_EXCL, 06777, &p->err);
	(void)umask(mask);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(aw_create_beneath(p->in, "new", O_WRONLY | O_EXCL, 0600, &p->err),
			 -EEXIST);
	assert_int_equal(aw_create_beneath(p->in, "../new", O_WRONLY, 0600, &p->err), -EXDEV);
	assert_int_equal(aw_create_beneath(p->in, "up/new", O_WRONLY, 0600, &p->err), -EXDEV);
	assert_int_equal(faccessat(p->top, "new", F_OK, 0), -1);
}

static ssize_t read_named(struct place *p, const char *name, size_t max, char **ret)
{
	autoclose int fd = aw_open_beneath(p->in, name, O_RDONLY, &p->err);

	assert_true(fd >= 0);
	return aw_read_text(fd, max, ret, &p->err);
}

static void reads_a_file_up_to_its_maximum(void **state)
{
	struct place *p = *state;
	autofree char *text = NULL;
	char *untouched = NULL;

	assert_int_equal(read_named(p, "file", 5, &text), 5);
	assert_string_equal(text, "text\n");
	assert_int_equal(read_named(p, "file", 4, &untouched), -EFBIG);
	assert_int_equal(read_named(p, "file", 0, &untouched), -EFBIG);
	assert_null(untouched);
	put(p->in, "empty", "");
	free(text);
	assert_int_equal(read_named(p, "empty", 0, &text), 0);
	assert_string_equal(text, "");
}

/* Sizes around the steps in which the buffer grows. */
static void reads_every_size_whole(void **state)
{
	static const size_t sizes[] = { 4095, 4096, 4097, 8192, 100000 };
	autofree char *data = malloc(100000);
	struct place *p = *state;

	assert_non_null(data);
	for (size_t i = 0; i < 100000; i++)
		data[i] = (char)(i * 31 % 251);
	for (size_t i = 0; i < AW_ARRAY_LEN(sizes); i++) {
		autoclose int fd = aw_memfd_sealed("t", data, sizes[i], sizes[i], &p->err);
		autofree char *text = NULL;
		char *untouched = NULL;

		assert_int_equal(aw_read_text(fd, sizes[i], &text, &p->err), sizes[i]);
		assert_memory_equal(text, data, sizes[i]);
		assert_int_equal(text[sizes[i]], '\0');
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		assert_int_equal(aw_read_text(fd, sizes[i] - 1, &untouched, &p->err), -EFBIG);
	}
}

static void only_regular_files_are_text(void **state)
{
	struct place *p = *state;
	autoclose int null = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	autoclose int dir = aw_open_beneath(p->in, ".", O_RDONLY | O_DIRECTORY, &p->err);
	char *text = NULL;

	assert_int_equal(aw_read_text(null, 10, &text, &p->err), -EBADMSG);
	assert_int_equal(aw_read_text(dir, 10, &text, &p->err), -EBADMSG);
}

static void kernel_files_are_read_by_name(void **state)
{
	struct place *p = *state;
	autofree char *text = NULL;

	assert_true(aw_read_file(AT_FDCWD, "/proc/self/stat", 4096, &text, &p->err) > 0);
	assert_int_equal(strtol(text, NULL, 10), getpid());
	assert_int_equal(aw_read_file(p->in, "none", 10, &text, &p->err), -ENOENT);
	assert_string_equal(p->err.message, "open 'none': No such file or directory");
	assert_int_equal(aw_read_file(AT_FDCWD, "/proc/self/status", 10, &text, &p->err), -EFBIG);
	assert_non_null(strstr(p->err.message, "read '/proc/self/status'"));
}

static void writes_over_short_writes(void **state)
{
	enum {
		SIZE = 300000
	};
	autofree char *data = calloc(1, SIZE);
	int ends[2];
	pid_t child;
	int status;

	(void)state;
	assert_non_null(data);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		(void)close(ends[0]);
		_exit(aw_write_all(ends[1], data, SIZE) == 0 ? 0 : 1);
	}
	(void)close(ends[1]);
	for (size_t left = SIZE; left > 0;) {
		ssize_t n = read(ends[0], data, 7777);

		assert_true(n > 0);
		left -= (size_t)n;
	}
	(void)close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void a_write_that_fails_says_why(void **state)
{
	autoclose int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(aw_write_all(full, "x", 1), -ENOSPC);
	assert_int_equal(aw_write_all(full, "", 0), 0);
	assert_int_equal(aw_write_all(-EBADF, "x", 1), -EBADF);
}

static void a_knob_is_written_in_one_piece(void **state)
{
	struct place *p = *state;
	autofree char *text = NULL;

	assert_int_equal(aw_write_file(p->in, "file", "TEXT", &p->err), 0);
	assert_int_equal(read_named(p, "file", 10, &text), 5);
	assert_string_equal(text, "TEXT\n");
	assert_int_equal(aw_write_file(p->in, "none", "x", &p->err), -ENOENT);
	assert_int_equal(aw_write_file(AT_FDCWD, "/dev/full", "x", &p->err), -ENOSPC);
	assert_string_equal(p->err.message, "write 'x' to '/dev/full': No space left on device");
}

static void a_short_write_to_a_knob_is_an_error(void **state)
{
	struct place *p = *state;
	struct rlimit before, two = { 2, 2 };
	int r;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	two.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &two), 0);
	errno = 0;
	r = aw_write_file(p->in, "file", "12345", &p->err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(r, -EIO);
}

static void makes_every_folder_that_is_missing(void **state)
{
	struct place *p = *state;
	autoclose int fd = aw_mkdir_beneath(p->in, "a//b/./c/", 0700, &p->err);
	autoclose int again = aw_mkdir_beneath(p->in, "a/b/c", 0755, &p->err);
	struct stat st, same;

	assert_true(fd >= 0 && again >= 0);
	assert_int_equal(fstatat(p->in, "a/b/c", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(fstat(again, &same), 0);
	assert_int_equal(st.st_ino, same.st_ino);
}

static void makes_no_folder_elsewhere(void **state)
{
	static const struct {
		const char *path;
		int result;
	} rows[] = {
		{ "../x", -EXDEV },      { "/x", -EXDEV },     { "up/x", -ENOTDIR },
		{ "abs/tmp", -ENOTDIR }, { "file", -ENOTDIR }, { "a/../../x", -EXDEV },
	};
	struct place *p = *state;

	for (size_t i = 0; i < AW_ARRAY_LEN(rows); i++) {
		assert_int_equal(aw_mkdir_beneath(p->in, rows[i].path, 0700, &p->err),
				 rows[i].result);
		assert_int_equal(p->err.code, -rows[i].result);
	}
	assert_int_equal(faccessat(p->top, "x", F_OK, 0), -1);
	assert_int_equal(faccessat(p->in, "x", F_OK, 0), -1);
}

static void a_folder_name_that_is_too_long_is_refused(void **state)
{
	struct place *p = *state;
	char name[400];

	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(aw_mkdir_beneath(p->in, name, 0700, &p->err), -ENAMETOOLONG);
}

/* In a child, so that the test's own descriptors live on: exit code 0 if just @left are open. */
static void assert_closes_to(int first, const int *keep, size_t count, unsigned left)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		unsigned open_now = 0;

		for (int i = 0; i < 32; i++)
			(void)dup2(0, i);
		if (aw_close_others(first, keep, count) < 0)
			_exit(1);
		for (int i = 0; i < 32; i++)
			open_now |= fcntl(i, F_GETFD) >= 0 ? 1U << i : 0;
		_exit(open_now == left ? 0 : 2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void closes_all_but_what_is_kept(void **state)
{
	(void)state;
	assert_closes_to(3, NULL, 0, 0x7);
	assert_closes_to(0, NULL, 0, 0);
	assert_closes_to(3, (int[]){ 5 }, 1, 0x27);
	assert_closes_to(3, (int[]){ 31, 3 }, 2, 0x8000000f);
	assert_closes_to(3, (int[]){ 9, 7, 8, 7, -EBADF }, 5, 0x387);
	assert_closes_to(5, (int[]){ 0, 4, 6 }, 3, 0x5f);
	assert_closes_to(3, (int[]){ 1000, INT_MAX }, 2, 0x7);
}

static void refuses_to_keep_more_than_it_can(void **state)
{
	int keep[AW_KEEP_MAX + 1] = { 0 };

	(void)state;
	assert_int_equal(aw_close_others(1 << 20, keep, AW_KEEP_MAX), 0);
	assert_int_equal(aw_close_others(1 << 20, keep, AW_KEEP_MAX + 1), -E2BIG);
}

static void a_sealed_memfd_cannot_change(void **state)
{
	struct place *p = *state;
	autoclose int fd = aw_memfd_sealed("name", "bytes", 5, 5, &p->err);
	autofree char *text = NULL;

	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(aw_read_text(fd, 5, &text, &p->err), 5);
	assert_string_equal(text, "bytes");
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(ftruncate(fd, 10), -1);
	assert_ptr_equal(mmap(NULL, 5, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
}

static void a_sealed_memfd_ends_in_zeros_up_to_its_size(void **state)
{
	static const char zeros[5000 - 2];
	struct place *p = *state;
	autoclose int fd = aw_memfd_sealed("name", "ab", 2, 5000, &p->err);
	autofree char *text = NULL;

	assert_true(fd >= 0);
	assert_int_equal(aw_read_text(fd, 5000, &text, &p->err), 5000);
	assert_memory_equal(text, "ab", 2);
	assert_memory_equal(text + 2, zeros, sizeof(zeros));
}

static int read_a_large_file(void *state)
{
	struct place *p = state;
	autoclose int fd = aw_open_beneath(p->in, "large", O_RDONLY, &p->err);
	autofree char *text = NULL;
	ssize_t n = aw_read_text(fd, 1 << 20, &text, &p->err);

	if (n < 0)
		assert_null(text);
	return n < 0 ? (int)n : 0;
}

static void out_of_memory_while_reading_is_told(void **state)
{
	struct place *p = *state;
	autoclose int fd = aw_create_beneath(p->in, "large", O_WRONLY, 0600, &p->err);

	assert_int_equal(ftruncate(fd, 20000), 0);
	/* 4096, 8192, 16384, 32768 */
	assert_int_equal(aw_torture(read_a_large_file, p), 4);
}

static void an_owner_gives_away_what_it_takes_out(void **state)
{
	int slot = dup(0);
	char *text = strdup("x"), *taken;
	int fd = AW_TAKE_FD(slot);

	(void)state;
	assert_int_equal(slot, -EBADF);
	assert_true(fd >= 0);
	errno = EINTR;
	assert_int_equal(aw_fd_close(fd), -EBADF);
	assert_int_equal(aw_fd_close(-EBADF), -EBADF);
	assert_int_equal(errno, EINTR);
	assert_not_open(fd);
	taken = AW_TAKE_PTR(text);
	assert_null(text);
	assert_string_equal(taken, "x");
	aw_own_free(&taken);
	assert_null(taken);
}

static void the_end_of_a_scope_closes(void **state)
{
	int number;

	(void)state;
	{
		autoclose int fd = dup(0);

		number = fd;
		assert_true(fcntl(number, F_GETFD) >= 0);
	}
	assert_not_open(number);
}

#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_A_PLACE(opens_what_is_beneath),
		IN_A_PLACE(no_path_leads_out),
		IN_A_PLACE(no_magic_link_is_followed),
		IN_A_PLACE(a_fifo_does_not_hold_us),
		IN_A_PLACE(a_lease_does_not_hold_us),
		IN_A_PLACE(creates_without_set_id_bits),
		IN_A_PLACE(reads_a_file_up_to_its_maximum),
		IN_A_PLACE(reads_every_size_whole),
		IN_A_PLACE(only_regular_files_are_text),
		IN_A_PLACE(kernel_files_are_read_by_name),
		cmocka_unit_test(writes_over_short_writes),
		cmocka_unit_test(a_write_that_fails_says_why),
		IN_A_PLACE(a_knob_is_written_in_one_piece),
		IN_A_PLACE(a_short_write_to_a_knob_is_an_error),
		IN_A_PLACE(makes_every_folder_that_is_missing),
		IN_A_PLACE(makes_no_folder_elsewhere),
		IN_A_PLACE(a_folder_name_that_is_too_long_is_refused),
		cmocka_unit_test(closes_all_but_what_is_kept),
		cmocka_unit_test(refuses_to_keep_more_than_it_can),
		IN_A_PLACE(a_sealed_memfd_cannot_change),
		IN_A_PLACE(a_sealed_memfd_ends_in_zeros_up_to_its_size),
		IN_A_PLACE(out_of_memory_while_reading_is_told),
		cmocka_unit_test(an_owner_gives_away_what_it_takes_out),
		cmocka_unit_test(the_end_of_a_scope_closes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
