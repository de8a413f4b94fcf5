#include "cli/run-line.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"

#define WORDS_MAX (2 * AW_RUN_LIST_MAX + 8)
/* Words as a shell would hand them over. */
#define PARSE(...) parse(false, (const char *[]){ __VA_ARGS__, NULL })
#define PARSE_SHORT(...) parse(true, (const char *[]){ __VA_ARGS__, NULL })
#define REFUSED(...) refused(false, (const char *[]){ __VA_ARGS__, NULL })
#define REFUSED_SHORT(...) refused(true, (const char *[]){ __VA_ARGS__, NULL })
#define assert_words(list, ...) check_words(list, (const char *[]){ __VA_ARGS__, NULL })

static bool is_in(const char *name, const char *const *list)
{
	for (; *list != NULL; list++)
		if (strcmp(name, *list) == 0)
			return true;
	return false;
}

/* "both" is an agent and a directory. */
static bool is_agent(void *data, const char *name)
{
	static const char *const agents[] = { "claude", "codex", "both", NULL };

	(void)data;
	return is_in(name, agents);
}

static bool is_dir(void *data, const char *name)
{
	static const char *const dirs[] = { "project", "other", "both", NULL };

	(void)data;
	return is_in(name, dirs);
}

static const struct aw_run_probe probe = { is_agent, is_dir, NULL };
static struct aw_run_line line;
static struct aw_error err;

static int try_parse(bool is_short, const char **words)
{
	err.message[0] = '\0';
	return aw_run_line_parse((char *const *)(uintptr_t)words, is_short, &probe, &line, &err);
}

static const struct aw_run_line *parse(bool is_short, const char **words)
{
	/* The result points into the words: they must outlive this call. */
	static const char *kept[WORDS_MAX];
	size_t n = 0;

	for (; words[n] != NULL; n++)
		kept[n] = words[n];
	kept[n] = NULL;
	if (try_parse(is_short, kept) < 0)
		fail_msg("%s", err.message);
	return &line;
}

static const char *refused(bool is_short, const char **words)
{
	assert_int_equal(try_parse(is_short, words), -EINVAL);
	assert_true(strlen(err.message) > 0);
	return err.message;
}

static void check_words(const char *const *got, const char *const *wanted)
{
	assert_non_null(got);
	for (; *wanted != NULL; got++, wanted++) {
		assert_non_null(*got);
		assert_string_equal(*got, *wanted);
	}
	assert_null(*got);
}

static const char *const *words_of(char *const *command)
{
	return (const char *const *)(uintptr_t)command;
}

static void nothing_at_all_means_the_current_directory_and_the_default_agent(void **state)
{
	const char *none[] = { NULL };

	(void)state;
	assert_int_equal(try_parse(false, none), 0);
	assert_null(line.run.dir);
	assert_null(line.run.agent);
	assert_null(line.run.command);
	assert_int_equal(line.live.status_fd, -EBADF);
	assert_null(line.unenforced);
}

static void a_directory_and_an_agent_are_told_apart(void **state)
{
	const struct aw_run_line *l = PARSE("./my-project", "claude");

	(void)state;
	assert_string_equal(l->run.dir, "./my-project");
	assert_string_equal(l->run.agent, "claude");
	assert_null(*l->run.command);
}

static void an_agent_alone_runs_in_the_current_directory(void **state)
{
	const struct aw_run_line *l = PARSE("claude");

	(void)state;
	assert_null(l->run.dir);
	assert_string_equal(l->run.agent, "claude");
}

static void a_directory_alone_leaves_the_agent_open(void **state)
{
	const struct aw_run_line *l = PARSE("project");

	(void)state;
	assert_string_equal(l->run.dir, "project");
	assert_null(l->run.agent);
	assert_null(l->run.command);
}

static void a_word_with_a_slash_or_dots_is_a_directory_whatever_there_is(void **state)
{
	static const char *const dirs[] = { ".", "..", "./claude", "a/b", "/tmp/x", "claude/" };

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(dirs); i++) {
		const struct aw_run_line *l = PARSE(dirs[i]);

		assert_string_equal(l->run.dir, dirs[i]);
		assert_null(l->run.agent);
	}
}

