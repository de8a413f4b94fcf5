#include "monitor/live-internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/own.h"
#include "base/proc.h"
#include "monitor/home.h"
#include "monitor/notice.h"

static int start_record(struct aw_live *live, struct aw_error *err)
{
	const struct aw_prepared *p = live->prepared;
	struct aw_journal_options options = { .session = live->session.meta.id };
	struct aw_event *event;
	int r;

	r = aw_journal_open(&live->journal, live->session.dir_fd, &options, err);
	if (r < 0)
		return aw_while(err, "open the journal");
	live->has_journal = true;
	event = aw_live_event(live, AW_EVENT_SESSION_START);
	aw_event_add_str(event, "project", aw_str_from(p->workspace.path));
	aw_event_add_str(event, "agent", aw_str_from(p->agent_name));
	aw_event_add_str(event, "policy_digest", aw_str_from(p->policy->digest_hex));
	aw_event_add_str(event, "preset", aw_str_from(p->policy->preset));
	aw_event_add_u64(event, "uid", p->outside_uid);
	aw_event_add_u64(event, "variables_left_out", p->env_left_out);
	aw_live_record(live);
	return 0;
}

static int open_session(struct aw_live *live, struct aw_error *err)
{
	const struct aw_prepared *p = live->prepared;
	int r;

	r = aw_session_create(&live->state, p->workspace.path, p->agent_name, &live->session, err);
	if (r < 0)
		return r;
	live->has_session = true;
	memcpy(live->outcome.id, live->session.meta.id, sizeof(live->outcome.id));
	r = start_record(live, err);
	return r < 0 ? r : aw_live_open_control(live, err);
}

static void describe_limits(const struct aw_policy *policy, struct aw_cgroup_limits *ret)
{
	*ret = (struct aw_cgroup_limits){
		.memory_bytes = policy->limit[AW_LIMIT_MEMORY_MB] << 20,
		.cpu_milli = policy->limit[AW_LIMIT_CPU_MILLI],
		.io_bytes_s = policy->limit[AW_LIMIT_IO_MB_S] << 20,
	};
}

/* RLIMIT_NPROC in the cell's own user namespace is exact: a group is made only for the rest. */
static int make_cgroup(struct aw_live *live, struct aw_error *err)
{
	const struct aw_policy *policy = live->prepared->policy;
	struct aw_cgroup_limits limits;
	struct aw_event *event;
	int r;

	describe_limits(policy, &limits);
	limits.io_device = live->prepared->workspace_device;
	if (!aw_cgroup_is_wanted(&limits))
		return 0;
	r = aw_cgroup_create(live->session.meta.id, &limits, &live->cgroup, err);
	if (r == 0 || r != -ENOTSUP)
		return r;
	if (!(policy->degraded & AW_DEGRADED_LIMITS))
		return aw_while(err, "the policy's limits cannot be enforced here (allow it with "
				     "\"allow_degraded\": [\"limits\"])");
	event = aw_live_event(live, AW_EVENT_DEGRADED);
	aw_event_add_str(event, "what", AW_STR("limits"));
	aw_event_add_str(event, "why", aw_str_from(err->message));
	aw_live_record(live);
	if (!live->options->is_quiet)
		(void)fprintf(stderr, "warden: limits are watched, not enforced: %s\n",
			      err->message);
	return aw_live_start_watchdog(live, &limits, err);
}

static int start_janitor(struct aw_live *live, struct aw_error *err)
{
	struct aw_janitor_duties duties = {
		.cell = live->cell.pidfd,
		.gate = live->gate.pidfd,
		.terminal = &live->terminal,
		.state = &live->state,
		.cgroup = &live->cgroup,
		.inotify = live->inotify,
	};

	return aw_janitor_start(&duties, &live->janitor, err);
}

static int copy_net(struct aw_live *live, struct aw_error *err)
{
	const struct aw_net *net = live->prepared->policy->net;
	size_t used = offsetof(struct aw_net, rules) + net->rule_count * sizeof(net->rules[0]);

	live->net = calloc(1, sizeof(*live->net));
	if (live->net == NULL)
		return aw_fail(err, ENOMEM, "copy the policy");
	memcpy(live->net, net, used);
	return 0;
}

