#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/own.h"
#include "base/proc.h"
#include "cell/pid1-internal.h"
#include "confine/caps.h"
#include "confine/landlock.h"
#include "confine/posture.h"
#include "confine/rlimits.h"
#include "confine/seccomp.h"

#define DEVICE_MOUNTS_MAX 16
#define QUEUED_SIGNALS 1024
#define MESSAGE_QUEUE_BYTES (256 * 1024)

static const unsigned access_rights[] = {
	[AW_PLAN_ACCESS_READ] = AW_LANDLOCK_READ | AW_LANDLOCK_EXEC,
	[AW_PLAN_ACCESS_WRITE] =
		AW_LANDLOCK_READ | AW_LANDLOCK_EXEC | AW_LANDLOCK_WRITE | AW_LANDLOCK_REMOVE,
	[AW_PLAN_ACCESS_DEVICE] = AW_LANDLOCK_READ | AW_LANDLOCK_WRITE | AW_LANDLOCK_DEVICE,
};

static int add_rules(const struct aw_plan_header *plan, int ruleset, int abi, struct aw_error *err)
{
	for (uint32_t i = 0; i < plan->op_count; i++) {
		const struct aw_plan_op *op = aw_plan_op_at(plan, i);
		int r;

		if (op->code != AW_PLAN_LANDLOCK)
			continue;
		if (op->mode == 0 || op->mode >= AW_ARRAY_LEN(access_rights))
			return aw_refuse(err, EBADMSG, "the plan grants an unknown access");
		r = aw_landlock_allow_path(ruleset, abi, aw_plan_text_at(plan, op->at),
					   access_rights[op->mode], err);
		if (r < 0 && r != -ENOENT)
			return r;
	}
	return 0;
}

/* Returns the ABI that is in force, 0 where the kernel has none and the policy lets that pass. */
static int enforce_landlock(const struct aw_plan_header *plan, struct aw_error *err)
{
	autoclose int ruleset = -EBADF;
	int abi = aw_landlock_abi(err), r;

	if (abi >= 0)
		ruleset = aw_landlock_begin(abi, err);
	if (abi < 0 || ruleset < 0)
		return plan->landlock_required ? -err->code : 0;
	r = add_rules(plan, ruleset, abi, err);
	if (r == 0)
		r = aw_landlock_enforce(ruleset, err);
	return r < 0 ? r : abi;
}

static int apply_rlimits(const struct aw_plan_header *plan, struct aw_error *err)
{
	struct aw_rlimits limits = {
		.open_files = plan->limit_open_files,
		.processes = plan->limit_processes,
		.queued_signals = QUEUED_SIGNALS,
		.message_queue_bytes = MESSAGE_QUEUE_BYTES,
	};

	return aw_rlimits_apply(&limits, NULL, err);
}

/*
 * PDEATHSIG comes after every change of credentials, each of which clears it; then it is checked
 * that the monitor did not die in between.
 */
static int follow_monitor(struct aw_error *err)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return aw_fail(err, errno, "follow the monitor's death");
	if (aw_pidfd_kill(AW_PID1_MONITOR, 0) == -ESRCH)
		return aw_refuse(err, ESRCH, "the monitor is gone");
	return 0;
}

int aw_pid1_confine(const struct aw_plan_header *plan, uint32_t *ret_abi, struct aw_error *err)
{
	int abi, r;

	(void)prctl(PR_SET_DUMPABLE, 0);
	r = apply_rlimits(plan, err);
	if (r < 0)
		return r;
	r = aw_caps_drop_all(err);
	if (r < 0)
		return r;
	r = follow_monitor(err);
	if (r < 0)
		return r;
	abi = enforce_landlock(plan, err);
	if (abi < 0)
		return aw_while(err, "Landlock");
	*ret_abi = (uint32_t)abi;
	return aw_seccomp_apply(aw_plan_blob_at(plan, plan->filter), plan->filter_len, err);
}

int aw_pid1_measure(const struct aw_plan_header *plan, const int *descriptors, size_t count,
		    uint32_t *ret_held, struct aw_error *err)
{
	const char *device_mounts[DEVICE_MOUNTS_MAX];
	struct aw_posture_expected expected = {
		.uid = plan->inside_uid,
		.gid = plan->inside_gid,
		.descriptors = descriptors,
		.descriptor_count = count,
		.device_mounts = device_mounts,
	};
	unsigned held = 0;
	int r;

	for (uint32_t i = 0; i < plan->op_count; i++) {
		const struct aw_plan_op *op = aw_plan_op_at(plan, i);
		bool has_devices = (op->flags & AW_PLAN_DEVICE) || op->code == AW_PLAN_DEVPTS;

		if (!has_devices)
			continue;
		if (expected.device_mount_count == DEVICE_MOUNTS_MAX)
			return aw_refuse(err, E2BIG, "the plan has too many device mounts");
		device_mounts[expected.device_mount_count++] = aw_plan_text_at(plan, op->at);
	}
	r = aw_posture_measure(&expected, &held, err);
	*ret_held = held;
	return r < 0 ? aw_while(err, "self-check") : 0;
}
