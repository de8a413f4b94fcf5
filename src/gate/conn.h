/*
 * conn - one client connection and what became of it.
 *
 *	ASK       reading what the client wants (ask.h: HTTP, CONNECT, SOCKS)
 *	DIAL      resolving and connecting (dial.h); the client waits
 *	TUNNEL    bytes both ways, the client's first ones peeked at (tunnel.h)
 *	EXCHANGE  one HTTP request and its response under way (exchange.h)
 *	LINGER    refused and answered; the client may still read
 *	DEAD      closed; the memory goes when the current event is over
 *
 * Whoever calls something that may close looks at the phase afterwards. Nothing frees a connection
 * while an event is being handled.
 */
#pragma once

#include "gate/decide.h"
#include "gate/flow.h"
#include "gate/timer.h"
#include "ipc/ipc.h"
#include "wire/http.h"

#define AW_CONNS_MAX 4096
#define AW_CONN_SMALL 4096 /* bytes of a head that every connection may hold */
#define AW_CONNS_LARGE 64  /* connections that may hold more, up to AW_CONN_IN_MAX */
#define AW_CONN_IN_MAX (AW_HTTP_HEAD_MAX + AW_FLOW_SCRATCH)

struct aw_gate;
struct aw_dial;
struct aw_exchange;

enum aw_phase {
	AW_PHASE_ASK,
	AW_PHASE_DIAL,
	AW_PHASE_TUNNEL,
	AW_PHASE_EXCHANGE,
	AW_PHASE_LINGER,
	AW_PHASE_DEAD,
	AW_PHASE_COUNT
};

struct aw_conn {
	struct aw_gate *gate;
	struct aw_conn *prev, *next;
	enum aw_phase phase;
	enum aw_ipc_way way;
	struct aw_watch client, server;
	struct aw_timer timer;   /* TALK or LINGER */
	uint64_t id, dialled_ns; /* of the connection to the server: one per connection out */
	struct aw_decision target;
	struct aw_ipc_addr peer; /* of the server */
	int name_entry;          /* of names.h, -1 if none */
	char method[AW_HTTP_METHOD_MAX + 1];
	struct aw_dial *dial;
	struct aw_exchange *exchange;
	struct aw_http_scan scan; /* where the search in it stands */
	struct aw_buf in;         /* from the client, not yet understood */
	struct aw_flow up, down;
	enum aw_flow_state up_state, down_state; /* what each waits for */
	bool has_target;                         /* target was granted */
	bool is_fixed;  /* a tunnel: the server is what was granted, whatever is in it */
	bool is_peeked; /* its first bytes may go on */
	bool is_reported;
	bool is_large;   /* holds one of AW_CONNS_LARGE */
	bool is_parked;  /* waits until the monitor has caught up */
	bool is_greeted; /* SOCKS: the method is agreed */
};

struct aw_conns {
	struct aw_conn *first, *dead;
	size_t count, max, large_count;
	uint64_t last_id;
};

/* Take over an accepted socket. NULL (and it is closed) when out of memory. */
struct aw_conn *aw_conn_open(struct aw_gate *gate, int take_client, enum aw_ipc_way way);

/* @is_abrupt: with RST, so that nobody takes what came for the whole. */
void aw_conn_close(struct aw_conn *conn, bool is_abrupt);

/* Close the server's side alone and report the end of that connection. */
void aw_conn_drop_server(struct aw_conn *conn);

/* Free what was closed. Only where no connection is being handled. */
void aw_conns_reap(struct aw_gate *gate);

/* Every connection that waited for the monitor goes on. */
void aw_conns_unpark(struct aw_gate *gate);
bool aw_conn_park_if_behind(struct aw_conn *conn);

/* Decide every connection anew; what is not granted any more is reported and closed. */
void aw_conns_apply_policy(struct aw_gate *gate);

/*
 * Read what the client has to say behind conn->in. > 0; 0 at its end; -EAGAIN; -errno; -ENOBUFS
 * beyond what may be held.
 */
ssize_t aw_conn_read(struct aw_conn *conn);

/* @len bytes of conn->in are understood. */
void aw_conn_take(struct aw_conn *conn, size_t len);

/* Send a few bytes at once. False: the connection is closed. */
bool aw_conn_say(struct aw_conn *conn, const void *bytes, size_t len);

/* Wait for these events; 0 for none. False: the connection is closed. */
bool aw_conn_wait(struct aw_conn *conn, uint32_t client_events, uint32_t server_events);

/* Start the time in which a client that has begun to talk has to come to a point, unless it runs. */
void aw_conn_expect_more(struct aw_conn *conn);
