/*
 * ipc - messages between the roles: who may say what to whom, and with which descriptors.
 *
 * Every link is one SOCK_SEQPACKET socket pair, so that a message arrives whole or not at all. A
 * message is a struct aw_ipc_head and a fixed payload per type (some end in a counted tail). The one
 * table in ipc.c says for each type who sends it, how long its payload may be and how many
 * descriptors come along; aw_ipc_recv holds a peer to it and answers -EPROTO to anything else, with
 * every descriptor that came along closed.
 *
 * Payload structs are flat and without pointers. Text inside is NUL-terminated after aw_ipc_recv.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "policy/net.h"

#define AW_IPC_FDS_MAX 72
#define AW_IPC_PAYLOAD_MAX (96 * 1024)
#define AW_IPC_LISTENERS_MAX 66
#define AW_IPC_SERVERS_MAX 8
#define AW_IPC_HOSTS_MAX 64
#define AW_IPC_TREES_MAX 8

enum aw_ipc_role {
	AW_IPC_MONITOR = 1,
	AW_IPC_CELL,
	AW_IPC_GATE,
	AW_IPC_CLIENT
};

enum aw_ipc_type {
	/* monitor -> gate */
	AW_IPC_GATE_SETUP = 1, /* struct aw_ipc_gate_setup; fds: policy memfd, then the listeners */
	AW_IPC_GATE_POLICY,    /* empty; fd: new policy memfd */
	AW_IPC_GATE_RESOLVERS, /* struct aw_ipc_resolvers */
	/* gate -> monitor */
	AW_IPC_GATE_READY,   /* empty: confined and serving */
	AW_IPC_GATE_VERDICT, /* struct aw_ipc_verdict */
	AW_IPC_GATE_CLOSED,  /* struct aw_ipc_closed */
	AW_IPC_GATE_FAILED,  /* struct aw_error: it could not start; it ends */
	/* cell -> monitor */
	AW_IPC_CELL_READY,   /* struct aw_ipc_cell_ready; fds: see there */
	AW_IPC_CELL_FAILED,  /* struct aw_error: what could not be set up or did not hold */
	AW_IPC_CELL_STARTED, /* struct aw_ipc_cell_job: a command runs */
	AW_IPC_CELL_ENDED,   /* struct aw_ipc_cell_job: a command ended, with its status */
	AW_IPC_CELL_EMPTY,   /* empty: everything inside is dead and reaped */
	/* monitor -> cell */
	AW_IPC_CELL_MAPPED, /* empty: ids are mapped; fds: the plan, then the trees that it asks for */
	AW_IPC_CELL_GO,     /* empty: start the agent */
	AW_IPC_CELL_EXEC,   /* struct aw_ipc_cell_exec + strings; fds: stdin, stdout, stderr */
	AW_IPC_CELL_SIGNAL, /* struct aw_ipc_cell_signal */
	AW_IPC_CELL_FREEZE, /* empty: stop every process but pid 1; answered by CELL_FROZEN */
	AW_IPC_CELL_THAW,   /* empty */
	AW_IPC_CELL_FROZEN, /* cell -> monitor, struct aw_ipc_frozen */
	/* client -> monitor, at the control socket of a session */
	AW_IPC_ASK_STATUS, /* empty; TELL_STATUS */
	AW_IPC_ASK_STOP,   /* struct aw_ipc_stop; TELL_DONE when the session has ended */
	AW_IPC_ASK_EXEC, /* as CELL_EXEC, job ignored; TELL_STARTED and TELL_ENDED, or TELL_REFUSED */
	AW_IPC_ASK_SIGNAL, /* struct aw_ipc_cell_signal: to the job of this client; no answer */
	AW_IPC_ASK_RULE,   /* struct aw_ipc_rule; TELL_DONE or TELL_REFUSED */
	/* monitor -> client */
	AW_IPC_TELL_STATUS,  /* struct aw_ipc_status */
	AW_IPC_TELL_STARTED, /* struct aw_ipc_cell_job; fd: the pty master if one was wanted */
	AW_IPC_TELL_ENDED,   /* struct aw_ipc_cell_job */
	AW_IPC_TELL_DONE,    /* empty */
	AW_IPC_TELL_REFUSED, /* struct aw_error */
	AW_IPC_TYPE_COUNT
};

