/* The link to pid 1 of the cell: its birth, its report, the jobs in it. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/own.h"
#include "base/proc.h"
#include "cell/plan.h"
#include "cell/view.h"
#include "confine/seccomp.h"
#include "monitor/live-internal.h"

#define FAILURE_EXIT 125

/*
 * Files in memory are memory: of each private tmpfs at most half of the limit or, without one, a quarter
 * of the machine, so that they cannot take all of it together.
 */
static uint64_t tmp_size(const struct aw_policy *policy)
{
	uint64_t limit = policy->limit[AW_LIMIT_MEMORY_MB] << 20;
	struct sysinfo machine;

	if (limit > 0)
		return limit / 2;
	return sysinfo(&machine) < 0 ? 0 : (uint64_t)machine.totalram * machine.mem_unit / 4;
}

static void describe_view(const struct aw_prepared *p, const char *home_source,
			  struct aw_str notice, struct aw_view *ret)
{
	const struct aw_grants *g = &p->grants;

	*ret = (struct aw_view){
		.workspace = p->workspace.path,
		.workspace_dev = p->workspace_device,
		.workspace_ino = p->workspace_inode,
		.workspace_at = p->workspace_at,
		.workspace_is_tree = p->needs_idmap,
		.is_workspace_hidden = p->policy->read.is_present || p->policy->write.is_present,
		.home_source = home_source,
		.home_at = p->home_at,
		.tmp_size = tmp_size(p->policy),
		.has_network = p->policy->has_network,
		.notice = notice,
		.grants = g->binds,
		.grant_count = g->bind_count,
		.pins = (const char *const *)g->pins.text,
		.pin_count = g->pins.count,
		.protects = (const char *const *)g->protects.text,
		.protect_count = g->protects.count,
		.masks = (const char *const *)g->masks.text,
		.mask_count = g->masks.count,
	};
}

static void describe_session(const struct aw_live *live, struct aw_plan_builder *b,
			     struct aw_plan_header *h)
{
	const struct aw_prepared *p = live->prepared;
	uint64_t files = p->policy->limit[AW_LIMIT_OPEN_FILES];
	uint64_t files_max = aw_live_raise_files();

	*h = (struct aw_plan_header){
		.inside_uid = AW_CELL_UID,
		.inside_gid = AW_CELL_UID,
		.is_root_started = p->is_root_started,
		.has_network = p->policy->has_network,
		.wants_pty = live->terminal.fd >= 0,
		.landlock_required = !(p->policy->degraded & AW_DEGRADED_LANDLOCK),
		.limit_open_files = files > 0 && files < files_max ? files : files_max,
		.limit_processes = aw_live_process_limit(live),
		.is_memory_limited = live->cgroup.limits.of[AW_CGROUP_MEMORY] > 0,
	};
	aw_terminal_size(&live->terminal, &h->rows, &h->columns);
	for (int i = 0; i < 3; i++)
		h->stdio_is_pty[i] = live->terminal.is_tty[i];
	if (h->has_network)
		h->port_count =
			(uint32_t)aw_net_listen_ports(live->net, h->port, AW_PLAN_PORTS_MAX);
	h->filter = aw_plan_blob(b, aw_confine_filter_agent.code, aw_confine_filter_agent.size);
	h->filter_len = (uint32_t)aw_confine_filter_agent.size;
	h->hostname = aw_plan_text(b, AW_CELL_HOSTNAME);
	h->cwd = aw_plan_text(b, p->workspace_at);
	h->argv = aw_plan_vector(b, p->argv);
	h->env = aw_plan_vector(b, p->env);
}

static int make_plan(struct aw_live *live, struct aw_error *err)
{
	autodrop(aw_plan_fini) struct aw_plan_builder b;
	struct aw_plan_header header;
	struct aw_view view;
	int r;

	aw_plan_begin(&b);
	describe_view(live->prepared, live->home_source, aw_buf_str(&live->notice), &view);
	r = aw_view_decide(&view, &b, err);
	if (r < 0)
		return r;
	describe_session(live, &b, &header);
	return aw_plan_seal(&b, &header, err);
}

