/* The network part of a merge, judged by its verdicts. */
#include "policy/merge-internal.h"

#include "policy-support.h"

#define NET(members) "{\"extends\": \"strict\", \"capabilities\": {\"network\": {" members "}}}"
#define NARROW(members) "{\"capabilities\": {\"network\": {" members "}}}"
#define ALLOW(list) "\"allowed_domains\": [" list "]"

static struct aw_policy *policy;

static int drop(void **state)
{
	(void)state;
	aw_policy_drop(&policy);
	return 0;
}

static void merge(const char *user, const char *system, const char *project)
{
	const struct texts texts = { .user = user, .system = system, .project = project };

	aw_policy_drop(&policy);
	policy = policy_good(&texts);
}

static struct aw_net_verdict decide(const char *name, uint16_t port)
{
	struct aw_net_verdict verdict;

	aw_net_decide(policy->net, aw_str_from(name), port, &verdict);
	return verdict;
}

static bool grants(const char *name, uint16_t port)
{
	return decide(name, port).reason == AW_NET_GRANTED;
}

static struct aw_policy_entry domain(const char *name, enum aw_net_form form, uint16_t port)
{
	return (struct aw_policy_entry){ .text = name, .form = (uint8_t)form, .port = port };
}

/* "" when the two have nothing in common. */
static const char *meet(struct aw_policy_entry a, struct aw_policy_entry b)
{
	static const struct aw_policy_entry own_ports[] = { { .port = 443 } };
	static const struct aw_policy_list own = { (void *)(uintptr_t)own_ports, 1, 1, true };
	static const struct aw_policy_list none;
	static char text[300];
	const struct aw_port_lists ports = { &own, &none };
	struct aw_policy_entry common;
	struct aw_net_rule rule = { .form = 0 };

	if (!aw_meet_domain(&a, &b, &ports, &common))
		return "";
	(void)aw_str_format(rule.name, sizeof(rule.name), "%s", common.text);
	rule.form = common.form;
	rule.port = common.port;
	aw_net_rule_format(&rule, text, sizeof(text));
	return text;
}

static void two_patterns_have_the_narrower_in_common_or_nothing(void **state)
{
	const enum aw_net_form exact = AW_NET_EXACT, below = AW_NET_BELOW,
			       apex = AW_NET_APEX_AND_BELOW;
	const struct {
		struct aw_policy_entry a, b;
		const char *common;
	} cases[] = {
		{ domain("a.com", exact, 0), domain("a.com", exact, 0), "a.com" },
		{ domain("a.com", exact, 0), domain("a.com", below, 0), "" },
		{ domain("a.com", exact, 0), domain("a.com", apex, 0), "a.com" },
		{ domain("a.com", below, 0), domain("a.com", apex, 0), "*.a.com" },
		{ domain("a.com", apex, 0), domain("a.com", apex, 0), ".a.com" },
		{ domain("x.a.com", exact, 0), domain("a.com", below, 0), "x.a.com" },
		{ domain("x.a.com", below, 0), domain("a.com", below, 0), "*.x.a.com" },
		{ domain("x.a.com", apex, 0), domain("a.com", apex, 0), ".x.a.com" },
		{ domain("x.a.com", exact, 0), domain("a.com", exact, 0), "" },
		{ domain("xa.com", exact, 0), domain("a.com", apex, 0), "" },
		{ domain("a.com", exact, 22), domain("a.com", exact, 22), "a.com:22" },
		{ domain("a.com", exact, 22), domain("a.com", exact, 23), "" },
		{ domain("a.com", exact, 22), domain("a.com", exact, 0), "a.com:22" },
		{ domain("a.com", exact, 0), domain("a.com", exact, 443), "a.com:443" },
		{ domain("a.com", exact, 0), domain("a.com", exact, 22), "" },
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(cases); i++) {
		assert_string_equal(meet(cases[i].a, cases[i].b), cases[i].common);
		if (cases[i].a.port == cases[i].b.port)
			assert_string_equal(meet(cases[i].b, cases[i].a), cases[i].common);
	}
}