struct aw_ipc_head {
	uint32_t type;
	uint32_t len; /* of the payload */
};

/* An address as bytes: family AF_INET or AF_INET6, network order. */
struct aw_ipc_addr {
	uint8_t family;
	uint8_t bytes[16];
	uint16_t port; /* host order; 0 where it does not apply */
};

struct aw_ipc_resolvers {
	uint32_t count;
	struct aw_ipc_addr server[AW_IPC_SERVERS_MAX]; /* upstream name servers of the host */
};

/* A name of the host's /etc/hosts that the policy grants: answered from here, never asked. */
struct aw_ipc_host {
	char name[AW_NET_NAME_MAX + 1];
	struct aw_ipc_addr addr;
};

enum aw_ipc_listener_kind {
	AW_IPC_LISTEN_PROXY = 1,   /* TCP 127.0.0.1:3128 */
	AW_IPC_LISTEN_TRANSPARENT, /* TCP 0.0.0.0:port, the synthetic range */
	AW_IPC_LISTEN_DNS_UDP,     /* 127.0.0.1:53 */
	AW_IPC_LISTEN_DNS_TCP,
};

struct aw_ipc_listener {
	uint8_t kind;
	uint16_t port;
};

struct aw_ipc_gate_setup {
	struct aw_ipc_resolvers resolvers;
	uint32_t listener_count;
	struct aw_ipc_listener listener[AW_IPC_LISTENERS_MAX];
	uint32_t own_count;
	struct aw_ipc_addr own[64]; /* addresses of the host's interfaces: never connected to */
	uint32_t host_count;
	struct aw_ipc_host host[AW_IPC_HOSTS_MAX];
};

enum aw_ipc_way {
	AW_IPC_WAY_CONNECT = 1, /* explicit proxy, CONNECT */
	AW_IPC_WAY_HTTP,        /* explicit proxy, absolute-form request */
	AW_IPC_WAY_TRANSPARENT, /* by synthetic address */
	AW_IPC_WAY_DNS,
	AW_IPC_WAY_SOCKS, /* explicit proxy, SOCKS5 with the name unresolved */
};

enum aw_ipc_outcome {
	AW_IPC_ALLOWED = 1,
	AW_IPC_REFUSED_RULE,     /* aw_net_reason says which */
	AW_IPC_REFUSED_ADDRESS,  /* every answer was private, link-local, metadata, own, ... */
	AW_IPC_REFUSED_SNI,      /* TLS with another or no server name */
	AW_IPC_REFUSED_HOST,     /* HTTP with another Host */
	AW_IPC_REFUSED_PROTOCOL, /* not what the port is for, or malformed */
	AW_IPC_REFUSED_UNKNOWN_ADDRESS, /* a synthetic address that stands for no name */
	AW_IPC_FAILED_RESOLVE,
	AW_IPC_FAILED_CONNECT,
	AW_IPC_FAILED_BUSY, /* too many connections at once */
};

struct aw_ipc_verdict {
	uint64_t id; /* of the connection; 0 for DNS */
	uint8_t way, outcome, reason;
	int32_t rule;                   /* index in struct aw_net, -1 if none */
	char name[AW_NET_NAME_MAX + 1]; /* as asked, escaped when it is no name */
	char seen[AW_NET_NAME_MAX + 1]; /* the SNI or Host that did not fit, escaped */
	char method[16];                /* of a plain HTTP request, else empty */
	uint16_t port;
	uint16_t dns_type;
	struct aw_ipc_addr addr; /* connected or refused address */
	uint32_t repeats;        /* DNS: further identical questions that this one stands for */
};

