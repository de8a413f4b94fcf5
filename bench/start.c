/*
 * start - how long it takes to run `true`, in several ways, in one run.
 *
 *	start [-n RUNS] WARDEN DIR
 *
 * The ways take turns, so that a machine whose speed drifts drifts for all of them; what counts is
 * the ratio to bwrap, pair by pair. "floor" is what the kernel asks at least: one clone3 with the
 * namespaces of a cell and an exec. Prints medians, the 90th percentile and the median ratio.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RUNS_MAX 2000
#define WARM_UP 5
#define REFERENCE 1 /* the way that ratios are taken to */

static const char *warden, *dir;

static double now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static _Noreturn void become(const char *const *argv)
{
	int null = open("/dev/null", O_RDWR);

	for (int i = 0; i < 3; i++)
		(void)dup2(null, i);
	(void)execvp(argv[0], (char *const *)(unsigned long)argv);
	_exit(127);
}

static pid_t start_plain(const char *const *argv)
{
	pid_t pid = fork();

	if (pid == 0)
		become(argv);
	return pid;
}

static pid_t start_floor(const char *const *argv)
{
	struct clone_args args = {
		.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
			 CLONE_NEWCGROUP | CLONE_NEWNET,
		.exit_signal = SIGCHLD,
	};
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		become(argv);
	return pid;
}

struct way {
	const char *name;
	pid_t (*start)(const char *const *argv);
	const char *argv[16];
	double ms[RUNS_MAX], ratio[RUNS_MAX];
	int failures;
};

static struct way ways[] = {
	{ .name = "floor: clone3 of all namespaces, exec",
	  .start = start_floor,
	  .argv = { "true" } },
	{ .name = "bwrap --unshare-all",
	  .start = start_plain,
	  .argv = { "bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev",
		    "/dev", "true" } },
	{ .name = "warden run, everything on", .start = start_plain },
	{ .name = "warden run --offline", .start = start_plain },
	{ .name = "fork and exec alone", .start = start_plain, .argv = { "true" } },
};

#define WAYS (sizeof(ways) / sizeof(ways[0]))

static void name_warden(void)
{
	const char *const on[] = { warden, "run", "-q", dir, "--", "true" };
	const char *const off[] = { warden, "run", "-q", "--offline", dir, "--", "true" };

	memcpy(ways[2].argv, on, sizeof(on));
	memcpy(ways[3].argv, off, sizeof(off));
}

static double run_once(struct way *way)
{
	double begin = now_ms();
	pid_t pid = way->start(way->argv);
	int status = 0;

	if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
		way->failures++;
	return now_ms() - begin;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print(struct way *way, int runs)
{
	qsort(way->ms, (size_t)runs, sizeof(double), compare);
	qsort(way->ratio, (size_t)runs, sizeof(double), compare);
	(void)printf("%-40s %8.2f %8.2f %8.2f   %5.2f%s\n", way->name, way->ms[0],
		     way->ms[runs / 2], way->ms[runs * 9 / 10], way->ratio[runs / 2],
		     way->failures > 0 ? "  FAILED" : "");
}

int main(int argc, char **argv)
{
	int runs = 200, failures = 0;

	if (argc == 5 && strcmp(argv[1], "-n") == 0) {
		runs = (int)strtol(argv[2], NULL, 10);
		argv += 2;
		argc -= 2;
	}
	if (argc != 3 || runs < 10 || runs > RUNS_MAX) {
		(void)fprintf(stderr, "usage: start [-n RUNS] WARDEN DIR\n");
		return 2;
	}
	warden = argv[1];
	dir = argv[2];
	name_warden();
	for (int i = -WARM_UP; i < runs; i++) {
		for (size_t w = 0; w < WAYS; w++) {
			double ms = run_once(&ways[w]);

			if (i >= 0)
				ways[w].ms[i] = ms;
		}
		for (size_t w = 0; i >= 0 && w < WAYS; w++)
			ways[w].ratio[i] = ways[w].ms[i] / ways[REFERENCE].ms[i];
	}
	(void)printf("%-40s %8s %8s %8s   %s\n", "start-up of true, ms", "min", "median", "p90",
		     "to bwrap");
	for (size_t w = 0; w < WAYS; w++) {
		print(&ways[w], runs);
		failures += ways[w].failures;
	}
	return failures > 0;
}