/*
 * The cell is cloned before anything that it does not need: it builds its view while gate, the
 * session's files and the janitor come into being here.
 */
static int start(struct aw_live *live, struct aw_error *err)
{
	const struct aw_prepared *p = live->prepared;
	int r;

	r = aw_live_watch_signals(live, err);
	if (r == 0)
		r = copy_net(live, err);
	if (r == 0)
		r = aw_home_prepare(p, &live->state, &live->home_source, err);
	if (r == 0)
		r = aw_notice_write(p, &live->notice, err);
	if (r == 0)
		r = open_session(live, err);
	if (r == 0)
		r = make_cgroup(live, err);
	if (r == 0)
		r = aw_live_start_cell(live, err);
	if (r == 0 && p->policy->has_network)
		r = aw_live_start_gate(live, err);
	if (r == 0) {
		live->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
		r = live->inotify < 0 ? aw_fail(err, errno, "inotify_init1")
				      : start_janitor(live, err);
	}
	return r;
}

static void init(struct aw_live *live, const struct aw_prepared *prepared,
		 const struct aw_live_options *options)
{
	live->prepared = prepared;
	live->options = options;
	live->cell.pidfd = live->cell.link = live->gate.pidfd = live->gate.link = -EBADF;
	live->mountinfo = live->user_ns = live->mount_ns = live->inotify = -EBADF;
	live->signals.fd = live->timer.fd = live->control.fd = live->watchdog.fd = -EBADF;
	live->cgroup.dir_fd = -EBADF;
	live->notice = (struct aw_buf)AW_BUF_INIT(AW_NOTICE_MAX);
	for (size_t i = 0; i < AW_ARRAY_LEN(live->clients); i++)
		live->clients[i].watch.fd = -EBADF;
	for (size_t i = 0; i < AW_ARRAY_LEN(live->listeners); i++)
		live->listeners[i] = -EBADF;
	aw_terminal_init(&live->terminal);
}

static void fini(struct aw_live *live)
{
	aw_terminal_fini(&live->terminal);
	live->mountinfo = aw_fd_close(live->mountinfo);
	live->user_ns = aw_fd_close(live->user_ns);
	live->mount_ns = aw_fd_close(live->mount_ns);
	live->signals.fd = aw_fd_close(live->signals.fd);
	live->timer.fd = aw_fd_close(live->timer.fd);
	live->watchdog.fd = aw_fd_close(live->watchdog.fd);
	live->inotify = aw_fd_close(live->inotify);
	aw_state_fini(&live->state);
	aw_loop_fini(&live->loop);
	aw_buf_fini(&live->notice);
	free(live->home_source);
	free(live->net);
}

static int open_state(struct aw_live *live, struct aw_error *err)
{
	const struct aw_host *host = &live->prepared->host;
	struct aw_state_env env = {
		.home = host->home,
		.xdg_state_home = host->xdg_state_home,
		.xdg_runtime_dir = host->xdg_runtime_dir,
		.uid = geteuid(),
	};
	int r;

	r = aw_state_open(&env, &live->state, err);
	if (r < 0)
		return r;
	r = aw_registry_sweep(&live->state, AW_REGISTRY_RUNTIME, err);
	if (r < 0)
		aw_state_fini(&live->state);
	return r < 0 ? r : 0;
}

int aw_live_run(const struct aw_prepared *prepared, const struct aw_live_options *options,
		struct aw_live_outcome *ret, struct aw_error *err)
{
	autofree struct aw_live *live = calloc(1, sizeof(*live));
	int r;

	if (live == NULL)
		return aw_fail(err, ENOMEM, "start a session");
	init(live, prepared, options);
	r = open_state(live, err);
	if (r < 0)
		return r;
	r = aw_loop_init(&live->loop, err);
	if (r == 0) {
		if (start(live, err) < 0)
			aw_live_fail(live, err);
		else
			(void)aw_loop_run(&live->loop);
		aw_live_finish(live);
		aw_live_summarise(live);
		*ret = live->outcome;
	}
	fini(live);
	return r;
}
