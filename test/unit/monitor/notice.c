#include "monitor/notice.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"

static struct aw_error err;

struct setting {
	struct aw_prepared p;
	struct aw_policy policy;
	struct aw_net *net;
};

static void set_up(struct setting *s)
{
	static const struct aw_net_rule rules[] = {
		{ .name = "api.example.org", .form = AW_NET_EXACT },
		{ .name = "bad.example.org", .form = AW_NET_EXACT, .is_denied = 1 },
		{ .name = "lan.example", .form = AW_NET_BELOW, .port = 22 },
	};

	*s = (struct setting){ .net = test_calloc(1, sizeof(*s->net)) };
	for (size_t i = 0; i < AW_ARRAY_LEN(rules); i++)
		assert_int_equal(aw_net_add(s->net, &rules[i]), 1);
	s->policy.net = s->net;
	s->policy.has_network = true;
	s->p.policy = &s->policy;
	s->p.workspace_at = (char *)(uintptr_t) "/srv/api";
	s->p.home_at = "/home/ai_user";
}

static void take_down(struct setting *s)
{
	aw_grants_fini(&s->p.grants);
	test_free(s->net);
}

/* Write it, and have it as text. */
static const char *write_notice(const struct setting *s, struct aw_buf *buf)
{
	assert_int_equal(aw_notice_write(&s->p, buf, &err), 0);
	return aw_buf_text(buf);
}

static void says_what_is_writable_and_which_hosts_are_granted(void **state)
{
	autodrop(aw_buf_fini) struct aw_buf buf = AW_BUF_INIT(AW_NOTICE_MAX);
	struct setting s;
	const char *text;

	(void)state;
	set_up(&s);
	assert_int_equal(aw_grants_bind(&s.p.grants, "/data", "/data", true, &err), 0);
	assert_int_equal(aw_grants_bind(&s.p.grants, "/tools", "/tools", false, &err), 0);
	text = write_notice(&s, &buf);
	assert_non_null(strstr(text, "  /srv/api (the project)\n  /data\n  /home/ai_user, /tmp\n"));
	assert_null(strstr(text, "/tools"));
	assert_null(strstr(text, "Read-only in the project"));
	assert_non_null(strstr(text, "  api.example.org\n  *.lan.example:22\n"));
	assert_null(strstr(text, "bad.example.org"));
	assert_non_null(strstr(text, "warden allowlist add HOST"));
	take_down(&s);
}

static void says_what_is_held_read_only_and_why(void **state)
{
	autodrop(aw_buf_fini) struct aw_buf buf = AW_BUF_INIT(AW_NOTICE_MAX);
	struct setting s;
	const char *text;

	(void)state;
	set_up(&s);
	assert_int_equal(aw_grants_add(&s.p.grants.protects, "/srv/api/.git/hooks", &err), 0);
	text = write_notice(&s, &buf);
	assert_non_null(strstr(text, "Read-only in the project"));
	assert_non_null(strstr(text, "  /srv/api/.git/hooks\n"));
	take_down(&s);
}

static void of_a_hidden_project_only_the_granted_parts_are_writable(void **state)
{
	autodrop(aw_buf_fini) struct aw_buf buf = AW_BUF_INIT(AW_NOTICE_MAX);
	struct setting s;

	(void)state;
	set_up(&s);
	s.policy.write.is_present = true;
	assert_null(strstr(write_notice(&s, &buf), "(the project)"));
	take_down(&s);
}

static void without_a_network_it_says_so(void **state)
{
	autodrop(aw_buf_fini) struct aw_buf buf = AW_BUF_INIT(AW_NOTICE_MAX);
	struct setting s;
	const char *text;

	(void)state;
	set_up(&s);
	s.policy.has_network = false;
	text = write_notice(&s, &buf);
	assert_non_null(strstr(text, "no network"));
	assert_null(strstr(text, "api.example.org"));
	assert_null(strstr(text, "allowlist add"));
	take_down(&s);
}

static void a_buffer_that_is_too_small_is_an_error(void **state)
{
	autodrop(aw_buf_fini) struct aw_buf whole = AW_BUF_INIT(AW_NOTICE_MAX);
	struct setting s;

	(void)state;
	set_up(&s);
	assert_int_equal(aw_notice_write(&s.p, &whole, &err), 0);
	for (size_t max = 0; max < whole.len; max++) {
		autodrop(aw_buf_fini) struct aw_buf buf = AW_BUF_INIT(max);

		assert_int_equal(aw_notice_write(&s.p, &buf, &err), -ENOBUFS);
	}
	take_down(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_what_is_writable_and_which_hosts_are_granted),
		cmocka_unit_test(says_what_is_held_read_only_and_why),
		cmocka_unit_test(of_a_hidden_project_only_the_granted_parts_are_writable),
		cmocka_unit_test(without_a_network_it_says_so),
		cmocka_unit_test(a_buffer_that_is_too_small_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
