#include "policy/net.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy/domain.h"

static struct aw_net *net;

static int make_net(void **state)
{
	(void)state;
	net = calloc(1, sizeof(*net));
	if (net == NULL)
		return -1;
	net->magic = AW_NET_MAGIC;
	net->size = sizeof(*net);
	net->ports[0] = 80;
	net->ports[1] = 443;
	net->port_count = 2;
	return 0;
}

static int drop_net(void **state)
{
	(void)state;
	free(net);
	return 0;
}

static void add(const char *text, enum aw_domain_use use)
{
	struct aw_domain domain;
	struct aw_net_rule rule;
	struct aw_error err;

	assert_int_equal(aw_domain_parse(aw_str_from(text), use, &domain, &err), 0);
	rule = aw_domain_rule(&domain, use, AW_NET_LAYER_USER);
	assert_int_equal(aw_net_add(net, &rule), 1);
}

static struct aw_net_verdict decide(const char *name, uint16_t port)
{
	struct aw_net_verdict verdict;

	aw_net_decide(net, aw_str_from(name), port, &verdict);
	return verdict;
}

static void block(uint16_t port)
{
	net->blocked[net->blocked_count++] = port;
}

static int normal(const char *raw, char *out)
{
	return aw_net_normalise(aw_str_from(raw), out);
}

static void a_name_is_lowered_and_loses_one_final_dot(void **state)
{
	char out[AW_NET_NAME_MAX + 1];

	(void)state;
	assert_int_equal(normal("PyPI.ORG.", out), 8);
	assert_string_equal(out, "pypi.org");
	assert_int_equal(normal("internal-search", out), 15);
	assert_int_equal(normal("_acme.xn--bcher-kva.example", out), 27);
	assert_int_equal(normal("1e100.net", out), 9);
}

