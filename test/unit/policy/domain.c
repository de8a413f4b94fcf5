#include "policy/domain.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct aw_domain good(const char *text)
{
	struct aw_domain domain;
	struct aw_error err;

	if (aw_domain_parse(aw_str_from(text), AW_DOMAIN_GRANT, &domain, &err) < 0)
		fail_msg("%s: %s", text, err.message);
	return domain;
}

/* The refusal of @text names it and holds @why. */
static void refused(const char *text, const char *why)
{
	struct aw_domain domain;
	struct aw_error err;

	assert_int_equal(aw_domain_parse(aw_str_from(text), AW_DOMAIN_GRANT, &domain, &err),
			 -EBADMSG);
	if (strstr(err.message, why) == NULL)
		fail_msg("\"%s\" says: %s", text, err.message);
}

static void the_three_forms_and_a_port_are_read(void **state)
{
	struct aw_domain domain;

	(void)state;
	domain = good("API.Example.com.");
	assert_string_equal(domain.name, "api.example.com");
	assert_int_equal(domain.form, AW_NET_EXACT);
	assert_int_equal(domain.port, 0);
	domain = good("*.example.com:8443");
	assert_string_equal(domain.name, "example.com");
	assert_int_equal(domain.form, AW_NET_BELOW);
	assert_int_equal(domain.port, 8443);
	domain = good(".example.com");
	assert_string_equal(domain.name, "example.com");
	assert_int_equal(domain.form, AW_NET_APEX_AND_BELOW);
	assert_int_equal(good("internal-search").form, AW_NET_EXACT);
	assert_int_equal(good("*.corp").form, AW_NET_BELOW);
}

static void what_grants_more_than_it_shows_is_refused_with_its_reason(void **state)
{
	(void)state;
	refused("", "every name");
	refused("*", "every name");
	refused(".", "every name");
	refused("*.", "every name");
	refused("*.*", "every name");
	refused("*:443", "every name");
	refused("*.com", "anyone can get");
	refused(".io", "anyone can get");
	refused("*.co.uk", "anyone can get");
	refused("*.github.io:443", "anyone can get");
	refused(".amazonaws.com", "anyone can get");
	refused("a.*.com", "not its first label");
	refused("api-*.a.com", "not its first label");
	refused("localhost", "loopback");
	refused("x.localhost", "loopback");
}

static void what_is_no_name_is_refused_with_what_to_write(void **state)
{
	(void)state;
	refused("https://a.com", "URL");
	refused("https://a.com/x", "URL");
	refused("user@a.com", "user information");
	refused("a.com/x", "path");
	refused("b\xc3\xbc"
		"cher.example",
		"xn--");
	refused("1.2.3.4", "address");
	refused("1.2.3.4:443", "address");
	refused("0x7f.1", "address");
	refused("[::1]:443", "address");
	refused("2001:db8::1", "address");
	refused("a.com:0", "port");
	refused("a.com:65536", "port");
	refused("a.com:", "port");
	refused("a.com:http", "port");
	refused("a.com:*", "port");
	refused("a..com", "not a host name");
	refused("a com", "not a host name");
}

static void a_refusal_shows_nothing_that_moves_a_cursor(void **state)
{
	struct aw_domain domain;
	struct aw_error err;

	(void)state;
	assert_int_equal(aw_domain_parse(AW_STR("a\x1b[2J\n.com"), AW_DOMAIN_GRANT, &domain, &err),
			 -EBADMSG);
	assert_null(strchr(err.message, '\x1b'));
	assert_null(strchr(err.message, '\n'));
}

static void a_denial_may_cover_a_public_suffix(void **state)
{
	struct aw_domain domain;
	struct aw_error err;

	(void)state;
	assert_int_equal(aw_domain_parse(AW_STR("*.zip"), AW_DOMAIN_DENY, &domain, &err), 0);
	assert_int_equal(aw_domain_parse(AW_STR(".github.io"), AW_DOMAIN_DENY, &domain, &err), 0);
	assert_int_equal(aw_domain_parse(AW_STR("*"), AW_DOMAIN_DENY, &domain, &err), -EBADMSG);
}

static void a_rule_carries_what_the_entry_said(void **state)
{
	struct aw_domain domain = good("*.a.com:22");
	struct aw_net_rule rule = aw_domain_rule(&domain, AW_DOMAIN_DENY, AW_NET_LAYER_PROJECT);

	(void)state;
	assert_string_equal(rule.name, "a.com");
	assert_int_equal(rule.form, AW_NET_BELOW);
	assert_int_equal(rule.port, 22);
	assert_int_equal(rule.is_denied, 1);
	assert_int_equal(rule.layer, AW_NET_LAYER_PROJECT);
}

static void relays_are_known_with_everything_below_them(void **state)
{
	static const char *const names[] = { "ngrok.io",
					     "abc.ngrok-free.app",
					     "webhook.site",
					     "pastebin.com",
					     "transfer.sh",
					     "x.requestbin.com",
					     "eo1.m.pipedream.net",
					     "a.trycloudflare.com",
					     "x.loca.lt",
					     "serveo.net",
					     "file.io",
					     "0x0.st",
					     "ix.io",
					     "termbin.com",
					     "hastebin.com" };
	const char *kind = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_true(aw_policy_is_relay(aw_str_from(names[i]), NULL));
	assert_true(aw_policy_is_relay(AW_STR("webhook.site"), &kind));
	assert_string_equal(kind, "webhook");
	assert_false(aw_policy_is_relay(AW_STR("notngrok.io"), NULL));
	assert_false(aw_policy_is_relay(AW_STR("github.com"), NULL));
	assert_false(aw_policy_is_relay(AW_STR("io"), NULL));
}

static void a_public_suffix_is_not_what_lies_below_it(void **state)
{
	(void)state;
	assert_true(aw_domain_is_public_suffix(AW_STR("com")));
	assert_true(aw_domain_is_public_suffix(AW_STR("co.uk")));
	assert_false(aw_domain_is_public_suffix(AW_STR("bbc.co.uk")));
	assert_false(aw_domain_is_public_suffix(AW_STR("internal")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_three_forms_and_a_port_are_read),
		cmocka_unit_test(what_grants_more_than_it_shows_is_refused_with_its_reason),
		cmocka_unit_test(what_is_no_name_is_refused_with_what_to_write),
		cmocka_unit_test(a_refusal_shows_nothing_that_moves_a_cursor),
		cmocka_unit_test(a_denial_may_cover_a_public_suffix),
		cmocka_unit_test(a_rule_carries_what_the_entry_said),
		cmocka_unit_test(relays_are_known_with_everything_below_them),
		cmocka_unit_test(a_public_suffix_is_not_what_lies_below_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
