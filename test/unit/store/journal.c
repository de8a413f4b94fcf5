#include "store/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/own.h"
#include "store/scratch.h"
#include "store/verify.h"

#define FIRST "journal-000001.ndjson"
#define CANNOT_MOUNT 77

static struct {
	unsigned calls;
	int error;
} sync_spy;

int __wrap_fdatasync(int fd);

/* In place of the C library's (the linker's --wrap): counts, and fails when told to. */
int __wrap_fdatasync(int fd)
{
	(void)fd;
	sync_spy.calls++;
	errno = sync_spy.error;
	return sync_spy.error != 0 ? -1 : 0;
}

static void verify(int dir_fd, struct aw_verify *ret)
{
	struct aw_error err;
	char text[128];

	if (aw_verify(dir_fd, SESSION, ret, &err) < 0)
		fail_msg("%s", err.message);
	if (ret->finding_count == 0)
		return;
	aw_finding_describe(&ret->finding[0], text, sizeof(text));
	fail_msg("%s", text);
}

static void each_line_is_tied_to_the_one_before(void **state)
{
	struct scratch *s = *state;
	struct aw_verify result;
	struct stat st;

	scratch_journal(s, 5, 0, true);
	verify(s->fd, &result);
	assert_int_equal(result.records, 5);
	assert_int_equal(result.last_seq, 5);
	assert_true(result.is_anchored);
	assert_false(result.is_torn);
	assert_int_equal(fstatat(s->fd, FIRST, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
}

static void a_line_is_there_when_append_returns(void **state)
{
	struct scratch *s = *state;
	struct aw_journal journal;
	off_t before = 0;

	scratch_open(s, 0, &journal);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(scratch_append(&journal, AW_EVENT_NOTE, i, i * 100), 0);
		assert_true(scratch_size(s, FIRST) > before);
		before = scratch_size(s, FIRST);
		assert_int_equal(before, journal.size);
	}
	aw_journal_drop(&journal);
}

static void a_second_writer_is_refused(void **state)
{
	const struct aw_journal_options options = { .session = SESSION };
	struct scratch *s = *state;
	struct aw_journal journal;
	struct aw_error err;

	scratch_journal(s, 2, 0, false);
	assert_int_equal(aw_journal_open(&journal, s->fd, &options, &err), -EEXIST);
}

static void a_planted_link_is_not_written_through(void **state)
{
	const struct aw_journal_options options = { .session = SESSION };
	struct scratch *s = *state;
	struct aw_journal journal;
	struct aw_error err;

	scratch_store(s, "victim", "v", 1);
	assert_int_equal(symlinkat("victim", s->fd, FIRST), 0);
	assert_int_equal(aw_journal_open(&journal, s->fd, &options, &err), -EEXIST);
	assert_int_equal(scratch_size(s, "victim"), 1);
}

static void the_chain_goes_on_in_the_next_segment(void **state)
{
	struct scratch *s = *state;
	struct aw_journal journal;
	struct aw_verify result;
	struct aw_error err;

	scratch_open(s, AW_FLAT_MAX, &journal);
	for (unsigned i = 0; i < 50; i++)
		assert_int_equal(scratch_append(&journal, AW_EVENT_NOTE, i, 1000), 0);
	assert_int_equal(aw_journal_close(&journal, &err), 0);
	verify(s->fd, &result);
	assert_int_equal(result.records, 50);
	assert_true(result.segments >= 4);
	for (unsigned i = 1; i <= result.segments; i++) {
		char name[32];

		(void)aw_str_format(name, sizeof(name), "journal-%06u.ndjson", i);
		assert_true(scratch_size(s, name) <= AW_FLAT_MAX);
	}
}

static void a_segment_that_is_in_the_way_ends_the_journal(void **state)
{
	struct scratch *s = *state;
	struct aw_journal journal;
	struct aw_verify result;
	unsigned i = 0;
	int r = 0;

	scratch_store(s, "journal-000002.ndjson", "", 0);
	scratch_open(s, AW_FLAT_MAX, &journal);
	while (r == 0 && i < 50)
		r = scratch_append(&journal, AW_EVENT_NOTE, ++i, 1000);
	assert_int_equal(r, -EEXIST);
	assert_int_equal(scratch_append(&journal, AW_EVENT_SESSION_END, i, 0), 0);
	aw_journal_drop(&journal);
	verify(s->fd, &result);
	assert_int_equal(result.records, i); /* i - 1 notes and the end */
}

static void limit_file_size(rlim_t size)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = size;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A short write at each byte of a line: the part is taken back, and the next line is whole. */
static void a_torn_line_is_taken_back(void **state)
{
	struct scratch *s = *state;
	struct aw_journal journal;
	struct aw_verify result;
	off_t whole, line;

	(void)sigaction(SIGXFSZ, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	scratch_open(s, 0, &journal);
	assert_int_equal(scratch_append(&journal, AW_EVENT_NOTE, 1, 0), 0);
	whole = scratch_size(s, FIRST);
	assert_int_equal(scratch_append(&journal, AW_EVENT_NOTE, 1, 0), 0);
	line = scratch_size(s, FIRST) - whole;
	whole += line;
	for (off_t part = 0; part < line; part++) {
		limit_file_size((rlim_t)(whole + part));
		assert_int_equal(scratch_append(&journal, AW_EVENT_NOTE, 1, 0), -EFBIG);
		assert_int_equal(scratch_size(s, FIRST), whole);
	}
	limit_file_size(RLIM_INFINITY);
	assert_int_equal(scratch_append(&journal, AW_EVENT_NOTE, 1, 0), 0);
	aw_journal_drop(&journal);
	verify(s->fd, &result);
	assert_int_equal(result.last_seq, 3);
	assert_false(result.is_torn);
}

static void a_journal_that_cannot_be_mended_is_dead(void **state)
{
	struct scratch *s = *state;
	struct aw_journal journal;
	struct aw_error err;
	autoclose int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	assert_true(full >= 0);
	scratch_open(s, 0, &journal);
	assert_int_equal(scratch_append(&journal, AW_EVENT_SESSION_START, 1, 0), 0);
	assert_true(dup3(full, journal.fd, O_CLOEXEC) >= 0);
	assert_int_equal(scratch_append(&journal, AW_EVENT_NOTE, 1, 0), -ENOSPC);
	assert_int_equal(scratch_append(&journal, AW_EVENT_SESSION_END, 1, 0), -EIO);
	assert_int_equal(aw_journal_sync(&journal, &err), -EIO);
	assert_int_equal(aw_journal_close(&journal, &err), 0);
	assert_int_equal(faccessat(s->fd, "journal.head", F_OK, 0), -1);
}

static bool write_knob(const char *path, const char *text)
{
	struct aw_error err;

	return aw_write_file(AT_FDCWD, path, text, &err) == 0;
}

/* Become root of a user namespace of one's own, if one is not root. */
static bool become_root(void)
{
	char uid_map[32], gid_map[32];

	if (geteuid() == 0)
		return true;
	(void)snprintf(uid_map, sizeof(uid_map), "0 %u 1", (unsigned)geteuid());
	(void)snprintf(gid_map, sizeof(gid_map), "0 %u 1", (unsigned)getegid());
	return unshare(CLONE_NEWUSER) == 0 && write_knob("/proc/self/uid_map", uid_map) &&
	       write_knob("/proc/self/setgroups", "deny") &&
	       write_knob("/proc/self/gid_map", gid_map);
}

/* Give the calling process a file system of its own of @size at @path; false where it may not. */
static bool mount_small(const char *path, const char *size)
{
	return become_root() && unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("none", path, "tmpfs", 0, size) == 0;
}

/* Returns 0, or the number of the step that went wrong. */
static int end_without_space(struct aw_journal *journal, int dir_fd, unsigned number)
{
	struct aw_verify result;
	struct aw_error err;

	if (scratch_append(journal, AW_EVENT_NOTE, number, 500) != -ENOSPC)
		return 11;
	if (scratch_append(journal, AW_EVENT_BREACH, number, 4000) < 0 ||
	    scratch_append(journal, AW_EVENT_SESSION_END, number, 500) < 0)
		return 12;
	if (aw_journal_close(journal, &err) < 0)
		return 13;
	if (aw_verify(dir_fd, SESSION, &result, &err) < 0 || result.finding_count > 0)
		return 14;
	return result.is_torn || !result.is_anchored || result.last_seq != number + 1 ? 15 : 0;
}

static int fill_the_disk(const char *path)
{
	const struct aw_journal_options options = { .session = SESSION };
	struct aw_journal journal;
	struct aw_error err;
	unsigned i = 0;
	int r = 0, dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (aw_journal_open(&journal, dir, &options, &err) < 0)
		return 1;
	while (r == 0 && i < 100000)
		r = scratch_append(&journal, AW_EVENT_NOTE, ++i, 500);
	return r == -ENOSPC ? end_without_space(&journal, dir, i) : 2;
}

static void a_full_disk_is_told_and_the_last_word_is_written(void **state)
{
	struct scratch *s = *state;
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(mount_small(s->path, "size=400k") ? fill_the_disk(s->path) : CANNOT_MOUNT);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == CANNOT_MOUNT)
		scratch_lacks("no mount namespace of one's own here");
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void little_space_is_reserved_for_nothing(void **state)
{
	struct scratch *s = *state;
	struct stat st;

	scratch_journal(s, 3, 0, true);
	assert_int_equal(fstatat(s->fd, FIRST, &st, 0), 0);
	assert_true(st.st_blocks * 512 <= 32 * 1024);
}

static void only_breaches_wait_for_the_disk(void **state)
{
	struct scratch *s = *state;
	struct aw_journal journal;

	sync_spy.calls = 0;
	scratch_open(s, 0, &journal);
	assert_int_equal(scratch_append(&journal, AW_EVENT_SESSION_START, 1, 0), 0);
	assert_int_equal(scratch_append(&journal, AW_EVENT_NET_REFUSED, 1, 0), 0);
	assert_int_equal(sync_spy.calls, 0);
	assert_int_equal(scratch_append(&journal, AW_EVENT_BREACH, 1, 0), 0);
	assert_int_equal(sync_spy.calls, 1);
	assert_int_equal(scratch_append(&journal, AW_EVENT_SESSION_END, 1, 0), 0);
	assert_int_equal(sync_spy.calls, 1);
	aw_journal_drop(&journal);
}

static void both_edges_wait_for_the_disk_if_asked(void **state)
{
	const struct aw_journal_options options = { .session = SESSION, .sync_edges = true };
	struct scratch *s = *state;
	struct aw_journal journal;
	struct aw_error err;

	sync_spy.calls = 0;
	assert_int_equal(aw_journal_open(&journal, s->fd, &options, &err), 0);
	assert_int_equal(scratch_append(&journal, AW_EVENT_SESSION_START, 1, 0), 0);
	assert_int_equal(sync_spy.calls, 1);
	assert_int_equal(scratch_append(&journal, AW_EVENT_NOTE, 1, 0), 0);
	assert_int_equal(sync_spy.calls, 1);
	assert_int_equal(scratch_append(&journal, AW_EVENT_SESSION_END, 1, 0), 0);
	assert_int_equal(sync_spy.calls, 2);
	aw_journal_drop(&journal);
}

static void a_disk_that_loses_a_line_kills_the_journal(void **state)
{
	struct scratch *s = *state;
	struct aw_journal journal;
	struct aw_error err;

	scratch_open(s, 0, &journal);
	sync_spy.error = EIO;
	assert_int_equal(scratch_append(&journal, AW_EVENT_BREACH, 1, 0), -EIO);
	sync_spy.error = 0;
	assert_int_equal(scratch_append(&journal, AW_EVENT_NOTE, 1, 0), -EIO);
	assert_int_equal(aw_journal_close(&journal, &err), 0);
	assert_int_equal(faccessat(s->fd, "journal.head", F_OK, 0), -1);
}

static void write_until_killed(const struct scratch *s)
{
	struct aw_journal journal;

	scratch_open(s, 4 * AW_FLAT_MAX, &journal);
	for (unsigned i = 0;; i++)
		if (scratch_append(&journal, AW_EVENT_NOTE, i, i % 3000) < 0)
			_exit(1);
}

static void whatever_kills_the_writer_the_journal_holds(void **state)
{
	for (unsigned round = 0; round < 40; round++) {
		struct aw_verify result;
		struct scratch *s;
		int status;
		pid_t pid;

		assert_int_equal(scratch_setup((void **)&s), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			write_until_killed(s);
		(void)usleep(1000 + round * 313);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		if (faccessat(s->fd, FIRST, F_OK, 0) == 0) {
			verify(s->fd, &result);
			assert_false(result.is_anchored);
		}
		assert_int_equal(scratch_teardown((void **)&s), 0);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SCRATCH(each_line_is_tied_to_the_one_before),
		IN_SCRATCH(a_line_is_there_when_append_returns),
		IN_SCRATCH(a_second_writer_is_refused),
		IN_SCRATCH(a_planted_link_is_not_written_through),
		IN_SCRATCH(the_chain_goes_on_in_the_next_segment),
		IN_SCRATCH(a_segment_that_is_in_the_way_ends_the_journal),
		IN_SCRATCH(a_torn_line_is_taken_back),
		IN_SCRATCH(a_journal_that_cannot_be_mended_is_dead),
		IN_SCRATCH(a_full_disk_is_told_and_the_last_word_is_written),
		IN_SCRATCH(little_space_is_reserved_for_nothing),
		IN_SCRATCH(only_breaches_wait_for_the_disk),
		IN_SCRATCH(both_edges_wait_for_the_disk_if_asked),
		IN_SCRATCH(a_disk_that_loses_a_line_kills_the_journal),
		cmocka_unit_test(whatever_kills_the_writer_the_journal_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
