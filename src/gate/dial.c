#include "gate/dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/own.h"
#include "base/proc.h"
#include "gate/ask.h"
#include "gate/exchange.h"
#include "gate/gate.h"
#include "gate/refuse.h"
#include "gate/tunnel.h"
#include "wire/http-write.h"
#include "wire/socks.h"

#define RACE_MAX 3 /* addresses tried at the same time */

struct racer {
	struct aw_watch watch; /* fd < 0: free */
	struct aw_dial *dial;
	struct aw_ipc_addr addr;
};

struct aw_dial {
	struct aw_conn *conn;
	struct aw_lookup *lookup;
	struct aw_lookup_result found;
	size_t next; /* of found.addr, to be tried */
	struct racer racer[RACE_MAX];
	struct aw_timer limit, stagger;
	struct aw_ipc_addr failed; /* the last that did, and why */
	int failure;
};

static void end_racer(struct racer *racer)
{
	if (racer->watch.fd < 0)
		return;
	aw_loop_forget(&racer->dial->conn->gate->loop, &racer->watch);
	racer->watch.fd = aw_fd_close(racer->watch.fd);
}

void aw_dial_drop(struct aw_dial **slot)
{
	struct aw_dial *dial = AW_TAKE_PTR(*slot);

	if (dial == NULL)
		return;
	aw_lookup_cancel(&dial->lookup);
	aw_timer_stop(&dial->limit);
	aw_timer_stop(&dial->stagger);
	for (size_t i = 0; i < RACE_MAX; i++)
		end_racer(&dial->racer[i]);
	free(dial);
}

/* Resolving or connecting did not work out; @failure is errno's. */
static void fail(struct aw_dial *dial, int failure)
{
	struct aw_conn *conn = dial->conn;
	struct aw_refusal refusal = { .outcome = AW_IPC_FAILED_CONNECT,
				      .problem = strerror(failure),
				      .addr = dial->failed };

	aw_dial_drop(&conn->dial);
	aw_conn_refuse(conn, &refusal);
}

/* How each way learns that the server is there. */
static void tell_client(struct aw_conn *conn)
{
	uint8_t reply[AW_SOCKS_REPLY_LEN];

	switch (conn->way) {
	case AW_IPC_WAY_HTTP:
		aw_exchange_dialled(conn);
		return;
	case AW_IPC_WAY_CONNECT:
		if (!aw_conn_say(conn, AW_HTTP_ESTABLISHED, strlen(AW_HTTP_ESTABLISHED)))
			return;
		break;
	case AW_IPC_WAY_SOCKS:
		aw_socks_reply_write(AW_SOCKS_OK, reply);
		if (!aw_conn_say(conn, reply, sizeof(reply)))
			return;
		break;
	case AW_IPC_WAY_TRANSPARENT:
	case AW_IPC_WAY_DNS:
		break;
	}
	aw_tunnel_begin(conn);
}

static void win(struct racer *racer)
{
	struct aw_conn *conn = racer->dial->conn;
	struct aw_gate *gate = conn->gate;
	struct aw_error err;

	if (aw_loop_move(&gate->loop, &racer->watch, &conn->server, EPOLLIN, &err) < 0) {
		fail(racer->dial, err.code);
		return;
	}
	conn->peer = racer->addr;
	conn->up.to = conn->down.from = conn->server.fd;
	gate->resolver.last_family = racer->addr.family;
	aw_dial_drop(&conn->dial);
	tell_client(conn);
}

static struct racer *free_racer(struct aw_dial *dial)
{
	for (size_t i = 0; i < RACE_MAX; i++)
		if (dial->racer[i].watch.fd < 0)
			return &dial->racer[i];
	return NULL;
}

