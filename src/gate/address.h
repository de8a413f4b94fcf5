/*
 * address - what kind of place an address is, and whether gate may connect there.
 *
 * One parse (there are only bytes here), one classification, one decision. What is embedded in
 * another address (IPv4-mapped, NAT64 of RFC 6052) is unwrapped first and judged by what is inside.
 * Sources: IANA IPv4 and IPv6 Special-Purpose Address Registries, RFC 6890, RFC 8190, RFC 9637.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "ipc/ipc.h"

#define AW_ADDRESS_TEXT_MAX 48

enum aw_address_class {
	AW_ADDRESS_PUBLIC = 1,
	AW_ADDRESS_UNSPECIFIED, /* 0.0.0.0/8, ::; Linux connects to itself */
	AW_ADDRESS_LOOPBACK,
	AW_ADDRESS_PRIVATE,      /* RFC 1918 */
	AW_ADDRESS_SHARED,       /* 100.64.0.0/10 */
	AW_ADDRESS_UNIQUE_LOCAL, /* fc00::/7 */
	AW_ADDRESS_LINK_LOCAL,
	AW_ADDRESS_METADATA, /* a cloud's instance metadata or agent service */
	AW_ADDRESS_MULTICAST,
	AW_ADDRESS_BROADCAST,
	AW_ADDRESS_DOCUMENTATION,
	AW_ADDRESS_BENCHMARK, /* 198.18.0.0/15: our own synthetic range too */
	AW_ADDRESS_TUNNEL, /* 6to4, Teredo, local NAT64, IPv4-compatible: leads where we cannot see */
	AW_ADDRESS_RESERVED,
	AW_ADDRESS_OWN, /* of an interface of this host, whatever else it is */
	AW_ADDRESS_CLASS_COUNT
};

/* What the address is, without regard to the host's own. An embedded IPv4 address decides. */
enum aw_address_class aw_address_classify(const struct aw_ipc_addr *addr);

/* The IPv4 address inside an IPv4-mapped one; every other address as it is. */
struct aw_ipc_addr aw_address_unwrap(const struct aw_ipc_addr *addr);

/*
 * Classify with the host's own addresses in view, and say whether gate may connect: public always;
 * private, shared, unique-local and own ones only with @may_be_private; nothing else ever.
 */
bool aw_address_may_connect(const struct aw_ipc_addr *addr, const struct aw_ipc_addr *own,
			    size_t own_count, bool may_be_private,
			    enum aw_address_class *ret_class);

/* "private network", "loopback", ... for people. */
const char *aw_address_class_text(enum aw_address_class class);

/* The address as text without its port; @out has AW_ADDRESS_TEXT_MAX bytes. */
void aw_address_format(const struct aw_ipc_addr *addr, char *out);

/* To and from the kernel's form. Returns the length of @ret. */
socklen_t aw_address_to_sockaddr(const struct aw_ipc_addr *addr, struct sockaddr_storage *ret);
struct aw_ipc_addr aw_address_from_sockaddr(const struct sockaddr_storage *from);
