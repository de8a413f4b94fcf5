/* Single limits in a tree of the test's own: what the kernel makes of them is test/vm's business. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cell/cgroup-internal.h"
#include "support/place.h"

#define MIB (UINT64_C(1024) * 1024)

static struct aw_error err;

static const struct aw_cgroup_limits usual = {
	.of = {
		[AW_CGROUP_MEMORY] = 64 * MIB,
		[AW_CGROUP_PROCESSES] = 40,
		[AW_CGROUP_CPU] = 1500,
		[AW_CGROUP_IO] = 2 * MIB,
	},
	.device = (259 << 8) | 3, /* 259:3, as makedev(3) puts it */
};

/* The kernel takes the first line of what is written; a plain file of the test starts empty. */
static void writes(struct place *place, unsigned version, enum aw_cgroup_limit limit,
		   const char *file, const char *expected)
{
	place_file(place, file, "");
	assert_int_equal(aw_cgroup_write(version, place->path, &usual, limit, &err), 0);
	assert_string_equal(place_read(place, file), expected);
	assert_int_equal(aw_cgroup_measure(version, place->path, &usual, limit, &err), 0);
}

static void writes_the_limits_of_version_2(void **state)
{
	place_file(*state, "memory.swap.max", "");
	writes(*state, 2, AW_CGROUP_MEMORY, "memory.max", "67108864");
	assert_string_equal(place_read(*state, "memory.swap.max"), "0");
	writes(*state, 2, AW_CGROUP_PROCESSES, "pids.max", "40");
	writes(*state, 2, AW_CGROUP_CPU, "cpu.max", "150000 100000");
	writes(*state, 2, AW_CGROUP_IO, "io.max", "259:3 rbps=2097152 wbps=2097152");
}

static void writes_the_limits_of_version_1(void **state)
{
	place_file(*state, "memory.memsw.limit_in_bytes", "");
	writes(*state, 1, AW_CGROUP_MEMORY, "memory.limit_in_bytes", "67108864");
	assert_string_equal(place_read(*state, "memory.memsw.limit_in_bytes"), "67108864");
	writes(*state, 1, AW_CGROUP_PROCESSES, "pids.max", "40");
	writes(*state, 1, AW_CGROUP_CPU, "cpu.cfs_quota_us", "150000");
	assert_null(aw_cgroup_controller(1, AW_CGROUP_IO));
}

static void a_missing_file_is_no_limit(void **state)
{
	struct place *place = *state;

	for (unsigned i = 0; i < AW_CGROUP_LIMITS; i++) {
		assert_int_equal(aw_cgroup_write(2, place->path, &usual, i, &err), -ENOENT);
		assert_int_equal(aw_cgroup_measure(2, place->path, &usual, i, &err), -ENOENT);
	}
}

static bool host_has_swap(void)
{
	FILE *file = fopen("/proc/swaps", "re");
	int lines = 0, c;

	if (file == NULL)
		return false;
	while ((c = getc(file)) != EOF)
		lines += c == '\n';
	(void)fclose(file);
	return lines > 1;
}

static void swap_may_be_unlimited_only_where_there_is_none(void **state)
{
	struct place *place = *state;

	place_file(place, "memory.max", "");
	assert_int_equal(aw_cgroup_write(2, place->path, &usual, AW_CGROUP_MEMORY, &err),
			 host_has_swap() ? -ENOTSUP : 0);
	place_file(place, "memory.swap.max", "max\n");
	assert_int_equal(aw_cgroup_measure(2, place->path, &usual, AW_CGROUP_MEMORY, &err),
			 -ENOTSUP);
}

struct reading {
	unsigned version;
	enum aw_cgroup_limit limit;
	const char *file, *content;
	int expected;
};

static void reads_back_what_is_in_force(void **state)
{
	static const struct reading readings[] = {
		{ 2, AW_CGROUP_MEMORY, "memory.max", "67108864\n", 0 },
		{ 2, AW_CGROUP_MEMORY, "memory.max", "67043328\n", -ENOTSUP },
		{ 2, AW_CGROUP_MEMORY, "memory.max", "67043329\n", 0 }, /* 64 KiB pages */
		{ 2, AW_CGROUP_MEMORY, "memory.max", "67108865\n", -ENOTSUP },
		{ 2, AW_CGROUP_MEMORY, "memory.max", "max\n", -ENOTSUP },
		{ 2, AW_CGROUP_MEMORY, "memory.max", "", -ENOTSUP },
		{ 2, AW_CGROUP_PROCESSES, "pids.max", "40\n", 0 },
		{ 2, AW_CGROUP_PROCESSES, "pids.max", "39\n", -ENOTSUP },
		{ 2, AW_CGROUP_PROCESSES, "pids.max", "max\n", -ENOTSUP },
		{ 2, AW_CGROUP_CPU, "cpu.max", "150000 100000\n", 0 },
		{ 2, AW_CGROUP_CPU, "cpu.max", "15000 10000\n", 0 },
		{ 2, AW_CGROUP_CPU, "cpu.max", "150000 1000\n", -ENOTSUP },
		{ 2, AW_CGROUP_CPU, "cpu.max", "150000\n", -ENOTSUP },
		{ 2, AW_CGROUP_CPU, "cpu.max", "max 100000\n", -ENOTSUP },
		{ 2, AW_CGROUP_IO, "io.max",
		  "8:0 rbps=1 wbps=1 riops=max wiops=max\n"
		  "259:3 rbps=2097152 wbps=2097152 riops=max wiops=max\n",
		  0 },
		{ 2, AW_CGROUP_IO, "io.max", "259:3 rbps=2097152 wbps=max riops=max wiops=max\n",
		  -ENOTSUP },
		{ 2, AW_CGROUP_IO, "io.max", "259:3 rbps=2097152 wbps=20971520\n", -ENOTSUP },
		{ 2, AW_CGROUP_IO, "io.max", "1259:3 rbps=2097152 wbps=2097152\n", -ENOTSUP },
		{ 2, AW_CGROUP_IO, "io.max", "", -ENOTSUP },
		{ 1, AW_CGROUP_CPU, "cpu.cfs_quota_us", "150000\n", 0 },
		{ 1, AW_CGROUP_CPU, "cpu.cfs_quota_us", "-1\n", -ENOTSUP },
		{ 1, AW_CGROUP_MEMORY, "memory.limit_in_bytes", "9223372036854771712\n", -ENOTSUP },
	};
	struct place *place = *state;

	place_file(place, "memory.swap.max", "0\n");
	for (size_t i = 0; i < sizeof(readings) / sizeof(readings[0]); i++) {
		const struct reading *r = &readings[i];
		int got;

		place_file(place, r->file, r->content);
		got = aw_cgroup_measure(r->version, place->path, &usual, r->limit, &err);
		if (got != r->expected)
			fail_msg("%s '%s': %d", r->file, r->content, got);
	}
}

