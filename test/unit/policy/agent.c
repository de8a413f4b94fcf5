#include "policy/agent.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "policy-support.h"
#include "support/torture.h"

static struct aw_policy_errors errors;
static struct aw_agent *agent;
static struct aw_error err;

static int drop(void **state)
{
	(void)state;
	aw_agent_drop(&agent);
	aw_policy_errors_fini(&errors);
	return 0;
}

static int parse(const char *text)
{
	aw_agent_drop(&agent);
	aw_policy_errors_fini(&errors);
	return aw_agent_parse(aw_str_from(text), "test profile", &agent, &errors, &err);
}

#define NEEDED "\"name\": \"x\", \"title\": \"X\", \"install\": \"get it\", \"binaries\": [\"x\"]"

static void a_profile_is_read_whole(void **state)
{
	(void)state;
	assert_int_equal(
		parse("{" NEEDED ", \"args\": [\"-c\", \"a=\\\"b\\\"\"], "
		      "\"domains\": [\"*.x.dev\"], \"key_env\": [\"X_KEY\"], "
		      "\"env\": {\"A\": \"1\", \"B\": \"2\"}, \"home_env\": \"X_HOME\", "
		      "\"home_dir\": \".x\", \"auth_paths\": [\".x/auth.json\"], "
		      "\"import\": [\".x/X.md\"], \"ignore_file\": \".xignore\", "
		      "\"login\": {\"args\": [\"login\"], \"key_args\": [\"login\", \"-\"], "
		      "\"key_env\": \"X_KEY\"}}"),
		0);
	assert_string_equal(agent->name, "x");
	assert_string_equal(agent->origin, "test profile");
	assert_string_equal(agent->args.entry[1].text, "a=\"b\"");
	assert_string_equal(agent->domains.entry[0].text, "x.dev");
	assert_int_equal(agent->env_count, 2);
	assert_string_equal(agent->env[1].name, "B");
	assert_string_equal(agent->env[1].value, "2");
	assert_string_equal(agent->home_env, "X_HOME");
	assert_string_equal(agent->auth_paths.entry[0].text, ".x/auth.json");
	assert_string_equal(agent->login_key_args.entry[1].text, "-");
	assert_string_equal(agent->login_key_env, "X_KEY");
}

static void what_is_missing_or_wrong_is_named(void **state)
{
	static const struct {
		const char *text, *pointer, *why;
	} cases[] = {
		{ "{}", "", "\"name\" is missing" },
		{ "{" NEEDED ", \"bins\": []}", "/bins", "unknown key" },
		{ "{" NEEDED ", \"auth_paths\": [\"/etc/x\"]}", "/auth_paths/0", "below the home" },
		{ "{" NEEDED ", \"auth_paths\": [\".x/../..\"]}", "/auth_paths/0",
		  "below the home" },
		{ "{" NEEDED ", \"import\": [\".\"]}", "/import/0", "below the home" },
		{ "{" NEEDED ", \"home_dir\": \"~/x\"}", NULL, NULL },
		{ "{" NEEDED ", \"env\": {\"HOME\": \"/\"}}", "/env/HOME", "set by Warden" },
		{ "{" NEEDED ", \"env\": {\"A B\": \"/\"}}", "/env/A B", "not the name" },
		{ "{" NEEDED ", \"domains\": [\"*\"]}", "/domains/0", "every name" },
		{ "{\"name\": \"../x\"}", "/name", "plain name" },
		{ "{" NEEDED ", \"login\": {\"key_args\": [\"a\"]}}", "", "login/key_env" },
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(cases); i++) {
		if (cases[i].pointer == NULL) {
			assert_int_equal(parse(cases[i].text), 0);
			continue;
		}
		assert_int_equal(parse(cases[i].text), -EACCES);
		assert_string_equal(errors.item[0].pointer, cases[i].pointer);
		assert_non_null(strstr(errors.item[0].message, cases[i].why));
	}
	assert_int_equal(parse("{\"name\": \"x\", \"title\": \"X\", \"install\": \"i\", "
			       "\"binaries\": [\"bin/x\"]}"),
			 -EACCES);
}

static void an_unknown_name_is_no_agent(void **state)
{
	(void)state;
	assert_int_equal(aw_agent_load(NULL, AW_STR("nobody"), &agent, &errors, &err), -ENOENT);
	assert_int_equal(aw_agent_load("/tmp", AW_STR("../x"), &agent, &errors, &err), -ENOENT);
	assert_int_equal(aw_agent_load("/tmp", AW_STR(""), &agent, &errors, &err), -ENOENT);
}

static void the_users_own_profile_wins_over_the_built_in(void **state)
{
	char dir[] = "/tmp/policy-agent-XXXXXX", agents[64], file[96];
	static const char text[] = "{\"name\": \"pi\", \"title\": \"Mine\", \"install\": \"i\", "
				   "\"binaries\": [\"pi\"]}";
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(agents, sizeof(agents), "%s/agents", dir);
	snprintf(file, sizeof(file), "%s/pi.json", agents);
	assert_int_equal(mkdir(agents, 0700), 0);
	fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(aw_write_all(fd, text, sizeof(text) - 1), 0);
	close(fd);
	assert_int_equal(aw_agent_load(dir, AW_STR("pi"), &agent, &errors, &err), 0);
	assert_string_equal(agent->title, "Mine");
	assert_string_equal(agent->origin, file);
	aw_agent_drop(&agent);
	assert_int_equal(aw_agent_load(dir, AW_STR("claude"), &agent, &errors, &err), 0);
	assert_string_equal(agent->origin, "agent profile claude");
	aw_agent_drop(&agent);
	snprintf(agents + strlen(agents), sizeof(agents) - strlen(agents), "/qwen.json");
	assert_int_equal(rename(file, agents), 0);
	assert_int_equal(aw_agent_load(dir, AW_STR("qwen"), &agent, &errors, &err), -EACCES);
	assert_non_null(strstr(err.message, "another name"));
	assert_int_equal(unlink(agents), 0);
	*strrchr(agents, '/') = '\0';
	assert_int_equal(rmdir(agents), 0);
	assert_int_equal(rmdir(dir), 0);
}

static int attempt(void *state)
{
	autodrop(aw_agent_drop) struct aw_agent *loaded = NULL;

	(void)state;
	return aw_agent_load("/nowhere", AW_STR("codex"), &loaded, &errors, &err);
}

static void every_failing_allocation_is_told(void **state)
{
	(void)state;
	spare_jansson();
	assert_true(aw_torture(attempt, NULL) > 15);
	assert_int_equal(errors.count, 0);
}

#define TEST(name) cmocka_unit_test_teardown(name, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_profile_is_read_whole),
		TEST(what_is_missing_or_wrong_is_named),
		TEST(an_unknown_name_is_no_agent),
		TEST(the_users_own_profile_wins_over_the_built_in),
		TEST(every_failing_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
