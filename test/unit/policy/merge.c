/* The merge, case by case: who grants, who narrows, what is left. */
#include "policy-support.h"
#include "support/torture.h"

#define FS(members) "{\"capabilities\": {\"file_system\": {" members "}}}"
#define CODE(members) "{\"capabilities\": {\"code_execution\": {" members "}}}"

static struct aw_policy *policy;

static int drop(void **state)
{
	(void)state;
	aw_policy_drop(&policy);
	return 0;
}

static void merge(const struct texts *texts)
{
	aw_policy_drop(&policy);
	policy = policy_good(texts);
}

static void merge3(const char *user, const char *system, const char *project)
{
	const struct texts texts = { .user = user, .system = system, .project = project };

	merge(&texts);
}

static void without_any_file_the_balanced_preset_holds(void **state)
{
	(void)state;
	merge3(NULL, NULL, NULL);
	assert_string_equal(policy->preset, "balanced");
	assert_true(policy->has_network);
	assert_false(policy->read.is_present);
	assert_false(policy->write.is_present);
	assert_int_equal(policy->protect, AW_PROTECT_ALL);
	assert_int_equal(policy->degraded, AW_DEGRADED_LIMITS);
	assert_int_equal(policy->limit[AW_LIMIT_TIME_S], 0);
	assert_int_equal(policy->asks.count, 0);
	assert_int_equal(policy->notes.count, 0);
}

static void the_nearest_extends_chooses_the_preset(void **state)
{
	struct texts texts = {
		.user = "{\"extends\": \"offline\", \"projects\": {\"~/p\": "
			"{\"extends\": \"strict\"}}}",
		.sources = { .workspace = "/home/u/p" },
	};

	(void)state;
	merge(&texts);
	assert_string_equal(policy->preset, "strict");
	texts.sources.workspace = "/home/u/q";
	merge(&texts);
	assert_string_equal(policy->preset, "offline");
	texts.sources.command.preset = "learn";
	merge(&texts);
	assert_string_equal(policy->preset, "learn");
}

static void a_present_list_of_paths_hides_the_rest(void **state)
{
	(void)state;
	merge3(FS("\"read_paths\": [\"/workspace/in/*\"], \"write_paths\": [\"/workspace/out\"]"),
	       NULL, NULL);
	assert_true(policy->read.is_present);
	assert_true(has_text(&policy->read, "/workspace/in"));
	/* write implies read */
	assert_true(has_text(&policy->read, "/workspace/out"));
	assert_int_equal(policy->read.count, 2);
	assert_int_equal(policy->write.count, 1);
	merge3(FS("\"write_paths\": []"), NULL, NULL);
	assert_false(policy->read.is_present);
	assert_true(policy->write.is_present);
	assert_int_equal(policy->write.count, 0);
}

static void read_paths_without_write_paths_contradict_themselves(void **state)
{
	const struct texts texts = { .user = FS("\"read_paths\": [\"/workspace/in\"]") };
	struct aw_policy_errors errors = { 0 };

	(void)state;
	assert_int_equal(policy_of(&texts, &policy, &errors), 0);
	assert_int_equal(errors.count, 1);
	assert_non_null(error_at(&errors, "/capabilities/file_system/read_paths"));
	aw_policy_errors_fini(&errors);
}

static void a_project_leaves_what_both_name(void **state)
{
	(void)state;
	merge3(NULL, NULL, FS("\"read_paths\": [\"/workspace/src\"]"));
	assert_int_equal(policy->read.count, 1);
	assert_int_equal(policy->write.count, 1);
	assert_true(has_text(&policy->write, "/workspace/src"));
	merge3(FS("\"read_paths\": [\"/workspace/a\", \"/workspace/b/c\"], "
		  "\"write_paths\": [\"/workspace/a\"]"),
	       NULL,
	       FS("\"read_paths\": [\"/workspace/a/x\", \"/workspace/b\"], "
		  "\"write_paths\": [\"/workspace/b\"]"));
	assert_int_equal(policy->read.count, 2);
	assert_true(has_text(&policy->read, "/workspace/a/x"));
	assert_true(has_text(&policy->read, "/workspace/b/c"));
	assert_int_equal(policy->write.count, 0);
	assert_true(policy->write.is_present);
	assert_non_null(ask_for(policy, "/workspace/b in write_paths"));
}