static void grants_unite_and_a_narrowing_list_leaves_what_both_name(void **state)
{
	(void)state;
	merge(NET(ALLOW("\"*.a.com\", \"b.com\", \"github.com:22\"")), NULL, NULL);
	assert_true(grants("x.a.com", 443));
	assert_true(grants("b.com", 443));
	assert_true(grants("github.com", 22));
	assert_false(grants("github.com", 443));
	merge(NET(ALLOW("\"*.a.com\", \"b.com\", \"github.com:22\"")),
	      NARROW(ALLOW("\"x.a.com\", \"github.com\", \"c.com\"")), NULL);
	assert_true(grants("x.a.com", 443));
	assert_false(grants("y.a.com", 443));
	assert_false(grants("b.com", 443));
	assert_false(grants("c.com", 443));
	assert_true(grants("github.com", 22));
	merge(NET(ALLOW("\"a.com\"")), NULL, NARROW(ALLOW("")));
	assert_false(policy->has_network);
	merge(NET(ALLOW("\"a.com\"")), NULL, NARROW("\"denied_domains\": []"));
	assert_true(grants("a.com", 443));
}

static void a_narrowing_port_list_takes_a_rules_own_port_too(void **state)
{
	(void)state;
	merge(NET(ALLOW("\"a.com\", \"github.com:22\"")), NULL,
	      NARROW(ALLOW("\"a.com\", \"github.com\"") ", \"allowed_ports\": [443]"));
	assert_true(grants("a.com", 443));
	assert_false(grants("github.com", 22));
}

static void denials_of_every_layer_hold(void **state)
{
	(void)state;
	merge(NET(ALLOW("\".a.com\"") ", \"denied_domains\": [\"x.a.com\"]"),
	      NARROW("\"denied_domains\": [\"y.a.com\"]"),
	      NARROW("\"denied_domains\": [\"z.a.com\"]"));
	assert_true(grants("a.com", 443));
	assert_int_equal(decide("x.a.com", 443).reason, AW_NET_DENIED);
	assert_int_equal(decide("y.a.com", 443).reason, AW_NET_DENIED);
	assert_int_equal(decide("z.a.com", 443).reason, AW_NET_DENIED);
}

static void ports_unite_narrow_and_are_blocked_from_everywhere(void **state)
{
	(void)state;
	merge(NET(ALLOW("\"a.com\"") ", \"allowed_ports\": [8080, 80]"), NULL, NULL);
	assert_int_equal(policy->net->port_count, 3);
	assert_true(grants("a.com", 80));
	assert_true(grants("a.com", 443));
	assert_true(grants("a.com", 8080));
	merge(NET(ALLOW("\"a.com\"") ", \"allowed_ports\": [8080, 80]"),
	      NARROW("\"blocked_ports\": [80]"), NARROW("\"allowed_ports\": [80, 443, 9]"));
	assert_int_equal(decide("a.com", 80).reason, AW_NET_PORT_BLOCKED);
	assert_true(grants("a.com", 443));
	assert_false(grants("a.com", 8080));
	assert_false(grants("a.com", 9));
	assert_non_null(ask_for(policy, "port 9"));
}

static void allow_private_marks_what_is_granted_and_grants_nothing(void **state)
{
	(void)state;
	merge(NET(ALLOW("\".corp\", \"a.com\"") ", \"allow_private\": [\"db.corp\", \"b.com\"]"),
	      NULL, NULL);
	assert_true(decide("db.corp", 443).may_be_private);
	assert_false(decide("x.corp", 443).may_be_private);
	assert_false(decide("a.com", 443).may_be_private);
	assert_false(grants("b.com", 443));
	assert_int_equal(policy->notes.count, 1);
	assert_non_null(strstr(policy->notes.item[0].text, "b.com"));
	merge(NET(ALLOW("\"db.corp\"") ", \"allow_private\": [\".corp\"]"), NULL, NULL);
	assert_true(decide("db.corp", 443).may_be_private);
	merge(NET(ALLOW("\"db.corp\"") ", \"allow_private\": [\".corp\"]"),
	      NARROW("\"allow_private\": []"), NULL);
	assert_false(decide("db.corp", 443).may_be_private);
	assert_true(grants("db.corp", 443));
}

