/*
 * names - what gate must know of the host's name service, since it opens no file itself.
 *
 * Parsers of resolv.conf(5) and hosts(5), bounded and pure, and the collector that reads the files and
 * the host's own addresses.
 */
#pragma once

#include "base/error.h"
#include "base/str.h"
#include "ipc/ipc.h"

#define AW_NAMES_RESOLV_CONF "/etc/resolv.conf"

/* `nameserver` lines, the first AW_IPC_SERVERS_MAX; others are skipped. */
void aw_names_parse_resolv(struct aw_str text, struct aw_ipc_resolvers *ret);

/* The entries whose name @net grants (any port), the first AW_IPC_HOSTS_MAX. Returns how many. */
uint32_t aw_names_parse_hosts(struct aw_str text, const struct aw_net *net,
			      struct aw_ipc_host *ret);

/* An address in dotted or colon form, exactly; false for anything else. */
bool aw_names_parse_address(struct aw_str text, struct aw_ipc_addr *ret);

/* Read the host's resolv.conf; without one there are no servers and nothing resolves. */
void aw_names_read_resolv(struct aw_ipc_resolvers *ret);

/* Fill in resolvers, hosts and own addresses of @ret. */
int aw_names_collect(const struct aw_net *net, struct aw_ipc_gate_setup *ret, struct aw_error *err);