/* Where root owns the project: on-disk ids of root appear as those of the agent, in these trees alone. */
struct trees {
	int fd[AW_IPC_TREES_MAX];
	size_t count;
};

/* @path as a tree, which must still be the directory @dev, @ino that was decided about. */
static int take_tree(const struct aw_prepared *p, const char *path, dev_t dev, ino_t ino,
		     struct trees *trees, struct aw_error *err)
{
	autoclose int tree = -EBADF;
	struct stat st;

	if (trees->count == AW_IPC_TREES_MAX)
		return aw_refuse(err, E2BIG, "more than %d directories whose owner must be mapped",
				 AW_IPC_TREES_MAX);
	tree = aw_launch_idmapped_tree(path, p->workspace.uid, p->workspace.gid, p->outside_uid,
				       p->outside_gid, err);
	if (tree == -EINVAL)
		return aw_refuse(
			err, ENOTSUP,
			"root owns '%s' and its file system cannot map owners, so the agent "
			"could not run there without being root: give it to a user (chown), or "
			"run as that user",
			path);
	if (tree < 0)
		return tree;
	if (fstat(tree, &st) < 0 || st.st_dev != dev || st.st_ino != ino)
		return aw_refuse(err, EAGAIN, "'%s' was replaced while the session began", path);
	trees->fd[trees->count++] = AW_TAKE_FD(tree);
	return 0;
}

/* In the order of the plan's TREE operations: the project, then the grants. */
static int take_trees(const struct aw_prepared *p, struct trees *trees, struct aw_error *err)
{
	const struct aw_view_grant *grant = p->grants.binds;
	struct stat st;

	if (!p->needs_idmap)
		return 0;
	if (fstat(p->workspace.fd, &st) < 0)
		return aw_fail(err, errno, "project '%s'", p->workspace.path);
	if (take_tree(p, p->workspace.path, st.st_dev, st.st_ino, trees, err) < 0)
		return -err->code;
	for (size_t i = 0; i < p->grants.bind_count; i++, grant++)
		if (grant->is_tree &&
		    take_tree(p, grant->source, grant->dev, grant->ino, trees, err) < 0)
			return -err->code;
	return 0;
}

static int cell_message(struct aw_watch *watch, uint32_t events);
static int cell_died(struct aw_watch *watch, uint32_t events);

int aw_live_start_cell(struct aw_live *live, struct aw_error *err)
{
	const struct aw_prepared *p = live->prepared;
	autoclose int program = aw_launch_open_program("warden-cell", err);
	struct aw_launch how = {
		.program_fd = program,
		.stdio = { live->relay.stdio[0], live->relay.stdio[1], live->relay.stdio[2] },
		.cgroup_fd = live->cgroup.dir_fd,
		.is_root_started = p->is_root_started,
		.outside_uid = p->outside_uid,
		.outside_gid = p->outside_gid,
	};
	int r;

	if (program < 0)
		return program;
	r = aw_launch_cell(&how, &live->cell, err);
	aw_relay_release(&live->relay);
	if (r == 0)
		r = aw_launch_map(&how, &live->cell, err);
	if (r == 0)
		r = aw_cgroup_join(&live->cgroup, live->cell.pid, err);
	if (r < 0)
		return r;
	live->cell_link = (struct aw_watch){ .fd = live->cell.link, .ready = cell_message };
	live->cell_death = (struct aw_watch){ .fd = live->cell.pidfd, .ready = cell_died };
	r = aw_loop_watch(&live->loop, &live->cell_link, EPOLLIN, err);
	return r < 0 ? r : aw_loop_watch(&live->loop, &live->cell_death, EPOLLIN, err);
}

int aw_live_hand_over_plan(struct aw_live *live, struct aw_error *err)
{
	autoclose int plan = make_plan(live, err);
	struct trees trees = { .count = 0 };
	int r = plan < 0 ? plan : take_trees(live->prepared, &trees, err);

	if (r == 0)
		r = aw_launch_hand_over(&live->cell, plan, trees.fd, trees.count, err);
	for (size_t i = 0; i < trees.count; i++)
		(void)close(trees.fd[i]);
	return r;
}