static void a_word_that_is_both_is_refused_with_both_spellings(void **state)
{
	const char *told = REFUSED("both");

	(void)state;
	assert_non_null(strstr(told, "./both"));
	assert_non_null(strstr(told, ". both"));
}

static void behind_a_directory_a_word_that_is_both_is_the_agent(void **state)
{
	const struct aw_run_line *l = PARSE("project", "both");

	(void)state;
	assert_string_equal(l->run.dir, "project");
	assert_string_equal(l->run.agent, "both");
}

static void a_word_that_is_neither_is_refused(void **state)
{
	(void)state;
	assert_non_null(strstr(REFUSED("nothing"), "neither a directory nor an agent"));
	assert_non_null(strstr(REFUSED("project", "nothing"), "no agent"));
	assert_non_null(strstr(REFUSED("project", "other"), "no agent"));
}

static void what_follows_an_agent_is_its_own(void **state)
{
	const struct aw_run_line *l = PARSE(".", "claude", "-p", "--offline", "--", "x");

	(void)state;
	assert_words(words_of(l->run.command), "-p", "--offline", "--", "x");
	assert_false(l->run.policy.is_offline);
}

static void one_pair_of_dashes_directly_behind_an_agent_is_dropped(void **state)
{
	(void)state;
	assert_words(words_of(PARSE("claude", "--", "-c", "x")->run.command), "-c", "x");
	assert_words(words_of(PARSE("claude", "--", "--", "x")->run.command), "--", "x");
	assert_null(*PARSE("claude", "--")->run.command);
}

static void dashes_begin_a_command(void **state)
{
	const struct aw_run_line *l = PARSE("project", "--", "make", "-j2", "--", "test");

	(void)state;
	assert_string_equal(l->run.dir, "project");
	assert_null(l->run.agent);
	assert_words(words_of(l->run.command), "make", "-j2", "--", "test");
	assert_words(words_of(PARSE("--", "claude")->run.command), "claude");
	assert_null(PARSE("--", "claude")->run.agent);
}

static void dashes_without_a_command_are_refused(void **state)
{
	(void)state;
	assert_non_null(strstr(REFUSED("project", "--"), "needs a command"));
}

static void without_the_verb_a_command_or_an_agent_may_stand_alone(void **state)
{
	const struct aw_run_line *l = PARSE_SHORT("--offline", "--", "ls");

	(void)state;
	assert_true(l->run.policy.is_offline);
	assert_words(words_of(l->run.command), "ls");
	assert_string_equal(PARSE_SHORT("codex", "exec", "x")->run.agent, "codex");
}

static void c_with_a_string_is_a_line_for_the_shell(void **state)
{
	const struct aw_run_line *l = PARSE_SHORT("-q", "-c", "echo $HOME; ls");

	(void)state;
	assert_words(words_of(l->run.command), "/bin/bash", "-c", "echo $HOME; ls");
	assert_null(l->run.agent);
	assert_null(l->run.dir);
}

static void c_takes_exactly_one_string_and_only_without_the_verb(void **state)
{
	(void)state;
	assert_non_null(strstr(REFUSED_SHORT("-c"), "one string"));
	assert_non_null(strstr(REFUSED_SHORT("-c", "a", "b"), "one string"));
	assert_non_null(strstr(REFUSED("-c", "a"), "unknown option"));
}

static void options_may_stand_before_and_behind_the_directory(void **state)
{
	const struct aw_run_line *l = PARSE("-q", "project", "--offline", "claude");

	(void)state;
	assert_true(l->live.is_quiet);
	assert_true(l->run.policy.is_offline);
	assert_string_equal(l->run.dir, "project");
	assert_string_equal(l->run.agent, "claude");
}

