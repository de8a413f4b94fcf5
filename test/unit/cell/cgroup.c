/* A group in directories of the test's own; a real one is for test/vm. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cell/cgroup-internal.h"
#include "support/place.h"

static struct aw_error err;

static void a_group_is_wanted_for_any_limit(void **state)
{
	(void)state;
	for (unsigned i = 0; i < AW_CGROUP_LIMITS; i++) {
		struct aw_cgroup_limits limits = { .device = 1 };

		assert_false(aw_cgroup_is_wanted(&limits));
		limits.of[i] = 1;
		assert_true(aw_cgroup_is_wanted(&limits));
	}
}

/* Where a write cannot be had at all, only the directories' names are at work here. */
static struct aw_cgroup group_at(const char *dir, unsigned version)
{
	struct aw_cgroup group = AW_CGROUP_INIT;

	group.version = version;
	group.dir_count = 1;
	(void)snprintf(group.dirs[0], sizeof(group.dirs[0]), "%s", dir);
	return group;
}

static void freezes_and_kills_by_the_group_s_files(void **state)
{
	struct place *place = *state;
	struct aw_cgroup group = group_at(place->path, 2);

	assert_int_equal(aw_cgroup_freeze(&group, true), -ENOTSUP);
	place_file(place, "cgroup.freeze", "");
	place_file(place, "cgroup.kill", "");
	assert_int_equal(aw_cgroup_freeze(&group, true), 0);
	assert_string_equal(place_read(place, "cgroup.freeze"), "1");
	aw_cgroup_kill(&group);
	assert_string_equal(place_read(place, "cgroup.kill"), "1");
}

static void killing_on_version_1_is_thawing(void **state)
{
	struct place *place = *state;
	struct aw_cgroup group = group_at(place->path, 1);

	place_file(place, "freezer.state", "");
	assert_int_equal(aw_cgroup_freeze(&group, true), 0);
	assert_string_equal(place_read(place, "freezer.state"), "FROZEN");
	aw_cgroup_kill(&group);
	assert_string_equal(place_read(place, "freezer.state"), "THAWED");
}

static void joins_every_hierarchy_of_version_1(void **state)
{
	struct place *place = *state;
	struct aw_cgroup group = group_at(place_dir(place, "memory"), 1);

	(void)snprintf(group.dirs[1], sizeof(group.dirs[1]), "%s", place_dir(place, "cpu"));
	group.dir_count = 2;
	place_file(place, "memory/cgroup.procs", "");
	assert_int_equal(aw_cgroup_join(&group, 4242, &err), -ENOENT);
	place_file(place, "cpu/cgroup.procs", "");
	assert_int_equal(aw_cgroup_join(&group, 4242, &err), 0);
	assert_string_equal(place_read(place, "memory/cgroup.procs"), "4242");
	assert_string_equal(place_read(place, "cpu/cgroup.procs"), "4242");
}

static void removes_the_group_and_a_parent_that_is_empty(void **state)
{
	struct place *place = *state;
	struct aw_cgroup group = group_at(place_dir(place, "warden/a"), 2);

	place_dir(place, "warden/b");
	aw_cgroup_remove(&group);
	assert_false(place_has(place, "warden/a"));
	assert_true(place_has(place, "warden/b"));
	assert_int_equal(group.version, 0);
	group = group_at(place_at(place, "warden/b"), 2);
	aw_cgroup_remove(&group);
	assert_false(place_has(place, "warden"));
}

static void leaves_a_scope_to_systemd(void **state)
{
	struct place *place = *state;
	struct aw_cgroup group = group_at(place_dir(place, "app.slice/warden-a.scope"), 2);

	group.is_scope = true;
	aw_cgroup_remove(&group);
	assert_true(place_has(place, "app.slice/warden-a.scope"));
	assert_int_equal(group.dir_count, 0);
}

static void only_the_limit_on_io_needs_a_disk(void **state)
{
	struct aw_cgroup group = AW_CGROUP_INIT;

	(void)state;
	group.limits.device = (259 << 8) | 3; /* as makedev(3) puts it */
	assert_int_equal(aw_cgroup_check_disk(&group, AW_CGROUP_MEMORY, &err), 0);
	assert_int_equal(aw_cgroup_check_disk(&group, AW_CGROUP_IO, &err), -ENOTSUP);
	assert_non_null(strstr(err.message, "259:3"));
	(void)snprintf(group.node, sizeof(group.node), "/dev/nvme0n1");
	assert_int_equal(aw_cgroup_check_disk(&group, AW_CGROUP_IO, &err), 0);
}

static void keeps_the_first_reason(void **state)
{
	struct aw_cgroup_missing missing = { 0 };

	(void)state;
	(void)(aw_refuse)(&err, ENOTSUP, "first");
	aw_cgroup_miss(&missing, AW_CGROUP_CPU, &err);
	(void)(aw_refuse)(&err, ENOTSUP, "second");
	aw_cgroup_miss(&missing, AW_CGROUP_IO, &err);
	assert_int_equal(missing.limits, 1U << AW_CGROUP_CPU | 1U << AW_CGROUP_IO);
	assert_string_equal(missing.why.message, "first");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_group_is_wanted_for_any_limit),
		IN_PLACE(freezes_and_kills_by_the_group_s_files),
		IN_PLACE(killing_on_version_1_is_thawing),
		IN_PLACE(joins_every_hierarchy_of_version_1),
		IN_PLACE(removes_the_group_and_a_parent_that_is_empty),
		IN_PLACE(leaves_a_scope_to_systemd),
		cmocka_unit_test(only_the_limit_on_io_needs_a_disk),
		cmocka_unit_test(keeps_the_first_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