static int open_server_socket(const struct aw_ipc_addr *addr)
{
	int fd = socket(addr->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	return fd;
}

/* Send one address into the race. 0 or -errno. */
static int race(struct racer *racer, const struct aw_ipc_addr *addr)
{
	struct sockaddr_storage to;
	socklen_t len = aw_address_to_sockaddr(addr, &to);
	autoclose int fd = open_server_socket(addr);
	struct aw_error err;

	if (fd < 0)
		return fd;
	if (connect(fd, (const struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS)
		return -errno;
	racer->watch.fd = fd;
	racer->addr = *addr;
	if (aw_loop_watch(&racer->dial->conn->gate->loop, &racer->watch, EPOLLOUT, &err) < 0) {
		racer->watch.fd = -EBADF;
		return -err.code;
	}
	(void)AW_TAKE_FD(fd);
	return 0;
}

static bool is_anyone_racing(const struct aw_dial *dial)
{
	for (size_t i = 0; i < RACE_MAX; i++)
		if (dial->racer[i].watch.fd >= 0)
			return true;
	return false;
}

/* Send the next address that can be sent; give up when none is left and none is on its way. */
static void go_on(struct aw_dial *dial)
{
	struct racer *racer = free_racer(dial);

	while (racer != NULL && dial->next < dial->found.count) {
		const struct aw_ipc_addr *addr = &dial->found.addr[dial->next++];
		int r = race(racer, addr);

		if (r == 0) {
			if (dial->next < dial->found.count)
				aw_timer_start(&dial->conn->gate->timers, &dial->stagger,
					       AW_TIMER_STAGGER);
			return;
		}
		dial->failed = *addr;
		dial->failure = -r;
	}
	if (!is_anyone_racing(dial))
		fail(dial, dial->failure);
}

static int racer_ready(struct aw_watch *watch, uint32_t events)
{
	struct racer *racer = AW_CONTAINER(watch, struct racer, watch);
	struct aw_dial *dial = racer->dial;
	int code = 0;
	socklen_t len = sizeof(code);

	aw_conns_reap(dial->conn->gate);
	if ((events & (EPOLLERR | EPOLLHUP)) &&
	    getsockopt(watch->fd, SOL_SOCKET, SO_ERROR, &code, &len) < 0)
		code = errno;
	if (code == 0) {
		win(racer);
		return 0;
	}
	dial->failed = racer->addr;
	dial->failure = code;
	end_racer(racer);
	go_on(dial);
	return 0;
}

static void stagger_fired(struct aw_timer *timer)
{
	go_on(AW_CONTAINER(timer, struct aw_dial, stagger));
}

static void limit_fired(struct aw_timer *timer)
{
	struct aw_dial *dial = AW_CONTAINER(timer, struct aw_dial, limit);

	if (dial->failed.family == 0 && dial->found.count > 0)
		dial->failed = dial->found.addr[0];
	fail(dial, ETIMEDOUT);
}

static void resolved(void *owner, const struct aw_lookup_result *result)
{
	struct aw_dial *dial = owner;
	struct aw_conn *conn = dial->conn;
	struct aw_refusal refusal = { .outcome = AW_IPC_FAILED_RESOLVE,
				      .problem = result->problem };

	if (result->count > 0) {
		dial->found = *result;
		go_on(dial);
		return;
	}
	if (result->forbidden.family != 0) {
		refusal.outcome = AW_IPC_REFUSED_ADDRESS;
		refusal.addr = result->forbidden;
		refusal.class = result->class;
	}
	aw_dial_drop(&conn->dial);
	aw_conn_refuse(conn, &refusal);
}

static struct aw_dial *new_dial(struct aw_conn *conn)
{
	struct aw_dial *dial = calloc(1, sizeof(*dial));

	if (dial == NULL)
		return NULL;
	dial->conn = conn;
	dial->limit.fire = limit_fired;
	dial->stagger.fire = stagger_fired;
	for (size_t i = 0; i < RACE_MAX; i++)
		dial->racer[i] = (struct racer){ .watch = { .fd = -EBADF, .ready = racer_ready },
						 .dial = dial };
	return dial;
}

void aw_dial_start(struct aw_conn *conn)
{
	struct aw_gate *gate = conn->gate;
	struct aw_dial *dial = new_dial(conn);
	struct aw_lookup_request request = {
		.name = conn->target.name,
		.port = conn->target.port,
		.may_be_private = conn->target.verdict.may_be_private,
		.done = resolved,
		.owner = dial,
	};
	struct aw_refusal refusal = { .outcome = AW_IPC_FAILED_BUSY, .problem = strerror(ENOMEM) };

	aw_timer_stop(&conn->timer);
	conn->phase = AW_PHASE_DIAL;
	conn->dial = dial;
	conn->dialled_ns = aw_now_ns();
	conn->has_target = true;
	if (dial != NULL) {
		aw_timer_start(&gate->timers, &dial->limit, AW_TIMER_CONNECT);
		if (aw_lookup_start(&gate->resolver, &request, &dial->lookup) == 0)
			return;
	}
	aw_dial_drop(&conn->dial);
	aw_conn_refuse(conn, &refusal);
}