static void denials_of_all_layers_unite(void **state)
{
	(void)state;
	merge3(FS("\"deny_paths\": [\"/workspace/a\"]"), FS("\"deny_paths\": [\"/workspace/b\"]"),
	       FS("\"deny_paths\": [\"/workspace/c\", \"/workspace/a/**\"]"));
	assert_int_equal(policy->deny.count, 3);
	assert_true(has_text(&policy->deny, "/workspace/a"));
	assert_true(has_text(&policy->deny, "/workspace/b"));
	assert_true(has_text(&policy->deny, "/workspace/c"));
}

static void protection_is_given_up_by_the_user_alone(void **state)
{
	(void)state;
	merge3(FS("\"protect\": [\"git\"]"), NULL, NULL);
	assert_int_equal(policy->protect, AW_PROTECT_GIT);
	merge3(FS("\"protect\": []"), NULL, FS("\"protect\": [\"ci\"]"));
	assert_int_equal(policy->protect, AW_PROTECT_CI);
	merge3(FS("\"protect\": []"), FS("\"protect\": [\"shell\", \"agent\"]"), NULL);
	assert_int_equal(policy->protect, AW_PROTECT_SHELL | AW_PROTECT_AGENT);
	merge3(NULL, NULL, FS("\"protect\": []"));
	assert_int_equal(policy->protect, AW_PROTECT_ALL);
}

static void mounts_unite_and_narrow_by_host_directory(void **state)
{
	static const char *const rw[] = { "/srv/data", NULL };
	struct texts texts = {
		.user = FS("\"mounts\": [{\"host\": \"/srv/data\"}, "
			   "{\"host\": \"~/sets\", \"at\": \"/sets\"}]"),
		.sources = { .command = { .mount_rw = rw } },
	};

	(void)state;
	merge(&texts);
	assert_int_equal(policy->mounts.count, 2);
	assert_string_equal(policy->mounts.entry[0].text, "/srv/data");
	assert_true(policy->mounts.entry[0].is_writable);
	assert_string_equal(policy->mounts.entry[1].host, "/home/u/sets");
	assert_string_equal(policy->mounts.entry[1].text, "/sets");
	assert_false(policy->mounts.entry[1].is_writable);
	texts.system = FS("\"mounts\": [{\"host\": \"/srv\", \"mode\": \"ro\"}]");
	merge(&texts);
	assert_int_equal(policy->mounts.count, 1);
	assert_false(policy->mounts.entry[0].is_writable);
	texts.system = FS("\"mounts\": []");
	merge(&texts);
	assert_int_equal(policy->mounts.count, 0);
}

static void two_directories_at_one_place_are_a_contradiction(void **state)
{
	const struct texts texts = {
		.user = FS("\"mounts\": [{\"host\": \"/a\", \"at\": \"/d\"}, "
			   "{\"host\": \"/b\", \"at\": \"/d\"}, {\"host\": \"/home/u/p/x\"}]"),
		.sources = { .workspace = "/home/u/p" },
	};
	struct aw_policy_errors errors = { 0 };

	(void)state;
	assert_int_equal(policy_of(&texts, &policy, &errors), 0);
	assert_int_equal(errors.count, 2);
	assert_non_null(strstr(errors.item[0].message, "same place"));
	assert_non_null(strstr(errors.item[1].message, "part of the project"));
	aw_policy_errors_fini(&errors);
}

static void the_smallest_written_limit_wins(void **state)
{
	(void)state;
	merge3(CODE("\"max_memory_mb\": 900, \"max_processes\": 10"),
	       CODE("\"max_memory_mb\": 1000"),
	       CODE("\"max_memory_mb\": 800, \"max_processes\": 20, \"max_cpus\": 1.5"));
	assert_int_equal(policy->limit[AW_LIMIT_MEMORY_MB], 800);
	assert_int_equal(policy->limit[AW_LIMIT_PROCESSES], 10);
	assert_int_equal(policy->limit[AW_LIMIT_CPU_MILLI], 1500);
	assert_int_equal(policy->limit[AW_LIMIT_OPEN_FILES], 0);
}

