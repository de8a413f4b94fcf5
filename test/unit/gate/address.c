#include "gate/address.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"

static struct aw_ipc_addr addr_of(const char *text)
{
	struct aw_ipc_addr addr = { .family = strchr(text, ':') != NULL ? AF_INET6 : AF_INET,
				    .port = 443 };

	assert_int_equal(inet_pton(addr.family, text, addr.bytes), 1);
	return addr;
}

/* Both ends of every range and their neighbours outside. */
static const struct {
	const char *text;
	enum aw_address_class class;
} table[] = {
	{ "0.0.0.0", AW_ADDRESS_UNSPECIFIED },
	{ "0.255.255.255", AW_ADDRESS_UNSPECIFIED },
	{ "1.0.0.0", AW_ADDRESS_PUBLIC },
	{ "9.255.255.255", AW_ADDRESS_PUBLIC },
	{ "10.0.0.0", AW_ADDRESS_PRIVATE },
	{ "10.255.255.255", AW_ADDRESS_PRIVATE },
	{ "11.0.0.0", AW_ADDRESS_PUBLIC },
	{ "100.63.255.255", AW_ADDRESS_PUBLIC },
	{ "100.64.0.0", AW_ADDRESS_SHARED },
	{ "100.100.100.199", AW_ADDRESS_SHARED },
	{ "100.100.100.200", AW_ADDRESS_METADATA },
	{ "100.127.255.255", AW_ADDRESS_SHARED },
	{ "100.128.0.0", AW_ADDRESS_PUBLIC },
	{ "126.255.255.255", AW_ADDRESS_PUBLIC },
	{ "127.0.0.0", AW_ADDRESS_LOOPBACK },
	{ "127.255.255.255", AW_ADDRESS_LOOPBACK },
	{ "128.0.0.0", AW_ADDRESS_PUBLIC },
	{ "168.63.129.15", AW_ADDRESS_PUBLIC },
	{ "168.63.129.16", AW_ADDRESS_METADATA },
	{ "169.253.255.255", AW_ADDRESS_PUBLIC },
	{ "169.254.0.0", AW_ADDRESS_LINK_LOCAL },
	{ "169.254.169.254", AW_ADDRESS_METADATA },
	{ "169.254.255.255", AW_ADDRESS_LINK_LOCAL },
	{ "169.255.0.0", AW_ADDRESS_PUBLIC },
	{ "172.15.255.255", AW_ADDRESS_PUBLIC },
	{ "172.16.0.0", AW_ADDRESS_PRIVATE },
	{ "172.31.255.255", AW_ADDRESS_PRIVATE },
	{ "172.32.0.0", AW_ADDRESS_PUBLIC },
	{ "191.255.255.255", AW_ADDRESS_PUBLIC },
	{ "192.0.0.0", AW_ADDRESS_RESERVED },
	{ "192.0.0.192", AW_ADDRESS_METADATA },
	{ "192.0.0.255", AW_ADDRESS_RESERVED },
	{ "192.0.1.0", AW_ADDRESS_PUBLIC },
	{ "192.0.2.0", AW_ADDRESS_DOCUMENTATION },
	{ "192.0.2.255", AW_ADDRESS_DOCUMENTATION },
	{ "192.0.3.0", AW_ADDRESS_PUBLIC },
	{ "192.88.99.1", AW_ADDRESS_TUNNEL },
	{ "192.167.255.255", AW_ADDRESS_PUBLIC },
	{ "192.168.0.0", AW_ADDRESS_PRIVATE },
	{ "192.168.255.255", AW_ADDRESS_PRIVATE },
	{ "192.169.0.0", AW_ADDRESS_PUBLIC },
	{ "198.17.255.255", AW_ADDRESS_PUBLIC },
	{ "198.18.0.0", AW_ADDRESS_BENCHMARK },
	{ "198.19.255.255", AW_ADDRESS_BENCHMARK },
	{ "198.20.0.0", AW_ADDRESS_PUBLIC },
	{ "198.51.100.7", AW_ADDRESS_DOCUMENTATION },
	{ "203.0.113.7", AW_ADDRESS_DOCUMENTATION },
	{ "223.255.255.255", AW_ADDRESS_PUBLIC },
	{ "224.0.0.0", AW_ADDRESS_MULTICAST },
	{ "239.255.255.255", AW_ADDRESS_MULTICAST },
	{ "240.0.0.0", AW_ADDRESS_RESERVED },
	{ "255.255.255.254", AW_ADDRESS_RESERVED },
	{ "255.255.255.255", AW_ADDRESS_BROADCAST },
	{ "::", AW_ADDRESS_UNSPECIFIED },
	{ "::1", AW_ADDRESS_LOOPBACK },
	{ "::2", AW_ADDRESS_TUNNEL },
	{ "::127.0.0.1", AW_ADDRESS_TUNNEL },
	{ "::8.8.8.8", AW_ADDRESS_TUNNEL },
	{ "::ffff:0:8.8.8.8", AW_ADDRESS_RESERVED },
	{ "::ffff:127.0.0.1", AW_ADDRESS_LOOPBACK },
	{ "::ffff:169.254.169.254", AW_ADDRESS_METADATA },
	{ "::ffff:10.1.2.3", AW_ADDRESS_PRIVATE },
	{ "::ffff:0.0.0.0", AW_ADDRESS_UNSPECIFIED },
	{ "::ffff:8.8.8.8", AW_ADDRESS_PUBLIC },
	{ "64:ff9b::7f00:1", AW_ADDRESS_LOOPBACK },
	{ "64:ff9b::a9fe:a9fe", AW_ADDRESS_METADATA },
	{ "64:ff9b::c0a8:102", AW_ADDRESS_PRIVATE },
	{ "64:ff9b::808:808", AW_ADDRESS_PUBLIC },
	{ "64:ff9b:1::a01:203", AW_ADDRESS_TUNNEL },
	{ "64:ff9b:1:ffff::1", AW_ADDRESS_TUNNEL },
	{ "64:ff9b:2::1", AW_ADDRESS_RESERVED },
	{ "100::1", AW_ADDRESS_RESERVED },
	{ "1fff::1", AW_ADDRESS_RESERVED },
	{ "2000::1", AW_ADDRESS_PUBLIC },
	{ "2001:0:7f00:1::1", AW_ADDRESS_TUNNEL },
	{ "2001:2::1", AW_ADDRESS_BENCHMARK },
	{ "2001:10::1", AW_ADDRESS_RESERVED },
	{ "2001:1ff:ffff::1", AW_ADDRESS_RESERVED },
	{ "2001:200::1", AW_ADDRESS_PUBLIC },
	{ "2001:db7:ffff::1", AW_ADDRESS_PUBLIC },
	{ "2001:db8::1", AW_ADDRESS_DOCUMENTATION },
	{ "2001:db9::1", AW_ADDRESS_PUBLIC },
	{ "2002:7f00:1::", AW_ADDRESS_TUNNEL },
	{ "2002:808:808::1", AW_ADDRESS_TUNNEL },
	{ "2003::1", AW_ADDRESS_PUBLIC },
	{ "2d00:1ab::1", AW_ADDRESS_PUBLIC },
	{ "3fff::1", AW_ADDRESS_DOCUMENTATION },
	{ "3fff:fff::1", AW_ADDRESS_DOCUMENTATION },
	{ "3fff:1000::1", AW_ADDRESS_PUBLIC },
	{ "4000::1", AW_ADDRESS_RESERVED },
	{ "5f00::1", AW_ADDRESS_RESERVED },
	{ "fbff::1", AW_ADDRESS_RESERVED },
	{ "fc00::1", AW_ADDRESS_UNIQUE_LOCAL },
	{ "fdff::1", AW_ADDRESS_UNIQUE_LOCAL },
	{ "fd00:ec2::254", AW_ADDRESS_METADATA },
	{ "fd20:ce::254", AW_ADDRESS_METADATA },
	{ "fd00:ec2::253", AW_ADDRESS_UNIQUE_LOCAL },
	{ "fe00::1", AW_ADDRESS_RESERVED },
	{ "fe80::1", AW_ADDRESS_LINK_LOCAL },
	{ "febf::1", AW_ADDRESS_LINK_LOCAL },
	{ "fec0::1", AW_ADDRESS_UNIQUE_LOCAL },
	{ "ff02::1", AW_ADDRESS_MULTICAST },
};

