#include "monitor/live-internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/own.h"
#include "base/proc.h"
#include "monitor/home.h"
#include "monitor/notice.h"

static void add_texts(struct aw_event *event, const char *key, const struct aw_texts *texts)
{
	struct aw_str values[AW_GRANTS_MAX];

	for (size_t i = 0; i < texts->count; i++)
		values[i] = aw_str_from(texts->text[i]);
	aw_event_add_strv(event, key, values, texts->count);
}

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
	add_texts(event, "variables_left_out", &p->env_left_out);
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

/* A cell may be born into its group, so that comes first, and its record needs the session. */
static int make_group(struct aw_live *live, struct aw_error *err)
{
	int r;

	if (!aw_live_wants_group(live))
		return 0;
	/* Groups do not go with the monitor: somebody looks after this one before it is made. */
	r = open_session(live, err);
	if (r == 0)
		r = start_janitor(live, err);
	return r < 0 ? r : aw_live_make_group(live, err);
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

static int start_watchers(struct aw_live *live, struct aw_error *err)
{
	struct aw_janitor early = live->janitor; /* knew of no cell and no gate */
	int r;

	live->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (live->inotify < 0)
		return aw_fail(err, errno, "inotify_init1");
	r = start_janitor(live, err);
	if (r == 0)
		aw_janitor_recall(&early);
	return r;
}

/*
 * The cell is cloned first: it makes its network while its plan is made here, and builds its view
 * while gate, the session's files and the janitor come into being. The agent starts after all of them.
 */
static int start(struct aw_live *live, struct aw_error *err)
{
	const struct aw_prepared *p = live->prepared;
	int r;

	r = aw_live_watch_signals(live, err);
	if (r == 0)
		r = copy_net(live, err);
	if (r == 0)
		r = make_group(live, err);
	if (r == 0)
		r = aw_relay_start(&live->relay, p->outside_uid, p->outside_gid, err);
	if (r == 0)
		r = aw_live_start_cell(live, err);
	if (r == 0)
		r = aw_home_prepare(p, &live->state, &live->home_source, err);
	if (r == 0)
		r = aw_notice_write(p, &live->notice, err);
	if (r == 0)
		r = aw_live_hand_over_plan(live, err);
	if (r == 0 && p->policy->has_network)
		r = aw_live_start_gate(live, err);
	if (r == 0 && !live->has_session)
		r = open_session(live, err);
	return r < 0 ? r : start_watchers(live, err);
}

static void init(struct aw_live *live, const struct aw_prepared *prepared,
		 const struct aw_live_options *options)
{
	live->prepared = prepared;
	live->options = options;
	live->cell.pidfd = live->cell.link = live->gate.pidfd = live->gate.link = -EBADF;
	live->mountinfo = live->user_ns = live->mount_ns = live->inotify = -EBADF;
	live->signals.fd = live->timer.fd = live->control.fd = live->watchdog.fd = -EBADF;
	live->cgroup = (struct aw_cgroup)AW_CGROUP_INIT;
	live->relay = (struct aw_relay)AW_RELAY_INIT;
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
	/* Shared with the janitor, which so knows the control group as it is when the monitor dies. */
	struct aw_live *live = mmap(NULL, sizeof(*live), PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int r;

	if (live == MAP_FAILED)
		return aw_fail(err, ENOMEM, "start a session");
	init(live, prepared, options);
	r = open_state(live, err);
	if (r < 0) {
		(void)munmap(live, sizeof(*live));
		return r;
	}
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
	(void)munmap(live, sizeof(*live));
	return r;
}
