/*
 * usage - what the processes of a cell use together, measured from outside without a control group.
 *
 * Walks the children of pid 1 by /proc/PID/task/TID/children: what is orphaned inside becomes a child
 * of pid 1, so the walk finds everything. Memory is the proportional set size, in which a page that N
 * processes share counts 1/N for each: the sum is what would be freed if all of them ended.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct aw_usage {
	uint64_t memory_bytes;
	unsigned processes;
	unsigned unreadable; /* processes whose memory could not be read: not counted */
};

/* @pid1 is the host's number of the cell's first process. -ESRCH when it is gone. */
int aw_usage_measure(pid_t pid1, struct aw_usage *ret, struct aw_error *err);
