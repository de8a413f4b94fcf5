#include "policy/layer-internal.h"

#include "policy-support.h"
#include "support/torture.h"

static struct aw_policy_errors errors;
static struct aw_error err;

static int forget(void **state)
{
	(void)state;
	aw_policy_errors_fini(&errors);
	return 0;
}

static size_t check_as(enum aw_net_layer layer, const char *text)
{
	aw_policy_errors_fini(&errors);
	(void)aw_policy_check(aw_str_from(text), layer, "p.json", "/home/u", &errors, &err);
	return errors.count;
}

static size_t check(const char *text)
{
	return check_as(AW_NET_LAYER_USER, text);
}

/* Exactly one error: at @pointer, of that kind, with @why in its message. */
static void only(enum aw_policy_error_kind kind, const char *pointer, const char *why,
		 const char *text)
{
	size_t count = check(text);

	if (count != 1)
		fail_msg("%zu errors for %s", count, text);
	assert_string_equal(errors.item[0].pointer, pointer);
	assert_int_equal(errors.item[0].kind, kind);
	if (strstr(errors.item[0].message, why) == NULL)
		fail_msg("says: %s", errors.item[0].message);
}

static void unenforced(const char *pointer, const char *name, const char *text)
{
	only(AW_POLICY_UNENFORCED, pointer, "not enforced by this version", text);
	assert_non_null(strstr(errors.item[0].message, name));
}

static void malformed(const char *pointer, const char *why, const char *text)
{
	only(AW_POLICY_MALFORMED, pointer, why, text);
}

/* The object of the four-layer design, word for word. */
static const char four_layers[] =
	"{ \"capabilities\": { \"file_system\": { \"read_paths\": [\"/workspace/input/*\", "
	"\"/workspace/config/*\"], \"write_paths\": [\"/workspace/output/*\"], \"delete\": false }, "
	"\"network\": { \"allowed_domains\": [\"api.openai.com\", \"internal-search\"], "
	"\"allowed_methods\": [\"GET\", \"POST\"], \"blocked_ports\": [22, 3389] }, "
	"\"code_execution\": { \"allowed\": true, \"max_execution_time_s\": 30, "
	"\"max_memory_mb\": 512 } } }";

static void the_four_layer_object_is_understood_key_by_key(void **state)
{
	(void)state;
	assert_int_equal(check(four_layers), 2);
	assert_int_equal(error_at(&errors, "/capabilities/file_system/delete")->kind,
			 AW_POLICY_UNENFORCED);
	assert_int_equal(error_at(&errors, "/capabilities/network/allowed_methods")->kind,
			 AW_POLICY_UNENFORCED);
}

/* The example of the policy's manual: every key there is. */
static const char every_key[] =
	"{ \"version\": 1, \"extends\": \"balanced\",            // presets\n"
	"  \"capabilities\": {\n"
	"    \"file_system\": { \"read_paths\": [\"/workspace/input/*\"], "
	"\"write_paths\": [\"/workspace/output/*\"],\n"
	"      \"deny_paths\": [\"**/.env\", \"**/*.pem\"], \"exec_paths\": [], \"delete\": false,\n"
	"      \"mounts\": [{\"host\": \"~/datasets\", \"at\": \"/data\", \"mode\": \"ro\"}], "
	"\"protect\": [\"git\", \"editor\", \"agent\", \"ci\", \"shell\"] },\n"
	"    \"network\": { \"allowed_domains\": [\"api.openai.com\", \"internal-search\"], "
	"\"denied_domains\": [], \"allowed_methods\": [\"GET\", \"POST\"],\n"
	"      \"allowed_ports\": [80, 443], \"blocked_ports\": [22, 3389], "
	"\"allow_private\": [\"internal-search\"],\n"
	"      \"publish\": [3000], \"host_ports\": [11434], \"inspect\": [\"api.openai.com\"], "
	"\"budgets\": {\"api.openai.com\": {\"bytes_out\": 50000000}} },\n"
	"    \"code_execution\": { \"allowed\": true, \"nested\": false, "
	"\"max_execution_time_s\": 30, \"max_memory_mb\": 512, \"max_processes\": 4096,\n"
	"      \"max_cpus\": 2, \"max_open_files\": 8192, \"max_disk_mb\": 2048, "
	"\"max_io_mb_s\": 0 } },\n"
	"  \"credentials\": [{\"env\": \"OPENAI_API_KEY\", \"host\": \"api.openai.com\", "
	"\"header\": \"authorization\"}], \"env\": {\"pass\": [\"LANG\"]},\n"
	"  \"rate_limits\": { \"file_write\": {\"per_minute\": 100, \"action\": \"throttle\"}, "
	"\"network_request\": {\"per_minute\": 50, \"action\": \"deny\"} },\n"
	"  \"canary\": { \"action\": \"kill\" }, \"audit\": { \"level\": \"security\" }, "
	"\"runtime\": \"native\",\n"
	"  \"allow_degraded\": [\"limits\"], \"agents\": {\"claude\": {}}, "
	"\"projects\": {\"~/work/api\": {}} }\n";

