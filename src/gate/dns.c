#include "gate/dns.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "gate/gate.h"

#define DATAGRAMS 32 /* per event, then others get their turn */
#define TTL_S 60
#define TEXT_NOT_GRANTED "not granted by the policy"

static void repeat_ended(struct aw_timer *timer)
{
	struct aw_dns_repeat *repeat = AW_CONTAINER(timer, struct aw_dns_repeat, timer);

	if (repeat->verdict.repeats == 0)
		return;
	/* The verdict that is sent now stands for one question itself. */
	repeat->verdict.repeats--;
	aw_report_verdict(&repeat->gate->report, &repeat->verdict);
}

void aw_dns_init(struct aw_gate *gate)
{
	for (size_t i = 0; i < AW_DNS_REPEATS; i++)
		gate->dns.repeat[i] =
			(struct aw_dns_repeat){ .timer.fire = repeat_ended, .gate = gate };
}

static bool is_same_question(const struct aw_dns_repeat *repeat,
			     const struct aw_ipc_verdict *verdict)
{
	return repeat->timer.next != NULL && repeat->verdict.dns_type == verdict->dns_type &&
	       repeat->verdict.outcome == verdict->outcome &&
	       strcmp(repeat->verdict.name, verdict->name) == 0;
}

/* Report a refused question, or count it with the one before. */
static void report(struct aw_gate *gate, const struct aw_ipc_verdict *verdict)
{
	struct aw_dns *dns = &gate->dns;
	struct aw_dns_repeat *repeat;

	for (size_t i = 0; i < AW_DNS_REPEATS; i++) {
		if (is_same_question(&dns->repeat[i], verdict)) {
			dns->repeat[i].verdict.repeats++;
			return;
		}
	}
	/* The oldest makes room: what it counted is told now. */
	repeat = &dns->repeat[dns->next_repeat];
	dns->next_repeat = (dns->next_repeat + 1) % AW_DNS_REPEATS;
	aw_timer_stop(&repeat->timer);
	repeat_ended(&repeat->timer);
	repeat->verdict = *verdict;
	aw_report_verdict(&gate->report, verdict);
	aw_timer_start(&gate->timers, &repeat->timer, AW_TIMER_REPEATS);
}

static void report_refused(struct aw_gate *gate, const struct aw_dns_query *query,
			   const struct aw_decision *decision)
{
	struct aw_ipc_verdict v = {
		.way = AW_IPC_WAY_DNS,
		.outcome = AW_IPC_REFUSED_RULE,
		.reason = (uint8_t)decision->verdict.reason,
		.rule = decision->verdict.rule,
		.dns_type = query->type,
	};

	memcpy(v.name, decision->name, sizeof(v.name));
	report(gate, &v);
}

static void report_malformed(struct aw_gate *gate, enum aw_dns_flaw flaw)
{
	struct aw_ipc_verdict v = { .way = AW_IPC_WAY_DNS,
				    .outcome = AW_IPC_REFUSED_PROTOCOL,
				    .rule = -1 };

	(void)aw_str_format(v.seen, sizeof(v.seen), "%s", aw_dns_flaw_text(flaw));
	report(gate, &v);
}

/* RFC 6761 6.3: localhost and everything below it is the loopback address. */
static bool is_localhost(struct aw_str name)
{
	return aw_str_is(name, "localhost") || aw_str_ends(name, ".localhost");
}

struct records {
	uint8_t address[1][4];
	struct aw_dns_answer answer;
};

static void answer_address(const struct aw_dns_query *query, struct records *ret)
{
	ret->answer.ttl = TTL_S;
	if (query->type != AW_DNS_A)
		return; /* the name is there, such a record is not */
	ret->answer.addresses = (const uint8_t(*)[4])ret->address;
	ret->answer.address_count = 1;
}

static void answer_not_granted(struct records *ret)
{
	ret->answer.rcode = AW_DNS_NXDOMAIN;
	ret->answer.has_error = true;
	ret->answer.error = AW_DNS_ERROR_BLOCKED;
	ret->answer.error_text = AW_STR(TEXT_NOT_GRANTED);
}

/* The name behind a synthetic address; every other address has none. False: not such a question. */
static bool answer_reverse(const struct aw_gate *gate, const struct aw_dns_query *query,
			   struct records *ret)
{
	uint8_t address[4];
	int entry;

	if (query->type != AW_DNS_PTR ||
	    aw_dns_reverse_parse((struct aw_str){ query->name, query->name_len }, address) < 0)
		return false;
	entry = aw_names_find(&gate->names, address);
	ret->answer.ttl = TTL_S;
	if (entry >= 0)
		ret->answer.pointer = aw_str_from(gate->names.entry[entry].text);
	else if (address[0] == 127)
		ret->answer.pointer = AW_STR("localhost");
	else
		ret->answer.rcode = AW_DNS_NXDOMAIN;
	return true;
}

static void answer_name(struct aw_gate *gate, const struct aw_dns_query *query, struct records *ret)
{
	struct aw_decision decision;
	int entry;

	aw_decide_name(gate->net, (struct aw_str){ query->name, query->name_len }, 0, &decision);
	if (is_localhost(aw_str_from(decision.name))) {
		memcpy(ret->address[0], (uint8_t[]){ 127, 0, 0, 1 }, 4);
		answer_address(query, ret);
		return;
	}
	if (!aw_decision_is_granted(&decision)) {
		report_refused(gate, query, &decision);
		answer_not_granted(ret);
		return;
	}
	entry = aw_names_give(&gate->names, aw_str_from(decision.name));
	if (entry < 0) {
		ret->answer.rcode = AW_DNS_SERVFAIL;
		return;
	}
	aw_names_address(entry, ret->address[0]);
	answer_address(query, ret);
}

size_t aw_dns_answer(struct aw_gate *gate, struct aw_str message, bool is_udp, uint8_t *out,
		     size_t max)
{
	struct aw_dns_query query;
	enum aw_dns_flaw flaw;
	struct records records = { 0 };
	ssize_t n;

	if (aw_dns_query_parse(message, &query, &flaw) < 0) {
		report_malformed(gate, flaw);
		return aw_dns_flaw_write(message, flaw, out);
	}
	if (!answer_reverse(gate, &query, &records))
		answer_name(gate, &query, &records);
	if (is_udp && aw_dns_udp_max(&query) < max)
		max = aw_dns_udp_max(&query);
	n = aw_dns_answer_write(&query, &records.answer, out, max);
	return n < 0 ? 0 : (size_t)n;
}

void aw_dns_datagrams(struct aw_gate *gate, int fd)
{
	uint8_t out[AW_DNS_UDP_MAX];

	for (int i = 0; i < DATAGRAMS && !aw_report_is_behind(&gate->report); i++) {
		struct sockaddr_storage from;
		socklen_t from_len = sizeof(from);
		ssize_t n = recvfrom(fd, gate->tools.scratch, sizeof(gate->tools.scratch), 0,
				     (struct sockaddr *)&from, &from_len);
		size_t len;

		if (n < 0)
			return;
		len = aw_dns_answer(gate, (struct aw_str){ gate->tools.scratch, (size_t)n }, true,
				    out, sizeof(out));
		/* An answer that does not go out now is asked for again: that is UDP. */
		if (len > 0)
			(void)sendto(fd, out, len, MSG_NOSIGNAL, (struct sockaddr *)&from,
				     from_len);
	}
}
