#include "cell/cgroup-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"

#define KNOB_MAX 65536
#define TEXT_MAX 128
#define PATH_ROOM (PATH_MAX + 64)
#define CPU_PERIOD_US 100000u
/* Memory is counted in pages, which have up to 64 KiB: the kernel rounds down. */
#define PAGE_SLACK 65535u

/*
 * A file of a limit: what is written is limit * factor, and what is read back may be less by @slack.
 * Memory comes before memory and swap, which must not be smaller.
 */
struct knob {
	unsigned version;
	enum aw_cgroup_limit limit;
	const char *file;
	unsigned factor, slack;
	bool is_swap; /* only there when the kernel accounts for swap */
};

static const struct knob knobs[] = {
	{ 1, AW_CGROUP_MEMORY, "memory.limit_in_bytes", 1, PAGE_SLACK, false },
	{ 1, AW_CGROUP_MEMORY, "memory.memsw.limit_in_bytes", 1, PAGE_SLACK, true },
	{ 1, AW_CGROUP_PROCESSES, "pids.max", 1, 0, false },
	{ 1, AW_CGROUP_CPU, "cpu.cfs_quota_us", CPU_PERIOD_US / 1000, 0, false },

	{ 2, AW_CGROUP_MEMORY, "memory.max", 1, PAGE_SLACK, false },
	{ 2, AW_CGROUP_MEMORY, "memory.swap.max", 0, 0, true },
	{ 2, AW_CGROUP_PROCESSES, "pids.max", 1, 0, false },
	{ 2, AW_CGROUP_CPU, "cpu.max", CPU_PERIOD_US / 1000, 0, false },
	{ 2, AW_CGROUP_IO, "io.max", 1, 0, false },
};

static const struct {
	const char *name;
	const char *controller[2]; /* of version 1 and 2; NULL: not limited there */
} names[AW_CGROUP_LIMITS] = {
	[AW_CGROUP_MEMORY] = { "memory", { "memory", "memory" } },
	[AW_CGROUP_PROCESSES] = { "processes", { "pids", "pids" } },
	[AW_CGROUP_CPU] = { "cpu", { "cpu", "cpu" } },
	[AW_CGROUP_IO] = { "io", { NULL, "io" } },
};

const char *aw_cgroup_limit_name(enum aw_cgroup_limit limit)
{
	return names[limit].name;
}

const char *aw_cgroup_controller(unsigned version, enum aw_cgroup_limit limit)
{
	return names[limit].controller[version - 1];
}

static int read_knob(const char *dir, const char *file, char **ret, struct aw_error *err)
{
	char path[PATH_ROOM];

	if (aw_str_format(path, sizeof(path), "%s/%s", dir, file) < 0)
		return aw_fail(err, ENAMETOOLONG, "'%s'", dir);
	return aw_read_file(AT_FDCWD, path, KNOB_MAX, ret, err) < 0 ? -err->code : 0;
}

/* Where nothing can be swapped out, a limit on swap need not be there. */
static bool has_swap(void)
{
	autofree char *text = NULL;
	struct aw_error none;
	const char *end;

	if (aw_read_file(AT_FDCWD, "/proc/swaps", KNOB_MAX, &text, &none) < 0)
		return false;
	end = strchr(text, '\n'); /* of the heading */
	return end != NULL && end[1] != '\0';
}

static int excuse_missing(const struct knob *knob, struct aw_error *err)
{
	if (err->code != ENOENT || !knob->is_swap)
		return -err->code;
	if (!has_swap())
		return 0;
	return aw_refuse(err, ENOTSUP,
			 "this kernel does not limit swap: boot it with swapaccount=1");
}

static uint64_t number_for(const struct knob *knob, const struct aw_cgroup_limits *limits)
{
	return limits->of[knob->limit] * knob->factor;
}

/* As it is written; what is read back of a disk starts with it. */
static void make_text(const struct knob *knob, const struct aw_cgroup_limits *limits, char *out)
{
	unsigned long long number = number_for(knob, limits);

	if (knob->limit == AW_CGROUP_IO)
		(void)aw_str_format(out, TEXT_MAX, "%u:%u rbps=%llu wbps=%llu",
				    major(limits->device), minor(limits->device), number, number);
	else if (knob->version == 2 && knob->limit == AW_CGROUP_CPU)
		(void)aw_str_format(out, TEXT_MAX, "%llu %u", number, CPU_PERIOD_US);
	else
		(void)aw_str_format(out, TEXT_MAX, "%llu", number);
}

int aw_cgroup_write(unsigned version, const char *dir, const struct aw_cgroup_limits *limits,
		    enum aw_cgroup_limit limit, struct aw_error *err)
{
	for (size_t i = 0; i < AW_ARRAY_LEN(knobs); i++) {
		const struct knob *knob = &knobs[i];
		char path[PATH_ROOM], text[TEXT_MAX];

		if (knob->version != version || knob->limit != limit)
			continue;
		make_text(knob, limits, text);
		if (aw_str_format(path, sizeof(path), "%s/%s", dir, knob->file) < 0)
			return aw_fail(err, ENAMETOOLONG, "'%s'", dir);
		if (aw_write_file(AT_FDCWD, path, text, err) < 0 && excuse_missing(knob, err) < 0)
			return -err->code;
	}
	return 0;
}

