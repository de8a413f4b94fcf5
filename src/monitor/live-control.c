/*
 * The control socket RUNTIME/ID/control: what other terminals of the same user ask of a session.
 *
 * The directory is closed to others and the peer's uid is checked again; the cell cannot see it. A
 * client is one connection; one that asked for a command keeps it until that has ended.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/own.h"
#include "base/proc.h"
#include "monitor/live-internal.h"

static void tell(struct aw_live_client *client, enum aw_ipc_type type, const void *payload,
		 size_t len, int fd)
{
	struct aw_error none;

	/* A client that does not read or has gone loses its answer, never the session its time. */
	(void)aw_ipc_send(client->watch.fd, type, payload, len, &fd, fd >= 0 ? 1 : 0, &none);
}

static void refuse(struct aw_live_client *client, const struct aw_error *why)
{
	tell(client, AW_IPC_TELL_REFUSED, why, sizeof(*why), -EBADF);
}

static void drop(struct aw_live_client *client)
{
	struct aw_live *live = client->live;

	if (client->watch.fd < 0)
		return;
	aw_loop_unwatch(&live->loop, &client->watch);
	client->watch.fd = aw_fd_close(client->watch.fd);
	/* Whose terminal has gone has nobody to answer to: as a hangup would. */
	if (client->job != 0)
		(void)aw_live_signal_job(live, client->job, SIGHUP);
	client->job = 0;
}

static void answer_status(struct aw_live_client *client)
{
	struct aw_live *live = client->live;
	struct aw_ipc_status status = {
		.running_ns = live->is_started ? aw_now_ns() - live->started_ns : 0,
		.connections = live->connections,
		.refused = live->refused,
		.events = live->journal.seq,
		.jobs = live->is_started,
		.landlock_abi = live->ready.landlock_abi,
		.checks_held = live->ready.checks_held,
		.has_network = live->prepared->policy->has_network,
	};

	for (size_t i = 0; i < AW_ARRAY_LEN(live->clients); i++)
		status.jobs += live->clients[i].watch.fd >= 0 && live->clients[i].job != 0;
	tell(client, AW_IPC_TELL_STATUS, &status, sizeof(status), -EBADF);
}

static void on_stop(struct aw_live_client *client)
{
	struct aw_ipc_stop stop;

	memcpy(&stop, client->live->message.payload, sizeof(stop));
	client->waits_for_end = true;
	aw_live_ask_to_end(client->live, stop.is_forced ? SIGKILL : SIGTERM);
}

static void on_exec(struct aw_live_client *client)
{
	struct aw_live *live = client->live;
	struct aw_ipc_message *m = &live->message;
	struct aw_ipc_cell_exec exec;
	struct aw_error err = { 0 };

	if (!live->is_started || live->outcome.reason != 0 || client->job != 0) {
		(void)aw_refuse(&err, EBUSY,
				client->job != 0 ? "this connection runs a command already"
						 : "the session does not run");
		refuse(client, &err);
		return;
	}
	memcpy(&exec, m->payload, sizeof(exec));
	exec.job = client->job = ++live->last_job;
	memcpy(m->payload, &exec, sizeof(exec));
	if (aw_ipc_send(live->cell.link, AW_IPC_CELL_EXEC, m->payload, m->len, m->fds, m->fd_count,
			&err) < 0) {
		client->job = 0;
		refuse(client, &err);
	}
}

static void on_signal(struct aw_live_client *client)
{
	struct aw_ipc_cell_signal sig;

	memcpy(&sig, client->live->message.payload, sizeof(sig));
	if (client->job != 0 && sig.signal > 0 && sig.signal < NSIG)
		(void)aw_live_signal_job(client->live, client->job, sig.signal);
}

static bool is_same_rule(const struct aw_net_rule *a, const struct aw_net_rule *b)
{
	return a->form == b->form && a->port == b->port && a->is_denied == b->is_denied &&
	       strcmp(a->name, b->name) == 0;
}

/* Take every rule like @rule out; returns how many there were. */
static unsigned remove_rule(struct aw_net *net, const struct aw_net_rule *rule)
{
	uint32_t kept = 0, count = net->rule_count;

	for (uint32_t i = 0; i < count; i++)
		if (!is_same_rule(&net->rules[i], rule))
			net->rules[kept++] = net->rules[i];
	net->rule_count = kept;
	return count - kept;
}

static int change_rule(struct aw_live *live, const struct aw_ipc_rule *change, struct aw_error *err)
{
	struct aw_net *net = live->net;

	if (!live->prepared->policy->has_network)
		return aw_refuse(
			err, ENOTCONN,
			"this session was started offline: it has no gate that could let anything out");
	if (change->is_removed) {
		if (remove_rule(net, &change->rule) == 0)
			return aw_refuse(err, ENOENT, "no such rule is in force in this session");
	} else {
		if (net->rule_count == AW_NET_RULES_MAX)
			return aw_refuse(err, ENOSPC, "the session has %d rules already",
					 AW_NET_RULES_MAX);
		(void)remove_rule(net, &change->rule);
		net->rules[net->rule_count] = change->rule;
		net->rules[net->rule_count++].layer = AW_NET_LAYER_SESSION;
	}
	return aw_live_push_policy(live, err);
}

