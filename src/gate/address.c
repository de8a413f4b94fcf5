#include "gate/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "base/own.h"

struct range {
	uint8_t prefix[16];
	uint8_t bits;
	enum aw_address_class class;
};

/* The first range that holds an address decides; what is in none is public. */
static const struct range ranges4[] = {
	{ { 0 }, 8, AW_ADDRESS_UNSPECIFIED },
	{ { 10 }, 8, AW_ADDRESS_PRIVATE },
	{ { 100, 100, 100, 200 }, 32, AW_ADDRESS_METADATA }, /* Alibaba Cloud */
	{ { 100, 64 }, 10, AW_ADDRESS_SHARED },
	{ { 127 }, 8, AW_ADDRESS_LOOPBACK },
	{ { 168, 63, 129, 16 },
	  32,
	  AW_ADDRESS_METADATA }, /* Azure's host agent, a public address */
	{ { 169, 254, 169, 254 }, 32, AW_ADDRESS_METADATA }, /* most clouds */
	{ { 169, 254 }, 16, AW_ADDRESS_LINK_LOCAL },
	{ { 172, 16 }, 12, AW_ADDRESS_PRIVATE },
	{ { 192, 0, 0, 192 }, 32, AW_ADDRESS_METADATA }, /* Oracle Cloud */
	{ { 192, 0, 0 }, 24, AW_ADDRESS_RESERVED },
	{ { 192, 0, 2 }, 24, AW_ADDRESS_DOCUMENTATION },
	{ { 192, 88, 99 }, 24, AW_ADDRESS_TUNNEL }, /* 6to4 relays, RFC 7526 */
	{ { 192, 168 }, 16, AW_ADDRESS_PRIVATE },
	{ { 198, 18 }, 15, AW_ADDRESS_BENCHMARK },
	{ { 198, 51, 100 }, 24, AW_ADDRESS_DOCUMENTATION },
	{ { 203, 0, 113 }, 24, AW_ADDRESS_DOCUMENTATION },
	{ { 224 }, 4, AW_ADDRESS_MULTICAST },
	{ { 255, 255, 255, 255 }, 32, AW_ADDRESS_BROADCAST },
	{ { 240 }, 4, AW_ADDRESS_RESERVED },
};

/* What is in none of these is public only inside 2000::/3, all that is given out (RFC 4291). */
static const struct range ranges6[] = {
	{ { 0 }, 128, AW_ADDRESS_UNSPECIFIED },
	{ { [15] = 1 }, 128, AW_ADDRESS_LOOPBACK },
	{ { 0 }, 96, AW_ADDRESS_TUNNEL }, /* ::a.b.c.d, RFC 4291 2.5.5.1 */
	{ { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 }, 48, AW_ADDRESS_TUNNEL }, /* NAT64, RFC 8215 */
	{ { 0x20, 0x01, 0x00, 0x02 }, 48, AW_ADDRESS_BENCHMARK },
	{ { 0x20, 0x01, 0x00, 0x00 }, 32, AW_ADDRESS_TUNNEL }, /* Teredo */
	{ { 0x20, 0x01 }, 23, AW_ADDRESS_RESERVED },           /* protocol assignments, ORCHID */
	{ { 0x20, 0x01, 0x0d, 0xb8 }, 32, AW_ADDRESS_DOCUMENTATION },
	{ { 0x20, 0x02 }, 16, AW_ADDRESS_TUNNEL }, /* 6to4 */
	{ { 0x3f, 0xff }, 20, AW_ADDRESS_DOCUMENTATION },
	{ { 0x20 }, 3, AW_ADDRESS_PUBLIC },
	{ { 0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54 },
	  128,
	  AW_ADDRESS_METADATA }, /* AWS */
	{ { 0xfd, 0x20, 0x00, 0xce, [14] = 0x02, [15] = 0x54 },
	  128,
	  AW_ADDRESS_METADATA }, /* GCP */
	{ { 0xfc }, 7, AW_ADDRESS_UNIQUE_LOCAL },
	{ { 0xfe, 0x80 }, 10, AW_ADDRESS_LINK_LOCAL },
	{ { 0xfe, 0xc0 }, 10, AW_ADDRESS_UNIQUE_LOCAL }, /* site-local, RFC 3879 */
	{ { 0xff }, 8, AW_ADDRESS_MULTICAST },
};

static const char *const class_texts[AW_ADDRESS_CLASS_COUNT] = {
	[AW_ADDRESS_PUBLIC] = "public",
	[AW_ADDRESS_UNSPECIFIED] = "unspecified address",
	[AW_ADDRESS_LOOPBACK] = "loopback",
	[AW_ADDRESS_PRIVATE] = "private network",
	[AW_ADDRESS_SHARED] = "carrier's shared address space",
	[AW_ADDRESS_UNIQUE_LOCAL] = "local IPv6 network",
	[AW_ADDRESS_LINK_LOCAL] = "link-local",
	[AW_ADDRESS_METADATA] = "cloud metadata service",
	[AW_ADDRESS_MULTICAST] = "multicast",
	[AW_ADDRESS_BROADCAST] = "broadcast",
	[AW_ADDRESS_DOCUMENTATION] = "documentation range",
	[AW_ADDRESS_BENCHMARK] = "benchmarking range",
	[AW_ADDRESS_TUNNEL] = "address of a translation or tunnel",
	[AW_ADDRESS_RESERVED] = "reserved range",
	[AW_ADDRESS_OWN] = "address of this host",
};

