#include "gate/ask.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "gate/dial.h"
#include "gate/exchange.h"
#include "gate/gate.h"
#include "gate/refuse.h"
#include "wire/http.h"
#include "wire/socks.h"

#define HTTP_PORT 80

static void refuse_protocol(struct aw_conn *conn, const char *what, unsigned status)
{
	struct aw_refusal refusal = { .outcome = AW_IPC_REFUSED_PROTOCOL,
				      .seen = what,
				      .status = status };

	aw_conn_refuse(conn, &refusal);
}

/* Another target than before: what went before is over. In a tunnel there is no other. */
static void set_target(struct aw_conn *conn, const struct aw_decision *decision)
{
	if (conn->is_fixed)
		return;
	aw_conn_drop_server(conn);
	conn->target = *decision;
}

static bool is_kept_target(const struct aw_conn *conn, const struct aw_decision *decision)
{
	return conn->server.fd >= 0 && conn->target.port == decision->port &&
	       strcmp(conn->target.name, decision->name) == 0;
}

static void refuse_without_target(struct aw_conn *conn, const char *what, unsigned status)
{
	static const struct aw_decision nothing = { .verdict.rule = -1 };

	set_target(conn, &nothing);
	refuse_protocol(conn, what, status);
}

static void refuse_busy(struct aw_conn *conn)
{
	static const struct aw_decision nothing = { .verdict.rule = -1 };
	struct aw_refusal refusal = { .outcome = AW_IPC_FAILED_BUSY,
				      .problem = "too many large requests at once" };

	set_target(conn, &nothing);
	aw_conn_refuse(conn, &refusal);
}

static void refuse_target(struct aw_conn *conn)
{
	bool is_malformed = conn->target.verdict.reason == AW_NET_MALFORMED;
	struct aw_refusal refusal = { .outcome = AW_IPC_REFUSED_RULE,
				      .status = is_malformed ? 400 : 0 };

	aw_conn_refuse(conn, &refusal);
}

static void ask_connect(struct aw_conn *conn, const struct aw_http_request *request)
{
	struct aw_decision decision;

	aw_decide_peer(conn->gate->net, &request->authority, &decision);
	set_target(conn, &decision);
	conn->way = AW_IPC_WAY_CONNECT;
	conn->method[0] = '\0';
	aw_conn_take(conn, request->len);
	if (aw_decision_is_granted(&decision))
		aw_dial_start(conn);
	else
		refuse_target(conn);
}

static void ask_forward(struct aw_conn *conn, const struct aw_http_request *request)
{
	struct aw_decision decision;

	aw_decide_peer(conn->gate->net, &request->authority, &decision);
	if (!is_kept_target(conn, &decision))
		set_target(conn, &decision);
	conn->target = decision;
	conn->way = AW_IPC_WAY_HTTP;
	if (aw_decision_is_granted(&decision))
		aw_exchange_request(conn, request);
	else
		refuse_target(conn);
}

/* In a tunnel the name is given: each Host has to say it, and no port but the tunnel's or none. */
static void ask_in_tunnel(struct aw_conn *conn, const struct aw_http_request *request)
{
	const struct aw_hostport *authority = &request->authority;
	char seen[AW_NET_NAME_MAX + 1];
	struct aw_refusal refusal = { .outcome = AW_IPC_REFUSED_HOST, .seen = seen };

	(void)aw_str_escape(authority->host.text, seen, sizeof(seen));
	if (request->form != AW_HTTP_FORM_AUTHORITY &&
	    aw_decide_is_same_name(authority->host.text, conn->target.name) &&
	    (authority->port == conn->target.port || authority->port == HTTP_PORT))
		aw_exchange_request(conn, request);
	else
		aw_conn_refuse(conn, &refusal);
}

static void ask_http(struct aw_conn *conn, const struct aw_http_request *request)
{
	(void)aw_str_format(conn->method, sizeof(conn->method), "%.*s", (int)request->method.len,
			    request->method.ptr);
	if (conn->is_fixed)
		ask_in_tunnel(conn, request);
	else if (request->form == AW_HTTP_FORM_AUTHORITY)
		ask_connect(conn, request);
	else if (request->form == AW_HTTP_FORM_ABSOLUTE)
		ask_forward(conn, request);
	else
		refuse_without_target(conn, "a proxy takes CONNECT and absolute URLs", 400);
}

