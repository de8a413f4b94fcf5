#include "gate/decide.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"

static int set_up(void **state)
{
	struct aw_net *net = calloc(1, sizeof(*net));

	*net = (struct aw_net){ .magic = AW_NET_MAGIC,
				.size = sizeof(*net),
				.port_count = 2,
				.blocked_count = 1,
				.ports = { 80, 443 },
				.blocked = { 25 },
				.rule_count = 3,
				.rules = {
					{ .name = "a.example",
					  .form = AW_NET_EXACT,
					  .layer = AW_NET_LAYER_USER },
					{ .name = "b.example",
					  .form = AW_NET_EXACT,
					  .layer = AW_NET_LAYER_USER,
					  .port = 22 },
					{ .name = "c.example",
					  .form = AW_NET_EXACT,
					  .layer = AW_NET_LAYER_USER,
					  .may_be_private = 1 },
				} };
	*state = net;
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static void every_way_of_asking_gets_the_same_verdict(void **state)
{
	static const struct {
		const char *name;
		uint16_t port;
		enum aw_net_reason reason;
		const char *said;
	} table[] = {
		{ "a.example", 443, AW_NET_GRANTED, "a.example" },
		{ "A.Example.", 443, AW_NET_GRANTED, "a.example" },
		{ "a.example..", 443, AW_NET_MALFORMED, "a.example.." },
		{ "a.example", 22, AW_NET_PORT_NOT_GRANTED, "a.example" },
		{ "a.example", 25, AW_NET_PORT_BLOCKED, "a.example" },
		{ "b.example", 22, AW_NET_GRANTED, "b.example" },
		{ "b.example", 443, AW_NET_PORT_NOT_GRANTED, "b.example" },
		{ "evil.example", 443, AW_NET_NOT_GRANTED, "evil.example" },
		{ "127.0.0.1", 443, AW_NET_LITERAL, "127.0.0.1" },
		{ "127.1", 443, AW_NET_LITERAL, "127.1" },
		{ "0x7f.1", 443, AW_NET_LITERAL, "0x7f.1" },
		{ "2130706433", 443, AW_NET_LITERAL, "2130706433" },
	};

	for (size_t i = 0; i < AW_ARRAY_LEN(table); i++) {
		struct aw_hostport peer = { .port = table[i].port };
		struct aw_decision by_name, by_peer;

		aw_decide_name(*state, aw_str_from(table[i].name), table[i].port, &by_name);
		assert_int_equal(by_name.verdict.reason, table[i].reason);
		assert_string_equal(by_name.name, table[i].said);
		assert_int_equal(by_name.port, table[i].port);
		if (aw_host_parse(aw_str_from(table[i].name), &peer.host) < 0)
			continue;
		aw_decide_peer(*state, &peer, &by_peer);
		assert_int_equal(by_peer.verdict.reason, table[i].reason);
		assert_string_equal(by_peer.name, table[i].said);
	}
}

static void what_is_no_name_is_told_so_that_it_cannot_harm_a_terminal(void **state)
{
	struct aw_decision d;

	aw_decide_name(*state, AW_STR("evil.com\0.a.example"), 443, &d);
	assert_int_equal(d.verdict.reason, AW_NET_MALFORMED);
	assert_string_equal(d.name, "evil.com\\x00.a.example");
	aw_decide_name(*state, AW_STR("a\033[2J"), 443, &d);
	assert_string_equal(d.name, "a\\x1b[2J");
	aw_decide_name(*state, AW_STR(""), 443, &d);
	assert_int_equal(d.verdict.reason, AW_NET_MALFORMED);
}

static void an_endless_name_is_cut_and_refused(void **state)
{
	char name[1000];
	struct aw_decision d;

	memset(name, 'a', sizeof(name));
	aw_decide_name(*state, (struct aw_str){ name, sizeof(name) }, 443, &d);
	assert_int_equal(d.verdict.reason, AW_NET_MALFORMED);
	assert_true(strlen(d.name) <= AW_NET_NAME_MAX);
}

static void an_address_that_came_as_bytes_is_a_literal_with_a_text(void **state)
{
	struct aw_hostport peer = { .host = { .kind = AW_HOST_IPV4, .address = { 192, 0, 2, 7 } },
				    .port = 443 };
	struct aw_decision d;

	aw_decide_peer(*state, &peer, &d);
	assert_int_equal(d.verdict.reason, AW_NET_LITERAL);
	assert_int_equal(d.verdict.rule, -1);
	assert_string_equal(d.name, "192.0.2.7");
	peer.host.kind = AW_HOST_IPV6;
	memcpy(peer.host.address, (uint8_t[16]){ 0x20, 1, [15] = 1 }, 16);
	aw_decide_peer(*state, &peer, &d);
	assert_string_equal(d.name, "2001::1");
}

static void a_grant_of_private_answers_comes_with_the_verdict(void **state)
{
	struct aw_decision d;

	aw_decide_name(*state, AW_STR("c.example"), 443, &d);
	assert_true(aw_decision_is_granted(&d) && d.verdict.may_be_private);
	aw_decide_name(*state, AW_STR("a.example"), 443, &d);
	assert_true(aw_decision_is_granted(&d) && !d.verdict.may_be_private);
}

static void names_are_compared_in_their_normal_form(void **state)
{
	(void)state;
	assert_true(aw_decide_is_same_name(AW_STR("A.EXAMPLE."), "a.example"));
	assert_false(aw_decide_is_same_name(AW_STR("a.example.."), "a.example"));
	assert_false(aw_decide_is_same_name(AW_STR("b.a.example"), "a.example"));
	assert_false(aw_decide_is_same_name(AW_STR(""), "a.example"));
	assert_false(aw_decide_is_same_name(AW_STR("a.example\0"), "a.example"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_way_of_asking_gets_the_same_verdict),
		cmocka_unit_test(what_is_no_name_is_told_so_that_it_cannot_harm_a_terminal),
		cmocka_unit_test(an_endless_name_is_cut_and_refused),
		cmocka_unit_test(an_address_that_came_as_bytes_is_a_literal_with_a_text),
		cmocka_unit_test(a_grant_of_private_answers_comes_with_the_verdict),
		cmocka_unit_test(names_are_compared_in_their_normal_form),
	};

	return cmocka_run_group_tests_name("decide", tests, set_up, tear_down);
}