static void knows_both_ends_of_every_range(void **state)
{
	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(table); i++) {
		struct aw_ipc_addr addr = addr_of(table[i].text);
		enum aw_address_class class = aw_address_classify(&addr);

		if (class != table[i].class)
			fail_msg("%s is %s", table[i].text, aw_address_class_text(class));
	}
}

static void without_a_grant_only_public_is_connected_to(void **state)
{
	enum aw_address_class class;

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(table); i++) {
		struct aw_ipc_addr addr = addr_of(table[i].text);
		bool may = aw_address_may_connect(&addr, NULL, 0, false, &class);

		if (may != (table[i].class == AW_ADDRESS_PUBLIC))
			fail_msg("%s: %d", table[i].text, may);
	}
}

static void a_grant_of_private_opens_private_networks_alone(void **state)
{
	enum aw_address_class class;

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(table); i++) {
		struct aw_ipc_addr addr = addr_of(table[i].text);
		bool may = aw_address_may_connect(&addr, NULL, 0, true, &class);
		bool should = table[i].class == AW_ADDRESS_PUBLIC ||
			      table[i].class == AW_ADDRESS_PRIVATE ||
			      table[i].class == AW_ADDRESS_SHARED ||
			      table[i].class == AW_ADDRESS_UNIQUE_LOCAL;

		if (may != should)
			fail_msg("%s: %d", table[i].text, may);
	}
}

