/*
 * One message on the wire is one SOCK_SEQPACKET record:
 *
 *	struct aw_ipc_head | payload struct of its type | counted tail (CELL_EXEC only)
 *
 * with its descriptors in SCM_RIGHTS. Both ends are one build on one machine: native byte order.
 */
#include "ipc/ipc.h"

#include <assert.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/own.h"

/* Looks into a payload of the right size: 0, or -EPROTO with its story. */
typedef int check_fn(const void *payload, size_t len, size_t fd_count, struct aw_error *err);

static check_fn check_setup, check_resolvers, check_verdict, check_ready, check_failed, check_job,
	check_exec, check_rule;

struct rule {
	enum aw_ipc_role from, to;
	size_t size; /* of the payload without its tail */
	bool has_tail;
	size_t fd_min, fd_max;
	check_fn *check;
};

#define FDS_READY 3 /* mountinfo, user namespace, mount namespace */

static const struct rule rules[AW_IPC_TYPE_COUNT] = {
	[AW_IPC_GATE_SETUP] = { AW_IPC_MONITOR, AW_IPC_GATE, sizeof(struct aw_ipc_gate_setup),
				false, 1, 1 + AW_IPC_LISTENERS_MAX, check_setup },
	[AW_IPC_GATE_POLICY] = { AW_IPC_MONITOR, AW_IPC_GATE, 0, false, 1, 1, NULL },
	[AW_IPC_GATE_RESOLVERS] = { AW_IPC_MONITOR, AW_IPC_GATE, sizeof(struct aw_ipc_resolvers),
				    false, 0, 0, check_resolvers },
	[AW_IPC_GATE_READY] = { AW_IPC_GATE, AW_IPC_MONITOR, 0, false, 0, 0, NULL },
	[AW_IPC_GATE_VERDICT] = { AW_IPC_GATE, AW_IPC_MONITOR, sizeof(struct aw_ipc_verdict), false,
				  0, 0, check_verdict },
	[AW_IPC_GATE_CLOSED] = { AW_IPC_GATE, AW_IPC_MONITOR, sizeof(struct aw_ipc_closed), false,
				 0, 0, NULL },
	[AW_IPC_GATE_FAILED] = { AW_IPC_GATE, AW_IPC_MONITOR, sizeof(struct aw_error), false, 0, 0,
				 check_failed },
	[AW_IPC_CELL_READY] = { AW_IPC_CELL, AW_IPC_MONITOR, sizeof(struct aw_ipc_cell_ready),
				false, FDS_READY, FDS_READY + 1 + AW_IPC_LISTENERS_MAX,
				check_ready },
	[AW_IPC_CELL_FAILED] = { AW_IPC_CELL, AW_IPC_MONITOR, sizeof(struct aw_error), false, 0, 0,
				 check_failed },
	[AW_IPC_CELL_STARTED] = { AW_IPC_CELL, AW_IPC_MONITOR, sizeof(struct aw_ipc_cell_job),
				  false, 0, 1, check_job },
	[AW_IPC_CELL_ENDED] = { AW_IPC_CELL, AW_IPC_MONITOR, sizeof(struct aw_ipc_cell_job), false,
				0, 0, check_job },
	[AW_IPC_CELL_EMPTY] = { AW_IPC_CELL, AW_IPC_MONITOR, 0, false, 0, 0, NULL },
	[AW_IPC_CELL_MAPPED] = { AW_IPC_MONITOR, AW_IPC_CELL, 0, false, 1, 1 + AW_IPC_TREES_MAX,
				 NULL },
	[AW_IPC_CELL_GO] = { AW_IPC_MONITOR, AW_IPC_CELL, 0, false, 0, 0, NULL },
	[AW_IPC_CELL_EXEC] = { AW_IPC_MONITOR, AW_IPC_CELL, sizeof(struct aw_ipc_cell_exec), true,
			       0, 3, check_exec },
	[AW_IPC_CELL_SIGNAL] = { AW_IPC_MONITOR, AW_IPC_CELL, sizeof(struct aw_ipc_cell_signal),
				 false, 0, 0, NULL },
	[AW_IPC_CELL_FREEZE] = { AW_IPC_MONITOR, AW_IPC_CELL, 0, false, 0, 0, NULL },
	[AW_IPC_CELL_THAW] = { AW_IPC_MONITOR, AW_IPC_CELL, 0, false, 0, 0, NULL },
	[AW_IPC_CELL_FROZEN] = { AW_IPC_CELL, AW_IPC_MONITOR, sizeof(struct aw_ipc_frozen), false,
				 0, 0, NULL },
	[AW_IPC_ASK_STATUS] = { AW_IPC_CLIENT, AW_IPC_MONITOR, 0, false, 0, 0, NULL },
	[AW_IPC_ASK_STOP] = { AW_IPC_CLIENT, AW_IPC_MONITOR, sizeof(struct aw_ipc_stop), false, 0,
			      0, NULL },
	[AW_IPC_ASK_EXEC] = { AW_IPC_CLIENT, AW_IPC_MONITOR, sizeof(struct aw_ipc_cell_exec), true,
			      0, 3, check_exec },
	[AW_IPC_ASK_SIGNAL] = { AW_IPC_CLIENT, AW_IPC_MONITOR, sizeof(struct aw_ipc_cell_signal),
				false, 0, 0, NULL },
	[AW_IPC_ASK_RULE] = { AW_IPC_CLIENT, AW_IPC_MONITOR, sizeof(struct aw_ipc_rule), false, 0,
			      0, check_rule },
	[AW_IPC_TELL_STATUS] = { AW_IPC_MONITOR, AW_IPC_CLIENT, sizeof(struct aw_ipc_status), false,
				 0, 0, NULL },
	[AW_IPC_TELL_STARTED] = { AW_IPC_MONITOR, AW_IPC_CLIENT, sizeof(struct aw_ipc_cell_job),
				  false, 0, 1, check_job },
	[AW_IPC_TELL_ENDED] = { AW_IPC_MONITOR, AW_IPC_CLIENT, sizeof(struct aw_ipc_cell_job),
				false, 0, 0, check_job },
	[AW_IPC_TELL_DONE] = { AW_IPC_MONITOR, AW_IPC_CLIENT, 0, false, 0, 0, NULL },
	[AW_IPC_TELL_REFUSED] = { AW_IPC_MONITOR, AW_IPC_CLIENT, sizeof(struct aw_error), false, 0,
				  0, check_failed },
};

