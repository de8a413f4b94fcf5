#include "confine/rlimits.h"

#include <errno.h>
#include <stddef.h>
#include <sys/resource.h>

static const struct kind {
	int resource;
	const char *name;
} kinds[AW_RLIMIT_COUNT] = {
	[AW_RLIMIT_OPEN_FILES] = { RLIMIT_NOFILE, "open files" },
	[AW_RLIMIT_PROCESSES] = { RLIMIT_NPROC, "processes" },
	[AW_RLIMIT_QUEUED_SIGNALS] = { RLIMIT_SIGPENDING, "queued signals" },
	[AW_RLIMIT_MESSAGE_QUEUE] = { RLIMIT_MSGQUEUE, "message queues" },
};

static rlim_t smaller(rlim_t a, rlim_t b)
{
	return a < b ? a : b; /* RLIM_INFINITY is the largest value */
}

/* Returns 1 when a smaller hard limit was there already. */
static int lower(const struct kind *kind, rlim_t soft, rlim_t hard, struct aw_error *err)
{
	struct rlimit limit;
	int had_less;

	if (getrlimit(kind->resource, &limit) < 0)
		return aw_fail(err, errno, "read the limit of %s", kind->name);
	had_less = limit.rlim_max < hard;
	limit.rlim_max = smaller(limit.rlim_max, hard);
	limit.rlim_cur = smaller(limit.rlim_max, soft);
	if (setrlimit(kind->resource, &limit) < 0)
		return aw_fail(err, errno, "limit %s", kind->name);
	return had_less;
}

int aw_rlimits_apply(const struct aw_rlimits *limits, unsigned *ret_smaller, struct aw_error *err)
{
	const uint64_t hard[AW_RLIMIT_COUNT] = {
		[AW_RLIMIT_OPEN_FILES] = limits->open_files,
		[AW_RLIMIT_PROCESSES] = limits->processes,
		[AW_RLIMIT_QUEUED_SIGNALS] = limits->queued_signals,
		[AW_RLIMIT_MESSAGE_QUEUE] = limits->message_queue_bytes,
	};
	unsigned had_less = 0;

	for (unsigned i = 0; i < AW_RLIMIT_COUNT; i++) {
		rlim_t soft = hard[i];
		int r;

		if (hard[i] == 0)
			continue;
		if (i == AW_RLIMIT_OPEN_FILES && limits->open_files_soft > 0)
			soft = limits->open_files_soft;
		r = lower(kinds + i, soft, hard[i], err);
		if (r < 0)
			return r;
		had_less |= (unsigned)r << i;
	}
	if (setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 }) < 0)
		return aw_fail(err, errno, "switch core dumps off");
	if (ret_smaller != NULL)
		*ret_smaller = had_less;
	return 0;
}
