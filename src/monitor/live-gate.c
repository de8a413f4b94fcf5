/* The link to gate: its start, its verdicts, the policy that changes under it, its death. */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/proc.h"
#include "monitor/live-internal.h"
#include "monitor/names.h"

#define REFUSALS_PER_SECOND 200

static const char *const way_names[] = {
	[AW_IPC_WAY_CONNECT] = "connect",
	[AW_IPC_WAY_HTTP] = "http",
	[AW_IPC_WAY_TRANSPARENT] = "transparent",
	[AW_IPC_WAY_DNS] = "dns",
	[AW_IPC_WAY_SOCKS] = "socks",
};

/* What each outcome is called in the journal and to a person. */
static const struct {
	const char *name, *text;
} outcomes[] = {
	[AW_IPC_ALLOWED] = { "allowed", "allowed" },
	[AW_IPC_REFUSED_RULE] = { "rule", "not granted" },
	[AW_IPC_REFUSED_ADDRESS] = { "address", "its addresses are private or reserved" },
	[AW_IPC_REFUSED_SNI] = { "sni", "TLS for another name than was asked for" },
	[AW_IPC_REFUSED_HOST] = { "host", "HTTP for another host than was asked for" },
	[AW_IPC_REFUSED_PROTOCOL] = { "protocol", "not the protocol of this port" },
	[AW_IPC_REFUSED_UNKNOWN_ADDRESS] = { "unknown-address",
					     "an address that stands for no name" },
	[AW_IPC_FAILED_RESOLVE] = { "resolve", "its name did not resolve" },
	[AW_IPC_FAILED_CONNECT] = { "unreachable", "could not be reached" },
	[AW_IPC_FAILED_BUSY] = { "busy", "too many connections at once" },
};

const char *aw_live_outcome_text(uint8_t outcome)
{
	return outcome < AW_ARRAY_LEN(outcomes) && outcomes[outcome].text != NULL
		       ? outcomes[outcome].text
		       : "unknown";
}

static void count_denial(struct aw_live *live, const struct aw_ipc_verdict *v)
{
	struct aw_live_denial *d;
	unsigned times = v->repeats > 0 ? v->repeats : 1; /* gate counts what repeats itself */

	live->refused += times;
	for (unsigned i = 0; i < live->denial_count; i++) {
		d = &live->denials[i];
		if (d->port == v->port && d->outcome == v->outcome &&
		    strcmp(d->name, v->name) == 0) {
			d->count += times;
			return;
		}
	}
	if (live->denial_count == AW_LIVE_DENIALS_MAX) {
		live->denials_beyond++;
		return;
	}
	d = &live->denials[live->denial_count++];
	*d = (struct aw_live_denial){
		.port = v->port, .outcome = v->outcome, .reason = v->reason, .count = times
	};
	memcpy(d->name, v->name, sizeof(d->name));
}

static bool is_failure(uint8_t outcome)
{
	return outcome == AW_IPC_FAILED_RESOLVE || outcome == AW_IPC_FAILED_CONNECT ||
	       outcome == AW_IPC_FAILED_BUSY;
}

static enum aw_event_kind kind_of(const struct aw_ipc_verdict *v)
{
	if (v->way == AW_IPC_WAY_DNS)
		return v->outcome == AW_IPC_ALLOWED ? AW_EVENT_DNS_QUERY : AW_EVENT_DNS_REFUSED;
	if (v->outcome == AW_IPC_ALLOWED)
		return AW_EVENT_NET_CONNECT;
	return is_failure(v->outcome) ? AW_EVENT_NET_FAILED : AW_EVENT_NET_REFUSED;
}

static void add_address(struct aw_event *event, const struct aw_ipc_addr *addr)
{
	char text[INET6_ADDRSTRLEN];

	if (addr->family != 0 && inet_ntop(addr->family, addr->bytes, text, sizeof(text)) != NULL)
		aw_event_add_str(event, "address", aw_str_from(text));
}

static void add_rule(struct aw_event *event, const struct aw_net *net, int32_t index)
{
	char text[AW_NET_NAME_MAX + 16];

	if (index < 0 || (uint32_t)index >= net->rule_count)
		return;
	aw_net_rule_format(&net->rules[index], text, sizeof(text));
	aw_event_add_str(event, "rule", aw_str_from(text));
	aw_event_add_str(event, "layer", aw_str_from(aw_net_layer_text(net->rules[index].layer)));
}