static void record_ready(struct aw_live *live)
{
	struct aw_event *event = aw_live_event(live, AW_EVENT_SESSION_READY);

	aw_event_add_u64(event, "landlock_abi", live->ready.landlock_abi);
	aw_event_add_u64(event, "posture_held", live->ready.checks_held);
	aw_event_add_bool(event, "network", live->prepared->policy->has_network);
	aw_event_add_u64(event, "cgroup", live->cgroup.version);
	aw_live_record(live);
	if (live->ready.landlock_abi > 0)
		return;
	event = aw_live_event(live, AW_EVENT_DEGRADED);
	aw_event_add_str(event, "what", AW_STR("landlock"));
	aw_live_record(live);
}

static int on_ready(struct aw_live *live, struct aw_error *err)
{
	struct aw_ipc_message *m = &live->message;
	size_t next = 3;
	int r = 0;

	memcpy(&live->ready, m->payload, sizeof(live->ready));
	live->mountinfo = AW_TAKE_FD(m->fds[0]);
	live->user_ns = AW_TAKE_FD(m->fds[1]);
	live->mount_ns = AW_TAKE_FD(m->fds[2]);
	if (live->ready.has_pty)
		r = aw_terminal_attach(&live->terminal, AW_TAKE_FD(m->fds[next++]), &live->loop,
				       err);
	for (uint32_t i = 0; i < live->ready.listener_count; i++)
		live->listeners[i] = AW_TAKE_FD(m->fds[next++]);
	if (r == 0)
		r = aw_live_start_guard(live, err);
	if (r == 0)
		r = aw_live_settle_group(live, err);
	if (r < 0)
		return r;
	record_ready(live);
	r = aw_live_start_clock(live, err);
	if (r == 0)
		r = aw_ipc_send(live->cell.link, AW_IPC_CELL_GO, NULL, 0, NULL, 0, err);
	/* The agent may start: until gate is set up its connections wait in the listeners' queues. */
	return r < 0 || !live->prepared->policy->has_network ? r : aw_live_set_up_gate(live, err);
}

static int on_failed(struct aw_live *live)
{
	struct aw_error why;

	memcpy(&why, live->message.payload, sizeof(why));
	aw_live_end(live, AW_SESSION_REFUSED, 78, "%s", why.message);
	live->failure = why;
	return 0;
}

static void record_job(struct aw_live *live, enum aw_event_kind kind,
		       const struct aw_ipc_cell_job *job)
{
	struct aw_event *event = aw_live_event(live, kind);

	aw_event_add_u64(event, "job", job->job);
	aw_event_add_i64(event, "pid", job->pid);
	if (kind == AW_EVENT_EXEC_END)
		aw_event_add_i64(event, "status", job->status);
	if (job->exec_failed)
		aw_event_add_str(event, "error", aw_str_from(strerror(job->exec_errno)));
	aw_live_record(live);
}

/* Why the command could not be executed, in a person's words: which of the two, and what to look at. */
static void explain_exec_failure(struct aw_live *live, const struct aw_ipc_cell_job *job)
{
	char name[256];

	(void)aw_str_escape(aw_str_from(live->prepared->argv[0]), name, sizeof(name));
	live->failure.code = job->exec_errno;
	if (job->status == 127)
		(void)aw_refuse(
			&live->failure, job->exec_errno,
			"'%s' is not there in the cell, or the interpreter that it names is not "
			"(the cell sees the system's programs, the project, and what --ro grants)",
			name);
	else
		(void)aw_fail(&live->failure, job->exec_errno, "execute '%s' in the cell", name);
}

static int on_started(struct aw_live *live)
{
	struct aw_ipc_cell_job job;
	int master = -EBADF;

	memcpy(&job, live->message.payload, sizeof(job));
	if (live->message.fd_count > 0)
		master = AW_TAKE_FD(live->message.fds[0]);
	record_job(live, AW_EVENT_EXEC_START, &job);
	if (job.job == 0) {
		live->is_started = true;
		live->started_ns = aw_now_ns();
		live->started_wall_ns = aw_wall_ns();
		aw_live_status(live, "started");
	} else {
		aw_live_tell_job(live, AW_IPC_TELL_STARTED, &job, master);
	}
	(void)aw_fd_close(master);
	return 0;
}