static void says_what_was_found_instead(void **state)
{
	struct place *place = *state;

	place_file(place, "pids.max", "max\n");
	assert_int_equal(aw_cgroup_measure(2, place->path, &usual, AW_CGROUP_PROCESSES, &err),
			 -ENOTSUP);
	assert_string_equal(err.message, "pids.max is 'max' after '40' was asked for");
}

static void a_kill_and_a_refused_fork_are_hits(void **state)
{
	static const struct {
		const char *file, *content;
		unsigned hits;
	} tables[] = {
		{ "memory.events", "low 0\nmax 40\noom 3\noom_kill 0\noom_group_kill 0\n", 0 },
		{ "memory.events", "low 0\nmax 40\noom 3\noom_kill 2\noom_group_kill 0\n",
		  1U << AW_CGROUP_MEMORY },
		{ "memory.events", "oom_group_kill 1\n", 0 },
		{ "memory.oom_control", "oom_kill_disable 1\nunder_oom 1\noom_kill 0\n", 0 },
		{ "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
		  1U << AW_CGROUP_MEMORY },
		{ "pids.events", "max 0\n", 0 },
		{ "pids.events", "max 7\n", 1U << AW_CGROUP_PROCESSES },
	};
	struct place *place = *state;

	assert_int_equal(aw_cgroup_hits_in(place->path), 0);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		place_file(place, tables[i].file, tables[i].content);
		assert_int_equal(aw_cgroup_hits_in(place->path), tables[i].hits);
		assert_int_equal(unlink(place_at(place, tables[i].file)), 0);
	}
}

static const struct aw_scope_property *property(const struct aw_scope_property *properties,
						size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(properties[i].name, name) == 0)
			return &properties[i];
	return NULL;
}

static void limits_are_properties_of_a_scope(void **state)
{
	struct aw_scope_property p[AW_CGROUP_PROPERTIES_MAX];
	size_t count = aw_cgroup_properties(&usual, "/dev/nvme0n1", p);

	(void)state;
	assert_int_equal(property(p, count, "MemoryMax")->number, 64 * MIB);
	assert_int_equal(property(p, count, "MemorySwapMax")->number, 0);
	assert_int_equal(property(p, count, "TasksMax")->number, 40);
	assert_int_equal(property(p, count, "CPUQuotaPerSecUSec")->number, 1500000);
	assert_int_equal(property(p, count, "IOReadBandwidthMax")->number, 2 * MIB);
	assert_string_equal(property(p, count, "IOWriteBandwidthMax")->text, "/dev/nvme0n1");
}

static void what_is_not_limited_is_no_property(void **state)
{
	const struct aw_cgroup_limits cpu = { .of = { [AW_CGROUP_CPU] = 500, [AW_CGROUP_IO] = 1 } };
	struct aw_scope_property p[AW_CGROUP_PROPERTIES_MAX];
	size_t count = aw_cgroup_properties(&cpu, NULL, p);

	(void)state;
	assert_int_equal(count, 2);
	assert_int_equal(property(p, count, "CPUQuotaPerSecUSec")->number, 500000);
	/* Or systemd would set one of its own. */
	assert_true(property(p, count, "TasksMax")->number == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(writes_the_limits_of_version_2),
		IN_PLACE(writes_the_limits_of_version_1),
		IN_PLACE(a_missing_file_is_no_limit),
		IN_PLACE(swap_may_be_unlimited_only_where_there_is_none),
		IN_PLACE(reads_back_what_is_in_force),
		IN_PLACE(says_what_was_found_instead),
		IN_PLACE(a_kill_and_a_refused_fork_are_hits),
		cmocka_unit_test(limits_are_properties_of_a_scope),
		cmocka_unit_test(what_is_not_limited_is_no_property),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
