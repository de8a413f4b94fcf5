#include "monitor/names.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/own.h"
#include "policy/net.h"

static const uint8_t v4[16] = { 192, 0, 2, 1 };
static const uint8_t v6[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 };

static void an_address_is_read_exactly(void **state)
{
	struct aw_ipc_addr addr;

	(void)state;
	assert_true(aw_names_parse_address(AW_STR("192.0.2.1"), &addr));
	assert_int_equal(addr.family, AF_INET);
	assert_memory_equal(addr.bytes, v4, sizeof(v4));
	assert_true(aw_names_parse_address(AW_STR("2001:db8::1"), &addr));
	assert_int_equal(addr.family, AF_INET6);
	assert_memory_equal(addr.bytes, v6, sizeof(v6));
	assert_int_equal(addr.port, 0);
	assert_true(aw_names_parse_address(AW_STR("::ffff:192.0.2.1"), &addr));
	assert_int_equal(addr.family, AF_INET6);
}

static void what_is_no_address_is_refused(void **state)
{
	static const struct aw_str texts[] = {
		AW_STR(""),
		AW_STR("1"),
		AW_STR("1.2.3"),
		AW_STR("1.2.3.4.5"),
		AW_STR("1.2.3.256"),
		AW_STR("0x7f.0.0.1"),
		AW_STR("1.2.3.4 "),
		AW_STR(" 1.2.3.4"),
		AW_STR("1.2.3.4\0"),
		AW_STR("1.2.3.4\0.5"),
		AW_STR("\0001.2.3.4"),
		AW_STR("1.2.3.4\n"),
		AW_STR("1.2.3.4:53"),
		AW_STR("[::1]"),
		AW_STR("fe80::1%eth0"),
		AW_STR("::1::"),
		AW_STR("localhost"),
		AW_STR("0000:0000:0000:0000:0000:0000:255.255.255.2550"),
	};
	struct aw_ipc_addr addr;

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(texts); i++)
		if (aw_names_parse_address(texts[i], &addr))
			fail_msg("'%s' is taken for an address", texts[i].ptr);
}

static void reads_the_name_servers_in_order(void **state)
{
	struct aw_ipc_resolvers r;

	(void)state;
	aw_names_parse_resolv(AW_STR("# made by somebody\n"
				     "search example.org\n"
				     "nameserver 192.0.2.1\n"
				     "  nameserver\t2001:db8::1  # the other\r\n"
				     "options timeout:1\n"
				     "nameserver 192.0.2.2"),
			      &r);
	assert_int_equal(r.count, 3);
	assert_memory_equal(r.server[0].bytes, v4, 16);
	assert_int_equal(r.server[0].port, 53);
	assert_memory_equal(r.server[1].bytes, v6, 16);
	assert_int_equal(r.server[2].bytes[3], 2);
}

static void a_hostile_resolv_conf_gives_nothing(void **state)
{
	static const struct aw_str texts[] = {
		{ NULL, 0 },
		AW_STR(""),
		AW_STR("\n\n\0\n"),
		AW_STR("nameserver"),
		AW_STR("nameserver \n192.0.2.1"),
		AW_STR("nameserver#192.0.2.1"),
		AW_STR("nameserver ;192.0.2.1"),
		AW_STR("#nameserver 192.0.2.1"),
		AW_STR("nameservers 192.0.2.1"),
		AW_STR("NAMESERVER 192.0.2.1"),
		AW_STR("nameserver=192.0.2.1"),
		AW_STR("nameserver 192.0.2.1\0"),
		AW_STR("nameserver localhost"),
		AW_STR("nameserver 192.0.2.1,192.0.2.2"),
		AW_STR("search nameserver 192.0.2.1"),
	};
	struct aw_ipc_resolvers r;

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(texts); i++) {
		aw_names_parse_resolv(texts[i], &r);
		if (r.count != 0)
			fail_msg("'%s' gives a server", texts[i].ptr);
	}
}

static void more_servers_than_fit_are_left_out(void **state)
{
	char text[4096] = "";
	struct aw_ipc_resolvers r;
	size_t n = 0;

	(void)state;
	for (unsigned i = 1; i <= AW_IPC_SERVERS_MAX + 3; i++)
		n += (size_t)aw_str_format(text + n, sizeof(text) - n, "nameserver 192.0.2.%u\n",
					   i);
	aw_names_parse_resolv(aw_str_from(text), &r);
	assert_int_equal(r.count, AW_IPC_SERVERS_MAX);
	assert_int_equal(r.server[AW_IPC_SERVERS_MAX - 1].bytes[3], AW_IPC_SERVERS_MAX);
}

/* Grants api.example.org and everything below .lan. */
static struct aw_net *make_net(void)
{
	struct aw_net *net = test_calloc(1, sizeof(*net));
	struct aw_net_rule rules[] = {
		{ .name = "api.example.org", .form = AW_NET_EXACT },
		{ .name = "lan.example", .form = AW_NET_BELOW },
		{ .name = "not.lan.example", .form = AW_NET_EXACT, .is_denied = 1 },
	};