static void every_key_of_the_manual_is_known_and_what_is_not_enforced_is_named(void **state)
{
	static const char *const refused[] = {
		"/capabilities/file_system/deny_paths/0",
		"/capabilities/file_system/deny_paths/1",
		"/capabilities/file_system/exec_paths",
		"/capabilities/file_system/delete",
		"/capabilities/network/allowed_methods",
		"/capabilities/network/publish",
		"/capabilities/network/host_ports",
		"/capabilities/network/inspect",
		"/capabilities/network/budgets/api.openai.com",
		"/capabilities/code_execution/max_disk_mb",
		"/credentials",
		"/rate_limits/file_write",
		"/rate_limits/network_request",
		"/canary/action",
		"/audit/level",
	};

	(void)state;
	assert_int_equal(check(every_key), AW_ARRAY_LEN(refused));
	for (size_t i = 0; i < AW_ARRAY_LEN(refused); i++) {
		const struct aw_policy_error *error = error_at(&errors, refused[i]);

		if (error == NULL)
			fail_msg("no error at %s", refused[i]);
		assert_int_equal(error->kind, AW_POLICY_UNENFORCED);
		assert_non_null(strstr(error->message, "not enforced by this version"));
	}
	assert_int_equal(error_at(&errors, "/audit/level")->line, 13);
}

static void what_asks_for_nothing_special_is_accepted(void **state)
{
	(void)state;
	assert_int_equal(check("{}"), 0);
	assert_int_equal(
		check("{\"canary\": {}, \"baseline\": {}, \"guard\": {}, \"rate_limits\": {}, "
		      "\"credentials\": [], \"audit\": {\"level\": \"session\"}, "
		      "\"runtime\": \"native\", \"agents\": {}, \"projects\": {}}"),
		0);
	assert_int_equal(check("{\"capabilities\": {\"file_system\": {\"delete\": true}, "
			       "\"network\": {\"allowed_methods\": [\"GET\", \"HEAD\", \"POST\", "
			       "\"PUT\", \"PATCH\", \"DELETE\", \"OPTIONS\"], \"publish\": [], "
			       "\"host_ports\": [], \"inspect\": [], \"budgets\": {}}, "
			       "\"code_execution\": {\"allowed\": true, \"nested\": false, "
			       "\"max_disk_mb\": 0}}}"),
			 0);
}

static void each_key_without_enforcement_is_refused_by_name(void **state)
{
	(void)state;
	unenforced("/capabilities/file_system/exec_paths", "exec_paths",
		   "{\"capabilities\": {\"file_system\": {\"exec_paths\": []}}}");
	unenforced("/capabilities/file_system/delete", "delete: false",
		   "{\"capabilities\": {\"file_system\": {\"delete\": false}}}");
	unenforced("/capabilities/code_execution/allowed", "allowed: false",
		   "{\"capabilities\": {\"code_execution\": {\"allowed\": false}}}");
	unenforced("/capabilities/code_execution/nested", "nested: true",
		   "{\"capabilities\": {\"code_execution\": {\"nested\": true}}}");
	unenforced("/capabilities/network/budgets/a.com", "budgets",
		   "{\"capabilities\": {\"network\": {\"budgets\": {\"a.com\": "
		   "{\"bytes_out\": 1}}}}}");
	unenforced("/audit/level", "audit.level \"full\"", "{\"audit\": {\"level\": \"full\"}}");
	unenforced("/runtime", "runtime \"runsc\"", "{\"runtime\": \"runsc\"}");
	unenforced("/canary/decoys", "canary.decoys", "{\"canary\": {\"decoys\": [\"x\"]}}");
	unenforced("/baseline", "baseline", "{\"baseline\": {\"anything\": 1}}");
	unenforced("/guard", "guard", "{\"guard\": {\"anything\": {}}}");
}

