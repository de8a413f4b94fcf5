#include "cell/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB (1024ULL * 1024)
#define BLOCK (48 * MIB)
#define STACK_SIZE 65536

static struct aw_error err;

/* A process that stands for pid 1 of a cell, and its descendants: a process group of their own. */
struct cell {
	pid_t pid1;
	int ready; /* a byte for each process that is as it shall be measured */
};

static void say_ready(int ready)
{
	(void)!write(ready, "x", 1);
}

static _Noreturn void rest(void)
{
	for (;;)
		(void)pause();
}

/* The group that a test has not ended yet, or never will because it failed. */
static pid_t group;

static int end_group(void **state)
{
	(void)state;
	if (group == 0)
		return 0;
	(void)kill(-group, SIGKILL);
	while (waitpid(-group, NULL, 0) > 0)
		;
	group = 0;
	return 0;
}

static void start(struct cell *cell, void (*body)(int ready), unsigned processes)
{
	int ends[2];
	char byte;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	cell->pid1 = fork();
	assert_true(cell->pid1 >= 0);
	if (cell->pid1 == 0) {
		(void)setpgid(0, 0);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		body(ends[1]);
		rest();
	}
	(void)setpgid(cell->pid1, cell->pid1);
	group = cell->pid1;
	(void)close(ends[1]);
	for (unsigned i = 0; i < processes; i++)
		assert_int_equal(read(ends[0], &byte, 1), 1);
	cell->ready = ends[0];
}

static void end(struct cell *cell)
{
	(void)end_group(NULL);
	(void)close(cell->ready);
}

static struct aw_usage measure(const struct cell *cell)
{
	struct aw_usage usage;

	assert_int_equal(aw_usage_measure(cell->pid1, &usage, &err), 0);
	assert_int_equal(usage.unreadable, 0);
	return usage;
}

static void *take_block(int kind)
{
	void *block = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);

	if (block == MAP_FAILED)
		abort();
	memset(block, 1, BLOCK);
	return block;
}

static void idle(int ready)
{
	say_ready(ready);
}

static void without_children_nothing_is_used(void **state)
{
	struct cell cell;
	struct aw_usage usage;

	(void)state;
	start(&cell, idle, 1);
	usage = measure(&cell);
	assert_int_equal(usage.processes, 0);
	assert_int_equal(usage.memory_bytes, 0);
	end(&cell);
}

static void child_and_grandchild(int ready)
{
	if (fork() != 0)
		return;
	if (fork() == 0)
		(void)take_block(MAP_PRIVATE);
	say_ready(ready);
	rest();
}

static void descendants_are_counted_with_their_memory(void **state)
{
	struct cell cell;
	struct aw_usage usage;

	(void)state;
	start(&cell, child_and_grandchild, 2);
	usage = measure(&cell);
	assert_int_equal(usage.processes, 2);
	assert_true(usage.memory_bytes >= BLOCK);
	end(&cell);
}

static void three_with_one_block(int ready)
{
	volatile char *block = take_block(MAP_SHARED);

	for (int i = 0; i < 3; i++) {
		if (fork() != 0)
			continue;
		for (size_t at = 0; at < BLOCK; at += 4096)
			(void)block[at];
		say_ready(ready);
		rest();
	}
}

static void what_is_shared_is_counted_once(void **state)
{
	struct cell cell;
	struct aw_usage usage;

	(void)state;
	start(&cell, three_with_one_block, 3);
	usage = measure(&cell);
	assert_int_equal(usage.processes, 3);
	/* Process 1 has a quarter of the block, which is not counted. */
	assert_true(usage.memory_bytes >= BLOCK * 3 / 4);
	assert_true(usage.memory_bytes < BLOCK * 2);
	end(&cell);
}

/* With the raw calls only: this thread has no thread-local storage of its own. */
__attribute__((no_sanitize_address)) static int thread(void *data)
{
	int ready = *(const int *)data;

	if (syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) == 0)
		(void)syscall(SYS_write, ready, "x", 1);
	while (syscall(SYS_pause) != 0)
		;
	return 0;
}

static void a_child_of_another_thread(int ready)
{
	static int kept_ready;
	char *stack =
		mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	kept_ready = ready;
	if (stack == MAP_FAILED ||
	    clone(thread, stack + STACK_SIZE,
		  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
		  &kept_ready) < 0)
		abort();
}

static void a_child_that_another_thread_made_is_counted(void **state)
{
	struct cell cell;

	(void)state;
	start(&cell, a_child_of_another_thread, 1);
	assert_int_equal(measure(&cell).processes, 1);
	end(&cell);
}

static void dead_child(int ready)
{
	pid_t pid = fork();
	siginfo_t info;

	if (pid == 0)
		_exit(0);
	(void)waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	say_ready(ready);
}

static void a_zombie_uses_nothing(void **state)
{
	struct cell cell;
	struct aw_usage usage;

	(void)state;
	start(&cell, dead_child, 1);
	assert_int_equal(aw_usage_measure(cell.pid1, &usage, &err), 0);
	assert_int_equal(usage.processes, 1);
	assert_int_equal(usage.memory_bytes, 0);
	end(&cell);
}

static void a_cell_that_is_gone_is_said_to_be(void **state)
{
	struct aw_usage usage = { .processes = 7 };
	struct cell cell;

	(void)state;
	start(&cell, idle, 1);
	end(&cell);
	assert_int_equal(aw_usage_measure(cell.pid1, &usage, &err), -ESRCH);
	assert_int_equal(usage.processes, 7);
}

#define IN_GROUP(test) cmocka_unit_test_teardown(test, end_group)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_GROUP(without_children_nothing_is_used),
		IN_GROUP(descendants_are_counted_with_their_memory),
		IN_GROUP(what_is_shared_is_counted_once),
		IN_GROUP(a_child_that_another_thread_made_is_counted),
		IN_GROUP(a_zombie_uses_nothing),
		IN_GROUP(a_cell_that_is_gone_is_said_to_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
