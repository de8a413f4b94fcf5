/* A hostile project's wishes: named, never granted. */
#include "policy-support.h"

#define NET(members) "{\"capabilities\": {\"network\": {" members "}}}"
#define ALLOW(list) NET("\"allowed_domains\": [" list "]")

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

static bool grants(const char *name)
{
	struct aw_net_verdict verdict;

	aw_net_decide(policy->net, aw_str_from(name), 443, &verdict);
	return verdict.reason == AW_NET_GRANTED;
}

static void a_wish_is_named_with_the_command_that_grants_it(void **state)
{
	(void)state;
	merge(NULL, NULL, ALLOW("\"api.stripe.com\",\n\"*.sub.example:8443\", \"pypi.org\""));
	assert_int_equal(policy->asks.count, 2);
	assert_string_equal(policy->asks.item[0].text, ".warden.json:1 asks for api.stripe.com");
	assert_string_equal(policy->asks.item[0].command,
			    "warden allowlist add api.stripe.com --project");
	assert_string_equal(policy->asks.item[1].text,
			    ".warden.json:2 asks for *.sub.example:8443");
	assert_string_equal(policy->asks.item[1].command,
			    "warden allowlist add '*.sub.example:8443' --project");
	assert_false(grants("api.stripe.com"));
	assert_true(grants("pypi.org"));
}

static void what_is_granted_anyway_is_no_wish(void **state)
{
	(void)state;
	merge(ALLOW("\".a.example\""), NULL, ALLOW("\"x.a.example\", \"*.b.a.example:443\""));
	assert_int_equal(policy->asks.count, 0);
	assert_true(grants("x.a.example"));
}

static void a_wish_for_more_than_a_part_is_one(void **state)
{
	(void)state;
	merge(ALLOW("\"x.a.example\""), NULL, ALLOW("\"*.a.example\""));
	assert_string_equal(ask_for(policy, "*.a.example"),
			    "warden allowlist add '*.a.example' --project");
	assert_true(grants("x.a.example"));
	assert_false(grants("y.a.example"));
}

static void a_relay_what_is_denied_and_what_is_kept_out_has_no_command(void **state)
{
	(void)state;
	merge(NET("\"denied_domains\": [\"bad.example\"]"),
	      "{\"capabilities\": {\"network\": {\"allowed_domains\": [\"pypi.org\"]}}}",
	      ALLOW("\"abc.ngrok.io\", \"bad.example\", \"other.example\""));
	assert_string_equal(ask_for(policy, "abc.ngrok.io, a tunnel service"), "");
	assert_string_equal(ask_for(policy, "bad.example, which is denied"), "");
	assert_string_equal(ask_for(policy, "other.example, which the system's policy keeps out"),
			    "");
}

static void directories_and_variables_are_asked_for_one_by_one(void **state)
{
	(void)state;
	merge(NULL, NULL,
	      "{\"capabilities\": {\"file_system\": {\"mounts\": [{\"host\": \"/srv/big data\"}, "
	      "{\"host\": \"~/x\", \"mode\": \"rw\"}, {\"host\": \"/srv/d\", \"at\": \"/d\"}, "
	      "{\"host\": \"/srv/it's $(x)\"}]}}, \"env\": {\"pass\": [\"AWS_PROFILE\"]}}");
	assert_int_equal(policy->mounts.count, 0);
	assert_string_equal(ask_for(policy, "/srv/big data, read-only"),
			    "warden run --ro '/srv/big data'");
	assert_string_equal(ask_for(policy, "/home/u/x, writable"), "warden run --rw '/home/u/x'");
	assert_null(strstr(ask_for(policy, "/srv/d, read-only"), "warden"));
	assert_null(strstr(ask_for(policy, "/srv/it"), "warden"));
	assert_string_equal(ask_for(policy, "AWS_PROFILE"), "warden run --env AWS_PROFILE");
}

static void ports_and_private_addresses_are_not_taken_either(void **state)
{
	(void)state;
	merge(NULL, NULL, NET("\"allowed_ports\": [443, 22], \"allow_private\": [\"pypi.org\"]"));
	assert_non_null(ask_for(policy, "port 22 of every granted name"));
	assert_non_null(ask_for(policy, "private addresses behind pypi.org"));
	assert_null(ask_for(policy, "port 443"));
	assert_int_equal(policy->net->port_count, 1);
}

static void the_list_ends_where_a_person_would_stop_reading(void **state)
{
	char text[8192];
	size_t len =
		(size_t)aw_str_format(text, sizeof(text), "%s",
				      "{\"capabilities\": {\"network\": {\"allowed_domains\": [");

	(void)state;
	for (int i = 0; i < 100; i++)
		len += (size_t)aw_str_format(text + len, sizeof(text) - len, "%s\"n%d.example\"",
					     i > 0 ? "," : "", i);
	(void)aw_str_format(text + len, sizeof(text) - len, "]}}}");
	merge(NULL, NULL, text);
	assert_int_equal(policy->asks.count, 65);
	assert_string_equal(policy->asks.item[64].text, ".warden.json asks for 36 things more");
}

#define TEST(name) cmocka_unit_test_teardown(name, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_wish_is_named_with_the_command_that_grants_it),
		TEST(what_is_granted_anyway_is_no_wish),
		TEST(a_wish_for_more_than_a_part_is_one),
		TEST(a_relay_what_is_denied_and_what_is_kept_out_has_no_command),
		TEST(directories_and_variables_are_asked_for_one_by_one),
		TEST(ports_and_private_addresses_are_not_taken_either),
		TEST(the_list_ends_where_a_person_would_stop_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
