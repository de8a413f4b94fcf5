#include <sodium/crypto_hash_sha256.h>

#include "policy-support.h"

static struct aw_policy *policy;
static struct aw_buf out = AW_BUF_INIT(1 << 20);

static int drop(void **state)
{
	(void)state;
	aw_policy_drop(&policy);
	aw_buf_fini(&out);
	return 0;
}

static const char *shown(const struct texts *texts, bool with_origins)
{
	aw_policy_drop(&policy);
	out.len = 0;
	policy = policy_good(texts);
	assert_int_equal(aw_policy_show(policy, with_origins, &out), 0);
	return aw_buf_text(&out);
}

static const struct texts rich = {
	.user = "{\"extends\": \"strict\", \"capabilities\": {\"file_system\": "
		"{\"read_paths\": [\"/workspace/in\"], \"write_paths\": [\"/workspace/o\\\"ut\"], "
		"\"deny_paths\": [\"/workspace/in/\\u0001\\u00e9\"], "
		"\"mounts\": [{\"host\": \"~/d\", \"at\": \"/d\", \"mode\": \"rw\"}]},\n"
		"\"network\": {\"allowed_domains\": [\"*.b.com:22\", \"a.com\", \"db.corp\"], "
		"\"allow_private\": [\"db.corp\"], \"denied_domains\": [\"x.b.com\"], "
		"\"blocked_ports\": [25]}, "
		"\"code_execution\": {\"max_cpus\": 0.25}}, \"env\": {\"pass\": [\"LANG\"]}, "
		"\"allow_degraded\": [\"limits\", \"canary.home\"]}",
};

static void the_effective_policy_is_a_policy(void **state)
{
	struct aw_policy_errors errors = { 0 };
	struct aw_error err;
	const char *text = shown(&rich, false);

	(void)state;
	if (aw_policy_check(aw_str_from(text), AW_NET_LAYER_USER, "p", "/home/u", &errors, &err) <
	    0)
		fail_msg("%s: %s", errors.item[0].pointer, errors.item[0].message);
	text = shown(&rich, true);
	assert_non_null(strstr(text, "// user policy /home/u/policy.json:2"));
	assert_int_equal(aw_policy_check(aw_str_from(text), AW_NET_LAYER_USER, "p", "/home/u",
					 &errors, &err),
			 0);
}

static void read_again_it_gives_the_same_policy(void **state)
{
	autofree char *first = strdup(shown(&rich, false));
	char digest[AW_POLICY_DIGEST_HEX];
	const struct texts again = { .user = first };

	(void)state;
	memcpy(digest, policy->digest_hex, sizeof(digest));
	assert_string_equal(shown(&again, false), first);
	assert_string_equal(policy->digest_hex, digest);
}

static void the_digest_is_of_exactly_what_is_shown(void **state)
{
	const char *text = shown(&rich, false);
	unsigned char digest[32];

	(void)state;
	(void)crypto_hash_sha256(digest, (const unsigned char *)text, strlen(text));
	assert_memory_equal(digest, policy->digest, sizeof(digest));
	assert_int_equal(strlen(policy->digest_hex), 64);
}

static void the_order_in_which_names_were_written_does_not_matter(void **state)
{
	const struct texts one = { .user = "{\"capabilities\": {\"network\": {\"allowed_domains\": "
					   "[\"a.example\", \"b.example\"]}}}" };
	const struct texts two = { .user = "{\"capabilities\": {\"network\": {\"allowed_domains\": "
					   "[\"b.example\", \"a.example\", \"b.example\"]}}}" };
	char digest[AW_POLICY_DIGEST_HEX];

	(void)state;
	(void)shown(&one, false);
	memcpy(digest, policy->digest_hex, sizeof(digest));
	(void)shown(&two, false);
	assert_string_equal(policy->digest_hex, digest);
}

