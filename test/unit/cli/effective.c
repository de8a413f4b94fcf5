#include "cli/effective.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "store/scratch.h"

/* A home with a configuration, and a project in it. */
struct fixture {
	struct aw_host host;
	char home[96], config_dir[96], project[96];
	struct aw_effective effective;
	struct aw_error err;
	char why[512];
};

static void set_up(const struct scratch *s, struct fixture *f)
{
	*f = (struct fixture){ 0 };
	(void)snprintf(f->home, sizeof(f->home), "%s", s->path);
	(void)snprintf(f->config_dir, sizeof(f->config_dir), "%s/config", s->path);
	(void)snprintf(f->project, sizeof(f->project), "%s/project", s->path);
	f->host = (struct aw_host){ .home = f->home, .config_dir = f->config_dir };
	assert_int_equal(mkdir(f->config_dir, 0700), 0);
	assert_int_equal(mkdir(f->project, 0700), 0);
}

static int load(struct fixture *f, const char *agent, const char *allow)
{
	return aw_effective_load(&f->host, f->project, agent, allow, &f->effective, &f->err);
}

static bool grants(struct fixture *f, const char *text)
{
	struct aw_domain domain;
	struct aw_error err;

	assert_int_equal(aw_domain_parse(aw_str_from(text), AW_DOMAIN_DENY, &domain, &err), 0);
	return aw_effective_grants(f->effective.policy, &domain, f->why, sizeof(f->why));
}

static void loaded(struct fixture *f, const char *agent, const char *allow)
{
	if (load(f, agent, allow) < 0)
		fail_msg("%s", f->err.message);
}

static void store(const struct scratch *s, const char *name, const char *text)
{
	scratch_store(s, name, text, strlen(text));
}

static void a_verdict_comes_with_the_rule_and_its_line(void **state)
{
	const struct scratch *s = *state;
	struct fixture f;

	set_up(s, &f);
	store(s, "config/policy.json",
	      "{\"capabilities\": {\"network\": {\n\"allowed_domains\": [\"a.example\"],\n"
	      "\"denied_domains\": [\"pypi.org\"]}}}");
	loaded(&f, NULL, NULL);
	assert_true(grants(&f, "a.example"));
	assert_non_null(strstr(f.why, "a.example:443, by \"a.example\" of user policy "));
	assert_non_null(strstr(f.why, "/config/policy.json:2"));
	assert_false(grants(&f, "pypi.org"));
	assert_non_null(strstr(f.why, "denied"));
	assert_non_null(strstr(f.why, "/config/policy.json:3"));
	assert_false(grants(&f, "b.example"));
	assert_string_equal(f.why, "b.example:443: not granted");
	assert_false(grants(&f, "a.example:22"));
	assert_non_null(strstr(f.why, "a.example:22: port"));
	aw_effective_fini(&f.effective);
}

static void a_pattern_is_granted_only_by_a_pattern(void **state)
{
	const struct scratch *s = *state;
	struct fixture f;

	set_up(s, &f);
	store(s, "config/policy.json",
	      "{\"capabilities\": {\"network\": {\"allowed_domains\": [\"a.example\", "
	      "\"*.b.example\", \".c.example\"]}}}");
	loaded(&f, NULL, NULL);
	assert_false(grants(&f, "*.a.example"));
	assert_true(grants(&f, "*.b.example"));
	assert_true(grants(&f, "*.x.b.example"));
	assert_false(grants(&f, ".b.example"));
	assert_true(grants(&f, "*.c.example"));
	assert_true(grants(&f, ".c.example"));
	assert_non_null(strstr(f.why, ".c.example:443, by"));
	aw_effective_fini(&f.effective);
}