static int on_ended(struct aw_live *live)
{
	struct aw_ipc_cell_job job;

	memcpy(&job, live->message.payload, sizeof(job));
	record_job(live, AW_EVENT_EXEC_END, &job);
	if (job.job != 0) {
		aw_live_tell_job(live, AW_IPC_TELL_ENDED, &job, -EBADF);
		return 0;
	}
	if (job.exec_failed)
		explain_exec_failure(live, &job);
	aw_live_read_hits(live);
	if (job.by_signal && job.status == 128 + SIGKILL && aw_live_end_by_limit(live))
		return 0;
	if (live->asked_signal != 0)
		aw_live_end(live, AW_SESSION_STOPPED, job.status, "signal %d from outside",
			    live->asked_signal);
	else
		aw_live_end(live, AW_SESSION_EXITED, job.status, "%s", "");
	return 0;
}

static int on_frozen(struct aw_live *live, struct aw_error *err)
{
	struct aw_ipc_frozen frozen;

	memcpy(&frozen, live->message.payload, sizeof(frozen));
	return aw_live_guard_frozen(live, frozen.is_complete, err);
}

static int cell_message(struct aw_watch *watch, uint32_t events)
{
	struct aw_live *live = AW_CONTAINER(watch, struct aw_live, cell_link);
	struct aw_error err = { 0 };
	int r = aw_ipc_recv(live->cell.link, AW_IPC_MONITOR, AW_IPC_CELL, &live->message, &err);

	(void)events;
	if (r == 0) {
		aw_loop_unwatch(&live->loop, watch);
		return 0; /* its death follows */
	}
	if (r > 0) {
		r = 0;
		if (live->message.type == AW_IPC_CELL_READY)
			r = on_ready(live, &err);
		else if (live->message.type == AW_IPC_CELL_FAILED)
			r = on_failed(live);
		else if (live->message.type == AW_IPC_CELL_STARTED)
			r = on_started(live);
		else if (live->message.type == AW_IPC_CELL_ENDED)
			r = on_ended(live);
		else if (live->message.type == AW_IPC_CELL_FROZEN)
			r = on_frozen(live, &err);
		else if (live->message.type == AW_IPC_CELL_EMPTY)
			live->is_empty = true;
		aw_ipc_message_fini(&live->message);
	}
	if (r < 0)
		aw_live_fail(live, &err);
	if (live->is_empty)
		aw_loop_stop(&live->loop, 0);
	return 0;
}

static int cell_died(struct aw_watch *watch, uint32_t events)
{
	struct aw_live *live = AW_CONTAINER(watch, struct aw_live, cell_death);
	struct aw_error none;

	/* What it said before it died comes first. */
	while (!live->is_empty && live->cell_link.events != 0 &&
	       aw_ipc_wait_readable(live->cell.link, 0))
		(void)cell_message(&live->cell_link, EPOLLIN);
	(void)events;
	aw_loop_unwatch(&live->loop, watch);
	(void)aw_pidfd_wait(live->cell.pidfd, true, &none);
	if (live->outcome.reason == 0) {
		aw_live_read_hits(live);
		/* Killed after its grace time, or at once: the exit code is what the asking signal means. */
		if (live->asked_signal != 0)
			aw_live_end(live, AW_SESSION_STOPPED, 128 + live->asked_signal,
				    "signal %d from outside", live->asked_signal);
		else if (!aw_live_end_by_limit(live))
			aw_live_end(live, AW_SESSION_FAILED, FAILURE_EXIT, "the cell died");
	}
	aw_loop_stop(&live->loop, 0);
	return 0;
}

int aw_live_signal_job(struct aw_live *live, uint32_t job, int sig)
{
	struct aw_ipc_cell_signal message = { .job = job, .signal = sig };
	struct aw_error none;

	return aw_ipc_send(live->cell.link, AW_IPC_CELL_SIGNAL, &message, sizeof(message), NULL, 0,
			   &none);
}

void aw_live_kill_cell(struct aw_live *live)
{
	aw_cgroup_kill(&live->cgroup);
	if (live->cell.pidfd >= 0)
		(void)aw_pidfd_kill(live->cell.pidfd, SIGKILL);
}