static void offline_from_any_layer_ends_the_network(void **state)
{
	static const char *const allow[] = { "a.com", NULL };
	const struct texts texts = { .sources.command = { .is_offline = true, .allow = allow } };

	(void)state;
	merge(NET(ALLOW("\"a.com\"")), NULL, NARROW("\"offline\": true"));
	assert_false(policy->has_network);
	assert_int_equal(policy->net->rule_count, 0);
	assert_non_null(strstr(policy->notes.item[policy->notes.count - 1].text, ".warden.json"));
	merge("{\"extends\": \"offline\"}", NULL, NULL);
	assert_false(policy->has_network);
	aw_policy_drop(&policy);
	policy = policy_good(&texts);
	assert_false(policy->has_network);
}

static void rules_are_sorted_once_each_and_know_their_layer(void **state)
{
	static const char *const allow[] = { "b.com", "a.com", "b.com", NULL };
	const struct texts texts = {
		.user = NET(ALLOW("\"b.com\", \"c.com\"") ", \"denied_domains\": [\"z.com\"]"),
		.sources.command.allow = allow,
	};
	struct aw_error err;

	(void)state;
	policy = policy_good(&texts);
	assert_int_equal(aw_net_check(policy->net, sizeof(*policy->net), &err), 0);
	assert_int_equal(policy->net->rule_count, 4);
	assert_int_equal(policy->rules.count, 4);
	assert_string_equal(policy->net->rules[0].name, "z.com");
	assert_int_equal(policy->net->rules[0].is_denied, 1);
	assert_string_equal(policy->net->rules[1].name, "a.com");
	assert_int_equal(policy->net->rules[1].layer, AW_NET_LAYER_COMMAND);
	assert_int_equal(policy->net->rules[2].layer, AW_NET_LAYER_USER);
	for (uint32_t i = 0; i < policy->net->rule_count; i++)
		assert_string_equal(policy->net->rules[i].name, policy->rules.entry[i].text);
}

/* A list of @count names "n<i>.example", from @first on, in the one buffer. */
static char *many(size_t first, size_t count)
{
	static char text[65536];
	size_t len =
		(size_t)aw_str_format(text, sizeof(text), "%s",
				      "{\"capabilities\": {\"network\": {\"denied_domains\": [");

	for (size_t i = 0; i < count; i++)
		len += (size_t)aw_str_format(text + len, sizeof(text) - len, "%s\"n%zu.example\"",
					     i > 0 ? "," : "", first + i);
	(void)aw_str_format(text + len, sizeof(text) - len, "]}}}");
	return text;
}

static void more_rules_than_gate_holds_are_refused(void **state)
{
	struct aw_policy_errors errors = { 0 };
	autofree char *user = strdup(many(0, 1024)), *system = strdup(many(2000, 1024));
	struct texts texts = { .user = user, .system = system, .project = many(4000, 1) };

	(void)state;
	assert_int_equal(policy_of(&texts, &policy, &errors), 0);
	assert_int_equal(errors.count, 1);
	assert_non_null(strstr(errors.item[0].message, "more than 2048 rules"));
	aw_policy_errors_fini(&errors);
}

static void what_is_left_out_is_noted(void **state)
{
	(void)state;
	merge(NET(ALLOW("\"a.com\", \"b.com\", \"c.com\"")), NULL, NARROW(ALLOW("\"a.com\"")));
	assert_int_equal(policy->notes.count, 1);
	assert_string_equal(policy->notes.item[0].text, ".warden.json leaves 1 of 3 granted names");
}

#define TEST(name) cmocka_unit_test_teardown(name, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(two_patterns_have_the_narrower_in_common_or_nothing),
		TEST(grants_unite_and_a_narrowing_list_leaves_what_both_name),
		TEST(a_narrowing_port_list_takes_a_rules_own_port_too),
		TEST(denials_of_every_layer_hold),
		TEST(ports_unite_narrow_and_are_blocked_from_everywhere),
		TEST(allow_private_marks_what_is_granted_and_grants_nothing),
		TEST(offline_from_any_layer_ends_the_network),
		TEST(rules_are_sorted_once_each_and_know_their_layer),
		TEST(more_rules_than_gate_holds_are_refused),
		TEST(what_is_left_out_is_noted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
