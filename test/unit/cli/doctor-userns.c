#include "cli/doctor.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"

/* An ordinary user of an ordinary host. */
static const struct aw_userns_facts ordinary = {
	.max_user_namespaces = 60000,
	.unprivileged_clone = -1,
	.apparmor_restricts = -1,
};

/* That host, with a chain that breaks at @step. */
static struct aw_userns_facts broken(enum aw_chain_step step, int code)
{
	struct aw_userns_facts facts = ordinary;

	for (size_t i = step; i < AW_CHAIN_STEPS; i++)
		facts.chain.code[i] = AW_CHAIN_NOT_TRIED;
	facts.chain.code[step] = code;
	return facts;
}

static void a_whole_chain_works_whatever_the_settings_say(void **state)
{
	struct aw_userns_facts facts = ordinary;

	(void)state;
	facts.apparmor_restricts = 1;
	facts.unprivileged_clone = 0;
	facts.is_filtered = true;
	assert_int_equal(aw_doctor_judge_userns(&facts), AW_USERNS_WORKS);
}

static void a_masked_proc_alone_is_no_fault_of_the_namespaces(void **state)
{
	struct aw_userns_facts facts = ordinary;

	(void)state;
	facts.chain.code[AW_CHAIN_PROC] = EPERM;
	assert_int_equal(aw_doctor_judge_userns(&facts), AW_USERNS_WORKS);
}

static void no_space_is_the_limit_of_namespaces(void **state)
{
	struct aw_userns_facts facts = broken(AW_CHAIN_CLONE, ENOSPC);

	(void)state;
	assert_int_equal(aw_doctor_judge_userns(&facts), AW_USERNS_USED_UP);
	facts.max_user_namespaces = 0;
	assert_int_equal(aw_doctor_judge_userns(&facts), AW_USERNS_LIMIT_ZERO);
	facts = broken(AW_CHAIN_NET, ENOSPC);
	assert_int_equal(aw_doctor_judge_userns(&facts), AW_USERNS_USED_UP);
}

static void the_switch_of_debian_forbids_only_the_clone_of_a_user(void **state)
{
	struct aw_userns_facts facts = broken(AW_CHAIN_CLONE, EPERM);

	(void)state;
	assert_int_equal(aw_doctor_judge_userns(&facts), AW_USERNS_OTHER);
	facts.unprivileged_clone = 0;
	assert_int_equal(aw_doctor_judge_userns(&facts), AW_USERNS_SWITCHED_OFF);
	facts.is_root = true;
	assert_int_equal(aw_doctor_judge_userns(&facts), AW_USERNS_OTHER);
}

static void rights_that_are_gone_after_the_clone_are_apparmors_doing(void **state)
{
	static const enum aw_chain_step steps[] = { AW_CHAIN_MAP, AW_CHAIN_TMPFS, AW_CHAIN_NET };
	static const int codes[] = { EPERM, EACCES };

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(steps) * AW_ARRAY_LEN(codes); i++) {
		struct aw_userns_facts facts =
			broken(steps[i % AW_ARRAY_LEN(steps)], codes[i / AW_ARRAY_LEN(steps)]);

		assert_int_equal(aw_doctor_judge_userns(&facts), AW_USERNS_OTHER);
		facts.apparmor_restricts = 0;
		assert_int_equal(aw_doctor_judge_userns(&facts), AW_USERNS_OTHER);
		facts.apparmor_restricts = 1;
		assert_int_equal(aw_doctor_judge_userns(&facts), AW_USERNS_APPARMOR);
	}
}

static void a_clone_that_a_containers_filter_denies_is_its_doing(void **state)
{
	static const int codes[] = { EPERM, ENOSYS };

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(codes); i++) {
		struct aw_userns_facts facts = broken(AW_CHAIN_CLONE, codes[i]);

		facts.is_filtered = true;
		facts.is_root = true;
		assert_int_equal(aw_doctor_judge_userns(&facts), AW_USERNS_FILTERED);
	}
}