static void a_value_follows_as_a_word_behind_an_equals_sign_or_a_letter(void **state)
{
	(void)state;
	assert_string_equal(PARSE("--policy", "f", ".")->run.policy_file, "f");
	assert_string_equal(PARSE("--policy=f=g", ".")->run.policy_file, "f=g");
	assert_string_equal(PARSE("-s", "f", ".")->run.policy_file, "f");
	assert_string_equal(PARSE("-sf", ".")->run.policy_file, "f");
	/* A value may look like an option, as with getopt_long(3). */
	assert_string_equal(PARSE("--profile", "-x", ".")->run.profile, "-x");
}

static void every_flag_sets_its_own(void **state)
{
	const struct aw_run_line *l = PARSE("--no-profile", "--ephemeral", "--allow-secrets",
					    "--dry-run", "--json", "--verbose", "--offline", "-q");

	(void)state;
	assert_true(l->run.no_profile && l->run.is_ephemeral && l->run.allow_secrets);
	assert_true(l->is_dry && l->wants_json && l->live.is_verbose && l->live.is_quiet);
	assert_true(l->run.policy.is_offline);
	l = PARSE(".");
	assert_false(l->run.no_profile || l->run.is_ephemeral || l->run.allow_secrets);
	assert_false(l->is_dry || l->wants_json || l->live.is_verbose || l->live.is_quiet);
	assert_false(l->run.policy.is_offline || l->run.is_login);
}

static void every_value_lands_where_it_belongs(void **state)
{
	const struct aw_run_line *l = PARSE("-p", "codex", "--env-file", "keys", "-m", "2g", "-t",
					    "5m", "--max-processes", "77", "--cpus", "1.5",
					    "--status-fd", "3", "--runtime", "native", "project");

	(void)state;
	assert_string_equal(l->run.profile, "codex");
	assert_string_equal(l->run.env_file, "keys");
	assert_int_equal(l->run.policy.limit[AW_LIMIT_MEMORY_MB], 2048);
	assert_int_equal(l->run.policy.limit[AW_LIMIT_TIME_S], 300);
	assert_int_equal(l->run.policy.limit[AW_LIMIT_PROCESSES], 77);
	assert_int_equal(l->run.policy.limit[AW_LIMIT_CPU_MILLI], 1500);
	assert_int_equal(l->live.status_fd, 3);
	assert_null(l->unenforced);
	assert_string_equal(l->run.dir, "project");
}

static void lists_keep_every_value_in_its_order(void **state)
{
	const struct aw_run_line *l =
		PARSE("--allow", "a.com", "--allow=b.com:22", "--deny", "c.com", "--ro", "/a",
		      "--rw", "/b", "--env", "A", "--env", "B");

	(void)state;
	assert_words(l->run.policy.allow, "a.com", "b.com:22");
	assert_words(l->run.policy.deny, "c.com");
	assert_words(l->run.policy.mount_ro, "/a");
	assert_words(l->run.policy.mount_rw, "/b");
	assert_words(l->run.policy.env, "A", "B");
	assert_null(PARSE(".")->run.policy.allow[0]);
}

static void a_list_is_bounded(void **state)
{
	const char *words[WORDS_MAX];
	size_t n = 0;

	(void)state;
	for (; n < AW_RUN_LIST_MAX; n++)
		words[n] = "--allow=a.com";
	words[n] = NULL;
	assert_int_equal(try_parse(false, words), 0);
	assert_string_equal(line.run.policy.allow[AW_RUN_LIST_MAX - 1], "a.com");
	words[n] = "--allow=a.com";
	words[n + 1] = NULL;
	assert_non_null(strstr(refused(false, words), "64 times"));
}

static void a_missing_or_empty_value_is_refused(void **state)
{
	(void)state;
	assert_non_null(strstr(REFUSED("--allow"), "--allow needs"));
	assert_non_null(strstr(REFUSED("--allow="), "--allow needs"));
	assert_non_null(strstr(REFUSED("-m"), "--memory needs"));
	assert_non_null(strstr(REFUSED("--policy", ""), "--policy needs"));
}

static void a_value_for_a_flag_is_refused(void **state)
{
	(void)state;
	assert_non_null(strstr(REFUSED("--offline=yes"), "takes no value"));
	assert_non_null(strstr(REFUSED("-qv"), "takes no value"));
}