static void every_part_of_the_policy_is_in_the_digest(void **state)
{
	static const char *const changes[] = {
		"{\"extends\": \"strict\"}",
		"{\"allow_degraded\": [\"landlock\"]}",
		"{\"env\": {\"pass\": [\"X\"]}}",
		"{\"capabilities\": {\"network\": {\"allowed_domains\": [\"x.example\"]}}}",
		"{\"capabilities\": {\"network\": {\"denied_domains\": [\"x.example\"]}}}",
		"{\"capabilities\": {\"network\": {\"allowed_ports\": [1]}}}",
		"{\"capabilities\": {\"network\": {\"blocked_ports\": [1]}}}",
		"{\"capabilities\": {\"network\": {\"allow_private\": [\"pypi.org\"]}}}",
		"{\"capabilities\": {\"network\": {\"offline\": true}}}",
		"{\"capabilities\": {\"code_execution\": {\"max_io_mb_s\": 1}}}",
		"{\"capabilities\": {\"code_execution\": {\"max_cpus\": 0.5}}}",
		"{\"capabilities\": {\"file_system\": {\"write_paths\": []}}}",
		"{\"capabilities\": {\"file_system\": {\"deny_paths\": [\"/workspace/x\"]}}}",
		"{\"capabilities\": {\"file_system\": {\"mounts\": [{\"host\": \"/srv/x\"}]}}}",
		"{\"capabilities\": {\"file_system\": {\"protect\": [\"git\"]}}}",
		"{}",
	};
	char digests[AW_ARRAY_LEN(changes)][AW_POLICY_DIGEST_HEX];

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(changes); i++) {
		const struct texts texts = { .user = changes[i] };

		(void)shown(&texts, false);
		memcpy(digests[i], policy->digest_hex, sizeof(digests[i]));
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(digests[i], digests[j]);
	}
}

static void origins_name_file_and_line_or_what_it_was(void **state)
{
	static const char *const allow[] = { "cli.example", NULL };
	struct texts texts = {
		.user = "{\n\"capabilities\": {\"network\": {\"allowed_domains\": [\n"
			"\"user.example\"]}}}",
		.sources.command.allow = allow
	};
	const char *text = shown(&texts, true);

	(void)state;
	assert_non_null(strstr(text, "\"cli.example\", // command line\n"));
	assert_non_null(strstr(text, "\"user.example\" // user policy /home/u/policy.json:3\n"));
	assert_non_null(strstr(text, "// preset balanced:"));
	assert_non_null(strstr(text, "\"max_processes\": 4096, // preset balanced:"));
}

static void what_does_not_fit_is_told(void **state)
{
	struct aw_buf small = AW_BUF_INIT(64);

	(void)state;
	(void)shown(&rich, false);
	assert_int_equal(aw_policy_show(policy, false, &small), -ENOBUFS);
	aw_buf_fini(&small);
}

static void names_of_bits_limits_and_presets_end_in_null(void **state)
{
	(void)state;
	assert_string_equal(aw_policy_protect_text(0), "git");
	assert_int_equal(1u << 5, AW_PROTECT_ALL + 1);
	assert_string_equal(aw_policy_protect_text(4), "shell");
	assert_null(aw_policy_protect_text(5));
	assert_string_equal(aw_policy_degraded_text(0), "limits");
	assert_int_equal(AW_DEGRADED_CANARY_WORKSPACE, 1 << 5);
	assert_string_equal(aw_policy_degraded_text(5), "canary.workspace");
	assert_null(aw_policy_degraded_text(6));
	assert_string_equal(aw_policy_limit_key(AW_LIMIT_MEMORY_MB), "max_memory_mb");
	assert_null(aw_policy_limit_key(AW_LIMIT_COUNT));
	assert_null(aw_policy_preset_name(4));
}

#define TEST(name) cmocka_unit_test_teardown(name, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_effective_policy_is_a_policy),
		TEST(read_again_it_gives_the_same_policy),
		TEST(the_digest_is_of_exactly_what_is_shown),
		TEST(the_order_in_which_names_were_written_does_not_matter),
		TEST(every_part_of_the_policy_is_in_the_digest),
		TEST(origins_name_file_and_line_or_what_it_was),
		TEST(what_does_not_fit_is_told),
		TEST(names_of_bits_limits_and_presets_end_in_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