static void a_call_that_is_unknown_without_a_filter_was_not_built(void **state)
{
	struct aw_userns_facts facts = broken(AW_CHAIN_CLONE, ENOSYS);

	(void)state;
	assert_int_equal(aw_doctor_judge_userns(&facts), AW_USERNS_NOT_BUILT);
	facts = broken(AW_CHAIN_CLONE, EINVAL);
	assert_int_equal(aw_doctor_judge_userns(&facts), AW_USERNS_NOT_BUILT);
	facts = broken(AW_CHAIN_TREE, ENOSYS);
	assert_int_equal(aw_doctor_judge_userns(&facts), AW_USERNS_NOT_BUILT);
}

/* Measure with a given chain on this host. */
static struct aw_doctor_finding measured(const struct aw_doctor_chain *chain)
{
	char dir[] = "/usr/bin";
	struct aw_host host = { .program_dir = dir };
	struct aw_doctor doctor = { .host = &host, .chain = *chain };
	struct aw_doctor_finding finding = { 0 };

	assert_true(aw_doctor_measure_userns(&doctor, &finding));
	return finding;
}

static void a_finding_names_the_step_its_error_and_a_fix(void **state)
{
	struct aw_userns_facts facts = broken(AW_CHAIN_TMPFS, ENOMEM);
	struct aw_doctor_finding finding = measured(&facts.chain);

	(void)state;
	assert_int_equal(finding.state, AW_DOCTOR_MISSING);
	assert_non_null(strstr(finding.value, "mount a tmpfs"));
	assert_non_null(strstr(finding.value, strerror(ENOMEM)));
	assert_true(strlen(finding.fix) > 0);
}

static void a_child_without_an_answer_is_never_ok(void **state)
{
	struct aw_userns_facts facts = broken(AW_CHAIN_TMPFS, AW_CHAIN_NOT_TRIED);

	(void)state;
	assert_int_equal(measured(&facts.chain).state, AW_DOCTOR_UNKNOWN);
	assert_int_equal(measured(&ordinary.chain).state, AW_DOCTOR_OK);
}

static void a_chain_ends_where_it_breaks(void **state)
{
	struct aw_doctor_chain chain;

	(void)state;
	aw_doctor_try_chain(&chain);
	assert_int_not_equal(chain.code[AW_CHAIN_CLONE], AW_CHAIN_NOT_TRIED);
	if (chain.code[AW_CHAIN_CLONE] == 0) {
		assert_int_not_equal(chain.code[AW_CHAIN_MAP], AW_CHAIN_NOT_TRIED);
		return;
	}
	for (size_t i = AW_CHAIN_MAP; i < AW_CHAIN_STEPS; i++)
		assert_int_equal(chain.code[i], AW_CHAIN_NOT_TRIED);
}

static void the_profile_covers_only_where_it_is_installed(void **state)
{
	char usr[] = "/usr/bin", local[] = "/usr/local/bin", build[] = "/home/u/warden/build";
	struct aw_host host = { .program_dir = usr };

	(void)state;
	assert_true(aw_doctor_profile_covers(&host));
	host.program_dir = local;
	assert_true(aw_doctor_profile_covers(&host));
	host.program_dir = build;
	assert_false(aw_doctor_profile_covers(&host));
	assert_null(aw_doctor_profile(&host));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_chain_works_whatever_the_settings_say),
		cmocka_unit_test(a_masked_proc_alone_is_no_fault_of_the_namespaces),
		cmocka_unit_test(no_space_is_the_limit_of_namespaces),
		cmocka_unit_test(the_switch_of_debian_forbids_only_the_clone_of_a_user),
		cmocka_unit_test(rights_that_are_gone_after_the_clone_are_apparmors_doing),
		cmocka_unit_test(a_clone_that_a_containers_filter_denies_is_its_doing),
		cmocka_unit_test(a_call_that_is_unknown_without_a_filter_was_not_built),
		cmocka_unit_test(a_finding_names_the_step_its_error_and_a_fix),
		cmocka_unit_test(a_child_without_an_answer_is_never_ok),
		cmocka_unit_test(a_chain_ends_where_it_breaks),
		cmocka_unit_test(the_profile_covers_only_where_it_is_installed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