static void unknown_keys_are_errors_with_a_suggestion(void **state)
{
	(void)state;
	malformed("/capabilites", "did you mean \"capabilities\"", "{\"capabilites\": {}}");
	malformed("/allowed_domains", "/capabilities/network/allowed_domains",
		  "{\"allowed_domains\": []}");
	malformed("/x~1y~0z", "unknown key", "{\"x/y~z\": 1}");
	malformed("/capabilities~1network", "unknown key", "{\"capabilities/network\": {}}");
	malformed("/capabilities/network/alowed_ports", "did you mean \"allowed_ports\"",
		  "{\"capabilities\": {\"network\": {\"alowed_ports\": [1]}}}");
}

static void wrong_types_and_bounds_are_errors(void **state)
{
	(void)state;
	malformed("/version", "out of range", "{\"version\": 2}");
	malformed("/version", "whole number", "{\"version\": \"1\"}");
	malformed("/extends", "must be one of \"strict\", \"balanced\"", "{\"extends\": \"lax\"}");
	malformed("/extends", "must be one of", "{\"extends\": 1}");
	malformed("/capabilities", "must be an object", "{\"capabilities\": []}");
	malformed("/env/pass", "must be a list", "{\"env\": {\"pass\": \"LANG\"}}");
	malformed("/env/pass/0", "must be a text", "{\"env\": {\"pass\": [1]}}");
	malformed("/env/pass/0", "must be a text", "{\"env\": {\"pass\": [\"\"]}}");
	malformed("/env/pass/1", "not the name of a variable",
		  "{\"env\": {\"pass\": [\"LANG\", \"A=b\"]}}");
	malformed("/env/pass/0", "set by Warden", "{\"env\": {\"pass\": [\"HTTPS_PROXY\"]}}");
	malformed("/env/pass/0", "not in the cell", "{\"env\": {\"pass\": [\"SSH_AUTH_SOCK\"]}}");
	malformed("/capabilities/file_system/delete", "true or false",
		  "{\"capabilities\": {\"file_system\": {\"delete\": 0}}}");
	malformed("/capabilities/network/allowed_ports/1", "out of range",
		  "{\"capabilities\": {\"network\": {\"allowed_ports\": [80, 0]}}}");
	malformed("/capabilities/network/allowed_ports/0", "whole number",
		  "{\"capabilities\": {\"network\": {\"allowed_ports\": [80.0]}}}");
	malformed("/capabilities/code_execution/max_memory_mb", "out of range",
		  "{\"capabilities\": {\"code_execution\": {\"max_memory_mb\": -1}}}");
	malformed("/capabilities/code_execution/max_cpus", "out of range",
		  "{\"capabilities\": {\"code_execution\": {\"max_cpus\": 1e300}}}");
	malformed("/default_agent", "longer",
		  "{\"default_agent\": "
		  "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}");
}

static void domains_are_checked_where_they_stand(void **state)
{
	(void)state;
	malformed("/capabilities/network/allowed_domains/1", "every name",
		  "{\"capabilities\": {\"network\": {\"allowed_domains\": [\"a.com\", \"*\"]}}}");
	malformed("/capabilities/network/denied_domains/0", "URL",
		  "{\"capabilities\": {\"network\": {\"denied_domains\": [\"http://x\"]}}}");
	assert_int_equal(check("{\"capabilities\": {\"network\": {\"denied_domains\": "
			       "[\"*.zip\"]}}}"),
			 0);
}

