#include "gate/refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/own.h"

static int set_up(void **state)
{
	struct aw_net *net = calloc(1, sizeof(*net));

	net->port_count = 2;
	net->ports[0] = 80;
	net->ports[1] = 443;
	net->rule_count = 1;
	net->rules[0] = (struct aw_net_rule){ .name = "a.example",
					      .form = AW_NET_BELOW,
					      .layer = AW_NET_LAYER_USER };
	*state = net;
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static struct aw_decision asked(enum aw_net_reason reason, int rule, const char *name,
				uint16_t port)
{
	struct aw_decision d = { .verdict = { .reason = reason, .rule = rule }, .port = port };

	(void)snprintf(d.name, sizeof(d.name), "%s", name);
	return d;
}

/* Fails unless the page has @status and all of the @count texts. */
static void expect(const struct aw_net *net, const struct aw_decision *decision,
		   const struct aw_refusal *refusal, unsigned status, const char *const *texts)
{
	autodrop(aw_buf_fini) struct aw_buf page = AW_BUF_INIT(4096);

	assert_int_equal(aw_refusal_explain(net, decision, refusal, &page), status);
	for (; *texts != NULL; texts++)
		if (strstr(aw_buf_text(&page), *texts) == NULL)
			fail_msg("no '%s' in:\n%s", *texts, aw_buf_text(&page));
}

static void a_name_that_is_not_granted_comes_with_the_line_to_add(void **state)
{
	struct aw_refusal refusal = { .outcome = AW_IPC_REFUSED_RULE };
	struct aw_decision web = asked(AW_NET_NOT_GRANTED, -1, "b.example", 443);
	struct aw_decision ssh = asked(AW_NET_NOT_GRANTED, -1, "b.example", 22);

	expect(*state, &web, &refusal, 403,
	       (const char *[]){ "b.example:443", "\twarden allowlist add b.example\n", NULL });
	expect(*state, &ssh, &refusal, 403,
	       (const char *[]){ "\twarden allowlist add b.example:22\n", NULL });
}

static void a_rule_that_decided_is_named_with_where_it_stands(void **state)
{
	struct aw_refusal refusal = { .outcome = AW_IPC_REFUSED_RULE };
	struct aw_decision denied = asked(AW_NET_DENIED, 0, "x.a.example", 443);
	struct aw_decision port = asked(AW_NET_PORT_NOT_GRANTED, 0, "x.a.example", 8080);

	expect(*state, &denied, &refusal, 403, (const char *[]){ "\"*.a.example\"", "user", NULL });
	expect(*state, &port, &refusal, 403,
	       (const char *[]){ "\"*.a.example\"", "allowlist add x.a.example:8080", NULL });
}

static void what_no_line_can_change_offers_none(void **state)
{
	static const enum aw_net_reason reasons[] = { AW_NET_DENIED, AW_NET_PORT_BLOCKED,
						      AW_NET_LITERAL, AW_NET_MALFORMED };
	struct aw_refusal refusal = { .outcome = AW_IPC_REFUSED_RULE };

	for (size_t i = 0; i < AW_ARRAY_LEN(reasons); i++) {
		autodrop(aw_buf_fini) struct aw_buf page = AW_BUF_INIT(4096);
		struct aw_decision d = asked(reasons[i], -1, "x", 25);

		assert_int_equal(aw_refusal_explain(*state, &d, &refusal, &page), 403);
		assert_null(strstr(aw_buf_text(&page), "allowlist add"));
	}
}

static void a_forbidden_address_is_told_with_its_kind(void **state)
{
	struct aw_refusal refusal = { .outcome = AW_IPC_REFUSED_ADDRESS,
				      .addr = { .family = AF_INET, .bytes = { 10, 1, 2, 3 } },
				      .class = AW_ADDRESS_PRIVATE };
	struct aw_decision d = asked(AW_NET_GRANTED, 0, "x.a.example", 443);

	expect(*state, &d, &refusal, 403,
	       (const char *[]){ "10.1.2.3", "private network",
				 "\"allow_private\": [\"x.a.example\"]", NULL });
}

static void loopback_is_not_offered_as_private(void **state)
{
	autodrop(aw_buf_fini) struct aw_buf page = AW_BUF_INIT(4096);
	struct aw_refusal refusal = { .outcome = AW_IPC_REFUSED_ADDRESS,
				      .addr = { .family = AF_INET, .bytes = { 127, 0, 0, 1 } },
				      .class = AW_ADDRESS_LOOPBACK };
	struct aw_decision d = asked(AW_NET_GRANTED, 0, "x.a.example", 443);

	assert_int_equal(aw_refusal_explain(*state, &d, &refusal, &page), 403);
	assert_non_null(strstr(aw_buf_text(&page), "loopback"));
	assert_null(strstr(aw_buf_text(&page), "allow_private"));
}

static void every_other_outcome_has_its_status_and_reason(void **state)
{
	struct aw_decision d = asked(AW_NET_GRANTED, 0, "x.a.example", 443);
	struct aw_refusal host = { .outcome = AW_IPC_REFUSED_HOST, .seen = "evil.example" };
	struct aw_refusal protocol = { .outcome = AW_IPC_REFUSED_PROTOCOL,
				       .seen = "odd",
				       .status = 431 };
	struct aw_refusal resolve = { .outcome = AW_IPC_FAILED_RESOLVE, .problem = "no such name" };
	struct aw_refusal busy = { .outcome = AW_IPC_FAILED_BUSY, .problem = "too many" };

	expect(*state, &d, &host, 403, (const char *[]){ "\"evil.example\"", NULL });
	expect(*state, &d, &protocol, 431, (const char *[]){ "odd", NULL });
	protocol.status = 0;
	expect(*state, &d, &protocol, 400, (const char *[]){ "odd", NULL });
	expect(*state, &d, &resolve, 502, (const char *[]){ "no such name", NULL });
	expect(*state, &d, &busy, 503, (const char *[]){ "too many", NULL });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_that_is_not_granted_comes_with_the_line_to_add),
		cmocka_unit_test(a_rule_that_decided_is_named_with_where_it_stands),
		cmocka_unit_test(what_no_line_can_change_offers_none),
		cmocka_unit_test(a_forbidden_address_is_told_with_its_kind),
		cmocka_unit_test(loopback_is_not_offered_as_private),
		cmocka_unit_test(every_other_outcome_has_its_status_and_reason),
	};

	return cmocka_run_group_tests_name("explain", tests, set_up, tear_down);
}
