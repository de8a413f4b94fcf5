/*
 * Names, domain entries and mapped policies: a normalised name is its own normal form; an accepted
 * entry survives being written and read again and grants what it names; bytes that pass aw_net_check
 * can be asked anything.
 */
#include "policy/net.h"

#include <stdlib.h>

#include "fuzz.h"
#include "policy/domain.h"

static void hold_name(struct aw_str raw)
{
	char name[AW_NET_NAME_MAX + 1], again[AW_NET_NAME_MAX + 1];
	int len = aw_net_normalise(raw, name);

	if (len < 0) {
		assert(len == -EBADMSG || len == -EADDRNOTAVAIL);
		return;
	}
	assert(len <= AW_NET_NAME_MAX && strlen(name) == (size_t)len);
	assert(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == (size_t)len);
	assert(aw_net_normalise(aw_str_from(name), again) == len && strcmp(name, again) == 0);
}

/* A name that @rule must match: its own, or one below it. */
static void hold_grant(struct aw_net *net, const struct aw_net_rule *rule)
{
	struct aw_net_verdict verdict;
	char name[AW_NET_NAME_MAX + 3];

	(void)aw_str_format(name, sizeof(name), "%s%s", rule->form == AW_NET_BELOW ? "x." : "",
			    rule->name);
	aw_net_decide(net, aw_str_from(name), rule->port != 0 ? rule->port : 443, &verdict);
	assert(verdict.reason == AW_NET_GRANTED && verdict.rule == 0);
	aw_net_decide(net, aw_str_from(name), 0, &verdict);
	assert(verdict.reason == AW_NET_GRANTED);
	aw_net_decide(net, AW_STR("not.that.name"), 443, &verdict);
	assert(verdict.reason == AW_NET_NOT_GRANTED || strstr("not.that.name", rule->name) != NULL);
}

static void hold_entry(struct aw_str text, struct aw_net *net)
{
	struct aw_domain domain, again;
	char shown[AW_DOMAIN_TEXT_MAX];
	struct aw_net_rule rule;
	struct aw_error err;

	if (aw_domain_parse(text, AW_DOMAIN_GRANT, &domain, &err) < 0)
		return;
	assert(aw_domain_parse(text, AW_DOMAIN_DENY, &again, &err) == 0);
	rule = aw_domain_rule(&domain, AW_DOMAIN_GRANT, AW_NET_LAYER_USER);
	aw_net_rule_format(&rule, shown, sizeof(shown));
	assert(aw_domain_parse(aw_str_from(shown), AW_DOMAIN_GRANT, &again, &err) == 0);
	assert(strcmp(domain.name, again.name) == 0 && domain.form == again.form &&
	       domain.port == again.port);
	net->magic = AW_NET_MAGIC;
	net->size = sizeof(*net);
	net->ports[0] = 443;
	net->port_count = 1;
	net->rule_count = 0;
	assert(aw_net_add(net, &rule) == 1 && aw_net_add(net, &rule) == 0);
	assert(aw_net_check(net, aw_net_size(net), &err) == 0);
	hold_grant(net, &rule);
}

static void hold_bytes(const uint8_t *data, size_t size, struct aw_net *net)
{
	struct aw_net_verdict verdict;
	uint16_t ports[AW_NET_PORTS_MAX + 1];
	struct aw_error err;
	size_t count;

	memcpy(net, data, size < sizeof(*net) ? size : sizeof(*net));
	if (aw_net_check(net, size, &err) < 0)
		return;
	count = aw_net_listen_ports(net, ports, AW_NET_PORTS_MAX);
	assert(count <= AW_NET_PORTS_MAX);
	for (size_t i = 1; i < count; i++)
		assert(ports[i] > ports[i - 1]);
	for (uint32_t i = 0; i < net->rule_count; i++) {
		aw_net_decide(net, aw_str_from(net->rules[i].name), 443, &verdict);
		assert(verdict.rule >= -1 && verdict.rule < (int)net->rule_count);
		assert(!verdict.may_be_private || verdict.reason == AW_NET_GRANTED);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct aw_net *net = calloc(1, sizeof(*net));

	if (net == NULL)
		abort();
	hold_name(fuzz_str(data, size));
	hold_entry(fuzz_str(data, size), net);
	hold_bytes(data, size, net);
	free(net);
	return 0;
}