static void a_presets_limit_is_only_the_default(void **state)
{
	struct texts texts = { .sources.command.limit[AW_LIMIT_PROCESSES] = 100000 };

	(void)state;
	merge(&texts);
	assert_int_equal(policy->limit[AW_LIMIT_PROCESSES], 100000);
	assert_int_equal(policy->notes.count, 0);
	merge3(CODE("\"max_processes\": 0"), NULL, NULL);
	assert_int_equal(policy->limit[AW_LIMIT_PROCESSES], 0);
	merge3(NULL, NULL, CODE("\"max_processes\": 0"));
	assert_int_equal(policy->limit[AW_LIMIT_PROCESSES], 4096);
	merge3(NULL, NULL, CODE("\"max_processes\": 100000"));
	assert_int_equal(policy->limit[AW_LIMIT_PROCESSES], 4096);
}

static void a_flag_that_does_not_hold_is_noted(void **state)
{
	const struct texts texts = {
		.user = CODE("\"max_memory_mb\": 512"),
		.sources.command.limit[AW_LIMIT_MEMORY_MB] = 1024,
	};

	(void)state;
	merge(&texts);
	assert_int_equal(policy->limit[AW_LIMIT_MEMORY_MB], 512);
	assert_int_equal(policy->notes.count, 1);
	assert_non_null(strstr(policy->notes.item[0].text, "user policy /home/u/policy.json:1"));
	assert_non_null(strstr(policy->notes.item[0].text, "512"));
}

static void degradation_is_the_users_to_allow_and_the_systems_to_forbid(void **state)
{
	(void)state;
	merge3("{\"allow_degraded\": [\"landlock\"]}", NULL, NULL);
	assert_int_equal(policy->degraded, AW_DEGRADED_LIMITS | AW_DEGRADED_LANDLOCK);
	merge3("{\"extends\": \"strict\"}", NULL, NULL);
	assert_int_equal(policy->degraded, 0);
	merge3("{\"allow_degraded\": [\"landlock\"]}", "{\"allow_degraded\": [\"limits\"]}", NULL);
	assert_int_equal(policy->degraded, AW_DEGRADED_LIMITS);
	merge3(NULL, NULL, "{\"allow_degraded\": [\"landlock\"]}");
	assert_int_equal(policy->degraded, 0);
	assert_non_null(ask_for(policy, "starting without landlock"));
}

static void variables_unite_and_narrow(void **state)
{
	static const char *const env[] = { "B", "C", NULL };
	struct texts texts = {
		.user = "{\"env\": {\"pass\": [\"A\", \"B\"]}}",
		.sources.command.env = env,
	};

	(void)state;
	merge(&texts);
	assert_int_equal(policy->env.count, 3);
	texts.project = "{\"env\": {\"pass\": [\"C\", \"D\"]}}";
	merge(&texts);
	assert_int_equal(policy->env.count, 1);
	assert_true(has_text(&policy->env, "C"));
	assert_string_equal(ask_for(policy, "variable D"), "warden run --env D");
}

static void an_agents_and_a_directorys_entry_count_where_they_fit(void **state)
{
	struct aw_policy_errors errors = { 0 };
	autodrop(aw_agent_drop) struct aw_agent *agent = NULL;
	struct aw_error err;
	struct texts texts = {
		.user = "{\"agents\": {\"codex\": {\"env\": {\"pass\": [\"FOR_CODEX\"]}}, "
			"\"aider\": {\"env\": {\"pass\": [\"FOR_AIDER\"]}}}, "
			"\"projects\": {\"/srv/p/\": {\"env\": {\"pass\": [\"FOR_P\"]}}, "
			"\"/srv/q\": {\"env\": {\"pass\": [\"FOR_Q\"]}}}}",
		.sources.workspace = "/srv/p",
	};

	(void)state;
	assert_int_equal(aw_agent_load(NULL, AW_STR("codex"), &agent, &errors, &err), 0);
	texts.sources.agent = agent;
	merge(&texts);
	assert_true(has_text(&policy->env, "FOR_CODEX"));
	assert_false(has_text(&policy->env, "FOR_AIDER"));
	assert_true(has_text(&policy->env, "FOR_P"));
	assert_false(has_text(&policy->env, "FOR_Q"));
	assert_true(has_text(&policy->env, "OPENAI_API_KEY"));
	aw_policy_drop(&policy);
}