static bool is_text(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

static bool is_addr(const struct aw_ipc_addr *addr)
{
	return addr->family == AF_INET || addr->family == AF_INET6;
}

static bool are_addrs(const struct aw_ipc_addr *addr, uint32_t count, uint32_t max)
{
	if (count > max)
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!is_addr(&addr[i]))
			return false;
	return true;
}

static bool are_listeners(const struct aw_ipc_listener *listener, uint32_t count)
{
	if (count > AW_IPC_LISTENERS_MAX)
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (listener[i].kind < AW_IPC_LISTEN_PROXY ||
		    listener[i].kind > AW_IPC_LISTEN_DNS_TCP)
			return false;
	return true;
}

/* The payload may lie at any address: each check looks at a copy of its own. */
#define COPY(type, name, payload) \
	type name;                \
	memcpy(&name, payload, sizeof(name))

static int check_resolvers(const void *payload, size_t len, size_t fd_count, struct aw_error *err)
{
	COPY(struct aw_ipc_resolvers, r, payload);

	(void)len;
	(void)fd_count;
	if (!are_addrs(r.server, r.count, AW_IPC_SERVERS_MAX))
		return aw_refuse(err, EPROTO, "malformed name server list");
	return 0;
}

static int check_setup(const void *payload, size_t len, size_t fd_count, struct aw_error *err)
{
	COPY(struct aw_ipc_gate_setup, s, payload);
	int r = check_resolvers(&s.resolvers, len, fd_count, err);

	if (r < 0)
		return r;
	if (!are_listeners(s.listener, s.listener_count) || fd_count != 1 + s.listener_count)
		return aw_refuse(err, EPROTO, "malformed listener list");
	if (!are_addrs(s.own, s.own_count, AW_ARRAY_LEN(s.own)))
		return aw_refuse(err, EPROTO, "malformed list of own addresses");
	if (s.host_count > AW_IPC_HOSTS_MAX)
		return aw_refuse(err, EPROTO, "malformed host list");
	for (uint32_t i = 0; i < s.host_count; i++)
		if (!is_text(s.host[i].name, sizeof(s.host[i].name)) || !is_addr(&s.host[i].addr))
			return aw_refuse(err, EPROTO, "malformed host %u", i);
	return 0;
}

static bool has_verdict_texts(const struct aw_ipc_verdict *v)
{
	return is_text(v->name, sizeof(v->name)) && is_text(v->seen, sizeof(v->seen)) &&
	       is_text(v->method, sizeof(v->method));
}

