#include "gate/decide.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

static void refuse(enum aw_net_reason reason, struct aw_str raw, struct aw_decision *ret)
{
	ret->verdict = (struct aw_net_verdict){ .reason = reason, .rule = -1 };
	(void)aw_str_escape(raw, ret->name, sizeof(ret->name));
}

void aw_decide_name(const struct aw_net *net, struct aw_str raw, uint16_t port,
		    struct aw_decision *ret)
{
	int len = aw_net_normalise(raw, ret->name);

	ret->port = port;
	if (len < 0) {
		refuse(len == -EADDRNOTAVAIL ? AW_NET_LITERAL : AW_NET_MALFORMED, raw, ret);
		return;
	}
	aw_net_decide(net, (struct aw_str){ ret->name, (size_t)len }, port, &ret->verdict);
}

void aw_decide_peer(const struct aw_net *net, const struct aw_hostport *peer,
		    struct aw_decision *ret)
{
	char text[INET6_ADDRSTRLEN] = "";
	struct aw_str raw = peer->host.text;
	int family = peer->host.kind == AW_HOST_IPV4 ? AF_INET : AF_INET6;

	ret->port = peer->port;
	if (!aw_host_is_literal(&peer->host)) {
		aw_decide_name(net, raw, peer->port, ret);
		return;
	}
	/* SOCKS names an address by its bytes alone. */
	if (raw.len == 0 && inet_ntop(family, peer->host.address, text, sizeof(text)) != NULL)
		raw = aw_str_from(text);
	refuse(AW_NET_LITERAL, raw, ret);
}

bool aw_decision_is_granted(const struct aw_decision *decision)
{
	return decision->verdict.reason == AW_NET_GRANTED;
}

bool aw_decide_is_same_name(struct aw_str raw, const char *name)
{
	char normal[AW_NET_NAME_MAX + 1];
	int len = aw_net_normalise(raw, normal);

	return len >= 0 && strcmp(normal, name) == 0;
}
