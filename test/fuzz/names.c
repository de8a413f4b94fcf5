/*
 * The host's files about names, from anywhere: bounded counts, addresses that read alike when written
 * again, hosts only under names that the policy grants and in the form that rules are written in.
 */
#include "monitor/names.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "fuzz.h"
#include "policy/net.h"

static void hold_address(const struct aw_ipc_addr *addr)
{
	char text[INET6_ADDRSTRLEN];
	struct aw_ipc_addr again;

	assert(addr->family == AF_INET || addr->family == AF_INET6);
	assert(inet_ntop(addr->family, addr->bytes, text, sizeof(text)) != NULL);
	assert(aw_names_parse_address(aw_str_from(text), &again));
	assert(again.family == addr->family && again.port == 0);
	assert(memcmp(again.bytes, addr->bytes, sizeof(again.bytes)) == 0);
}

static void hold_text(struct aw_str text)
{
	struct aw_ipc_addr addr;

	if (!aw_names_parse_address(text, &addr))
		return;
	assert(text.len < INET6_ADDRSTRLEN);
	for (size_t i = 0; i < text.len; i++)
		assert(strchr("0123456789abcdefABCDEF.:", text.ptr[i]) != NULL &&
		       text.ptr[i] != '\0');
	hold_address(&addr);
}

static void hold_resolv(struct aw_str text)
{
	struct aw_ipc_resolvers resolvers;

	aw_names_parse_resolv(text, &resolvers);
	assert(resolvers.count <= AW_IPC_SERVERS_MAX);
	for (uint32_t i = 0; i < resolvers.count; i++) {
		hold_address(&resolvers.server[i]);
		assert(resolvers.server[i].port == 53);
	}
}

static void hold_hosts(struct aw_str text, const struct aw_net *net)
{
	static struct aw_ipc_host hosts[AW_IPC_HOSTS_MAX];
	uint32_t count = aw_names_parse_hosts(text, net, hosts);

	assert(count <= AW_IPC_HOSTS_MAX);
	for (uint32_t i = 0; i < count; i++) {
		char name[AW_NET_NAME_MAX + 1];
		struct aw_net_verdict verdict;
		int len = aw_net_normalise(aw_str_from(hosts[i].name), name);

		assert(len > 0 && strcmp(name, hosts[i].name) == 0);
		aw_net_decide(net, aw_str_from(name), 0, &verdict);
		assert(verdict.reason == AW_NET_GRANTED);
		hold_address(&hosts[i].addr);
	}
}

/* Grants api.example.org and what lies below .lan. */
static struct aw_net *make_net(void)
{
	struct aw_net *net = calloc(1, sizeof(*net));
	struct aw_net_rule one = { .name = "api.example.org", .form = AW_NET_EXACT };
	struct aw_net_rule below = { .name = "lan", .form = AW_NET_BELOW };

	if (net == NULL)
		abort();
	net->magic = AW_NET_MAGIC;
	net->size = sizeof(*net);
	net->ports[net->port_count++] = 443;
	assert(aw_net_add(net, &one) == 1 && aw_net_add(net, &below) == 1);
	return net;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct aw_net *net = make_net();

	hold_text(fuzz_str(data, size));
	hold_resolv(fuzz_str(data, size));
	hold_hosts(fuzz_str(data, size), net);
	free(net);
	return 0;
}
