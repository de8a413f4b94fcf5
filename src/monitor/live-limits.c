/*
 * The limits of a control group: made before the cell, known to hold before the agent starts, read at
 * its end. What does not hold is refused, or degrades because the policy says so, and is recorded.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "monitor/live-internal.h"

#define BIT(limit) (1U << (limit))

/*
 * RLIMIT_NPROC in the cell's own user namespace is exact, so that no group is needed for processes
 * alone. Where there is one all the same, it counts what it refused.
 */
static void describe(const struct aw_live *live, struct aw_cgroup_limits *ret)
{
	const uint64_t *limit = live->prepared->policy->limit;

	*ret = (struct aw_cgroup_limits){
		.of = {
			[AW_CGROUP_MEMORY] = limit[AW_LIMIT_MEMORY_MB] << 20,
			[AW_CGROUP_CPU] = limit[AW_LIMIT_CPU_MILLI],
			[AW_CGROUP_IO] = limit[AW_LIMIT_IO_MB_S] << 20,
		},
		.device = live->prepared->workspace_device,
	};
	if (aw_cgroup_is_wanted(ret))
		ret->of[AW_CGROUP_PROCESSES] = limit[AW_LIMIT_PROCESSES];
}

bool aw_live_wants_group(const struct aw_live *live)
{
	struct aw_cgroup_limits limits;

	describe(live, &limits);
	return aw_cgroup_is_wanted(&limits);
}

static unsigned not_enforced(const struct aw_cgroup *group)
{
	unsigned missing = 0;

	for (unsigned i = 0; i < AW_CGROUP_LIMITS; i++)
		if (group->limits.of[i] > 0 && i != AW_CGROUP_PROCESSES)
			missing |= BIT(i) & ~group->held;
	return missing;
}

/* @r and @err: what create or settle said. */
static int judge(struct aw_live *live, int r, struct aw_error *err)
{
	unsigned missing = not_enforced(&live->cgroup);
	struct aw_event *event;

	if (r != -ENOTSUP)
		return r;
	if (missing == 0)
		return 0;
	if (!(live->prepared->policy->degraded & AW_DEGRADED_LIMITS))
		return aw_while(err, "the policy's limits cannot be enforced here (allow it with "
				     "\"allow_degraded\": [\"limits\"])");
	event = aw_live_event(live, AW_EVENT_DEGRADED);
	aw_event_add_str(event, "what", AW_STR("limits"));
	aw_event_add_str(event, "why", aw_str_from(err->message));
	aw_live_record(live);
	if (!live->options->is_quiet)
		(void)fprintf(stderr, "warden: not enforced: %s\n", err->message);
	return missing & BIT(AW_CGROUP_MEMORY)
		       ? aw_live_start_watchdog(live, live->cgroup.limits.of[AW_CGROUP_MEMORY], err)
		       : 0;
}

int aw_live_make_group(struct aw_live *live, struct aw_error *err)
{
	struct aw_cgroup_limits limits;

	describe(live, &limits);
	return judge(live, aw_cgroup_create(live->session.meta.id, &limits, &live->cgroup, err),
		     err);
}

/* With a group one more than its own limit, which then is hit first and counts that. */
uint64_t aw_live_process_limit(const struct aw_live *live)
{
	uint64_t limit = live->prepared->policy->limit[AW_LIMIT_PROCESSES];

	return limit > 0 && live->cgroup.version != 0 ? limit + 1 : limit;
}

int aw_live_settle_group(struct aw_live *live, struct aw_error *err)
{
	if (!aw_cgroup_is_pending(&live->cgroup))
		return 0;
	return judge(live, aw_cgroup_settle(&live->cgroup, err), err);
}

void aw_live_read_hits(struct aw_live *live)
{
	unsigned hits = aw_cgroup_hits(&live->cgroup);

	for (unsigned i = 0; i < AW_CGROUP_LIMITS; i++) {
		struct aw_event *event;

		if (!(hits & ~live->limits_hit & BIT(i)))
			continue;
		event = aw_live_event(live, AW_EVENT_LIMIT_HIT);
		aw_event_add_str(event, "limit", aw_str_from(aw_cgroup_limit_name(i)));
		aw_event_add_u64(event, "value", live->cgroup.limits.of[i]);
		aw_live_record(live);
	}
	live->limits_hit |= hits;
}

bool aw_live_end_by_limit(struct aw_live *live)
{
	if (!(live->limits_hit & BIT(AW_CGROUP_MEMORY)))
		return false;
	aw_live_end(live, AW_SESSION_LIMIT, 128 + SIGKILL, "the memory limit of %llu MiB",
		    (unsigned long long)(live->cgroup.limits.of[AW_CGROUP_MEMORY] >> 20));
	return true;
}

/* What ended the session is named by its reason. */
void aw_live_tell_hits(const struct aw_live *live)
{
	const uint64_t *limit = live->cgroup.limits.of;

	if (live->limits_hit & BIT(AW_CGROUP_MEMORY) && live->outcome.reason != AW_SESSION_LIMIT)
		(void)fprintf(stderr, "warden: the memory limit of %llu MiB ended processes\n",
			      (unsigned long long)(limit[AW_CGROUP_MEMORY] >> 20));
	if (live->limits_hit & BIT(AW_CGROUP_PROCESSES))
		(void)fprintf(stderr, "warden: the limit of %llu processes refused new ones\n",
			      (unsigned long long)limit[AW_CGROUP_PROCESSES]);
}
