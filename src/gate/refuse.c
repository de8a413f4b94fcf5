#include "gate/refuse.h"

#include <sys/socket.h>

#include "base/own.h"
#include "gate/exchange.h"
#include "gate/gate.h"
#include "wire/http-write.h"
#include "wire/socks.h"

#define PAGE_MAX 4096

static const enum aw_socks_reply socks_replies[] = {
	[AW_IPC_REFUSED_RULE] = AW_SOCKS_NOT_ALLOWED,
	[AW_IPC_REFUSED_ADDRESS] = AW_SOCKS_NOT_ALLOWED,
	[AW_IPC_REFUSED_PROTOCOL] = AW_SOCKS_FAILED,
	[AW_IPC_FAILED_RESOLVE] = AW_SOCKS_HOST_UNREACHABLE,
	[AW_IPC_FAILED_CONNECT] = AW_SOCKS_REFUSED,
	[AW_IPC_FAILED_BUSY] = AW_SOCKS_FAILED,
};

static void report(struct aw_conn *conn, const struct aw_refusal *refusal)
{
	struct aw_ipc_verdict v = {
		.id = conn->id,
		.way = (uint8_t)conn->way,
		.outcome = (uint8_t)refusal->outcome,
		.reason = (uint8_t)conn->target.verdict.reason,
		.rule = conn->target.verdict.rule,
		.port = conn->target.port,
		.addr = refusal->addr,
	};
	const char *seen = refusal->seen != NULL ? refusal->seen : refusal->problem;

	(void)aw_str_format(v.name, sizeof(v.name), "%s", conn->target.name);
	(void)aw_str_format(v.method, sizeof(v.method), "%s", conn->method);
	(void)aw_str_format(v.seen, sizeof(v.seen), "%s", seen != NULL ? seen : "");
	aw_report_verdict(&conn->gate->report, &v);
	conn->is_reported = true;
}

void aw_conn_report_allowed(struct aw_conn *conn)
{
	struct aw_refusal none = { .outcome = AW_IPC_ALLOWED, .addr = conn->peer };

	report(conn, &none);
}

void aw_conn_linger(struct aw_conn *conn)
{
	aw_conn_drop_server(conn);
	aw_exchange_drop(&conn->exchange);
	conn->phase = AW_PHASE_LINGER;
	(void)shutdown(conn->client.fd, SHUT_WR);
	aw_timer_start(&conn->gate->timers, &conn->timer, AW_TIMER_LINGER);
	(void)aw_conn_wait(conn, EPOLLIN, 0);
}

static void answer_page(struct aw_conn *conn, const struct aw_refusal *refusal)
{
	autodrop(aw_buf_fini) struct aw_buf page = AW_BUF_INIT(PAGE_MAX);
	autodrop(aw_buf_fini) struct aw_buf answer = AW_BUF_INIT(2 * PAGE_MAX);
	unsigned status = aw_refusal_explain(conn->gate->net, &conn->target, refusal, &page);
	int r = aw_http_answer_write(status, aw_http_status_text(status), aw_buf_str(&page),
				     &answer);

	if (r < 0)
		aw_conn_close(conn, true);
	else if (aw_conn_say(conn, answer.data, answer.len))
		aw_conn_linger(conn);
}

static void answer_socks(struct aw_conn *conn, const struct aw_refusal *refusal)
{
	uint8_t reply[AW_SOCKS_REPLY_LEN];

	aw_socks_reply_write(socks_replies[refusal->outcome], reply);
	if (aw_conn_say(conn, reply, sizeof(reply)))
		aw_conn_linger(conn);
}

void aw_conn_refuse(struct aw_conn *conn, const struct aw_refusal *refusal)
{
	report(conn, refusal);
	/* Inside a transparent tunnel HTTP is spoken as well. */
	if (conn->way == AW_IPC_WAY_SOCKS && !conn->is_fixed)
		answer_socks(conn, refusal);
	else if (conn->way == AW_IPC_WAY_TRANSPARENT && conn->exchange == NULL)
		aw_conn_close(conn, true);
	else
		answer_page(conn, refusal);
}

void aw_conn_cut(struct aw_conn *conn, const struct aw_refusal *refusal)
{
	report(conn, refusal);
	aw_conn_close(conn, true);
}