static const uint8_t mapped_prefix[12] = { [10] = 0xff, [11] = 0xff };
static const uint8_t nat64_prefix[12] = { 0x00, 0x64, 0xff, 0x9b };

static bool has_prefix(const uint8_t *bytes, const struct range *range)
{
	size_t whole = range->bits / 8;
	unsigned rest = range->bits % 8;
	uint8_t mask = (uint8_t)(0xff00u >> rest);

	if (memcmp(bytes, range->prefix, whole) != 0)
		return false;
	return rest == 0 || ((bytes[whole] ^ range->prefix[whole]) & mask) == 0;
}

static enum aw_address_class find_class(const uint8_t *bytes, const struct range *ranges,
					size_t count, enum aw_address_class otherwise)
{
	for (size_t i = 0; i < count; i++)
		if (has_prefix(bytes, &ranges[i]))
			return ranges[i].class;
	return otherwise;
}

static bool is_embedding(const struct aw_ipc_addr *addr, const uint8_t prefix[12])
{
	return addr->family == AF_INET6 && memcmp(addr->bytes, prefix, 12) == 0;
}

static struct aw_ipc_addr embedded(const struct aw_ipc_addr *addr)
{
	struct aw_ipc_addr inner = { .family = AF_INET, .port = addr->port };

	memcpy(inner.bytes, addr->bytes + 12, 4);
	return inner;
}

struct aw_ipc_addr aw_address_unwrap(const struct aw_ipc_addr *addr)
{
	return is_embedding(addr, mapped_prefix) ? embedded(addr) : *addr;
}

enum aw_address_class aw_address_classify(const struct aw_ipc_addr *addr)
{
	struct aw_ipc_addr inner = *addr;

	if (is_embedding(addr, mapped_prefix) || is_embedding(addr, nat64_prefix))
		inner = embedded(addr);
	if (inner.family == AF_INET)
		return find_class(inner.bytes, ranges4, AW_ARRAY_LEN(ranges4), AW_ADDRESS_PUBLIC);
	return find_class(inner.bytes, ranges6, AW_ARRAY_LEN(ranges6), AW_ADDRESS_RESERVED);
}

static bool is_same(const struct aw_ipc_addr *a, const struct aw_ipc_addr *b)
{
	return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

/* Also behind NAT64: the translator would bring us back to ourselves. */
static bool is_own(const struct aw_ipc_addr *addr, const struct aw_ipc_addr *own, size_t own_count)
{
	struct aw_ipc_addr plain = aw_address_unwrap(addr);

	if (is_embedding(addr, nat64_prefix))
		plain = embedded(addr);
	for (size_t i = 0; i < own_count; i++)
		if (is_same(&plain, &own[i]) || is_same(addr, &own[i]))
			return true;
	return false;
}

bool aw_address_may_connect(const struct aw_ipc_addr *addr, const struct aw_ipc_addr *own,
			    size_t own_count, bool may_be_private, enum aw_address_class *ret_class)
{
	enum aw_address_class class = aw_address_classify(addr);
	bool is_local = class == AW_ADDRESS_PRIVATE || class == AW_ADDRESS_SHARED ||
			class == AW_ADDRESS_UNIQUE_LOCAL;
	bool is_ours = (class == AW_ADDRESS_PUBLIC || is_local) && is_own(addr, own, own_count);

	*ret_class = is_ours ? AW_ADDRESS_OWN : class;
	if (is_ours || is_local)
		return may_be_private;
	return class == AW_ADDRESS_PUBLIC;
}

const char *aw_address_class_text(enum aw_address_class class)
{
	return class_texts[class];
}

void aw_address_format(const struct aw_ipc_addr *addr, char *out)
{
	out[0] = '\0';
	if (addr->family != 0)
		(void)inet_ntop(addr->family, addr->bytes, out, AW_ADDRESS_TEXT_MAX);
}

socklen_t aw_address_to_sockaddr(const struct aw_ipc_addr *addr, struct sockaddr_storage *ret)
{
	if (addr->family == AF_INET) {
		struct sockaddr_in *in = (struct sockaddr_in *)ret;

		*in = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(addr->port) };
		memcpy(&in->sin_addr, addr->bytes, 4);
		return sizeof(*in);
	}
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;

	*in6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(addr->port) };
	memcpy(&in6->sin6_addr, addr->bytes, 16);
	return sizeof(*in6);
}

struct aw_ipc_addr aw_address_from_sockaddr(const struct sockaddr_storage *from)
{
	struct aw_ipc_addr addr = { .family = (uint8_t)from->ss_family };

	if (from->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)from;

		addr.port = ntohs(in->sin_port);
		memcpy(addr.bytes, &in->sin_addr, 4);
	} else if (from->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;

		addr.port = ntohs(in6->sin6_port);
		memcpy(addr.bytes, &in6->sin6_addr, 16);
	}
	return addr;
}
