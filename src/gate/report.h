/*
 * report - what gate tells the monitor, in order and without a loss.
 *
 * The link does not block. What it does not take now waits here, and as long as something waits
 * (aw_report_is_behind) gate takes on nothing new: no connection, no request, no question. So the
 * queue is bounded by what was already under way. on_caught_up is called when it has drained.
 */
#pragma once

#include <stdbool.h>

#include "base/loop.h"
#include "ipc/ipc.h"

struct aw_report_item;

struct aw_report {
	struct aw_loop *loop;
	struct aw_watch *link; /* watched for EPOLLIN by its owner; EPOLLOUT is ours */
	struct aw_report_item *first, **last;
	void (*on_caught_up)(struct aw_report *report);
	bool is_broken; /* the link took nothing and there was no memory: the session must end */
};

void aw_report_init(struct aw_report *report, struct aw_loop *loop, struct aw_watch *link);
void aw_report_verdict(struct aw_report *report, const struct aw_ipc_verdict *verdict);
void aw_report_closed(struct aw_report *report, const struct aw_ipc_closed *closed);
bool aw_report_is_behind(const struct aw_report *report);

/* The link takes more. */
void aw_report_flush(struct aw_report *report);