static void what_is_no_name_is_malformed(void **state)
{
	static const char *const bad[] = { "",    ".",   "..",   "a..b",  ".a",           "a.b..",
					   "a b", "a/b", "a\tb", "a\x7f", "b\xc3\xbc.de", "a%2e.b",
					   "a@b", "*.a", "a:80", "a\\.b", "a,b" };
	char out[AW_NET_NAME_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(normal(bad[i], out), -EBADMSG);
	assert_int_equal(aw_net_normalise((struct aw_str){ NULL, 0 }, out), -EBADMSG);
	assert_int_equal(aw_net_normalise((struct aw_str){ "a\0b", 3 }, out), -EBADMSG);
}

static void an_address_is_seen_in_every_spelling(void **state)
{
	static const char *const literals[] = { "1.2.3.4",      "127.1",     "2130706433",
						"0x7f000001",   "0X7F.1",    "0177.0.0.1",
						"1.2.3.4.",     "1.2.3",     "foo.1",
						"foo.0x2",      "0x",        "[::1]",
						"::1",          "[fe80::1]", "::ffff:1.2.3.4",
						"fe80::1%eth0", "2001:db8::" };
	char out[AW_NET_NAME_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(literals) / sizeof(literals[0]); i++)
		assert_int_equal(normal(literals[i], out), -EADDRNOTAVAIL);
}

static void labels_end_at_63_and_names_at_253_bytes(void **state)
{
	char raw[260], out[AW_NET_NAME_MAX + 1];

	(void)state;
	memset(raw, 'a', sizeof(raw));
	assert_int_equal(aw_net_normalise((struct aw_str){ raw, 63 }, out), 63);
	assert_int_equal(aw_net_normalise((struct aw_str){ raw, 64 }, out), -EBADMSG);
	for (size_t i = 63; i < sizeof(raw); i += 64)
		raw[i] = '.';
	assert_int_equal(aw_net_normalise((struct aw_str){ raw, 253 }, out), 253);
	raw[253] = '.';
	assert_int_equal(aw_net_normalise((struct aw_str){ raw, 254 }, out), 253);
	raw[253] = 'a';
	assert_int_equal(aw_net_normalise((struct aw_str){ raw, 254 }, out), -EBADMSG);
}

static void an_exact_rule_grants_that_name_alone(void **state)
{
	(void)state;
	add("a.com", AW_DOMAIN_GRANT);
	assert_int_equal(decide("a.com", 443).reason, AW_NET_GRANTED);
	assert_int_equal(decide("x.a.com", 443).reason, AW_NET_NOT_GRANTED);
	assert_int_equal(decide("xa.com", 443).reason, AW_NET_NOT_GRANTED);
	assert_int_equal(decide("com", 443).reason, AW_NET_NOT_GRANTED);
	assert_int_equal(decide("com", 443).rule, -1);
}

static void a_star_grants_what_lies_below_on_label_boundaries(void **state)
{
	(void)state;
	add("*.a.com", AW_DOMAIN_GRANT);
	assert_int_equal(decide("x.a.com", 443).reason, AW_NET_GRANTED);
	assert_int_equal(decide("x.y.a.com", 443).reason, AW_NET_GRANTED);
	assert_int_equal(decide("a.com", 443).reason, AW_NET_NOT_GRANTED);
	assert_int_equal(decide("xa.com", 443).reason, AW_NET_NOT_GRANTED);
	assert_int_equal(decide("a.com.evil.net", 443).reason, AW_NET_NOT_GRANTED);
}

static void a_dot_grants_the_name_and_what_lies_below(void **state)
{
	(void)state;
	add(".a.com", AW_DOMAIN_GRANT);
	assert_int_equal(decide("a.com", 80).reason, AW_NET_GRANTED);
	assert_int_equal(decide("x.a.com", 80).reason, AW_NET_GRANTED);
	assert_int_equal(decide("xa.com", 80).reason, AW_NET_NOT_GRANTED);
}

static void a_denial_beats_every_grant(void **state)
{
	struct aw_net_verdict verdict;

	(void)state;
	add(".a.com", AW_DOMAIN_GRANT);
	add("x.a.com", AW_DOMAIN_GRANT);
	add("x.a.com", AW_DOMAIN_DENY);
	verdict = decide("x.a.com", 443);
	assert_int_equal(verdict.reason, AW_NET_DENIED);
	assert_int_equal(verdict.rule, 2);
	assert_int_equal(decide("x.a.com", 0).reason, AW_NET_DENIED);
	assert_int_equal(decide("y.a.com", 443).reason, AW_NET_GRANTED);
}

static void a_denial_with_a_port_is_of_that_port(void **state)
{
	(void)state;
	add("a.com", AW_DOMAIN_GRANT);
	add("a.com:80", AW_DOMAIN_DENY);
	assert_int_equal(decide("a.com", 80).reason, AW_NET_DENIED);
	assert_int_equal(decide("a.com", 443).reason, AW_NET_GRANTED);
	assert_int_equal(decide("a.com", 0).reason, AW_NET_GRANTED);
}

static void only_allowed_ports_and_a_rules_own_are_granted(void **state)
{
	struct aw_net_verdict verdict;

	(void)state;
	add("a.com", AW_DOMAIN_GRANT);
	add("github.com:22", AW_DOMAIN_GRANT);
	assert_int_equal(decide("a.com", 80).reason, AW_NET_GRANTED);
	verdict = decide("a.com", 22);
	assert_int_equal(verdict.reason, AW_NET_PORT_NOT_GRANTED);
	assert_int_equal(verdict.rule, 0);
	assert_int_equal(decide("github.com", 22).reason, AW_NET_GRANTED);
	assert_int_equal(decide("github.com", 443).reason, AW_NET_PORT_NOT_GRANTED);
	assert_int_equal(decide("github.com", 0).reason, AW_NET_GRANTED);
}

static void a_blocked_port_beats_a_rule_that_names_it(void **state)
{
	(void)state;
	add("a.com", AW_DOMAIN_GRANT);
	add("a.com:22", AW_DOMAIN_GRANT);
	block(22);
	assert_int_equal(decide("a.com", 22).reason, AW_NET_PORT_BLOCKED);
	assert_int_equal(decide("a.com", 443).reason, AW_NET_GRANTED);
	assert_int_equal(decide("b.com", 22).reason, AW_NET_NOT_GRANTED);
}

static void a_name_without_any_usable_port_is_not_resolved(void **state)
{
	(void)state;
	add("a.com:22", AW_DOMAIN_GRANT);
	block(22);
	assert_int_not_equal(decide("a.com", 0).reason, AW_NET_GRANTED);
	add("b.com", AW_DOMAIN_GRANT);
	assert_int_equal(decide("b.com", 0).reason, AW_NET_GRANTED);
	net->port_count = 0;
	assert_int_not_equal(decide("b.com", 0).reason, AW_NET_GRANTED);
}

static void private_answers_are_accepted_if_any_granting_rule_says_so(void **state)
{
	(void)state;
	add(".corp.lan", AW_DOMAIN_GRANT);
	add("db.corp.lan", AW_DOMAIN_GRANT);
	net->rules[1].may_be_private = 1;
	assert_true(decide("db.corp.lan", 443).may_be_private);
	assert_int_equal(decide("db.corp.lan", 443).rule, 0);
	assert_false(decide("x.corp.lan", 443).may_be_private);
	assert_false(decide("db.corp.lan", 25).may_be_private);
}

static void nothing_is_granted_by_an_empty_policy(void **state)
{
	uint16_t ports[4];

	(void)state;
	assert_int_equal(decide("a.com", 443).reason, AW_NET_NOT_GRANTED);
	assert_int_equal(decide("a.com", 0).reason, AW_NET_NOT_GRANTED);
	assert_int_equal(aw_net_listen_ports(net, ports, 4), 0);
}

static void listeners_are_for_granted_ports_in_order_without_the_blocked(void **state)
{
	uint16_t ports[8];

	(void)state;
	add("github.com:22", AW_DOMAIN_GRANT);
	add("x.com:8443", AW_DOMAIN_GRANT);
	add("y.com:8443", AW_DOMAIN_GRANT);
	assert_int_equal(aw_net_listen_ports(net, ports, 8), 2);
	assert_int_equal(ports[0], 22);
	assert_int_equal(ports[1], 8443);
	add("a.com", AW_DOMAIN_GRANT);
	add("b.com:9999", AW_DOMAIN_DENY);
	block(22);
	assert_int_equal(aw_net_listen_ports(net, ports, 8), 3);
	assert_int_equal(ports[0], 80);
	assert_int_equal(ports[1], 443);
	assert_int_equal(ports[2], 8443);
	assert_int_equal(aw_net_listen_ports(net, ports, 1), 1);
}

static void adding_a_rule_twice_keeps_the_first(void **state)
{
	struct aw_net_rule rule = { .name = "a.com",
				    .form = AW_NET_EXACT,
				    .layer = AW_NET_LAYER_SESSION };

	(void)state;
	add("a.com", AW_DOMAIN_GRANT);
	assert_int_equal(aw_net_add(net, &rule), 0);
	assert_int_equal(net->rule_count, 1);
	assert_int_equal(net->rules[0].layer, AW_NET_LAYER_USER);
	rule.may_be_private = 1;
	assert_int_equal(aw_net_add(net, &rule), 1);
	assert_int_equal(net->rule_count, 1);
	assert_int_equal(net->rules[0].may_be_private, 1);
	rule.port = 22;
	assert_int_equal(aw_net_add(net, &rule), 1);
	net->rule_count = AW_NET_RULES_MAX;
	rule.port = 23;
	assert_int_equal(aw_net_add(net, &rule), -ENOSPC);
}

static void bytes_in_use_are_enough_and_one_less_is_not(void **state)
{
	struct aw_error err;

	(void)state;
	add("a.com", AW_DOMAIN_GRANT);
	add("*.b.com:22", AW_DOMAIN_GRANT);
	assert_int_equal(aw_net_check(net, sizeof(*net), &err), 0);
	assert_int_equal(aw_net_check(net, aw_net_size(net), &err), 0);
	assert_int_equal(aw_net_check(net, aw_net_size(net) - 1, &err), -EBADMSG);
	assert_int_equal(aw_net_check(net, 4, &err), -EBADMSG);
}

static void a_broken_invariant_is_found(void **state)
{
	struct aw_net good;
	struct aw_error err;

	(void)state;
	add("a.com", AW_DOMAIN_GRANT);
	good = *net;
#define BREAKS(change)                                                             \
	do {                                                                       \
		change;                                                            \
		assert_int_equal(aw_net_check(net, sizeof(*net), &err), -EBADMSG); \
		*net = good;                                                       \
	} while (0)
	BREAKS(net->magic++);
	BREAKS(net->size--);
	BREAKS(net->rule_count = AW_NET_RULES_MAX + 1);
	BREAKS(net->rule_count = 2); /* the second is all zero */
	BREAKS(net->port_count = AW_NET_PORTS_MAX + 1);
	BREAKS(net->ports[0] = 443);
	BREAKS(net->ports[0] = 0);
	BREAKS(net->blocked_count = 1);
	BREAKS(net->rules[0].form = 0);
	BREAKS(net->rules[0].form = 4);
	BREAKS(net->rules[0].layer = 0);
	BREAKS(net->rules[0].layer = 9);
	BREAKS(net->rules[0].is_denied = 2);
	BREAKS(net->rules[0].may_be_private = 2);
	BREAKS(net->rules[0].reserved = 1);
	BREAKS(memset(net->rules[0].name, 'a', sizeof(net->rules[0].name)));
	BREAKS(net->rules[0].name[0] = 'A');
	BREAKS(net->rules[0].name[0] = '\0');
	BREAKS(memcpy(net->rules[0].name, "1.2.3.4", 8));
#undef BREAKS
	assert_int_equal(aw_net_check(net, sizeof(*net), &err), 0);
}

static void a_rule_is_written_as_a_person_would(void **state)
{
	struct aw_net_rule rule = { .name = "a.com", .form = AW_NET_BELOW, .port = 22 };
	char text[300], small[4];

	(void)state;
	aw_net_rule_format(&rule, text, sizeof(text));
	assert_string_equal(text, "*.a.com:22");
	rule.form = AW_NET_APEX_AND_BELOW;
	rule.port = 0;
	aw_net_rule_format(&rule, text, sizeof(text));
	assert_string_equal(text, ".a.com");
	aw_net_rule_format(&rule, small, sizeof(small));
	assert_string_equal(small, ".a.");
}

static void every_reason_and_layer_has_a_text_of_its_own(void **state)
{
	(void)state;
	for (int i = AW_NET_GRANTED; i <= AW_NET_MALFORMED; i++)
		for (int j = AW_NET_GRANTED; j < i; j++)
			assert_string_not_equal(aw_net_reason_text((enum aw_net_reason)i),
						aw_net_reason_text((enum aw_net_reason)j));
	for (int i = AW_NET_LAYER_PRESET; i <= AW_NET_LAYER_PROJECT; i++)
		for (int j = AW_NET_LAYER_PRESET; j < i; j++)
			assert_string_not_equal(aw_net_layer_text((enum aw_net_layer)i),
						aw_net_layer_text((enum aw_net_layer)j));
	assert_string_equal(aw_net_reason_text((enum aw_net_reason)99), "unknown");
	assert_string_equal(aw_net_layer_text((enum aw_net_layer)0), "unknown");
}

#define WITH_NET(test) cmocka_unit_test_setup_teardown(test, make_net, drop_net)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_lowered_and_loses_one_final_dot),
		cmocka_unit_test(what_is_no_name_is_malformed),
		cmocka_unit_test(an_address_is_seen_in_every_spelling),
		cmocka_unit_test(labels_end_at_63_and_names_at_253_bytes),
		WITH_NET(an_exact_rule_grants_that_name_alone),
		WITH_NET(a_star_grants_what_lies_below_on_label_boundaries),
		WITH_NET(a_dot_grants_the_name_and_what_lies_below),
		WITH_NET(a_denial_beats_every_grant),
		WITH_NET(a_denial_with_a_port_is_of_that_port),
		WITH_NET(only_allowed_ports_and_a_rules_own_are_granted),
		WITH_NET(a_blocked_port_beats_a_rule_that_names_it),
		WITH_NET(a_name_without_any_usable_port_is_not_resolved),
		WITH_NET(private_answers_are_accepted_if_any_granting_rule_says_so),
		WITH_NET(nothing_is_granted_by_an_empty_policy),
		WITH_NET(listeners_are_for_granted_ports_in_order_without_the_blocked),
		WITH_NET(adding_a_rule_twice_keeps_the_first),
		WITH_NET(bytes_in_use_are_enough_and_one_less_is_not),
		WITH_NET(a_broken_invariant_is_found),
		cmocka_unit_test(a_rule_is_written_as_a_person_would),
		cmocka_unit_test(every_reason_and_layer_has_a_text_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
