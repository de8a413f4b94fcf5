#include "gate/tunnel.h"

#include <errno.h>
#include <sys/socket.h>

#include "gate/exchange.h"
#include "gate/gate.h"
#include "gate/peek.h"
#include "gate/refuse.h"

/* One direction as far as it goes now: an aw_flow_state, or -errno and the connection is closed. */
static int run(struct aw_conn *conn, struct aw_flow *flow, bool *is_done)
{
	int r = *is_done ? AW_FLOW_DONE : aw_flow_run(flow, &conn->gate->tools);

	*is_done = r == AW_FLOW_DONE;
	if (r < 0)
		aw_conn_close(conn, true);
	return r;
}

/* A side that said end of stream is passed on as that, unless the other way is over too. */
static void half_close(struct aw_conn *conn, bool was_up_done, bool was_down_done)
{
	if (conn->is_up_done && conn->is_down_done) {
		aw_conn_close(conn, false);
		return;
	}
	if (conn->is_up_done && !was_up_done)
		(void)shutdown(conn->server.fd, SHUT_WR);
	if (conn->is_down_done && !was_down_done)
		(void)shutdown(conn->client.fd, SHUT_WR);
}

static uint32_t wait_for_source(int state)
{
	return state == AW_FLOW_WAIT_IN ? EPOLLIN : 0u;
}

static uint32_t wait_for_sink(int state)
{
	return state == AW_FLOW_WAIT_OUT ? EPOLLOUT : 0u;
}

static void relay(struct aw_conn *conn)
{
	bool was_up_done = conn->is_up_done, was_down_done = conn->is_down_done;
	/* Until its first bytes are passed the client is looked at, not relayed. */
	int up = AW_FLOW_WAIT_IN, down;

	if (conn->is_peeked)
		up = run(conn, &conn->up, &conn->is_up_done);
	if (up < 0)
		return;
	down = run(conn, &conn->down, &conn->is_down_done);
	if (down < 0)
		return;
	if (!conn->is_reported && (conn->is_peeked || conn->down.moved > 0))
		aw_conn_report_allowed(conn);
	half_close(conn, was_up_done, was_down_done);
	if (conn->phase != AW_PHASE_DEAD)
		(void)aw_conn_wait(conn, wait_for_source(up) | wait_for_sink(down),
				   wait_for_source(down) | wait_for_sink(up));
}

static void pass(struct aw_conn *conn)
{
	if (aw_flow_prime(&conn->up, &conn->in) < 0) {
		aw_conn_close(conn, true);
		return;
	}
	aw_conn_take(conn, 0);
	conn->is_peeked = true;
	relay(conn);
}

static void look(struct aw_conn *conn)
{
	struct aw_peek_refusal found;
	struct aw_refusal refusal = { .seen = found.seen };
	enum aw_peek peek =
		aw_peek_look(aw_buf_str(&conn->in), conn->target.port, conn->target.name, &found);

	if (peek == AW_PEEK_MORE) {
		aw_conn_expect_more(conn);
		relay(conn);
		return;
	}
	aw_timer_stop(&conn->timer);
	switch (peek) {
	case AW_PEEK_PASS:
		pass(conn);
		break;
	case AW_PEEK_HTTP:
		aw_exchange_begin_fixed(conn);
		break;
	case AW_PEEK_REFUSE:
		refusal.outcome = found.outcome;
		aw_conn_cut(conn, &refusal);
		break;
	case AW_PEEK_MORE:
		break;
	}
}

static void look_again(struct aw_conn *conn)
{
	ssize_t n = aw_conn_read(conn);
	struct aw_refusal refusal = { .outcome = AW_IPC_REFUSED_PROTOCOL,
				      .seen = "ended in the middle of a hello" };

	if (n > 0) {
		look(conn);
	} else if (n == 0 && conn->in.len == 0) {
		/* It said nothing at all and never will: the server may still talk. */
		conn->is_peeked = true;
		conn->up.is_ended = true;
		relay(conn);
	} else if (n == 0) {
		aw_conn_cut(conn, &refusal);
	} else if (n == -ENOBUFS) {
		refusal = (struct aw_refusal){ .outcome = AW_IPC_FAILED_BUSY,
					       .problem = "too many large hellos at once" };
		aw_conn_cut(conn, &refusal);
	} else if (n != -EAGAIN) {
		aw_conn_close(conn, true);
	}
}

void aw_tunnel_begin(struct aw_conn *conn)
{
	conn->phase = AW_PHASE_TUNNEL;
	if (conn->in.len > 0)
		look(conn);
	else
		(void)aw_conn_wait(conn, EPOLLIN, EPOLLIN);
}

void aw_tunnel_continue(struct aw_conn *conn)
{
	conn->phase = AW_PHASE_TUNNEL;
	conn->is_up_done = conn->is_down_done = false;
	conn->up.left = conn->down.left = AW_FLOW_ENDLESS;
	pass(conn);
}

void aw_tunnel_client_ready(struct aw_conn *conn, uint32_t events)
{
	if (!conn->is_peeked && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		look_again(conn);
	else
		relay(conn);
}

void aw_tunnel_server_ready(struct aw_conn *conn, uint32_t events)
{
	(void)events;
	relay(conn);
}
