#include "gate/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/own.h"
#include "base/proc.h"
#include "gate/ask.h"
#include "gate/dial.h"
#include "gate/exchange.h"
#include "gate/gate.h"
#include "gate/refuse.h"
#include "gate/tunnel.h"

static void pause_client(struct aw_conn *conn, uint32_t events)
{
	(void)events;
	(void)aw_conn_wait(conn, 0, conn->server.events);
}

static void ask_client_ready(struct aw_conn *conn, uint32_t events)
{
	(void)events;
	aw_ask_ready(conn);
}

/* A refused client may send what it likes until it has read its answer. */
static void linger_client_ready(struct aw_conn *conn, uint32_t events)
{
	struct aw_flow_tools *tools = &conn->gate->tools;
	ssize_t n = recv(conn->client.fd, tools->scratch, sizeof(tools->scratch), 0);

	(void)events;
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		aw_conn_close(conn, false);
}

/* Which side may be ready in which phase, and who takes care of it. */
static const struct {
	void (*client)(struct aw_conn *conn, uint32_t events);
	void (*server)(struct aw_conn *conn, uint32_t events);
} phases[AW_PHASE_COUNT] = {
	[AW_PHASE_ASK] = { ask_client_ready, aw_exchange_idle_server_ready },
	[AW_PHASE_DIAL] = { pause_client, NULL },
	[AW_PHASE_TUNNEL] = { aw_tunnel_client_ready, aw_tunnel_server_ready },
	[AW_PHASE_EXCHANGE] = { aw_exchange_client_ready, aw_exchange_server_ready },
	[AW_PHASE_LINGER] = { linger_client_ready, NULL },
};

static int client_ready(struct aw_watch *watch, uint32_t events)
{
	struct aw_conn *conn = AW_CONTAINER(watch, struct aw_conn, client);

	aw_conns_reap(conn->gate);
	phases[conn->phase].client(conn, events);
	return 0;
}

static int server_ready(struct aw_watch *watch, uint32_t events)
{
	struct aw_conn *conn = AW_CONTAINER(watch, struct aw_conn, server);

	aw_conns_reap(conn->gate);
	phases[conn->phase].server(conn, events);
	return 0;
}

static void timer_fired(struct aw_timer *timer)
{
	struct aw_conn *conn = AW_CONTAINER(timer, struct aw_conn, timer);
	struct aw_refusal refusal = { .outcome = AW_IPC_REFUSED_PROTOCOL,
				      .seen = "began to talk and did not go on" };

	if (conn->phase == AW_PHASE_LINGER)
		aw_conn_close(conn, false);
	else
		aw_conn_cut(conn, &refusal);
}

struct aw_conn *aw_conn_open(struct aw_gate *gate, int take_client, enum aw_ipc_way way)
{
	struct aw_conns *conns = &gate->conns;
	struct aw_conn *conn = calloc(1, sizeof(*conn));

	if (conn == NULL) {
		(void)aw_fd_close(take_client);
		return NULL;
	}
	conn->gate = gate;
	conn->phase = AW_PHASE_ASK;
	conn->way = way;
	conn->id = ++conns->last_id;
	conn->client = (struct aw_watch){ .fd = take_client, .ready = client_ready };
	conn->server = (struct aw_watch){ .fd = -EBADF, .ready = server_ready };
	conn->timer.fire = timer_fired;
	conn->name_entry = -1;
	conn->in = (struct aw_buf)AW_BUF_INIT(AW_CONN_IN_MAX);
	aw_flow_init(&conn->up, take_client, -EBADF);
	aw_flow_init(&conn->down, -EBADF, take_client);
	conn->next = conns->first;
	if (conn->next != NULL)
		conn->next->prev = conn;
	conns->first = conn;
	conns->count++;
	return conn;
}

static void unlink_conn(struct aw_conns *conns, struct aw_conn *conn)
{
	if (conn->prev != NULL)
		conn->prev->next = conn->next;
	else
		conns->first = conn->next;
	if (conn->next != NULL)
		conn->next->prev = conn->prev;
	conns->count--;
	conn->next = conns->dead;
	conns->dead = conn;
}