void aw_live_flush_folded(struct aw_live *live)
{
	struct aw_event *event;

	if (live->folded == 0)
		return;
	event = aw_live_event(live, AW_EVENT_NET_REFUSED);
	aw_event_add_str(event, "host", AW_STR("(too many to be written one by one)"));
	aw_event_add_u64(event, "times", live->folded);
	live->folded = 0;
	aw_live_record(live);
}

/* A flood of refusals is counted beyond a rate: it must not fill the disk or drown what counts. */
static bool is_flood(struct aw_live *live)
{
	uint64_t second = aw_now_ns() / 1000000000u;

	if (second != live->second) {
		aw_live_flush_folded(live);
		live->second = second;
		live->in_second = 0;
	}
	if (live->in_second < REFUSALS_PER_SECOND) {
		live->in_second++;
		return false;
	}
	live->folded++;
	return true;
}

static void record_verdict(struct aw_live *live, const struct aw_ipc_verdict *v)
{
	enum aw_event_kind kind = kind_of(v);
	struct aw_event *event;

	if (kind == AW_EVENT_NET_REFUSED || kind == AW_EVENT_DNS_REFUSED) {
		count_denial(live, v);
		if (is_flood(live))
			return;
	}
	event = aw_live_event(live, kind);
	aw_event_add_str(event, "host", aw_str_from(v->name));
	if (v->port != 0)
		aw_event_add_u64(event, "port", v->port);
	aw_event_add_str(event, "way", aw_str_from(way_names[v->way]));
	if (v->outcome != AW_IPC_ALLOWED) {
		aw_event_add_str(event, "outcome", aw_str_from(outcomes[v->outcome].name));
		aw_event_add_str(event, "reason", aw_str_from(aw_net_reason_text(v->reason)));
	}
	add_rule(event, live->net, v->rule);
	add_address(event, &v->addr);
	if (v->seen[0] != '\0')
		aw_event_add_str(event, "seen", aw_str_from(v->seen));
	if (v->method[0] != '\0')
		aw_event_add_str(event, "method", aw_str_from(v->method));
	if (v->id != 0)
		aw_event_add_u64(event, "connection", v->id);
	if (v->repeats > 0)
		aw_event_add_u64(event, "times", v->repeats);
	if (v->dns_type != 0)
		aw_event_add_u64(event, "type", v->dns_type);
	aw_live_record(live);
	if (kind == AW_EVENT_NET_CONNECT)
		live->connections++;
}

static void record_closed(struct aw_live *live, const struct aw_ipc_closed *c)
{
	struct aw_event *event = aw_live_event(live, AW_EVENT_NET_CLOSE);

	aw_event_add_u64(event, "connection", c->id);
	aw_event_add_u64(event, "bytes_out", c->bytes_out);
	aw_event_add_u64(event, "bytes_in", c->bytes_in);
	aw_event_add_u64(event, "ms", c->duration_ns / 1000000);
	aw_live_record(live);
}