static void next_http(struct aw_conn *conn)
{
	struct aw_http_request request;
	enum aw_http_flaw flaw;
	int n = aw_http_request_parse(&conn->scan, aw_buf_str(&conn->in), &request, &flaw);

	if (n == -EAGAIN) {
		aw_conn_expect_more(conn);
		(void)aw_conn_wait(conn, EPOLLIN, EPOLLIN);
		return;
	}
	conn->scan = (struct aw_http_scan){ 0 };
	aw_timer_stop(&conn->timer);
	if (n > 0)
		ask_http(conn, &request);
	else
		refuse_without_target(conn, aw_http_flaw_text(flaw), aw_http_flaw_status(flaw));
}

static void greet_socks(struct aw_conn *conn)
{
	uint8_t reply[AW_SOCKS_METHOD_LEN];
	bool is_open;
	ssize_t n = aw_socks_greeting_parse(aw_buf_str(&conn->in), &is_open);

	conn->way = AW_IPC_WAY_SOCKS;
	if (n == -EAGAIN) {
		aw_conn_expect_more(conn);
		return;
	}
	if (n < 0) {
		refuse_protocol(conn, "not a SOCKS5 greeting", 0);
		return;
	}
	aw_socks_method_write(is_open, reply);
	if (!aw_conn_say(conn, reply, sizeof(reply)))
		return;
	if (!is_open) {
		refuse_protocol(conn, "the client wants to authenticate", 0);
		return;
	}
	conn->is_greeted = true;
	aw_conn_take(conn, (size_t)n);
}

static void ask_socks(struct aw_conn *conn)
{
	struct aw_hostport peer;
	enum aw_socks_reply reply;
	ssize_t n = aw_socks_request_parse(aw_buf_str(&conn->in), &peer, &reply);

	if (n == -EAGAIN) {
		aw_conn_expect_more(conn);
		return;
	}
	aw_timer_stop(&conn->timer);
	if (n < 0) {
		refuse_protocol(conn, "not a SOCKS5 request for a connection", 0);
		return;
	}
	aw_decide_peer(conn->gate->net, &peer, &conn->target);
	aw_conn_take(conn, (size_t)n);
	if (aw_decision_is_granted(&conn->target))
		aw_dial_start(conn);
	else
		refuse_target(conn);
}

static void next_socks(struct aw_conn *conn)
{
	if (!conn->is_greeted)
		greet_socks(conn);
	if (conn->phase == AW_PHASE_ASK && conn->is_greeted && conn->in.len > 0)
		ask_socks(conn);
	if (conn->phase == AW_PHASE_ASK)
		(void)aw_conn_wait(conn, EPOLLIN, 0);
}

/* The first byte of a connection tells; CONNECT is what a connection is until it says otherwise. */
static bool is_socks(const struct aw_conn *conn)
{
	if (conn->is_fixed)
		return false;
	return conn->way == AW_IPC_WAY_SOCKS ||
	       (conn->way == AW_IPC_WAY_CONNECT && conn->in.data[0] == AW_SOCKS_VERSION);
}

void aw_ask_next(struct aw_conn *conn)
{
	if (aw_conn_park_if_behind(conn))
		return;
	if (conn->in.len == 0) {
		(void)aw_conn_wait(conn, EPOLLIN, EPOLLIN);
		return;
	}
	if (!is_socks(conn)) {
		next_http(conn);
		return;
	}
	next_socks(conn);
}

void aw_ask_ready(struct aw_conn *conn)
{
	ssize_t n = aw_conn_read(conn);

	if (n == -EAGAIN) {
		(void)aw_conn_wait(conn, EPOLLIN, EPOLLIN);
		return;
	}
	if (n == -ENOBUFS && !conn->is_large) {
		refuse_busy(conn);
		return;
	}
	if (n <= 0 && n != -ENOBUFS) {
		aw_conn_close(conn, n < 0);
		return;
	}
	aw_ask_next(conn);
}
