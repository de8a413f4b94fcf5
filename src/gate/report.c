#include "gate/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"

struct aw_report_item {
	struct aw_report_item *next;
	enum aw_ipc_type type;
	size_t len;
	uint8_t payload[];
};

void aw_report_init(struct aw_report *report, struct aw_loop *loop, struct aw_watch *link)
{
	*report = (struct aw_report){ .loop = loop, .link = link };
	report->last = &report->first;
}

bool aw_report_is_behind(const struct aw_report *report)
{
	return report->first != NULL;
}

/* What cannot be told ends the session: closed, as when gate dies. */
static void give_up(struct aw_report *report)
{
	report->is_broken = true;
	aw_loop_stop(report->loop, 1);
}

static void wait_for_room(struct aw_report *report, bool is_waiting)
{
	struct aw_error err;

	if (aw_loop_watch(report->loop, report->link, EPOLLIN | (is_waiting ? EPOLLOUT : 0), &err) <
	    0)
		give_up(report);
}

static void put_off(struct aw_report *report, enum aw_ipc_type type, const void *payload,
		    size_t len)
{
	struct aw_report_item *item = malloc(sizeof(*item) + len);

	if (item == NULL) {
		give_up(report);
		return;
	}
	*item = (struct aw_report_item){ .type = type, .len = len };
	memcpy(item->payload, payload, len);
	*report->last = item;
	report->last = &item->next;
	wait_for_room(report, true);
}

static void say(struct aw_report *report, enum aw_ipc_type type, const void *payload, size_t len)
{
	struct aw_error err;
	int r = -EAGAIN;

	if (report->is_broken)
		return;
	if (!aw_report_is_behind(report))
		r = aw_ipc_send(report->link->fd, type, payload, len, NULL, 0, &err);
	if (r == -EAGAIN || r == -ENOBUFS || r == -ENOMEM)
		put_off(report, type, payload, len);
	else if (r < 0)
		give_up(report);
}

void aw_report_verdict(struct aw_report *report, const struct aw_ipc_verdict *verdict)
{
	say(report, AW_IPC_GATE_VERDICT, verdict, sizeof(*verdict));
}

void aw_report_closed(struct aw_report *report, const struct aw_ipc_closed *closed)
{
	say(report, AW_IPC_GATE_CLOSED, closed, sizeof(*closed));
}

void aw_report_flush(struct aw_report *report)
{
	struct aw_error err;

	if (!aw_report_is_behind(report))
		return;
	while (report->first != NULL) {
		struct aw_report_item *item = report->first;
		int r = aw_ipc_send(report->link->fd, item->type, item->payload, item->len, NULL, 0,
				    &err);

		if (r == -EAGAIN || r == -ENOBUFS || r == -ENOMEM)
			return;
		if (r < 0) {
			give_up(report);
			return;
		}
		report->first = item->next;
		free(item);
	}
	report->last = &report->first;
	wait_for_room(report, false);
	if (report->on_caught_up != NULL)
		report->on_caught_up(report);
}