static void paths_are_of_the_workspace_and_plain(void **state)
{
	(void)state;
	malformed("/capabilities/file_system/read_paths/0", "outside /workspace",
		  "{\"capabilities\": {\"file_system\": {\"read_paths\": [\"/etc\"]}}}");
	malformed("/capabilities/file_system/write_paths/0", "not absolute",
		  "{\"capabilities\": {\"file_system\": {\"write_paths\": [\"out/*\"]}}}");
	malformed("/capabilities/file_system/deny_paths/0", "hide everything",
		  "{\"capabilities\": {\"file_system\": {\"deny_paths\": [\"/workspace/**\"]}}}");
	unenforced(
		"/capabilities/file_system/deny_paths/0", "deny_paths",
		"{\"capabilities\": {\"file_system\": {\"deny_paths\": [\"/workspace/*.key\"]}}}");
	assert_int_equal(
		check("{\"capabilities\": {\"file_system\": {\"deny_paths\": "
		      "[\"/workspace/.env\", \"/workspace/secrets/**\", \"/data/x/*\"]}}}"),
		0);
}

static void mount_error(const char *pointer, const char *why, const char *mount)
{
	char text[512];

	assert_true(aw_str_format(text, sizeof(text),
				  "{\"capabilities\": {\"file_system\": {\"mounts\": [%s]}}}",
				  mount) > 0);
	malformed(pointer, why, text);
}

static void mounts_bring_in_no_part_that_opens_the_host(void **state)
{
	static const char at[] = "/capabilities/file_system/mounts/0";

	(void)state;
	mount_error(at, "whole home", "{\"host\": \"/\", \"at\": \"/data\"}");
	mount_error(at, "whole home", "{\"host\": \"~\", \"at\": \"/data\"}");
	mount_error(at, "whole home", "{\"host\": \"/home\", \"at\": \"/data\"}");
	mount_error(at, "stays out", "{\"host\": \"/run/docker.sock\", \"at\": \"/data\"}");
	mount_error(at, "own policy", "{\"host\": \"~/.config\", \"at\": \"/data\"}");
	mount_error(at, "own policy", "{\"host\": \"~/.local/state/warden/x\", \"at\": \"/data\"}");
	mount_error(at, "lie over", "{\"host\": \"/srv/x\", \"at\": \"/usr/local\"}");
	mount_error(at, "lie over", "{\"host\": \"/srv/x\", \"at\": \"/workspace/x\"}");
	mount_error(at, "lie over", "{\"host\": \"/srv/x\", \"at\": \"/\"}");
	mount_error(at, "needs \"host\"", "{\"at\": \"/data\"}");
	mount_error(at, "must be an object", "\"~/datasets\"");
	mount_error("/capabilities/file_system/mounts/0/mode", "one of \"ro\", \"rw\"",
		    "{\"host\": \"/srv/x\", \"mode\": \"w\"}");
	mount_error("/capabilities/file_system/mounts/0/host", "neither absolute",
		    "{\"host\": \"srv\"}");
	mount_error("/capabilities/file_system/mounts/0/hots", "did you mean \"host\"",
		    "{\"host\": \"/srv/x\", \"hots\": 1}");
}

static void all_errors_come_at_once_with_line_and_column(void **state)
{
	const char *text = "{\n"
			   "  \"version\": 3,\n"
			   "  \"env\": { \"pass\": [\"A B\"], /* x */ \"pas\": 1 },\n"
			   "  \"runtime\": \"kata\",\n"
			   "  \"version\": 1\n"
			   "}\n";

	(void)state;
	assert_int_equal(check(text), 4);
	assert_int_equal(error_at(&errors, "")->line, 5);
	assert_int_equal(error_at(&errors, "")->column, 3);
	assert_int_equal(error_at(&errors, "/env/pass/0")->line, 3);
	assert_int_equal(error_at(&errors, "/env/pass/0")->column, 21);
	assert_int_equal(error_at(&errors, "/env/pas")->column, 37);
	assert_int_equal(error_at(&errors, "/runtime")->line, 4);
}

static void a_text_that_is_no_object_or_no_json_has_one_error(void **state)
{
	(void)state;
	assert_int_equal(check("[]"), 1);
	assert_int_equal(check("{ \"a\": }"), 1);
	assert_int_equal(errors.item[0].line, 1);
	assert_int_equal(check(""), 1);
}