static void the_default_agent_is_the_nearest(void **state)
{
	struct texts texts = {
		.user = "{\"default_agent\": \"claude\", \"projects\": {\"/p\": "
			"{\"default_agent\": \"pi\"}}}",
		.sources.workspace = "/p",
	};

	(void)state;
	merge(&texts);
	assert_string_equal(policy->default_agent, "pi");
	texts.sources.workspace = NULL;
	merge(&texts);
	assert_string_equal(policy->default_agent, "claude");
	merge3(NULL, NULL, NULL);
	assert_null(policy->default_agent);
}

static void a_narrowing_layers_preset_counts_with_it(void **state)
{
	(void)state;
	/* strict grants no name by itself, so what the system lists beside it is all that is left. */
	merge3(NULL,
	       "{\"extends\": \"strict\", \"capabilities\": {\"network\": {\"allowed_domains\": "
	       "[\"pypi.org\"]}}}",
	       NULL);
	assert_int_equal(policy->net->rule_count, 1);
	assert_string_equal(policy->net->rules[0].name, "pypi.org");
	assert_int_equal(policy->net->port_count, 1);
	assert_int_equal(policy->degraded, 0);
	assert_int_equal(policy->limit[AW_LIMIT_MEMORY_MB], 4096);
	merge3(NULL, NULL, "{\"extends\": \"offline\"}");
	assert_false(policy->has_network);
}

static int attempt(void *state)
{
	static const char *const allow[] = { "x.com:22", NULL };
	const struct texts texts = {
		.user = FS(
			"\"read_paths\": [\"/workspace/a\"], \"write_paths\": [\"/workspace/b\"], "
			"\"mounts\": [{\"host\": \"/srv/d\"}]"),
		.system = "{\"capabilities\": {\"network\": {\"denied_domains\": [\"y.com\"]}}}",
		.project = "{\"extends\": \"strict\", \"capabilities\": {\"network\": "
			   "{\"allowed_domains\": [\"z.com\"]}}, \"env\": {\"pass\": [\"A\"]}}",
		.sources.command.allow = allow,
	};
	struct aw_policy_errors errors = { 0 };
	autodrop(aw_policy_drop) struct aw_policy *result = NULL;
	int r = policy_of(&texts, &result, &errors);

	(void)state;
	assert_int_equal(errors.count, 0);
	return r;
}

static void every_failing_allocation_is_told(void **state)
{
	(void)state;
	spare_jansson();
	assert_true(aw_torture(attempt, NULL) > 100);
}

#define TEST(name) cmocka_unit_test_teardown(name, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_any_file_the_balanced_preset_holds),
		TEST(the_nearest_extends_chooses_the_preset),
		TEST(a_present_list_of_paths_hides_the_rest),
		TEST(read_paths_without_write_paths_contradict_themselves),
		TEST(a_project_leaves_what_both_name),
		TEST(denials_of_all_layers_unite),
		TEST(protection_is_given_up_by_the_user_alone),
		TEST(mounts_unite_and_narrow_by_host_directory),
		TEST(two_directories_at_one_place_are_a_contradiction),
		TEST(the_smallest_written_limit_wins),
		TEST(a_presets_limit_is_only_the_default),
		TEST(a_flag_that_does_not_hold_is_noted),
		TEST(degradation_is_the_users_to_allow_and_the_systems_to_forbid),
		TEST(variables_unite_and_narrow),
		TEST(an_agents_and_a_directorys_entry_count_where_they_fit),
		TEST(the_default_agent_is_the_nearest),
		TEST(a_narrowing_layers_preset_counts_with_it),
		TEST(every_failing_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
