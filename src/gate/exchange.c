#include "gate/exchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/own.h"
#include "gate/ask.h"
#include "gate/dial.h"
#include "gate/gate.h"
#include "gate/refuse.h"
#include "gate/tunnel.h"
#include "wire/http-chunked.h"
#include "wire/http-write.h"
#include "wire/http.h"

#define READ_SIZE 4096

struct aw_exchange {
	struct aw_http_scan scan; /* of the response's head */
	struct aw_buf answer;     /* what came of it */
	struct aw_http_chunked up_chunked, down_chunked;
	bool is_head_done; /* of the response */
	bool is_client_kept, is_server_kept;
	bool is_websocket;
	bool is_reused; /* the server's connection served a request before */
};

void aw_exchange_drop(struct aw_exchange **slot)
{
	struct aw_exchange *exchange = AW_TAKE_PTR(*slot);

	if (exchange == NULL)
		return;
	aw_buf_fini(&exchange->answer);
	free(exchange);
}

static bool make_exchange(struct aw_conn *conn)
{
	if (conn->exchange == NULL)
		conn->exchange = calloc(1, sizeof(*conn->exchange));
	if (conn->exchange == NULL) {
		aw_conn_close(conn, true);
		return false;
	}
	conn->exchange->answer.max = AW_HTTP_HEAD_MAX + READ_SIZE;
	return true;
}

static void fail(struct aw_conn *conn, const char *problem)
{
	struct aw_refusal refusal = { .outcome = AW_IPC_FAILED_CONNECT,
				      .problem = problem,
				      .addr = conn->peer };

	/* Where the client already has a part of the answer, only a reset tells it that this is not all. */
	if (conn->exchange->is_head_done)
		aw_conn_close(conn, true);
	else
		aw_conn_refuse(conn, &refusal);
}

static void set_framing(struct aw_flow *flow, enum aw_http_body body, uint64_t length,
			struct aw_http_chunked *chunked)
{
	*chunked = (struct aw_http_chunked){ 0 };
	flow->chunked = body == AW_HTTP_BODY_CHUNKED ? chunked : NULL;
	flow->is_bulk = false;
	flow->left = AW_FLOW_ENDLESS;
	if (body == AW_HTTP_BODY_NONE)
		flow->left = 0;
	else if (body == AW_HTTP_BODY_LENGTH)
		flow->left = length;
}

static void wait_for(struct aw_conn *conn, int up, int down)
{
	uint32_t client = 0, server = 0;

	if (up == AW_FLOW_WAIT_IN)
		client |= EPOLLIN;
	if (up == AW_FLOW_WAIT_OUT)
		server |= EPOLLOUT;
	if (down == AW_FLOW_WAIT_OUT)
		client |= EPOLLOUT;
	else
		server |= EPOLLIN;
	(void)aw_conn_wait(conn, client, server);
}

/*
 * The request as far as it goes now: an aw_flow_state. A server that stops listening may have answered
 * all the same (413, 401): the response decides.
 */
static int push_request(struct aw_conn *conn)
{
	struct aw_exchange *exchange = conn->exchange;
	int r = AW_FLOW_DONE;

	if (conn->up_state != AW_FLOW_DONE)
		r = aw_flow_run(&conn->up, &conn->gate->tools);
	if (r < 0 || (r == AW_FLOW_DONE && !aw_flow_is_whole(&conn->up))) {
		exchange->is_client_kept = false;
		aw_buf_fini(&conn->up.held);
		r = AW_FLOW_DONE;
	}
	conn->up_state = (enum aw_flow_state)r;
	return r;
}

static void send_request(struct aw_conn *conn, const struct aw_http_request *request)
{
	struct aw_exchange *exchange = conn->exchange;
	int r = aw_http_request_write(request, request->is_kept, &conn->up.held);

	if (r < 0) {
		fail(conn, strerror(-r));
		return;
	}
	exchange->is_client_kept = request->is_kept;
	exchange->is_websocket = request->is_websocket;
	exchange->is_head_done = false;
	exchange->scan = (struct aw_http_scan){ 0 };
	set_framing(&conn->up, request->body, request->content_length, &exchange->up_chunked);
	set_framing(&conn->down, AW_HTTP_BODY_NONE, 0, &exchange->down_chunked);
	conn->up.behind = &conn->in;
	conn->down.behind = &exchange->answer;
	conn->up_state = AW_FLOW_WAIT_OUT;
	conn->phase = AW_PHASE_EXCHANGE;
	if (!conn->is_fixed || !conn->is_reported)
		aw_conn_report_allowed(conn);
	aw_conn_take(conn, request->len);
	if (aw_flow_prime(&conn->up, &conn->in) < 0) {
		aw_conn_close(conn, true);
		return;
	}
	wait_for(conn, push_request(conn), AW_FLOW_WAIT_IN);
}

void aw_exchange_request(struct aw_conn *conn, const struct aw_http_request *request)
{
	if (!make_exchange(conn))
		return;
	conn->exchange->is_reused = conn->server.fd >= 0;
	if (conn->server.fd >= 0)
		send_request(conn, request);
	else
		aw_dial_start(conn); /* the head stays in conn->in and is parsed again */
}

