#include "gate/tunnel.h"

#include <errno.h>
#include <sys/socket.h>

#include "gate/exchange.h"
#include "gate/gate.h"
#include "gate/peek.h"
#include "gate/refuse.h"

/* Run one direction if it waits for what has happened. False: the connection is closed. */
static bool run(struct aw_conn *conn, struct aw_flow *flow, enum aw_flow_state *state, bool is_due)
{
	int r;

	if (!is_due || *state == AW_FLOW_DONE)
		return true;
	r = aw_flow_run(flow, &conn->gate->tools);
	if (r < 0) {
		aw_conn_close(conn, true);
		return false;
	}
	*state = (enum aw_flow_state)r;
	return true;
}

/* A side that said end of stream is passed on as that, unless the other way is over too. */
static void half_close(struct aw_conn *conn, enum aw_flow_state was_up, enum aw_flow_state was_down)
{
	bool is_up_done = conn->up_state == AW_FLOW_DONE;
	bool is_down_done = conn->down_state == AW_FLOW_DONE;

	if (is_up_done && is_down_done)
		aw_conn_close(conn, false);
	else if (is_up_done && was_up != AW_FLOW_DONE)
		(void)shutdown(conn->server.fd, SHUT_WR);
	else if (is_down_done && was_down != AW_FLOW_DONE)
		(void)shutdown(conn->client.fd, SHUT_WR);
}

static uint32_t wait_for(enum aw_flow_state source, enum aw_flow_state sink)
{
	return (source == AW_FLOW_WAIT_IN ? EPOLLIN : 0u) |
	       (sink == AW_FLOW_WAIT_OUT ? EPOLLOUT : 0u);
}

/* Until its first bytes are passed the client is looked at, not relayed: up waits all the while. */
static void relay(struct aw_conn *conn, bool is_up_due, bool is_down_due)
{
	enum aw_flow_state was_up = conn->up_state, was_down = conn->down_state;

	if (!run(conn, &conn->up, &conn->up_state, is_up_due && conn->is_peeked) ||
	    !run(conn, &conn->down, &conn->down_state, is_down_due))
		return;
	if (!conn->is_reported && (conn->is_peeked || conn->down.moved > 0))
		aw_conn_report_allowed(conn);
	half_close(conn, was_up, was_down);
	if (conn->phase != AW_PHASE_DEAD)
		(void)aw_conn_wait(conn, wait_for(conn->up_state, conn->down_state),
				   wait_for(conn->down_state, conn->up_state));
}

static void pass(struct aw_conn *conn)
{
	int r = aw_flow_prime(&conn->up, &conn->in);

	if (r == 0)
		r = aw_flow_push(&conn->up);
	if (r < 0) {
		aw_conn_close(conn, true);
		return;
	}
	aw_conn_take(conn, 0);
	conn->is_peeked = true;
	conn->up_state = r == AW_FLOW_WAIT_OUT ? AW_FLOW_WAIT_OUT : AW_FLOW_WAIT_IN;
	relay(conn, false, false);
}

static void look(struct aw_conn *conn)
{
	struct aw_peek_refusal found;
	struct aw_refusal refusal = { .seen = found.seen };
	enum aw_peek peek =
		aw_peek_look(aw_buf_str(&conn->in), conn->target.port, conn->target.name, &found);

	if (peek == AW_PEEK_MORE) {
		aw_conn_expect_more(conn);
		relay(conn, false, false);
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
		relay(conn, true, false);
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

static void begin(struct aw_conn *conn)
{
	conn->phase = AW_PHASE_TUNNEL;
	conn->up_state = conn->down_state = AW_FLOW_WAIT_IN;
	conn->up.left = conn->down.left = AW_FLOW_ENDLESS;
}

void aw_tunnel_begin(struct aw_conn *conn)
{
	begin(conn);
	if (conn->in.len > 0)
		look(conn);
	else
		relay(conn, false, false);
}

void aw_tunnel_continue(struct aw_conn *conn)
{
	begin(conn);
	/* What the server sent behind its head is held already. */
	conn->down_state = AW_FLOW_WAIT_OUT;
	pass(conn);
}

#define CAN_READ (EPOLLIN | EPOLLHUP | EPOLLERR)

void aw_tunnel_client_ready(struct aw_conn *conn, uint32_t events)
{
	bool is_readable = (events & CAN_READ) && conn->up_state == AW_FLOW_WAIT_IN;

	if (is_readable && !conn->is_peeked)
		look_again(conn);
	else
		relay(conn, is_readable, conn->down_state == AW_FLOW_WAIT_OUT);
}

void aw_tunnel_server_ready(struct aw_conn *conn, uint32_t events)
{
	bool is_readable = (events & CAN_READ) && conn->down_state == AW_FLOW_WAIT_IN;

	relay(conn, conn->up_state == AW_FLOW_WAIT_OUT, is_readable);
}
