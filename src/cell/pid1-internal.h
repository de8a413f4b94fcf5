/*
 * pid1 - the parts of warden-cell, the first process of a cell.
 *
 * In order: let a helper make the network namespace, wait for the id maps and the plan, open its
 * sources while still on the host's side, build the new root, enter it, join the network, confine,
 * measure, say ready, and then fork, reap and report until the agent has ended.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "cell/plan.h"
#include "ipc/ipc.h"

#define AW_PID1_LINK 3    /* descriptors that the launcher puts in place before exec */
#define AW_PID1_MONITOR 4 /* pidfd of the monitor */

/* pid1-build.c: the file system view. */
struct aw_build {
	const struct aw_plan_header *plan;
	int *sources;      /* per operation: tree fd of a BIND, else -EBADF */
	int root_fd;       /* the new root */
	char parent[4096]; /* the directory that parent_fd is, in the new root */
	int parent_fd;
	dev_t own
		[16]; /* devices of the tmpfs that we made: the only places where we create names */
	unsigned own_count;
};

/* Open every BIND source as a detached tree, with the rights we were started with. */
int aw_build_open(const struct aw_plan_header *plan, struct aw_build *ret, struct aw_error *err);

/*
 * Make the new root and pivot into it; @trees are the fds that came with CELL_MAPPED (taken over
 * one by one). Nothing is ever created on a file system of the host: -EXDEV.
 */
int aw_build_root(struct aw_build *build, const int *trees, size_t tree_count,
		  struct aw_error *err);
void aw_build_fini(struct aw_build *build);

/* pid1-place.c: names in the new root. All paths are absolute there; -errno, -EXDEV outside our own tmpfs. */
int aw_place_open(const struct aw_build *build, const char *at); /* O_PATH; -ELOOP at a link */
int aw_place_own(struct aw_build *build, int fd);                /* @fd lies on a tmpfs of ours */
void aw_place_forget(struct aw_build *build,
		     const char *at); /* something is mounted over @at now */
int aw_place_dir(struct aw_build *build, const char *at, mode_t mode); /* O_PATH fd */
int aw_place_file(struct aw_build *build, const char *at, mode_t mode, struct aw_str content);
int aw_place_symlink(struct aw_build *build, const char *at, const char *target);

/* pid1-net.c: the network namespace, made beside the mounts because it takes as long as they do. */
#define AW_NET_NAMESPACES 2

struct aw_net_job {
	pid_t pid;
	int pipe[2]; /* the helper's answer comes through it; both ends are in the shared table */
};

struct aw_net_parts {
	uint32_t count;
	struct aw_ipc_listener listener[AW_IPC_LISTENERS_MAX];
	int fd[AW_IPC_LISTENERS_MAX];
};

int aw_net_start(struct aw_net_job *ret, struct aw_error *err);
int aw_net_join(struct aw_net_job *job, struct aw_error *err);
/* Bring up lo and open the listeners that the plan wants, in the namespace that was joined. */
int aw_net_open(const struct aw_plan_header *plan, struct aw_net_parts *ret, struct aw_error *err);

/* pid1-confine.c: from all rights in our own namespaces to none, then measure. */
int aw_pid1_confine(const struct aw_plan_header *plan, uint32_t *ret_abi, struct aw_error *err);
/* @descriptors: what may be open now. @ret_held gets a bit for each check that held. */
int aw_pid1_measure(const struct aw_plan_header *plan, const int *descriptors, size_t count,
		    uint32_t *ret_held, struct aw_error *err);

/* pid1-jobs.c: what runs in the cell. */
struct aw_job_start {
	uint32_t job;
	char **argv, **env;
	const char *cwd;
	int stdio[3];         /* -EBADF: the pty */
	const char *pty_name; /* NULL: no controlling terminal */
};

struct aw_jobs {
	struct {
		bool is_used;
		uint32_t job;
		pid_t pid;
	} slot[64];
	bool agent_ended;
	bool marks_victims; /* the next two are set */
	int oom_fd;
	int oom_score_adj; /* of pid 1 */
};

/*
 * Let jobs be killed for want of memory before pid 1, which has to tell of it. Called while pid 1 may
 * still open its own files in /proc; where that fails, the biggest process is killed.
 */
void aw_jobs_mark_victims(struct aw_jobs *jobs);

/* Fork and exec; tells the monitor STARTED (with @pty_master if >= 0), or ENDED when exec failed. */
int aw_job_start(struct aw_jobs *jobs, const struct aw_job_start *start, int link, int pty_master,
		 struct aw_error *err);
/* Reap whatever died; ENDED for jobs. */
int aw_jobs_reap(struct aw_jobs *jobs, int link, struct aw_error *err);
int aw_jobs_signal(const struct aw_jobs *jobs, uint32_t job, int sig);
/* Kill everything but ourselves and reap until nothing is left. */
void aw_jobs_end_all(void);

/* A pty of the cell's devpts: the master fd, and its slave's name. */
int aw_pty_open(uint16_t rows, uint16_t columns, char *name, size_t size, struct aw_error *err);

/* pid1-freeze.c: stop everything but pid 1 from inside, where no cgroup freezer can be had. */
struct aw_freeze {
	pid_t stopped_before[256]; /* stopped already when we came: they stay so */
	unsigned count;
};

int aw_freeze_all(struct aw_freeze *freeze, struct aw_error *err);
void aw_thaw_all(const struct aw_freeze *freeze);