static bool is_same_server(const struct aw_ipc_addr *a, const struct aw_ipc_addr *b)
{
	return a->family == b->family && a->port == b->port &&
	       memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

static bool are_same(const struct aw_ipc_resolvers *a, const struct aw_ipc_resolvers *b)
{
	for (uint32_t i = 0; a->count == b->count && i < a->count; i++)
		if (!is_same_server(&a->server[i], &b->server[i]))
			return false;
	return a->count == b->count;
}

/*
 * A name did not resolve: perhaps the host's name servers are others now (a VPN, another network). Gate
 * opens no file, so it is told.
 */
static void refresh_resolvers(struct aw_live *live)
{
	struct aw_ipc_resolvers now;
	struct aw_error err;

	aw_names_read_resolv(&now);
	if (are_same(&now, &live->resolvers))
		return;
	live->resolvers = now;
	aw_event_add_str(aw_live_event(live, AW_EVENT_NOTE), "what",
			 AW_STR("the host's name servers changed"));
	aw_live_record(live);
	if (aw_ipc_send(live->gate.link, AW_IPC_GATE_RESOLVERS, &now, sizeof(now), NULL, 0, &err) <
	    0)
		aw_live_fail(live, &err);
}

static void on_message(struct aw_live *live)
{
	const void *payload = live->message.payload;
	struct aw_ipc_verdict verdict;
	struct aw_ipc_closed closed;

	if (live->message.type == AW_IPC_GATE_VERDICT) {
		memcpy(&verdict, payload, sizeof(verdict));
		record_verdict(live, &verdict);
		if (verdict.outcome == AW_IPC_FAILED_RESOLVE)
			refresh_resolvers(live);
	} else if (live->message.type == AW_IPC_GATE_CLOSED) {
		memcpy(&closed, payload, sizeof(closed));
		record_closed(live, &closed);
	} else if (live->message.type == AW_IPC_GATE_FAILED) {
		memcpy(&live->failure, payload, sizeof(live->failure));
		aw_live_end(live, AW_SESSION_REFUSED, 78, "gate: %s", live->failure.message);
		aw_live_kill_cell(live);
	}
}

static int gate_message(struct aw_watch *watch, uint32_t events)
{
	struct aw_live *live = AW_CONTAINER(watch, struct aw_live, gate_link);
	struct aw_error err = { 0 };
	int r = aw_ipc_recv(live->gate.link, AW_IPC_MONITOR, AW_IPC_GATE, &live->message, &err);

	(void)events;
	if (r > 0) {
		on_message(live);
		aw_ipc_message_fini(&live->message);
	} else if (r == 0) {
		aw_loop_unwatch(&live->loop, watch); /* its death follows */
	} else if (r != -EAGAIN) {
		aw_live_fail(live, &err);
	}
	return 0;
}

/* Without gate nobody checks or records: the session ends closed. */
static int gate_died(struct aw_watch *watch, uint32_t events)
{
	struct aw_live *live = AW_CONTAINER(watch, struct aw_live, gate_death);
	struct aw_error none;
	int status;

	(void)events;
	aw_loop_unwatch(&live->loop, watch);
	status = aw_pidfd_wait(live->gate.pidfd, true, &none);
	if (live->outcome.reason == 0) {
		struct aw_event *event = aw_live_event(live, AW_EVENT_GATE_DIED);

		aw_event_add_i64(event, "status", status);
		aw_live_record(live);
	}
	aw_live_end(live, AW_SESSION_GATE_DIED, 125,
		    "gate ended (status %d): no way out is left open", status);
	aw_live_kill_cell(live);
	return 0;
}

int aw_live_start_gate(struct aw_live *live, struct aw_error *err)
{
	autoclose int program = aw_launch_open_program("warden-gate", err);
	int r;

	if (program < 0)
		return program;
	r = aw_launch_gate(program, live->prepared->is_root_started, &live->gate, err);
	if (r < 0)
		return r;
	live->gate_link = (struct aw_watch){ .fd = live->gate.link, .ready = gate_message };
	live->gate_death = (struct aw_watch){ .fd = live->gate.pidfd, .ready = gate_died };
	r = aw_loop_watch(&live->loop, &live->gate_link, EPOLLIN, err);
	return r < 0 ? r : aw_loop_watch(&live->loop, &live->gate_death, EPOLLIN, err);
}

/* Only the rules that are there are written; the rest of the fixed size is a hole. */
static int seal_net(const struct aw_net *net, struct aw_error *err)
{
	size_t len = offsetof(struct aw_net, rules) + net->rule_count * sizeof(net->rules[0]);

	return aw_memfd_sealed("warden-net", net, len, sizeof(*net), err);
}

int aw_live_set_up_gate(struct aw_live *live, struct aw_error *err)
{
	autofree struct aw_ipc_gate_setup *setup = calloc(1, sizeof(*setup));
	autoclose int policy = -EBADF;
	int fds[1 + AW_IPC_LISTENERS_MAX];
	int r;

	if (setup == NULL)
		return aw_fail(err, ENOMEM, "set up gate");
	r = aw_names_collect(live->net, setup, err);
	if (r < 0)
		return r;
	live->resolvers = setup->resolvers;
	policy = seal_net(live->net, err);
	if (policy < 0)
		return policy;
	setup->listener_count = live->ready.listener_count;
	memcpy(setup->listener, live->ready.listener, sizeof(setup->listener));
	fds[0] = policy;
	for (uint32_t i = 0; i < setup->listener_count; i++)
		fds[1 + i] = live->listeners[i];
	r = aw_ipc_send(live->gate.link, AW_IPC_GATE_SETUP, setup, sizeof(*setup), fds,
			1 + setup->listener_count, err);
	for (uint32_t i = 0; i < setup->listener_count; i++)
		live->listeners[i] = aw_fd_close(live->listeners[i]);
	return r < 0 ? aw_while(err, "set up gate") : 0;
}

int aw_live_push_policy(struct aw_live *live, struct aw_error *err)
{
	autoclose int policy = seal_net(live->net, err);

	if (policy < 0)
		return policy;
	return aw_ipc_send(live->gate.link, AW_IPC_GATE_POLICY, NULL, 0, &policy, 1, err);
}