static void on_rule(struct aw_live_client *client)
{
	struct aw_live *live = client->live;
	char text[AW_NET_NAME_MAX + 16];
	struct aw_ipc_rule change;
	struct aw_error err = { 0 };
	struct aw_event *event;

	memcpy(&change, live->message.payload, sizeof(change));
	if (change_rule(live, &change, &err) < 0) {
		refuse(client, &err);
		return;
	}
	aw_net_rule_format(&change.rule, text, sizeof(text));
	event = aw_live_event(live, AW_EVENT_ALLOWLIST_CHANGED);
	aw_event_add_str(event, "rule", aw_str_from(text));
	aw_event_add_bool(event, "removed", change.is_removed);
	aw_event_add_bool(event, "denied", change.rule.is_denied);
	aw_live_record(live);
	tell(client, AW_IPC_TELL_DONE, NULL, 0, -EBADF);
}

static void on_message(struct aw_live_client *client, enum aw_ipc_type type)
{
	if (type == AW_IPC_ASK_STATUS)
		answer_status(client);
	else if (type == AW_IPC_ASK_STOP)
		on_stop(client);
	else if (type == AW_IPC_ASK_EXEC)
		on_exec(client);
	else if (type == AW_IPC_ASK_SIGNAL)
		on_signal(client);
	else if (type == AW_IPC_ASK_RULE)
		on_rule(client);
}

static int client_ready(struct aw_watch *watch, uint32_t events)
{
	struct aw_live_client *client = AW_CONTAINER(watch, struct aw_live_client, watch);
	struct aw_live *live = client->live;
	struct aw_error err;
	int r = aw_ipc_recv(watch->fd, AW_IPC_MONITOR, AW_IPC_CLIENT, &live->message, &err);

	(void)events;
	if (r == -EAGAIN)
		return 0;
	if (r <= 0) {
		drop(client);
		return 0;
	}
	on_message(client, live->message.type);
	aw_ipc_message_fini(&live->message);
	return 0;
}

static bool is_own_user(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return false;
	return peer.uid == geteuid() || peer.uid == 0;
}

static int control_ready(struct aw_watch *watch, uint32_t events)
{
	struct aw_live *live = AW_CONTAINER(watch, struct aw_live, control);
	autoclose int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct aw_error err;

	(void)events;
	if (fd < 0 || !is_own_user(fd))
		return 0;
	for (size_t i = 0; i < AW_ARRAY_LEN(live->clients); i++) {
		struct aw_live_client *client = &live->clients[i];

		if (client->watch.fd >= 0)
			continue;
		*client = (struct aw_live_client){
			.live = live,
			.watch = { .fd = AW_TAKE_FD(fd), .ready = client_ready },
		};
		if (aw_loop_watch(&live->loop, &client->watch, EPOLLIN, &err) < 0)
			client->watch.fd = aw_fd_close(client->watch.fd);
		return 0;
	}
	return 0; /* too many at once: this one is closed */
}

/* Bound by way of the directory's descriptor: the full path may be longer than a sockaddr_un. */
int aw_live_open_control(struct aw_live *live, struct aw_error *err)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	autoclose int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return aw_fail(err, errno, "control socket");
	(void)aw_str_format(un.sun_path, sizeof(un.sun_path), "/proc/self/fd/%d/control",
			    live->session.run_fd);
	if (bind(fd, (const struct sockaddr *)&un, sizeof(un)) < 0 || listen(fd, 8) < 0)
		return aw_fail(err, errno, "open the session's control socket");
	live->control = (struct aw_watch){ .fd = AW_TAKE_FD(fd), .ready = control_ready };
	return aw_loop_watch(&live->loop, &live->control, EPOLLIN, err);
}

void aw_live_tell_job(struct aw_live *live, enum aw_ipc_type type,
		      const struct aw_ipc_cell_job *job, int fd)
{
	for (size_t i = 0; i < AW_ARRAY_LEN(live->clients); i++) {
		struct aw_live_client *client = &live->clients[i];

		if (client->watch.fd < 0 || client->job != job->job)
			continue;
		tell(client, type, job, sizeof(*job), fd);
		if (type == AW_IPC_TELL_ENDED)
			client->job = 0;
	}
}

void aw_live_close_control(struct aw_live *live)
{
	for (size_t i = 0; i < AW_ARRAY_LEN(live->clients); i++) {
		struct aw_live_client *client = &live->clients[i];

		if (client->watch.fd < 0)
			continue;
		if (client->waits_for_end)
			tell(client, AW_IPC_TELL_DONE, NULL, 0, -EBADF);
		client->job = 0;
		drop(client);
	}
	aw_loop_unwatch(&live->loop, &live->control);
	live->control.fd = aw_fd_close(live->control.fd);
}