static void close_socket(struct aw_gate *gate, struct aw_watch *watch, bool is_abrupt)
{
	struct linger reset = { .l_onoff = 1, .l_linger = 0 };

	if (watch->fd < 0)
		return;
	aw_loop_forget(&gate->loop, watch);
	if (is_abrupt)
		(void)setsockopt(watch->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	watch->fd = aw_fd_close(watch->fd);
}

static void end_server(struct aw_conn *conn, bool is_abrupt)
{
	struct aw_gate *gate = conn->gate;
	struct aw_ipc_closed closed = { .id = conn->id,
					.bytes_out = conn->up.moved,
					.bytes_in = conn->down.moved };

	if (conn->server.fd < 0)
		return;
	if (!conn->is_reported)
		aw_conn_report_allowed(conn);
	closed.duration_ns = aw_now_ns() - conn->dialled_ns;
	aw_report_closed(&gate->report, &closed);
	close_socket(gate, &conn->server, is_abrupt);
	aw_flow_fini(&conn->up, &gate->tools);
	aw_flow_fini(&conn->down, &gate->tools);
}

void aw_conn_drop_server(struct aw_conn *conn)
{
	if (conn->server.fd < 0)
		return;
	end_server(conn, false);
	aw_flow_init(&conn->up, conn->client.fd, -EBADF);
	aw_flow_init(&conn->down, -EBADF, conn->client.fd);
	conn->id = ++conn->gate->conns.last_id;
	conn->is_reported = false;
	conn->has_target = false;
}

static void trim(struct aw_conn *conn)
{
	aw_buf_fini(&conn->in);
	if (conn->is_large)
		conn->gate->conns.large_count--;
	conn->is_large = false;
}

void aw_conn_close(struct aw_conn *conn, bool is_abrupt)
{
	struct aw_gate *gate = conn->gate;

	if (conn->phase == AW_PHASE_DEAD)
		return;
	conn->phase = AW_PHASE_DEAD;
	aw_timer_stop(&conn->timer);
	aw_dial_drop(&conn->dial);
	end_server(conn, is_abrupt);
	close_socket(gate, &conn->client, is_abrupt);
	aw_exchange_drop(&conn->exchange);
	trim(conn);
	if (conn->name_entry >= 0)
		gate->names.entry[conn->name_entry].users--;
	unlink_conn(&gate->conns, conn);
	aw_listeners_fd_freed(gate);
}

void aw_conns_reap(struct aw_gate *gate)
{
	while (gate->conns.dead != NULL) {
		struct aw_conn *conn = gate->conns.dead;

		gate->conns.dead = conn->next;
		free(conn);
	}
}

bool aw_conn_park_if_behind(struct aw_conn *conn)
{
	if (!aw_report_is_behind(&conn->gate->report))
		return false;
	conn->is_parked = true;
	(void)aw_conn_wait(conn, 0, 0);
	return true;
}

void aw_conns_unpark(struct aw_gate *gate)
{
	struct aw_conn *next;

	for (struct aw_conn *conn = gate->conns.first; conn != NULL; conn = next) {
		next = conn->next;
		if (!conn->is_parked)
			continue;
		conn->is_parked = false;
		aw_ask_next(conn);
	}
}

void aw_conns_apply_policy(struct aw_gate *gate)
{
	struct aw_refusal refusal = { .outcome = AW_IPC_REFUSED_RULE };
	struct aw_conn *next;

	for (struct aw_conn *conn = gate->conns.first; conn != NULL; conn = next) {
		struct aw_decision now;

		next = conn->next;
		if (!conn->has_target || conn->phase == AW_PHASE_LINGER)
			continue;
		aw_decide_name(gate->net, aw_str_from(conn->target.name), conn->target.port, &now);
		conn->target.verdict = now.verdict;
		if (!aw_decision_is_granted(&now))
			aw_conn_cut(conn, &refusal);
	}
}

/* How many bytes more may be held; a connection beyond the small share needs one of the large ones. */
static size_t room(struct aw_conn *conn)
{
	struct aw_conns *conns = &conn->gate->conns;

	if (!conn->is_large && conn->in.len >= AW_CONN_SMALL &&
	    conns->large_count < AW_CONNS_LARGE) {
		conn->is_large = true;
		conns->large_count++;
	}
	if (conn->is_large)
		return conn->in.len < AW_CONN_IN_MAX ? AW_CONN_IN_MAX - conn->in.len : 0;
	return conn->in.len < AW_CONN_SMALL ? AW_CONN_SMALL - conn->in.len : 0;
}

ssize_t aw_conn_read(struct aw_conn *conn)
{
	size_t max = room(conn);
	ssize_t n;
	int r;

	if (max == 0)
		return -ENOBUFS;
	max = max > AW_FLOW_SCRATCH ? AW_FLOW_SCRATCH : max;
	r = aw_buf_reserve(&conn->in, max);
	if (r < 0)
		return r;
	n = recv(conn->client.fd, conn->in.data + conn->in.len, max, 0);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	conn->in.len += (size_t)n;
	return n;
}

void aw_conn_take(struct aw_conn *conn, size_t len)
{
	aw_buf_consume(&conn->in, len);
	if (conn->in.len == 0)
		trim(conn);
}

bool aw_conn_say(struct aw_conn *conn, const void *bytes, size_t len)
{
	if (send(conn->client.fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len)
		return true;
	aw_conn_close(conn, true);
	return false;
}

bool aw_conn_wait(struct aw_conn *conn, uint32_t client_events, uint32_t server_events)
{
	struct aw_loop *loop = &conn->gate->loop;
	struct aw_error err;
	int r = aw_loop_watch(loop, &conn->client, client_events, &err);

	if (r == 0 && conn->server.fd >= 0)
		r = aw_loop_watch(loop, &conn->server, server_events, &err);
	if (r < 0)
		aw_conn_close(conn, true);
	return r == 0;
}

void aw_conn_expect_more(struct aw_conn *conn)
{
	/* Once per head: who sends a byte now and then gains no time. */
	if (conn->timer.next == NULL)
		aw_timer_start(&conn->gate->timers, &conn->timer, AW_TIMER_TALK);
}