static void an_unknown_or_cut_off_option_is_refused(void **state)
{
	static const char *const unknown[] = { "--offlin", "--offliner", "-x", "--=x" };

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(unknown); i++)
		assert_non_null(strstr(REFUSED(unknown[i]), "unknown option"));
	assert_non_null(strstr(REFUSED("-"), "neither a directory nor an agent"));
}

static void a_number_out_of_its_range_is_refused_with_the_range(void **state)
{
	(void)state;
	assert_non_null(strstr(REFUSED("--status-fd", "-1"), "whole number"));
	assert_non_null(strstr(REFUSED("--status-fd", "9999999"), "up to 1048576"));
	assert_non_null(strstr(REFUSED("--max-processes", "many"), "whole number"));
	assert_non_null(strstr(REFUSED("--max-processes", "4194305"), "up to 4194304"));
	assert_non_null(strstr(REFUSED("-m", "4gb"), "512m or 4g"));
	assert_non_null(strstr(REFUSED("-t", "1d"), "90, 5m or 2h"));
	assert_non_null(strstr(REFUSED("--cpus", "0"), "1.5"));
}

static void what_this_version_cannot_keep_is_remembered_by_name(void **state)
{
	(void)state;
	assert_string_equal(PARSE("--cow", ".")->unenforced, "cow");
	assert_string_equal(PARSE("--publish", "3000", ".")->unenforced, "publish");
	assert_string_equal(PARSE("--host-port=11434", ".")->unenforced, "host-port");
	assert_string_equal(PARSE("--rootfs", "/x", ".")->unenforced, "rootfs");
	assert_string_equal(PARSE("--model", "m.json", ".")->unenforced, "model");
	assert_string_equal(PARSE("--runtime", "runsc", ".")->unenforced, "runtime");
}

static void sizes_are_in_mebibytes_unless_they_say_gibi(void **state)
{
	uint64_t mib = 0;

	(void)state;
	assert_int_equal(aw_run_line_size("512m", &mib), 0);
	assert_int_equal(mib, 512);
	assert_int_equal(aw_run_line_size("4g", &mib), 0);
	assert_int_equal(mib, 4096);
	assert_int_equal(aw_run_line_size("1G", &mib), 0);
	assert_int_equal(mib, 1024);
	assert_int_equal(aw_run_line_size("800", &mib), 0);
	assert_int_equal(mib, 800);
}

static void durations_are_in_seconds_unless_they_say_more(void **state)
{
	uint64_t s = 0;

	(void)state;
	assert_int_equal(aw_run_line_duration("90", &s), 0);
	assert_int_equal(s, 90);
	assert_int_equal(aw_run_line_duration("90s", &s), 0);
	assert_int_equal(s, 90);
	assert_int_equal(aw_run_line_duration("5m", &s), 0);
	assert_int_equal(s, 300);
	assert_int_equal(aw_run_line_duration("2h", &s), 0);
	assert_int_equal(s, 7200);
}

static void cpus_have_up_to_three_decimals(void **state)
{
	uint64_t milli = 0;

	(void)state;
	assert_int_equal(aw_run_line_cpus("1.5", &milli), 0);
	assert_int_equal(milli, 1500);
	assert_int_equal(aw_run_line_cpus("2", &milli), 0);
	assert_int_equal(milli, 2000);
	assert_int_equal(aw_run_line_cpus("0.125", &milli), 0);
	assert_int_equal(milli, 125);
	assert_int_equal(aw_run_line_cpus("0.05", &milli), 0);
	assert_int_equal(milli, 50);
}

