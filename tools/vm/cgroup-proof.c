/*
 * What an ordinary user can do with cgroup v2, tried step by step: the figures of
 * doc/spikes/cgroup-v2.md.  Each line of the output is a step and what the kernel or systemd said.
 * Run it in the virtual machine; it wants to be alone in a fresh login session.
 */
#include "scope.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (1024ULL * 1024)
#define ROUNDS 41
#define FORKS 30
#define FS "/sys/fs/cgroup"

static const uint64_t every_namespace = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
					CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
static const struct scope_limits usual = { .memory_bytes = 64 * MIB, .tasks = 40 };

__attribute__((format(printf, 2, 3))) static void say(const char *step, const char *format, ...)
{
	va_list args;

	printf("%-44s ", step);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	(void)fflush(stdout);
}

static const char *word(long result)
{
	return result >= 0 ? "ok" : strerrorname_np((int)-result);
}

static double now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* The cgroup of a process as an absolute path, from its line "0::/...". */
static const char *cgroup_of(pid_t pid, char *path)
{
	char name[64], text[2048] = "";
	ssize_t len;
	int fd;

	(void)snprintf(name, sizeof(name), "/proc/%d/cgroup", pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	len = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	text[len > 0 ? len : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	(void)snprintf(path, PATH_MAX, FS "%s", len > 3 ? text + 3 : "");
	return path;
}

static int write_file(const char *dir, const char *file, const char *text)
{
	char path[PATH_MAX + 64];
	int fd, result = 0;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		result = -errno;
	(void)close(fd);
	return result;
}

static int write_number(const char *dir, const char *file, long number)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%ld", number);
	return write_file(dir, file, text);
}

/* A file's text on one line; for the next line of output only. */
static const char *text_of(const char *dir, const char *file)
{
	static char text[1024];
	char path[PATH_MAX + 64];
	ssize_t len;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return strerrorname_np(errno);
	len = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	text[len > 0 ? len : 0] = '\0';
	for (char *c = text; *c != '\0'; c++)
		if (*c == '\n')
			*c = c[1] == '\0' ? '\0' : ' ';
	return text;
}

/* A fork with `flags`; into cgroup `dir` unless it is NULL.  -errno on failure. */
static pid_t fork_with(uint64_t flags, const char *dir)
{
	struct clone_args args = { .flags = flags, .exit_signal = SIGCHLD };
	int fd = -EBADF;
	long pid;

	if (dir != NULL) {
		fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (__u64)(unsigned int)fd;
	}
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		pid = -errno;
	if (pid != 0 && fd >= 0)
		(void)close(fd);
	return (pid_t)pid;
}

/* A child that sleeps until it is killed. */
static pid_t sleeper(uint64_t flags, const char *dir)
{
	pid_t pid = fork_with(flags, dir);

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	return pid;
}

static void end(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

static const char *user_service(char *path)
{
	(void)snprintf(path, PATH_MAX, FS "/user.slice/user-%u.slice/user@%u.service", getuid(), getuid());
	return path;
}

static const char *fresh_name(void)
{
	static char name[64];
	static int count;

	(void)snprintf(name, sizeof(name), "warden-%d-%d.scope", getpid(), ++count);
	return name;
}

/* From where the user logged in, without systemd's help. */
static void try_by_hand(void)
{
	char service[PATH_MAX], dir[PATH_MAX + 32];
	pid_t pid;

	(void)snprintf(dir, sizeof(dir), "%s/warden.slice", user_service(service));
	say("by hand: mkdir user@.service/warden.slice", "%s", word(mkdir(dir, 0755) < 0 ? -errno : 0));
	say("by hand: own pid into its cgroup.procs", "%s", word(write_number(dir, "cgroup.procs", 0)));
	pid = sleeper(0, dir);
	say("by hand: clone3(CLONE_INTO_CGROUP)", "%s", word(pid));
	if (pid > 0)
		end(pid);
	(void)rmdir(dir);
}

static int start(pid_t pid, bool through_bus)
{
	char why[256], cgroup[PATH_MAX];
	double begin = now_ms();
	int result = scope_start(fresh_name(), pid, &usual, through_bus, why, sizeof(why));
	double took = now_ms() - begin;

	say(through_bus ? "scope over the bus" : "scope over systemd/private", "%s %s %.2f ms, now in %s",
	    word(result), why, took, cgroup_of(pid, cgroup) + strlen(FS));
	return result;
}

static void try_limits(const char *dir)
{
	static const char *const limits[][2] = {
		{ "memory.max", "33554432" },
		{ "memory.high", "max" },
		{ "memory.swap.max", "0" },
		{ "memory.oom.group", "1" },
		{ "pids.max", "20" },
		{ "cpu.max", "50000 100000" },
		{ "cpu.weight", "50" },
		{ "io.weight", "50" },
		{ "io.max", "259:0 wbps=1048576" },
		{ "cgroup.max.descendants", "4" },
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		say(limits[i][0], "%s", word(write_file(dir, limits[i][0], limits[i][1])));
}

/* Waits for `field value` in cgroup.events by poll(POLLPRI) and tells how long that took. */
static void await_event(const char *dir, const char *line)
{
	char path[PATH_MAX + 32], text[256];
	struct pollfd wait = { .events = POLLPRI };
	double begin = now_ms();

	(void)snprintf(path, sizeof(path), "%s/cgroup.events", dir);
	wait.fd = open(path, O_RDONLY | O_CLOEXEC);
	for (;;) {
		ssize_t len = pread(wait.fd, text, sizeof(text) - 1, 0);

		text[len > 0 ? len : 0] = '\0';
		if (len < 0 || strstr(text, line) != NULL || poll(&wait, 1, 3000) <= 0)
			break;
	}
	say("  cgroup.events", "%s %.2f ms", strstr(text, line) ? line : text, now_ms() - begin);
	(void)close(wait.fd);
}

static void try_freeze_and_kill(const char *dir)
{
	siginfo_t info = { 0 };
	pid_t pid = fork_with(0, dir);

	if (pid == 0) {
		for (;;)
			(void)getppid();
	}
	say("clone3(CLONE_INTO_CGROUP)", "%s", word(pid));
	if (pid < 0)
		return;
	say("cgroup.freeze 1", "%s", word(write_file(dir, "cgroup.freeze", "1")));
	await_event(dir, "frozen 1");
	say("cgroup.kill while frozen", "%s", word(write_file(dir, "cgroup.kill", "1")));
	await_event(dir, "populated 0");
	(void)waitid(P_PID, (id_t)pid, &info, WEXITED);
	say("  how it ended", "code %d status %d", info.si_code, info.si_status);
	say("cgroup.freeze 0", "%s", word(write_file(dir, "cgroup.freeze", "0")));
}

static void eat(size_t bytes)
{
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		_exit(2);
	memset(memory, 1, bytes);
	_exit(0);
}

/* Does a watcher outside learn of the limit being hit?  inotify on the events file, and poll. */
static void tell_notice(const char *dir, const char *file, int notify)
{
	struct pollfd wait = { .fd = notify, .events = POLLIN };

	say("  inotify IN_MODIFY on it", "%s", poll(&wait, 1, 1000) == 1 ? "yes" : "no");
	say(file, "%s", text_of(dir, file));
}

static int watch(const char *dir, const char *file)
{
	char path[PATH_MAX + 32];
	int notify = inotify_init1(IN_CLOEXEC);

	(void)snprintf(path, sizeof(path), "%s/%s", dir, file);
	(void)inotify_add_watch(notify, path, IN_MODIFY);
	return notify;
}

/* Two processes: one eats beyond memory.max; what happens to the other? */
static void try_to_eat(const char *dir, size_t bytes)
{
	int notify = watch(dir, "memory.events"), status = 0;
	pid_t bystander = sleeper(0, dir), eater = fork_with(0, dir);

	if (eater == 0)
		eat(bytes);
	(void)waitpid(eater, &status, 0);
	say("eat more than memory.max", "signal %d", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	(void)usleep(20000);
	say("  the other process", "%s", waitpid(bystander, NULL, WNOHANG) == 0 ? "lives" : "died");
	tell_notice(dir, "memory.events", notify);
	say("memory.peak", "%s", text_of(dir, "memory.peak"));
	(void)close(notify);
	end(bystander);
}

static void try_to_fork(const char *dir)
{
	int notify = watch(dir, "pids.events"), failed = 0;
	pid_t pids[FORKS];

	for (int i = 0; i < FORKS; i++) {
		pids[i] = sleeper(0, dir);
		if (pids[i] < 0)
			failed = pids[i];
	}
	say("clone3 beyond pids.max", "%s", word(failed));
	tell_notice(dir, "pids.events", notify);
	(void)close(notify);
	(void)write_file(dir, "cgroup.kill", "1");
	for (int i = 0; i < FORKS; i++)
		if (pids[i] > 0)
			end(pids[i]);
}

static void try_controllers(const char *scope)
{
	static const char *const names[] = { "+memory", "+pids", "+cpu", "+io", "+cpuset" };
	char text[256];

	say("scope: cgroup.controllers", "%s", text_of(scope, "cgroup.controllers"));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(text, sizeof(text), "scope: cgroup.subtree_control %s", names[i]);
		say(text, "%s", word(write_file(scope, "cgroup.subtree_control", names[i])));
	}
}

/* The whole way of a delegated scope that holds us: a leaf for us, a sibling for the cell. */
static void try_inside(void)
{
	char scope[PATH_MAX], leaf[PATH_MAX + 32], cell[PATH_MAX + 32];

	if (start(getpid(), false) < 0)
		return;
	(void)cgroup_of(getpid(), scope);
	(void)snprintf(leaf, sizeof(leaf), "%s/monitor", scope);
	(void)snprintf(cell, sizeof(cell), "%s/cell", scope);
	say("scope: memory.max", "%s", text_of(scope, "memory.max"));
	say("scope: memory.swap.max", "%s", text_of(scope, "memory.swap.max"));
	say("scope: pids.max", "%s", text_of(scope, "pids.max"));
	say("scope: +memory while we are in it", "%s",
	    word(write_file(scope, "cgroup.subtree_control", "+memory")));
	say("scope: mkdir leaf, cell", "%s", word(mkdir(leaf, 0755) < 0 || mkdir(cell, 0755) < 0 ? -errno : 0));
	say("scope: move to the leaf", "%s", word(write_number(leaf, "cgroup.procs", 0)));
	try_controllers(scope);
	try_limits(cell);
	try_freeze_and_kill(cell);
	try_to_eat(cell, 48 * MIB);
	try_to_fork(cell);
	say("rmdir cell", "%s", word(rmdir(cell) < 0 ? -errno : 0));
}

/*
 * The scope holds the child alone, first process of namespaces of its own as a cell's is, and we stay where we are: what can we do with it?
 */
static void try_outside(bool through_bus)
{
	char scope[PATH_MAX];
	pid_t child = sleeper(every_namespace, NULL), pid;

	if (start(child, through_bus) < 0) {
		end(child);
		return;
	}
	(void)cgroup_of(child, scope);
	say("outside: limits", "%s", text_of(scope, "memory.max"));
	say("outside: memory.swap.max", "%s", text_of(scope, "memory.swap.max"));
	say("outside: pids.max", "%s", text_of(scope, "pids.max"));
	try_limits(scope);
	pid = sleeper(0, scope);
	say("outside: clone3(CLONE_INTO_CGROUP)", "%s", word(pid));
	if (pid > 0)
		end(pid);
	pid = sleeper(0, NULL);
	say("outside: one more child into cgroup.procs", "%s", word(write_number(scope, "cgroup.procs", pid)));
	end(pid);
	say("outside: cgroup.freeze 1", "%s", word(write_file(scope, "cgroup.freeze", "1")));
	await_event(scope, "frozen 1");
	say("outside: cgroup.freeze 0", "%s", word(write_file(scope, "cgroup.freeze", "0")));
	say("outside: cgroup.kill", "%s", word(write_file(scope, "cgroup.kill", "1")));
	(void)waitpid(child, NULL, 0);
	await_event(scope, "populated 0");
	(void)usleep(300000);
	say("outside: scope's directory afterwards", "%s", word(access(scope, F_OK) < 0 ? -errno : 0));
}

/* A grandchild eats in the scope itself: who is killed, what does systemd do? */
static void child_eats(int go)
{
	char byte;

	if (read(go, &byte, 1) != 1)
		_exit(3);
	if (fork() == 0)
		eat(48 * MIB);
	(void)wait(NULL);
	(void)usleep(700000);
	_exit(0);
}

static void try_oom_outside(void)
{
	char scope[PATH_MAX];
	int go[2], status = 0, notify;
	pid_t child;

	if (pipe2(go, O_CLOEXEC) < 0)
		return;
	child = fork();
	if (child == 0)
		child_eats(go[0]);
	if (start(child, false) < 0) {
		end(child);
		return;
	}
	(void)cgroup_of(child, scope);
	(void)write_file(scope, "memory.max", "33554432");
	notify = watch(scope, "memory.events");
	(void)!write(go[1], "", 1);
	(void)usleep(500000);
	tell_notice(scope, "memory.events", notify);
	(void)waitpid(child, &status, 0);
	say("  the eater's parent 0.7 s later", "exit %d signal %d", WEXITSTATUS(status),
	    WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	(void)usleep(300000);
	say("  scope's directory afterwards", "%s", word(access(scope, F_OK) < 0 ? -errno : 0));
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void run_program(char *const *argv)
{
	pid_t pid;

	if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) == 0)
		(void)waitpid(pid, NULL, 0);
}

/* What each way takes, as a median; the unit of comparison is fork, exec and wait of `true`. */
static double measure(const char *what, int way, double unit)
{
	static char *const truth[] = { "/bin/true", NULL };
	static char *const tool[] = { "systemd-run", "--user", "--scope", "-q", "-p", "Delegate=yes",
				      "/bin/true", NULL };
	double took[ROUNDS];
	char why[256];

	for (int i = 0; i < ROUNDS; i++) {
		pid_t child = way >= 2 ? sleeper(0, NULL) : 0;
		double begin = now_ms();

		if (way < 2)
			run_program(way == 0 ? truth : tool);
		else if (scope_start(fresh_name(), child, &usual, way == 3, why, sizeof(why)) < 0)
			say("failed", "%s", why);
		took[i] = now_ms() - begin;
		if (way >= 2)
			end(child);
		(void)usleep(20000);
	}
	qsort(took, ROUNDS, sizeof(took[0]), by_size);
	say(what, "median %.2f ms, fastest %.2f, slowest %.2f: %.1f x", took[ROUNDS / 2], took[0],
	    took[ROUNDS - 1], unit == 0 ? 1 : took[ROUNDS / 2] / unit);
	return took[ROUNDS / 2];
}

static void try_time(void)
{
	double unit = measure("fork, exec, wait: true", 0, 0);

	(void)measure("systemd-run --user --scope true", 1, unit);
	(void)measure("scope over systemd/private", 2, unit);
	(void)measure("scope over the bus", 3, unit);
}

int main(int argc, char **argv)
{
	char cgroup[PATH_MAX];

	say("as uid", "%u in %s", getuid(), cgroup_of(getpid(), cgroup) + strlen(FS));
	if (argc > 1 && strcmp(argv[1], "time") == 0) {
		try_time();
		return 0;
	}
	try_by_hand();
	try_outside(false);
	try_outside(true);
	try_oom_outside();
	try_inside();
	return 0;
}