static void who_may_write_a_key_is_part_of_the_table(void **state)
{
	(void)state;
	assert_int_equal(check_as(AW_NET_LAYER_PROJECT, "{\"agents\": {}}"), 1);
	assert_non_null(strstr(errors.item[0].message, "a project's policy"));
	assert_int_equal(check_as(AW_NET_LAYER_PROJECT, "{\"projects\": {}}"), 1);
	assert_int_equal(check_as(AW_NET_LAYER_PROJECT, "{\"default_agent\": \"x\"}"), 1);
	assert_int_equal(check_as(AW_NET_LAYER_SYSTEM, "{\"projects\": {}}"), 1);
	assert_int_equal(check_as(AW_NET_LAYER_USER, "{\"groups\": {}}"), 1);
	assert_int_equal(check("{\"projects\": {\"/x\": {\"projects\": {}}}}"), 1);
	assert_non_null(strstr(errors.item[0].message, "a directory's entry"));
	assert_int_equal(check("{\"agents\": {\"claude\": {\"extends\": \"strict\"}}}"), 1);
	assert_int_equal(check("{\"agents\": {\"claude\": {\"env\": {\"pass\": [\"X\"]}}}, "
			       "\"projects\": {\"~/p\": {\"extends\": \"strict\"}}}"),
			 0);
}

static void entries_of_agents_and_projects_are_checked_all_the_way_down(void **state)
{
	(void)state;
	malformed("/projects/~0~1p/env/pass/0", "not the name",
		  "{\"projects\": {\"~/p\": {\"env\": {\"pass\": [\"1\"]}}}}");
	malformed("/projects/p", "neither absolute", "{\"projects\": {\"p\": {}}}");
	malformed("/agents/claude", "must be an object", "{\"agents\": {\"claude\": 1}}");
}

static void hostile_keys_are_shown_escaped_and_cut(void **state)
{
	char text[4096];

	(void)state;
	assert_int_equal(check("{\"\\u001b[2J\\n\": 1}"), 1);
	assert_null(strchr(errors.item[0].message, '\x1b'));
	assert_null(strchr(errors.item[0].pointer, '\n'));
	memset(text, 'k', sizeof(text));
	memcpy(text, "{\"", 2);
	memcpy(text + sizeof(text) - 8, "\":1}", sizeof("\":1}"));
	assert_int_equal(check(text), 1);
}

static int attempt(void *state)
{
	struct aw_policy_errors none = { 0 };
	static const char text[] =
		"{\"capabilities\": {\"file_system\": {\"deny_paths\": [\"/workspace/a\"], "
		"\"mounts\": [{\"host\": \"~/d\", \"at\": \"/data\"}]}, "
		"\"network\": {\"allowed_domains\": [\"a.com\"]}}, "
		"\"agents\": {\"x\": {}}, \"projects\": {\"~/p\": {\"allow_degraded\": [\"limits\"]}}}";
	int r = aw_policy_check(AW_STR(text), AW_NET_LAYER_USER, "p", "/home/u", &none, &err);

	(void)state;
	assert_int_equal(none.count, 0);
	return r;
}

static void every_failing_allocation_is_told(void **state)
{
	(void)state;
	spare_jansson();
	assert_true(aw_torture(attempt, NULL) > 15);
}

#define TEST(name) cmocka_unit_test_teardown(name, forget)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_four_layer_object_is_understood_key_by_key),
		TEST(every_key_of_the_manual_is_known_and_what_is_not_enforced_is_named),
		TEST(what_asks_for_nothing_special_is_accepted),
		TEST(each_key_without_enforcement_is_refused_by_name),
		TEST(unknown_keys_are_errors_with_a_suggestion),
		TEST(wrong_types_and_bounds_are_errors),
		TEST(domains_are_checked_where_they_stand),
		TEST(paths_are_of_the_workspace_and_plain),
		TEST(mounts_bring_in_no_part_that_opens_the_host),
		TEST(all_errors_come_at_once_with_line_and_column),
		TEST(a_text_that_is_no_object_or_no_json_has_one_error),
		TEST(who_may_write_a_key_is_part_of_the_table),
		TEST(entries_of_agents_and_projects_are_checked_all_the_way_down),
		TEST(hostile_keys_are_shown_escaped_and_cut),
		TEST(every_failing_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