static void what_is_no_measure_is_refused(void **state)
{
	static const char *const bad[] = { "",
					   "0",
					   "m",
					   "-1",
					   "1 m",
					   "1.5m",
					   "0x10",
					   "1mm",
					   "1.m",
					   "+1",
					   "18446744073709551616" };
	static const char *const bad_cpus[] = { "",       "0",   "0.000", ".5", "1.",
						"1.2345", "1,5", "1.5.5", "-1", "4097" };
	uint64_t value = 42;

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(bad); i++) {
		assert_int_equal(aw_run_line_size(bad[i], &value), -EINVAL);
		assert_int_equal(aw_run_line_duration(bad[i], &value), -EINVAL);
	}
	assert_int_equal(value, 42);
	for (size_t i = 0; i < AW_ARRAY_LEN(bad_cpus); i++)
		assert_int_equal(aw_run_line_cpus(bad_cpus[i], &value), -EINVAL);
	/* What would overflow when it is scaled. */
	assert_int_equal(aw_run_line_size("18446744073709551615g", &value), -EINVAL);
	assert_int_equal(aw_run_line_duration("18446744073709551615h", &value), -EINVAL);
}

static void the_help_names_every_option_of_this_version_once(void **state)
{
	char text[200], all[8192] = "";
	size_t count = 0;

	(void)state;
	for (; aw_run_line_help(count, text, sizeof(text)); count++) {
		assert_true(strlen(all) + strlen(text) + 2 < sizeof(all));
		(void)strncat(all, text, sizeof(all) - strlen(all) - 1);
		(void)strncat(all, "\n", sizeof(all) - strlen(all) - 1);
	}
	assert_int_equal(count, 22);
	assert_non_null(strstr(all, "-s, --policy FILE"));
	assert_non_null(strstr(all, "    --allow DOMAIN[:PORT]"));
	assert_non_null(strstr(all, "-q, --quiet "));
	assert_null(strstr(all, "--cow"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_at_all_means_the_current_directory_and_the_default_agent),
		cmocka_unit_test(a_directory_and_an_agent_are_told_apart),
		cmocka_unit_test(an_agent_alone_runs_in_the_current_directory),
		cmocka_unit_test(a_directory_alone_leaves_the_agent_open),
		cmocka_unit_test(a_word_with_a_slash_or_dots_is_a_directory_whatever_there_is),
		cmocka_unit_test(a_word_that_is_both_is_refused_with_both_spellings),
		cmocka_unit_test(behind_a_directory_a_word_that_is_both_is_the_agent),
		cmocka_unit_test(a_word_that_is_neither_is_refused),
		cmocka_unit_test(what_follows_an_agent_is_its_own),
		cmocka_unit_test(one_pair_of_dashes_directly_behind_an_agent_is_dropped),
		cmocka_unit_test(dashes_begin_a_command),
		cmocka_unit_test(dashes_without_a_command_are_refused),
		cmocka_unit_test(without_the_verb_a_command_or_an_agent_may_stand_alone),
		cmocka_unit_test(c_with_a_string_is_a_line_for_the_shell),
		cmocka_unit_test(c_takes_exactly_one_string_and_only_without_the_verb),
		cmocka_unit_test(options_may_stand_before_and_behind_the_directory),
		cmocka_unit_test(a_value_follows_as_a_word_behind_an_equals_sign_or_a_letter),
		cmocka_unit_test(every_flag_sets_its_own),
		cmocka_unit_test(every_value_lands_where_it_belongs),
		cmocka_unit_test(lists_keep_every_value_in_its_order),
		cmocka_unit_test(a_list_is_bounded),
		cmocka_unit_test(a_missing_or_empty_value_is_refused),
		cmocka_unit_test(a_value_for_a_flag_is_refused),
		cmocka_unit_test(an_unknown_or_cut_off_option_is_refused),
		cmocka_unit_test(a_number_out_of_its_range_is_refused_with_the_range),
		cmocka_unit_test(what_this_version_cannot_keep_is_remembered_by_name),
		cmocka_unit_test(sizes_are_in_mebibytes_unless_they_say_gibi),
		cmocka_unit_test(durations_are_in_seconds_unless_they_say_more),
		cmocka_unit_test(cpus_have_up_to_three_decimals),
		cmocka_unit_test(what_is_no_measure_is_refused),
		cmocka_unit_test(the_help_names_every_option_of_this_version_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