/* One line per disk, with more limits behind ours: "max" for those that are not set. */
static bool has_disk_line(const char *text, const char *want)
{
	struct aw_str rest = aw_str_from(text), line;
	size_t len = strlen(want);

	while (aw_str_next(&rest, '\n', &line))
		if (aw_str_starts(line, want) && (line.len == len || line.ptr[len] == ' '))
			return true;
	return false;
}

/* "QUOTA PERIOD" of cpu.max, whatever the period, is made comparable to what we write. */
static bool is_in_force(const struct knob *knob, const char *text, uint64_t want)
{
	char *end;
	uint64_t got, period;

	if (*text < '0' || *text > '9')
		return false; /* "max", or -1 */
	got = strtoull(text, &end, 10);
	if (knob->version == 2 && knob->limit == AW_CGROUP_CPU) {
		period = strtoull(end, NULL, 10);
		if (period == 0)
			return false;
		got = got * CPU_PERIOD_US / period;
	}
	return got <= want && want - got <= knob->slack;
}

static int measure_knob(const struct knob *knob, const char *dir,
			const struct aw_cgroup_limits *limits, struct aw_error *err)
{
	autofree char *text = NULL;
	char want[TEXT_MAX];
	bool holds;

	if (read_knob(dir, knob->file, &text, err) < 0)
		return excuse_missing(knob, err);
	make_text(knob, limits, want);
	holds = knob->limit == AW_CGROUP_IO ? has_disk_line(text, want)
					    : is_in_force(knob, text, number_for(knob, limits));
	if (holds)
		return 0;
	text[strcspn(text, "\n")] = '\0';
	return aw_refuse(err, ENOTSUP, "%s is '%.40s' after '%s' was asked for", knob->file, text,
			 want);
}

int aw_cgroup_measure(unsigned version, const char *dir, const struct aw_cgroup_limits *limits,
		      enum aw_cgroup_limit limit, struct aw_error *err)
{
	for (size_t i = 0; i < AW_ARRAY_LEN(knobs); i++)
		if (knobs[i].version == version && knobs[i].limit == limit &&
		    measure_knob(&knobs[i], dir, limits, err) < 0)
			return -err->code;
	return 0;
}

/*
 * A kill and a refused fork, not the failures before them. memory.events of version 2 and
 * memory.oom_control of version 1 have the same key.
 */
unsigned aw_cgroup_hits_in(const char *dir)
{
	static const struct {
		const char *file, *key;
		enum aw_cgroup_limit limit;
	} counters[] = {
		{ "memory.events", "oom_kill ", AW_CGROUP_MEMORY },
		{ "memory.oom_control", "oom_kill ", AW_CGROUP_MEMORY },
		{ "pids.events", "max ", AW_CGROUP_PROCESSES },
	};
	unsigned hits = 0;

	for (size_t i = 0; i < AW_ARRAY_LEN(counters); i++) {
		autofree char *text = NULL;
		struct aw_str rest, line;
		struct aw_error none;

		if (read_knob(dir, counters[i].file, &text, &none) < 0)
			continue;
		rest = aw_str_from(text);
		while (aw_str_next(&rest, '\n', &line))
			if (aw_str_starts(line, counters[i].key) &&
			    strtoull(line.ptr + strlen(counters[i].key), NULL, 10) > 0)
				hits |= 1U << counters[i].limit;
	}
	return hits;
}

/* What systemd calls them; a limit of 0 is not asked for. */
static const struct {
	enum aw_cgroup_limit limit;
	const char *name;
	enum aw_scope_type type;
	unsigned factor;
} properties[] = {
	{ AW_CGROUP_MEMORY, "MemoryMax", AW_SCOPE_NUMBER, 1 },
	{ AW_CGROUP_MEMORY, "MemorySwapMax", AW_SCOPE_NUMBER, 0 },
	{ AW_CGROUP_PROCESSES, "TasksMax", AW_SCOPE_NUMBER, 1 },
	{ AW_CGROUP_CPU, "CPUQuotaPerSecUSec", AW_SCOPE_NUMBER, 1000 },
	{ AW_CGROUP_IO, "IOReadBandwidthMax", AW_SCOPE_RATE, 1 },
	{ AW_CGROUP_IO, "IOWriteBandwidthMax", AW_SCOPE_RATE, 1 },
};

_Static_assert(AW_ARRAY_LEN(properties) <= AW_CGROUP_PROPERTIES_MAX, "each may be asked for");

size_t aw_cgroup_properties(const struct aw_cgroup_limits *limits, const char *node,
			    struct aw_scope_property *ret)
{
	size_t count = 0;

	for (size_t i = 0; i < AW_ARRAY_LEN(properties); i++) {
		uint64_t number = limits->of[properties[i].limit];

		/* A scope without TasksMax= gets a share of what the host can have, less than a policy's. */
		if (number == 0 && properties[i].limit == AW_CGROUP_PROCESSES)
			number = UINT64_MAX;
		if (number == 0 || (properties[i].type == AW_SCOPE_RATE && node == NULL))
			continue;
		ret[count++] = (struct aw_scope_property){ properties[i].name, properties[i].type,
							   number * properties[i].factor, node };
	}
	return count;
}