struct aw_ipc_closed {
	uint64_t id;
	uint64_t bytes_out, bytes_in, duration_ns; /* out: cell to network */
};

/*
 * The cell is set up and measured. Descriptors in this order: mountinfo of the cell, its user
 * namespace, its mount namespace, the pty master (if the plan asked for one), the listeners.
 */
struct aw_ipc_cell_ready {
	uint8_t has_pty;
	uint32_t listener_count;
	struct aw_ipc_listener listener[AW_IPC_LISTENERS_MAX];
	uint32_t checks_held; /* bits of the posture self-check: enum aw_posture_check */
	uint32_t landlock_abi;
};

struct aw_ipc_cell_job {
	uint32_t job;   /* 0: the agent; else the number that CELL_EXEC carried */
	int32_t pid;    /* inside the cell */
	int32_t status; /* exit code, or 128 + N after signal N; STARTED: 0 */
	uint8_t by_signal, exec_failed;
	int32_t exec_errno;
};

struct aw_ipc_cell_exec {
	uint32_t job;
	uint8_t wants_pty; /* the answer CELL_STARTED then carries the master */
	uint16_t rows, columns;
	uint32_t argc, envc; /* tail: cwd, then argc + envc strings, each NUL-terminated */
	uint32_t tail_len;
};

struct aw_ipc_cell_signal {
	uint32_t job;
	int32_t signal;
};

/* Whether every process but pid 1 stands still. */
struct aw_ipc_frozen {
	uint8_t is_complete;
};

struct aw_ipc_stop {
	uint8_t is_forced; /* kill at once; else ask the agent to end and kill after the grace time */
};

/* A rule for this session only: granted or taken back, while it runs. */
struct aw_ipc_rule {
	struct aw_net_rule rule;
	uint8_t is_removed;
};

struct aw_ipc_status {
	uint64_t running_ns;           /* since the agent started */
	uint64_t connections, refused; /* by gate, so far */
	uint64_t events;               /* in the journal */
	uint32_t jobs;                 /* that run now, the agent included */
	uint32_t landlock_abi, checks_held;
	uint8_t has_network, is_frozen;
};

struct aw_ipc_message {
	enum aw_ipc_type type;
	uint32_t len;
	union {
		uint8_t payload[AW_IPC_PAYLOAD_MAX];
		uint64_t align;
	};
	int fds[AW_IPC_FDS_MAX];
	size_t fd_count;
};

/* A pair of links: [0] stays here, [1] goes to the role. Close-on-exec, SOCK_SEQPACKET. */
int aw_ipc_pair(int ret[2], struct aw_error *err);

/* Send; the fds stay the caller's. -EPIPE when the peer is gone, -EAGAIN on a full non-blocking link. */
int aw_ipc_send(int link, enum aw_ipc_type type, const void *payload, size_t len, const int *fds,
		size_t fd_count, struct aw_error *err);

/*
 * Receive what @from may say to @self. Returns 1, 0 at the end of the link (peer gone), -EAGAIN on a
 * non-blocking link, -EPROTO when the peer broke the table. On 1 the caller owns message->fds (take
 * them with AW_TAKE_FD; aw_ipc_message_fini closes the rest).
 */
int aw_ipc_recv(int link, enum aw_ipc_role self, enum aw_ipc_role from,
		struct aw_ipc_message *message, struct aw_error *err);
void aw_ipc_message_fini(struct aw_ipc_message *message);

/* Whether a message, or the end of the link, is there within @timeout_ms (-1: for ever). */
bool aw_ipc_wait_readable(int link, int timeout_ms);

/* Check one received message against the table: pure, fuzzed. */
int aw_ipc_check(enum aw_ipc_role self, enum aw_ipc_role from, const void *bytes, size_t len,
		 size_t fd_count, struct aw_error *err);