void aw_exchange_dialled(struct aw_conn *conn)
{
	struct aw_http_scan scan = { 0 };
	struct aw_http_request request;
	enum aw_http_flaw flaw;
	int n = aw_http_request_parse(&scan, aw_buf_str(&conn->in), &request, &flaw);

	if (n > 0)
		send_request(conn, &request);
	else
		aw_conn_close(conn, true);
}

void aw_exchange_begin_fixed(struct aw_conn *conn)
{
	if (!make_exchange(conn))
		return;
	conn->is_fixed = true;
	conn->phase = AW_PHASE_ASK;
	aw_ask_next(conn);
}

/* Both sides agreed to speak something else from here. */
static void upgrade(struct aw_conn *conn)
{
	int r;

	conn->down.left = AW_FLOW_ENDLESS;
	conn->down.chunked = conn->up.chunked = NULL;
	r = aw_flow_prime(&conn->down, &conn->exchange->answer);
	aw_exchange_drop(&conn->exchange);
	if (r < 0 || conn->up_state != AW_FLOW_DONE)
		aw_conn_close(conn, true);
	else
		aw_tunnel_continue(conn);
}

static int take_response(struct aw_conn *conn, const struct aw_http_response *response)
{
	struct aw_exchange *exchange = conn->exchange;
	bool is_kept = exchange->is_client_kept && response->body != AW_HTTP_BODY_CLOSE &&
		       (response->is_kept || !conn->is_fixed);
	int r = aw_http_response_write(response, is_kept, &conn->down.held);

	if (r < 0)
		return r;
	aw_buf_consume(&exchange->answer, response->len);
	exchange->scan = (struct aw_http_scan){ 0 };
	if (response->is_interim)
		return 0;
	exchange->is_head_done = true;
	exchange->is_client_kept = is_kept;
	exchange->is_server_kept = response->is_kept;
	set_framing(&conn->down, response->body, response->content_length, &exchange->down_chunked);
	conn->down.is_ended = false;
	if (response->body == AW_HTTP_BODY_TUNNEL)
		return exchange->is_websocket ? 1 : -EPROTO;
	return aw_flow_prime(&conn->down, &exchange->answer);
}

/* What has come of the response's head. 0, 1 for an upgrade, -EAGAIN, -errno. */
static int parse_response(struct aw_conn *conn)
{
	struct aw_exchange *exchange = conn->exchange;
	struct aw_http_response response;
	enum aw_http_flaw flaw;
	int r = 0;

	while (r == 0 && !exchange->is_head_done) {
		r = aw_http_response_parse(&exchange->scan, aw_buf_str(&exchange->answer),
					   aw_str_from(conn->method), &response, &flaw);
		if (r > 0)
			r = take_response(conn, &response);
	}
	return r;
}

static int read_response(struct aw_conn *conn)
{
	struct aw_buf *answer = &conn->exchange->answer;
	ssize_t n;
	int r = aw_buf_reserve(answer, READ_SIZE);

	if (r < 0)
		return r;
	n = recv(conn->server.fd, answer->data + answer->len, READ_SIZE, 0);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	if (n == 0)
		return -EPIPE;
	answer->len += (size_t)n;
	return parse_response(conn);
}

/* The response is delivered. */
static void finish(struct aw_conn *conn)
{
	struct aw_exchange *exchange = conn->exchange;
	/* Bytes behind a response, or a body that was not wanted: nobody knows what would come next. */
	bool is_clean = conn->up_state == AW_FLOW_DONE && exchange->answer.len == 0;

	if (!aw_flow_is_whole(&conn->down)) {
		aw_conn_close(conn, true);
		return;
	}
	if (!exchange->is_client_kept || !is_clean) {
		aw_conn_linger(conn);
		return;
	}
	aw_buf_fini(&exchange->answer);
	if (!exchange->is_server_kept)
		aw_conn_drop_server(conn);
	conn->phase = AW_PHASE_ASK;
	aw_ask_next(conn);
}

/* Both directions as far as they go now; until the response's head is there, down has interim heads. */
static void relay(struct aw_conn *conn)
{
	int up = push_request(conn), down = aw_flow_run(&conn->down, &conn->gate->tools);

	if (down < 0)
		aw_conn_close(conn, true);
	else if (down == AW_FLOW_DONE && conn->exchange->is_head_done)
		finish(conn);
	else
		wait_for(conn, up, down);
}

static void read_head(struct aw_conn *conn)
{
	int r = read_response(conn);

	if (r == 1) {
		upgrade(conn);
	} else if (r == 0 || r == -EAGAIN) {
		relay(conn);
	} else if (r == -EPIPE && conn->exchange->is_reused && conn->exchange->answer.len == 0) {
		/* The kept connection was closed under our request: the client knows that case. */
		aw_conn_close(conn, false);
	} else {
		fail(conn, r == -EPIPE     ? "the server closed without an answer"
			   : r == -EBADMSG ? "the server's answer is malformed"
					   : strerror(-r));
	}
}

void aw_exchange_client_ready(struct aw_conn *conn, uint32_t events)
{
	(void)events;
	relay(conn);
}

void aw_exchange_server_ready(struct aw_conn *conn, uint32_t events)
{
	if (!conn->exchange->is_head_done && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		read_head(conn);
	else
		relay(conn);
}

void aw_exchange_idle_server_ready(struct aw_conn *conn, uint32_t events)
{
	(void)events;
	if (conn->is_fixed)
		aw_conn_close(conn, false);
	else
		aw_conn_drop_server(conn);
}