static int check_verdict(const void *payload, size_t len, size_t fd_count, struct aw_error *err)
{
	COPY(struct aw_ipc_verdict, v, payload);

	(void)len;
	(void)fd_count;
	if (v.way < AW_IPC_WAY_CONNECT || v.way > AW_IPC_WAY_SOCKS)
		return aw_refuse(err, EPROTO, "verdict of unknown way %u", v.way);
	if (v.outcome < AW_IPC_ALLOWED || v.outcome > AW_IPC_FAILED_BUSY)
		return aw_refuse(err, EPROTO, "verdict of unknown outcome %u", v.outcome);
	if (v.reason > AW_NET_MALFORMED)
		return aw_refuse(err, EPROTO, "verdict of unknown reason %u", v.reason);
	if (v.rule < -1 || v.rule >= AW_NET_RULES_MAX)
		return aw_refuse(err, EPROTO, "verdict of unknown rule %d", v.rule);
	if (!has_verdict_texts(&v))
		return aw_refuse(err, EPROTO, "verdict with endless text");
	if (v.addr.family != 0 && !is_addr(&v.addr))
		return aw_refuse(err, EPROTO, "verdict of unknown address family %u",
				 v.addr.family);
	return 0;
}

static int check_ready(const void *payload, size_t len, size_t fd_count, struct aw_error *err)
{
	COPY(struct aw_ipc_cell_ready, c, payload);

	(void)len;
	if (c.has_pty > 1 || !are_listeners(c.listener, c.listener_count) ||
	    fd_count != FDS_READY + c.has_pty + c.listener_count)
		return aw_refuse(err, EPROTO, "malformed cell report");
	return 0;
}

static int check_failed(const void *payload, size_t len, size_t fd_count, struct aw_error *err)
{
	COPY(struct aw_error, e, payload);

	(void)len;
	(void)fd_count;
	if (e.code <= 0 || !is_text(e.message, sizeof(e.message)))
		return aw_refuse(err, EPROTO, "malformed failure report");
	return 0;
}

static int check_job(const void *payload, size_t len, size_t fd_count, struct aw_error *err)
{
	COPY(struct aw_ipc_cell_job, j, payload);

	(void)len;
	(void)fd_count;
	if (j.by_signal > 1 || j.exec_failed > 1)
		return aw_refuse(err, EPROTO, "malformed job report");
	return 0;
}

static int check_exec(const void *payload, size_t len, size_t fd_count, struct aw_error *err)
{
	COPY(struct aw_ipc_cell_exec, e, payload);
	const char *tail = (const char *)payload + sizeof(e);
	size_t strings = 0;

	if (e.tail_len != len - sizeof(e))
		return aw_refuse(err, EPROTO, "exec of %u bytes with %zu", e.tail_len,
				 len - sizeof(e));
	for (size_t i = 0; i < e.tail_len; i++)
		strings += tail[i] == '\0';
	if (e.argc == 0 || strings != 1 + (uint64_t)e.argc + e.envc || tail[e.tail_len - 1] != '\0')
		return aw_refuse(err, EPROTO, "exec with %zu strings", strings);
	if (e.wants_pty > 1 || (fd_count != 3 && !(e.wants_pty == 1 && fd_count == 0)))
		return aw_refuse(err, EPROTO, "exec with %zu descriptors", fd_count);
	return 0;
}

static int check_rule(const void *payload, size_t len, size_t fd_count, struct aw_error *err)
{
	COPY(struct aw_ipc_rule, r, payload);

	(void)len;
	(void)fd_count;
	if (!is_text(r.rule.name, sizeof(r.rule.name)) || r.rule.form < AW_NET_EXACT ||
	    r.rule.form > AW_NET_APEX_AND_BELOW || r.is_removed > 1)
		return aw_refuse(err, EPROTO, "malformed rule");
	return 0;
}

static int check(enum aw_ipc_role self, enum aw_ipc_role from, const struct aw_ipc_head *head,
		 const void *payload, size_t fd_count, struct aw_error *err)
{
	const struct rule *rule;
	bool is_long;

	if (head->type == 0 || head->type >= AW_IPC_TYPE_COUNT)
		return aw_refuse(err, EPROTO, "message of unknown type %u", head->type);
	rule = &rules[head->type];
	if (rule->from != from || rule->to != self)
		return aw_refuse(err, EPROTO, "message %u is not role %u's to send", head->type,
				 from);
	is_long = rule->has_tail && head->len > rule->size;
	if (head->len != rule->size && !is_long)
		return aw_refuse(err, EPROTO, "message %u of %u bytes", head->type, head->len);
	if (fd_count < rule->fd_min || fd_count > rule->fd_max)
		return aw_refuse(err, EPROTO, "message %u with %zu descriptors", head->type,
				 fd_count);
	return rule->check != NULL ? rule->check(payload, head->len, fd_count, err) : 0;
}

