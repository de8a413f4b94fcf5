/*
 * posture - is the confinement that was asked for really there?
 *
 * Nothing here trusts a return value of the set-up: a process that is about to run an agent reads
 * back from the kernel what it has become. Each check has a name, the bits say which held, and the
 * error tells the first that did not. Reading and judging are apart: the judges take text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

enum aw_posture_check {
	AW_POSTURE_IDENTITY, /* real, effective, saved and file system uid and gid are the one */
	AW_POSTURE_CAPABILITIES, /* all five sets are empty */
	AW_POSTURE_NO_NEW_PRIVS,
	AW_POSTURE_SECCOMP,     /* a filter is on */
	AW_POSTURE_MOUNTS,      /* all nosuid, and nodev but for the device mounts */
	AW_POSTURE_ROOT,        /* the root is read-only */
	AW_POSTURE_DESCRIPTORS, /* none but those expected */
	AW_POSTURE_ROUTE,       /* no way to an address outside, IPv4 and IPv6 */
	AW_POSTURE_COUNT
};

#define AW_POSTURE_ALL ((1u << AW_POSTURE_COUNT) - 1)

struct aw_posture_expected {
	uint32_t uid, gid;
	const int *descriptors; /* that may be open */
	size_t descriptor_count;
	/* Mount points that may lack nodev, as in mountinfo: no blanks or backslashes in them. */
	const char *const *device_mounts;
	size_t device_mount_count;
};

/* The check's name for people and for the journal. */
const char *aw_posture_name(enum aw_posture_check check);

/*
 * Do all checks on the calling process; /proc must be that of its pid namespace. @ret_held gets a
 * bit (1 << check) for each that held, whatever the outcome. 0 when all did, else -EACCES with the
 * first that did not, or -errno when one could not be made.
 */
int aw_posture_measure(const struct aw_posture_expected *expected, unsigned *ret_held,
		       struct aw_error *err);

/* The lines of /proc/PID/status that matter. */
struct aw_posture_status {
	uint64_t uid[4], gid[4];
	uint64_t capabilities[5]; /* inheritable, permitted, effective, bounding, ambient */
	uint64_t no_new_privs, seccomp;
};

/* Parse the text of /proc/PID/status. -EBADMSG if a line is missing, twice, or not as expected. */
int aw_posture_parse_status(struct aw_str text, struct aw_posture_status *ret,
			    struct aw_error *err);

/* The judges: 0, -EACCES with what is wrong, or -EBADMSG. @text is that of /proc/PID/mountinfo. */
int aw_posture_judge_identity(const struct aw_posture_status *status,
			      const struct aw_posture_expected *expected, struct aw_error *err);
int aw_posture_judge_capabilities(const struct aw_posture_status *status, struct aw_error *err);
int aw_posture_judge_mounts(struct aw_str text, const struct aw_posture_expected *expected,
			    struct aw_error *err);
int aw_posture_judge_root(struct aw_str text, struct aw_error *err);

/*
 * @code: errno of a connect() to an address outside, 0 if it was accepted. True when it means that
 * no route exists; a time-out or a refusal means that one does.
 */
bool aw_posture_is_unreachable(int code);