static void the_project_may_keep_out_what_is_allowed_on_top(void **state)
{
	const struct scratch *s = *state;
	struct fixture f;

	set_up(s, &f);
	loaded(&f, NULL, "a.example");
	assert_true(grants(&f, "a.example"));
	aw_effective_fini(&f.effective);
	store(s, "project/.warden.json",
	      "{\"capabilities\": {\"network\": {\"allowed_domains\": [\"pypi.org\"]}}}");
	loaded(&f, NULL, "a.example");
	assert_false(grants(&f, "a.example"));
	assert_true(grants(&f, "pypi.org"));
	aw_effective_fini(&f.effective);
}

static void offline_is_said_to_be_the_reason(void **state)
{
	const struct scratch *s = *state;
	struct fixture f;

	set_up(s, &f);
	store(s, "config/policy.json", "{\"extends\": \"offline\"}");
	loaded(&f, NULL, NULL);
	assert_false(grants(&f, "pypi.org"));
	assert_non_null(strstr(f.why, "offline"));
	aw_effective_fini(&f.effective);
}

static void an_agents_hosts_belong_to_it(void **state)
{
	static const char profile[] =
		"{\"name\": \"mine\", \"title\": \"Mine\", \"install\": \"make it\", "
		"\"binaries\": [\"mine\"], \"domains\": [\"api.mine.example\"]}";
	const struct scratch *s = *state;
	struct fixture f;

	set_up(s, &f);
	assert_int_equal(mkdirat(s->fd, "config/agents", 0700), 0);
	store(s, "config/agents/mine.json", profile);
	loaded(&f, "mine", NULL);
	assert_true(grants(&f, "api.mine.example"));
	aw_effective_fini(&f.effective);
	loaded(&f, "no-such-agent", NULL);
	assert_null(f.effective.agent);
	assert_false(grants(&f, "api.mine.example"));
	aw_effective_fini(&f.effective);
	store(s, "config/policy.json", "{\"default_agent\": \"mine\"}");
	loaded(&f, NULL, NULL);
	assert_true(grants(&f, "api.mine.example"));
	aw_effective_fini(&f.effective);
}

static void the_usual_port_is_443_where_it_is_allowed(void **state)
{
	const struct scratch *s = *state;
	struct fixture f;

	set_up(s, &f);
	loaded(&f, NULL, NULL);
	assert_int_equal(aw_effective_port(f.effective.policy->net), 443);
	aw_effective_fini(&f.effective);
	store(s, "project/.warden.json",
	      "{\"capabilities\": {\"network\": {\"allowed_ports\": [80]}}}");
	loaded(&f, NULL, NULL);
	assert_int_equal(aw_effective_port(f.effective.policy->net), 80);
	aw_effective_fini(&f.effective);
}

static void what_is_wrong_with_a_policy_is_told(void **state)
{
	const struct scratch *s = *state;
	struct fixture f;

	set_up(s, &f);
	store(s, "config/policy.json", "{\"nonsense\": 1}");
	assert_int_equal(load(&f, NULL, NULL), -EACCES);
	assert_int_equal(aw_policy_errors_total(&f.effective.errors), 1);
	aw_effective_fini(&f.effective);
}

static void a_directory_that_is_not_there_is_an_error(void **state)
{
	const struct scratch *s = *state;
	struct fixture f;

	set_up(s, &f);
	assert_int_equal(rmdir(f.project), 0);
	assert_int_equal(load(&f, NULL, NULL), -ENOENT);
	aw_effective_fini(&f.effective);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SCRATCH(a_verdict_comes_with_the_rule_and_its_line),
		IN_SCRATCH(a_pattern_is_granted_only_by_a_pattern),
		IN_SCRATCH(the_project_may_keep_out_what_is_allowed_on_top),
		IN_SCRATCH(offline_is_said_to_be_the_reason),
		IN_SCRATCH(an_agents_hosts_belong_to_it),
		IN_SCRATCH(the_usual_port_is_443_where_it_is_allowed),
		IN_SCRATCH(what_is_wrong_with_a_policy_is_told),
		IN_SCRATCH(a_directory_that_is_not_there_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