static void own_addresses_are_known_in_every_wrapping(void **state)
{
	static const char *const wrapped[] = { "44.128.77.2", "::ffff:44.128.77.2",
					       "64:ff9b::2c80:4d02", "2d00:1ab:77::2" };
	struct aw_ipc_addr own[] = { addr_of("44.128.77.2"), addr_of("2d00:1ab:77::2") };
	enum aw_address_class class;

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(wrapped); i++) {
		struct aw_ipc_addr addr = addr_of(wrapped[i]);

		assert_false(aw_address_may_connect(&addr, own, AW_ARRAY_LEN(own), false, &class));
		assert_int_equal(class, AW_ADDRESS_OWN);
		assert_true(aw_address_may_connect(&addr, own, AW_ARRAY_LEN(own), true, &class));
	}
}

static void loopback_stays_closed_also_when_it_is_own(void **state)
{
	struct aw_ipc_addr own[] = { addr_of("127.0.0.1"), addr_of("::1"), addr_of("fe80::1") };
	enum aw_address_class class;

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(own); i++)
		assert_false(aw_address_may_connect(&own[i], own, AW_ARRAY_LEN(own), true, &class));
}

static void mapped_addresses_are_connected_to_as_what_they_are(void **state)
{
	struct aw_ipc_addr mapped = addr_of("::ffff:8.8.4.4"), plain = addr_of("8.8.4.4");
	struct aw_ipc_addr inner = aw_address_unwrap(&mapped), same = aw_address_unwrap(&plain);

	(void)state;
	assert_memory_equal(&inner, &plain, sizeof(plain));
	assert_memory_equal(&same, &plain, sizeof(plain));
}

static void survives_the_way_to_the_kernel_and_back(void **state)
{
	static const char *const texts[] = { "44.128.1.40", "2d00:1ab:1::40" };

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(texts); i++) {
		struct aw_ipc_addr addr = addr_of(texts[i]), back;
		struct sockaddr_storage kernel = { 0 };
		char text[AW_ADDRESS_TEXT_MAX];

		assert_true(aw_address_to_sockaddr(&addr, &kernel) > 0);
		back = aw_address_from_sockaddr(&kernel);
		assert_memory_equal(&back, &addr, sizeof(addr));
		aw_address_format(&back, text);
		assert_string_equal(text, texts[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_both_ends_of_every_range),
		cmocka_unit_test(without_a_grant_only_public_is_connected_to),
		cmocka_unit_test(a_grant_of_private_opens_private_networks_alone),
		cmocka_unit_test(own_addresses_are_known_in_every_wrapping),
		cmocka_unit_test(loopback_stays_closed_also_when_it_is_own),
		cmocka_unit_test(mapped_addresses_are_connected_to_as_what_they_are),
		cmocka_unit_test(survives_the_way_to_the_kernel_and_back),
	};

	return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}
