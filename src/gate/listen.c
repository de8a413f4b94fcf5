#include "gate/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/own.h"
#include "gate/ask.h"
#include "gate/dial.h"
#include "gate/gate.h"
#include "gate/refuse.h"

#define ACCEPTS 16 /* per event, then others get their turn */

static void open_transparent(struct aw_conn *conn)
{
	struct aw_gate *gate = conn->gate;
	struct sockaddr_storage local;
	socklen_t len = sizeof(local);
	struct aw_refusal refusal = { .outcome = AW_IPC_REFUSED_UNKNOWN_ADDRESS };
	int entry = -ENOENT;

	if (getsockname(conn->client.fd, (struct sockaddr *)&local, &len) == 0)
		refusal.addr = aw_address_from_sockaddr(&local);
	conn->target.verdict.rule = -1;
	conn->target.port = refusal.addr.port;
	if (refusal.addr.family == AF_INET)
		entry = aw_names_find(&gate->names, refusal.addr.bytes);
	if (entry < 0) {
		aw_conn_cut(conn, &refusal);
		return;
	}
	conn->name_entry = entry;
	gate->names.entry[entry].users++;
	aw_decide_name(gate->net, aw_str_from(gate->names.entry[entry].text), refusal.addr.port,
		       &conn->target);
	refusal.outcome = AW_IPC_REFUSED_RULE;
	if (aw_decision_is_granted(&conn->target))
		aw_dial_start(conn);
	else
		aw_conn_cut(conn, &refusal);
}

/* Over the limit: said at once, because a queue of clients that hang helps nobody. */
static void refuse_busy(struct aw_conn *conn)
{
	struct aw_refusal refusal = { .outcome = AW_IPC_FAILED_BUSY,
				      .problem = "too many connections at once" };
	struct aw_flow_tools *tools = &conn->gate->tools;

	conn->target.verdict.rule = -1;
	/* What it asked is not read as anything; taken, so that the close is no reset. */
	(void)recv(conn->client.fd, tools->scratch, sizeof(tools->scratch), MSG_DONTWAIT);
	aw_conn_refuse(conn, &refusal);
	aw_conn_close(conn, false);
}

static void take(struct aw_gate *gate, uint8_t kind, int take_fd)
{
	struct aw_conn *conn;

	if (kind == AW_IPC_LISTEN_DNS_TCP) {
		aw_dns_stream_open(gate, take_fd);
		return;
	}
	conn = aw_conn_open(gate, take_fd,
			    kind == AW_IPC_LISTEN_PROXY ? AW_IPC_WAY_CONNECT
							: AW_IPC_WAY_TRANSPARENT);
	if (conn == NULL)
		return;
	if (gate->conns.count > gate->conns.max)
		refuse_busy(conn);
	else if (kind == AW_IPC_LISTEN_PROXY)
		aw_ask_ready(conn);
	else
		open_transparent(conn);
}

/* Without a free descriptor epoll would report the listener for ever: stop looking at it. */
static void pause_for_fds(struct aw_gate *gate)
{
	struct aw_error err;

	gate->listeners.is_short_of_fds = true;
	aw_timer_start(&gate->timers, &gate->listeners.retry, AW_TIMER_RETRY);
	(void)aw_listeners_update(gate, &err);
}

static bool is_shortage(int code)
{
	return code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM;
}

static void accept_some(struct aw_listener *listener)
{
	struct aw_gate *gate = listener->gate;

	for (int i = 0; i < ACCEPTS && !aw_report_is_behind(&gate->report); i++) {
		int fd = accept4(listener->watch.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0 && is_shortage(errno))
			pause_for_fds(gate);
		if (fd < 0)
			return;
		take(gate, listener->kind, fd);
	}
}

static int listener_ready(struct aw_watch *watch, uint32_t events)
{
	struct aw_listener *listener = AW_CONTAINER(watch, struct aw_listener, watch);
	struct aw_error err;

	(void)events;
	aw_conns_reap(listener->gate);
	if (listener->kind == AW_IPC_LISTEN_DNS_UDP)
		aw_dns_datagrams(listener->gate, watch->fd);
	else
		accept_some(listener);
	if (aw_report_is_behind(&listener->gate->report))
		return aw_listeners_update(listener->gate, &err);
	return 0;
}

static void try_again(struct aw_gate *gate)
{
	struct aw_error err;

	gate->listeners.is_short_of_fds = false;
	aw_timer_stop(&gate->listeners.retry);
	(void)aw_listeners_update(gate, &err);
}

static void retry_fired(struct aw_timer *timer)
{
	try_again(AW_CONTAINER(timer, struct aw_gate, listeners.retry));
}

void aw_listeners_fd_freed(struct aw_gate *gate)
{
	if (gate->listeners.is_short_of_fds)
		try_again(gate);
}

/* Accepted sockets inherit these from their listener (Linux, tcp(7)). */
static int shape(int fd, uint8_t kind, struct aw_error *err)
{
	int one = 1;

	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return aw_fail(err, errno, "make a listener non-blocking");
	if (kind == AW_IPC_LISTEN_DNS_UDP)
		return 0;
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)) < 0)
		return aw_fail(err, errno, "set a listener's options");
	return 0;
}

int aw_listeners_init(struct aw_gate *gate, struct aw_ipc_message *message, struct aw_error *err)
{
	struct aw_listeners *listeners = &gate->listeners;

	listeners->retry.fire = retry_fired;
	for (uint32_t i = 0; i < gate->setup.listener_count; i++) {
		struct aw_listener *listener = &listeners->listener[listeners->count++];
		uint8_t kind = gate->setup.listener[i].kind;
		int r;

		listener->watch = (struct aw_watch){ .fd = AW_TAKE_FD(message->fds[1 + i]),
						     .ready = listener_ready };
		listener->gate = gate;
		listener->kind = kind;
		r = shape(listener->watch.fd, kind, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int aw_listeners_update(struct aw_gate *gate, struct aw_error *err)
{
	bool is_behind = aw_report_is_behind(&gate->report);

	for (size_t i = 0; i < gate->listeners.count; i++) {
		struct aw_listener *listener = &gate->listeners.listener[i];
		bool needs_fd = listener->kind != AW_IPC_LISTEN_DNS_UDP;
		bool is_paused = is_behind || (needs_fd && gate->listeners.is_short_of_fds);
		int r = aw_loop_watch(&gate->loop, &listener->watch, is_paused ? 0 : EPOLLIN, err);

		if (r < 0)
			return r;
	}
	return 0;
}
