/*
 * rlimits - the resource limits that the agent starts with.
 *
 * A hard limit is only ever lowered: a smaller one that is in force stays (root without
 * CAP_SYS_RESOURCE could not raise it either), and the report says which were. A soft limit becomes
 * what was asked for, up to the hard one. Core dumps are off. The address space is never limited:
 * node, Go, Java and the sanitizers reserve far more than they use. Locked memory stays as it is.
 *
 * processes counts per user namespace since Linux 5.14 if it is set inside a fresh one; before, it
 * counts the whole uid and the caller leaves it 0.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

struct aw_rlimits {
	uint64_t open_files;      /* 0: as it is, in all of these */
	uint64_t open_files_soft; /* 0: as the hard one */
	uint64_t processes;
	uint64_t queued_signals;
	uint64_t message_queue_bytes;
};

/* A bit (1 << enum) for each where less than asked for was in force. */
enum aw_rlimit {
	AW_RLIMIT_OPEN_FILES,
	AW_RLIMIT_PROCESSES,
	AW_RLIMIT_QUEUED_SIGNALS,
	AW_RLIMIT_MESSAGE_QUEUE,
	AW_RLIMIT_COUNT
};

/* Set them for the calling process and those it starts. @ret_smaller may be NULL. */
int aw_rlimits_apply(const struct aw_rlimits *limits, unsigned *ret_smaller, struct aw_error *err);
