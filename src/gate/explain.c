/* The page that a person (or an agent) reads when something was refused. */
#include <string.h>

#include "gate/refuse.h"

/* What a person is told beside the status, one writer per outcome. */
typedef void explain_fn(const struct aw_net *net, const struct aw_decision *asked,
			const struct aw_refusal *refusal, struct aw_buf *out);

static bool is_allowed_port(const struct aw_net *net, uint16_t port)
{
	for (size_t i = 0; i < net->port_count; i++)
		if (net->ports[i] == port)
			return true;
	return false;
}

static void write_line_to_add(const struct aw_net *net, const struct aw_decision *asked,
			      struct aw_buf *out)
{
	if (is_allowed_port(net, asked->port))
		(void)aw_buf_printf(out, "To allow it:\n\n\twarden allowlist add %s\n",
				    asked->name);
	else
		(void)aw_buf_printf(out, "To allow it:\n\n\twarden allowlist add %s:%u\n",
				    asked->name, asked->port);
}

static void write_rule(const struct aw_net *net, int index, struct aw_buf *out)
{
	char rule[AW_NET_NAME_MAX + 16];

	if (index < 0 || (uint32_t)index >= net->rule_count)
		return;
	aw_net_rule_format(&net->rules[index], rule, sizeof(rule));
	(void)aw_buf_printf(out, "Decided by the rule \"%s\" (%s).\n", rule,
			    aw_net_layer_text((enum aw_net_layer)net->rules[index].layer));
}

static void explain_rule(const struct aw_net *net, const struct aw_decision *asked,
			 const struct aw_refusal *refusal, struct aw_buf *out)
{
	(void)refusal;
	switch (asked->verdict.reason) {
	case AW_NET_GRANTED:
	case AW_NET_NOT_GRANTED:
		(void)aw_buf_append_str(out,
					"No rule of this session's policy grants that name.\n");
		write_line_to_add(net, asked, out);
		break;
	case AW_NET_PORT_NOT_GRANTED:
		(void)aw_buf_append_str(out, "The name is granted, this port is not.\n");
		write_rule(net, asked->verdict.rule, out);
		write_line_to_add(net, asked, out);
		break;
	case AW_NET_DENIED:
		(void)aw_buf_append_str(out,
					"The policy denies that name, and denied beats allowed.\n");
		write_rule(net, asked->verdict.rule, out);
		break;
	case AW_NET_PORT_BLOCKED:
		(void)aw_buf_append_str(out,
					"The port is in blocked_ports, which beats every grant.\n");
		break;
	case AW_NET_LITERAL:
		(void)aw_buf_append_str(out, "That is an address. Only names can be granted.\n");
		break;
	case AW_NET_MALFORMED:
		(void)aw_buf_append_str(out, "That is not a host name.\n");
		break;
	}
}

static void explain_address(const struct aw_net *net, const struct aw_decision *asked,
			    const struct aw_refusal *refusal, struct aw_buf *out)
{
	char address[AW_ADDRESS_TEXT_MAX];
	enum aw_address_class unused;

	(void)net;
	aw_address_format(&refusal->addr, address);
	(void)aw_buf_printf(out, "The name is granted, but one of its addresses is %s: %s.\n",
			    address, aw_address_class_text(refusal->class));
	if (aw_address_may_connect(&refusal->addr, NULL, 0, true, &unused) ||
	    refusal->class == AW_ADDRESS_OWN)
		(void)aw_buf_printf(out,
				    "If that is meant, the policy has to say so:\n\n"
				    "\t\"allow_private\": [\"%s\"]\n",
				    asked->name);
}

static void explain_host(const struct aw_net *net, const struct aw_decision *asked,
			 const struct aw_refusal *refusal, struct aw_buf *out)
{
	(void)net;
	(void)aw_buf_printf(
		out, "This connection is granted to %s alone; the request inside names \"%s\".\n",
		asked->name, refusal->seen);
}

static void explain_protocol(const struct aw_net *net, const struct aw_decision *asked,
			     const struct aw_refusal *refusal, struct aw_buf *out)
{
	(void)net;
	(void)asked;
	(void)aw_buf_printf(out, "The request is malformed: %s.\n", refusal->seen);
}

static void explain_failure(const struct aw_net *net, const struct aw_decision *asked,
			    const struct aw_refusal *refusal, struct aw_buf *out)
{
	char address[AW_ADDRESS_TEXT_MAX];

	(void)net;
	(void)asked;
	aw_address_format(&refusal->addr, address);
	(void)aw_buf_printf(out, "The policy grants it, but it cannot be reached%s%s: %s.\n",
			    address[0] != '\0' ? " at " : "", address, refusal->problem);
}

static void explain_busy(const struct aw_net *net, const struct aw_decision *asked,
			 const struct aw_refusal *refusal, struct aw_buf *out)
{
	(void)net;
	(void)asked;
	(void)aw_buf_printf(out, "The reason: %s. It may work when others have ended.\n",
			    refusal->problem);
}

static const struct {
	unsigned status;
	const char *headline; /* before the host */
	explain_fn *explain;
} pages[] = {
	[AW_IPC_REFUSED_RULE] = { 403, "refused", explain_rule },
	[AW_IPC_REFUSED_ADDRESS] = { 403, "refused", explain_address },
	[AW_IPC_REFUSED_HOST] = { 403, "refused", explain_host },
	[AW_IPC_REFUSED_PROTOCOL] = { 400, "refused", explain_protocol },
	[AW_IPC_FAILED_RESOLVE] = { 502, "could not resolve", explain_failure },
	[AW_IPC_FAILED_CONNECT] = { 502, "could not connect to", explain_failure },
	[AW_IPC_FAILED_BUSY] = { 503, "is too busy for", explain_busy },
};

unsigned aw_refusal_explain(const struct aw_net *net, const struct aw_decision *asked,
			    const struct aw_refusal *refusal, struct aw_buf *out)
{
	const char *headline = pages[refusal->outcome].headline;

	if (asked->name[0] == '\0')
		(void)aw_buf_printf(out, "AI Warden %s a request.\n\n", headline);
	else if (strchr(asked->name, ':') != NULL)
		(void)aw_buf_printf(out, "AI Warden %s [%s]:%u.\n\n", headline, asked->name,
				    asked->port);
	else
		(void)aw_buf_printf(out, "AI Warden %s %s:%u.\n\n", headline, asked->name,
				    asked->port);
	pages[refusal->outcome].explain(net, asked, refusal, out);
	return refusal->status != 0 ? refusal->status : pages[refusal->outcome].status;
}