	net->magic = AW_NET_MAGIC;
	net->size = sizeof(*net);
	net->ports[net->port_count++] = 443;
	for (size_t i = 0; i < AW_ARRAY_LEN(rules); i++)
		assert_int_equal(aw_net_add(net, &rules[i]), 1);
	return net;
}

static void only_granted_hosts_are_taken_over(void **state)
{
	struct aw_ipc_host hosts[AW_IPC_HOSTS_MAX];
	struct aw_net *net = make_net();

	(void)state;
	assert_int_equal(
		aw_names_parse_hosts(AW_STR("127.0.0.1 localhost secret.internal\n"
					    "192.0.2.1 other API.example.org. x\n"
					    "2001:db8::1\tone.lan.example two.lan.example # c\n"
					    "192.0.2.9 not.lan.example lan.example\n"
					    "# 192.0.2.9 api.example.org\n"),
				     net, hosts),
		3);
	assert_string_equal(hosts[0].name, "api.example.org");
	assert_memory_equal(hosts[0].addr.bytes, v4, 16);
	assert_string_equal(hosts[1].name, "one.lan.example");
	assert_string_equal(hosts[2].name, "two.lan.example");
	assert_int_equal(hosts[2].addr.family, AF_INET6);
	test_free(net);
}

static void a_hostile_hosts_file_gives_nothing(void **state)
{
	static const struct aw_str texts[] = {
		{ NULL, 0 },
		AW_STR(""),
		AW_STR("\n\0\n"),
		AW_STR("192.0.2.1"),
		AW_STR("api.example.org 192.0.2.1"),
		AW_STR("192.0.2 api.example.org"),
		AW_STR("192.0.2.1#api.example.org"),
		AW_STR("192.0.2.1 #api.example.org"),
		AW_STR("192.0.2.1 api.example.org\0"),
		AW_STR("192.0.2.1 api.example.org/x"),
		AW_STR("192.0.2.1 *.lan.example"),
		AW_STR("192.0.2.1 ..lan.example"),
		AW_STR("192.0.2.1 x..lan.example"),
		AW_STR("192.0.2.1\0 api.example.org"),
		AW_STR("192.0.2.1 192.0.2.2"),
	};
	struct aw_ipc_host hosts[AW_IPC_HOSTS_MAX];
	struct aw_net *net = make_net();

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(texts); i++)
		if (aw_names_parse_hosts(texts[i], net, hosts) != 0)
			fail_msg("'%s' gives '%s'", texts[i].ptr, hosts[0].name);
	test_free(net);
}

static void more_hosts_than_fit_are_left_out(void **state)
{
	static char text[65536];
	struct aw_ipc_host hosts[AW_IPC_HOSTS_MAX + 1];
	struct aw_net *net = make_net();
	size_t n = 0;

	(void)state;
	for (unsigned i = 0; i < 40; i++)
		n += (size_t)aw_str_format(text + n, sizeof(text) - n,
					   "192.0.2.1 a%u.lan.example b%u.lan.example\n", i, i);
	memset(&hosts[AW_IPC_HOSTS_MAX], 'x', sizeof(hosts[0]));
	assert_int_equal(aw_names_parse_hosts(aw_str_from(text), net, hosts), AW_IPC_HOSTS_MAX);
	assert_int_equal(hosts[AW_IPC_HOSTS_MAX].name[0], 'x');
	test_free(net);
}

static void the_hosts_own_addresses_are_collected(void **state)
{
	static const uint8_t loopback[16] = { 127, 0, 0, 1 };
	struct aw_ipc_gate_setup *setup = test_calloc(1, sizeof(*setup));
	struct aw_net *net = make_net();
	struct aw_error err;
	bool has_loopback = false;

	(void)state;
	assert_int_equal(aw_names_collect(net, setup, &err), 0);
	assert_true(setup->own_count > 0 && setup->own_count <= AW_ARRAY_LEN(setup->own));
	for (uint32_t i = 0; i < setup->own_count; i++) {
		assert_true(setup->own[i].family == AF_INET || setup->own[i].family == AF_INET6);
		has_loopback |= memcmp(setup->own[i].bytes, loopback, 16) == 0;
	}
	assert_true(has_loopback);
	test_free(net);
	test_free(setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_is_read_exactly),
		cmocka_unit_test(what_is_no_address_is_refused),
		cmocka_unit_test(reads_the_name_servers_in_order),
		cmocka_unit_test(a_hostile_resolv_conf_gives_nothing),
		cmocka_unit_test(more_servers_than_fit_are_left_out),
		cmocka_unit_test(only_granted_hosts_are_taken_over),
		cmocka_unit_test(a_hostile_hosts_file_gives_nothing),
		cmocka_unit_test(more_hosts_than_fit_are_left_out),
		cmocka_unit_test(the_hosts_own_addresses_are_collected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
