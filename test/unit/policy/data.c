/* Every file of data/ that is part of the program. */
#include "policy/data-internal.h"

#include "policy-support.h"
#include "policy/domain.h"

static struct aw_policy *preset(const char *name)
{
	struct texts texts = { .sources.command.preset = name };

	return policy_good(&texts);
}

static bool grants(const struct aw_policy *policy, const char *name, uint16_t port)
{
	struct aw_net_verdict verdict;

	aw_net_decide(policy->net, aw_str_from(name), port, &verdict);
	return verdict.reason == AW_NET_GRANTED;
}

static void every_preset_parses_and_is_one_that_can_be_named(void **state)
{
	size_t count = 0;

	(void)state;
	for (; aw_policy_preset_name(count) != NULL; count++) {
		autodrop(aw_policy_drop) struct aw_policy *policy =
			preset(aw_policy_preset_name(count));

		assert_string_equal(policy->preset, aw_policy_preset_name(count));
		assert_int_equal(policy->protect, AW_PROTECT_ALL);
		assert_int_equal(policy->limit[AW_LIMIT_TIME_S], 0);
	}
	assert_int_equal(count, aw_data_preset_count);
}

static void presets_grant_what_they_promise(void **state)
{
	static const char *const hosts[] = {
		"api.anthropic.com",
		"api.openai.com",
		"api.perplexity.ai",
		"github.com",
		"codeload.github.com",
		"objects.githubusercontent.com",
		"pypi.org",
		"files.pythonhosted.org",
		"registry.npmjs.org",
		"index.crates.io",
		"static.crates.io",
		"proxy.golang.org",
		"sum.golang.org",
		"repo1.maven.org",
		"deb.debian.org",
		"security.debian.org",
		"cdn.playwright.dev",
		"huggingface.co",
	};
	autodrop(aw_policy_drop) struct aw_policy *balanced = preset("balanced");
	autodrop(aw_policy_drop) struct aw_policy *strict = preset("strict");
	autodrop(aw_policy_drop) struct aw_policy *offline = preset("offline");
	autodrop(aw_policy_drop) struct aw_policy *learn = preset("learn");

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(hosts); i++) {
		assert_true(grants(balanced, hosts[i], 443));
		assert_true(grants(learn, hosts[i], 443));
		assert_false(grants(strict, hosts[i], 443));
		assert_false(grants(offline, hosts[i], 443));
	}
	assert_false(grants(balanced, "github.com", 22));
	assert_false(grants(balanced, "example.com", 443));
	assert_false(grants(balanced, "storage.googleapis.com", 443));
	assert_false(offline->has_network);
	assert_false(strict->has_network);
	assert_int_equal(balanced->degraded, AW_DEGRADED_LIMITS);
	assert_int_equal(strict->degraded, 0);
}

static void no_preset_grants_a_relay_or_a_wildcard(void **state)
{
	autodrop(aw_policy_drop) struct aw_policy *policy = preset("balanced");

	(void)state;
	for (uint32_t i = 0; i < policy->net->rule_count; i++) {
		const struct aw_net_rule *rule = &policy->net->rules[i];

		assert_false(aw_policy_is_relay(aw_str_from(rule->name), NULL));
		assert_int_equal(rule->form, AW_NET_EXACT);
		assert_int_equal(rule->layer, AW_NET_LAYER_PRESET);
	}
}

static void every_agent_profile_parses_under_its_own_name(void **state)
{
	static const char *const expected[] = { "aider",    "bash",         "claude", "codex",
						"copilot",  "cursor-agent", "gemini", "hermes",
						"opencode", "pi",           "qwen" };

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(expected); i++) {
		autodrop(aw_agent_drop) struct aw_agent *agent = NULL;
		struct aw_policy_errors errors = { 0 };
		struct aw_error err;

		assert_string_equal(aw_agent_name(i), expected[i]);
		if (aw_agent_load(NULL, aw_str_from(expected[i]), &agent, &errors, &err) < 0)
			fail_msg("%s: %s", expected[i],
				 errors.count > 0 ? errors.item[0].message : err.message);
		assert_string_equal(agent->name, expected[i]);
		for (size_t j = 0; j < agent->domains.count; j++)
			assert_false(aw_policy_is_relay(aw_str_from(agent->domains.entry[j].text),
							NULL));
		/* Settings that run something are not for copying. */
		for (size_t j = 0; j < agent->imports.count; j++) {
			assert_null(strstr(agent->imports.entry[j].text, "hook"));
			assert_null(strstr(agent->imports.entry[j].text, "settings.json"));
		}
	}
	assert_null(aw_agent_name(AW_ARRAY_LEN(expected)));
}

static void codex_starts_without_its_own_sandbox_and_logs_in_by_stdin(void **state)
{
	autodrop(aw_agent_drop) struct aw_agent *agent = NULL;
	struct aw_policy_errors errors = { 0 };
	struct aw_error err;

	(void)state;
	assert_int_equal(aw_agent_load(NULL, AW_STR("codex"), &agent, &errors, &err), 0);
	assert_string_equal(agent->args.entry[1].text, "sandbox_mode=\"danger-full-access\"");
	for (size_t i = 0; i < agent->args.count; i++) {
		assert_null(strstr(agent->args.entry[i].text, "approv"));
		assert_null(strstr(agent->args.entry[i].text, "bypass"));
	}
	assert_string_equal(agent->login_key_args.entry[1].text, "--with-api-key");
	assert_string_equal(agent->login_key_env, "OPENAI_API_KEY");
}

static void an_agents_domains_are_granted_under_strict(void **state)
{
	autodrop(aw_agent_drop) struct aw_agent *agent = NULL;
	autodrop(aw_policy_drop) struct aw_policy *policy = NULL;
	struct aw_policy_errors errors = { 0 };
	struct aw_error err;
	struct texts texts = { .sources.command.preset = "strict" };

	(void)state;
	assert_int_equal(aw_agent_load(NULL, AW_STR("claude"), &agent, &errors, &err), 0);
	texts.sources.agent = agent;
	policy = policy_good(&texts);
	assert_true(grants(policy, "api.anthropic.com", 443));
	assert_false(grants(policy, "api.anthropic.com", 80));
	assert_false(grants(policy, "pypi.org", 443));
	assert_true(has_text(&policy->env, "ANTHROPIC_API_KEY"));
	aw_policy_drop(&policy);
}

static void comments_are_left_out_and_lines_stay(void **state)
{
	const struct aw_data *data =
		aw_data_find(aw_data_presets, aw_data_preset_count, AW_STR("balanced"));

	(void)state;
	assert_non_null(data);
	assert_int_equal(data->len, strlen(data->text));
	assert_null(strstr(data->text, "//"));
	assert_int_equal(data->text[0], '\n');
	assert_null(aw_data_find(aw_data_presets, aw_data_preset_count, AW_STR("none")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_preset_parses_and_is_one_that_can_be_named),
		cmocka_unit_test(presets_grant_what_they_promise),
		cmocka_unit_test(no_preset_grants_a_relay_or_a_wildcard),
		cmocka_unit_test(every_agent_profile_parses_under_its_own_name),
		cmocka_unit_test(codex_starts_without_its_own_sandbox_and_logs_in_by_stdin),
		cmocka_unit_test(an_agents_domains_are_granted_under_strict),
		cmocka_unit_test(comments_are_left_out_and_lines_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