int aw_ipc_check(enum aw_ipc_role self, enum aw_ipc_role from, const void *bytes, size_t len,
		 size_t fd_count, struct aw_error *err)
{
	struct aw_ipc_head head;

	if (len < sizeof(head))
		return aw_refuse(err, EPROTO, "message of %zu bytes", len);
	memcpy(&head, bytes, sizeof(head));
	if (head.len != len - sizeof(head) || head.len > AW_IPC_PAYLOAD_MAX)
		return aw_refuse(err, EPROTO, "message of %zu bytes says %u", len, head.len);
	return check(self, from, &head, (const char *)bytes + sizeof(head), fd_count, err);
}

int aw_ipc_pair(int ret[2], struct aw_error *err)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret) < 0)
		return aw_fail(err, errno, "socketpair");
	return 0;
}

union control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int) * AW_IPC_FDS_MAX)];
};

static void put_fds(struct msghdr *msg, union control *control, const int *fds, size_t fd_count)
{
	struct cmsghdr *c;

	msg->msg_control = control->bytes;
	msg->msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
	c = CMSG_FIRSTHDR(msg);
	assert(c != NULL);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
	memcpy(CMSG_DATA(c), fds, sizeof(int) * fd_count);
}

int aw_ipc_send(int link, enum aw_ipc_type type, const void *payload, size_t len, const int *fds,
		size_t fd_count, struct aw_error *err)
{
	struct aw_ipc_head head = { .type = type, .len = (uint32_t)len };
	struct iovec iov[2] = { { &head, sizeof(head) }, { (void *)payload, len } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = len > 0 ? 2 : 1 };
	union control control = { 0 };
	ssize_t n;

	if (len > AW_IPC_PAYLOAD_MAX || fd_count > AW_IPC_FDS_MAX)
		return aw_refuse(err, EMSGSIZE, "message %u of %zu bytes and %zu descriptors", type,
				 len, fd_count);
	if (fd_count > 0)
		put_fds(&msg, &control, fds, fd_count);
	do
		n = sendmsg(link, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == ECONNRESET || errno == ENOTCONN))
		errno = EPIPE;
	return n < 0 ? aw_fail(err, errno, "send message %u", type) : 0;
}

static void take_fds(struct aw_ipc_message *message, struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		size_t count;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(message->fds + message->fd_count, CMSG_DATA(c), count * sizeof(int));
		message->fd_count += count;
	}
}

/* What the kernel said about the record beside its bytes. */
static int check_record(const struct msghdr *msg, ssize_t n, const struct aw_ipc_head *head,
			struct aw_error *err)
{
	if (msg->msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return aw_refuse(err, EPROTO, "message too large");
	if ((size_t)n < sizeof(*head) || head->len != (size_t)n - sizeof(*head))
		return aw_refuse(err, EPROTO, "message of %zd bytes", n);
	return 0;
}

int aw_ipc_recv(int link, enum aw_ipc_role self, enum aw_ipc_role from,
		struct aw_ipc_message *message, struct aw_error *err)
{
	struct aw_ipc_head head = { 0 };
	struct iovec iov[2] = { { &head, sizeof(head) },
				{ message->payload, sizeof(message->payload) } };
	union control control;
	struct msghdr msg = { .msg_iov = iov,
			      .msg_iovlen = 2,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	ssize_t n;
	int r;

	message->fd_count = 0;
	do
		n = recvmsg(link, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno != ECONNRESET)
		return aw_fail(err, errno, "receive a message");
	/* ECONNRESET: the peer went with something of ours unread. No message of ours is empty. */
	if (n <= 0)
		return 0;
	take_fds(message, &msg);
	r = check_record(&msg, n, &head, err);
	if (r == 0)
		r = check(self, from, &head, message->payload, message->fd_count, err);
	if (r < 0) {
		aw_ipc_message_fini(message);
		return r;
	}
	message->type = head.type;
	message->len = head.len;
	return 1;
}

void aw_ipc_message_fini(struct aw_ipc_message *message)
{
	for (size_t i = 0; i < message->fd_count; i++)
		message->fds[i] = aw_fd_close(message->fds[i]);
	message->fd_count = 0;
}

bool aw_ipc_wait_readable(int link, int timeout_ms)
{
	struct pollfd p = { .fd = link, .events = POLLIN };

	return poll(&p, 1, timeout_ms) > 0;
}
