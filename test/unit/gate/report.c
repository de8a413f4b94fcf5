#include "gate/report.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/own.h"

struct bench {
	struct aw_loop loop;
	struct aw_watch link;
	struct aw_report report;
	int monitor;
	int caught_up;
	struct aw_ipc_message *message;
};

static int link_ready(struct aw_watch *watch, uint32_t events)
{
	struct bench *b = AW_CONTAINER(watch, struct bench, link);

	if (events & EPOLLOUT)
		aw_report_flush(&b->report);
	return 0;
}

static void caught_up(struct aw_report *report)
{
	struct bench *b = AW_CONTAINER(report, struct bench, report);

	b->caught_up++;
	aw_loop_stop(&b->loop, 0);
}

static int set_up(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct aw_error err;
	int pair[2];

	b->message = malloc(sizeof(*b->message));
	if (aw_ipc_pair(pair, &err) < 0 || aw_loop_init(&b->loop, &err) < 0)
		return -1;
	b->link = (struct aw_watch){ .fd = pair[0], .ready = link_ready };
	b->monitor = pair[1];
	(void)fcntl(pair[0], F_SETFL, O_NONBLOCK);
	(void)fcntl(pair[1], F_SETFL, O_NONBLOCK);
	aw_report_init(&b->report, &b->loop, &b->link);
	b->report.on_caught_up = caught_up;
	*state = b;
	return aw_loop_watch(&b->loop, &b->link, EPOLLIN, &err);
}

static int tear_down(void **state)
{
	struct bench *b = *state;

	(void)aw_fd_close(b->link.fd);
	(void)aw_fd_close(b->monitor);
	aw_loop_fini(&b->loop);
	free(b->message);
	free(b);
	return 0;
}

static void tell(struct bench *b, uint64_t id)
{
	struct aw_ipc_verdict v = {
		.id = id, .way = AW_IPC_WAY_CONNECT, .outcome = AW_IPC_ALLOWED, .rule = -1
	};

	aw_report_verdict(&b->report, &v);
}

/* The id of the next message, 0 when there is none. */
static uint64_t hear(struct bench *b)
{
	const struct aw_ipc_verdict *v = (const struct aw_ipc_verdict *)b->message->payload;
	struct aw_error err;
	int r = aw_ipc_recv(b->monitor, AW_IPC_MONITOR, AW_IPC_GATE, b->message, &err);

	return r == 1 ? v->id : 0;
}

static void what_the_link_takes_is_told_at_once(void **state)
{
	struct bench *b = *state;

	tell(b, 1);
	assert_false(aw_report_is_behind(&b->report));
	assert_int_equal(hear(b), 1);
}

static void nothing_is_lost_or_overtaken_while_the_monitor_is_slow(void **state)
{
	struct bench *b = *state;
	uint64_t told = 0, heard = 0;

	while (!aw_report_is_behind(&b->report))
		tell(b, ++told);
	for (int i = 0; i < 100; i++)
		tell(b, ++told);
	while (hear(b) == heard + 1)
		heard++;
	assert_true(heard > 0 && heard < told);
	assert_int_equal(aw_loop_run(&b->loop), 0);
	assert_int_equal(b->caught_up, 1);
	assert_false(aw_report_is_behind(&b->report));
	while (hear(b) == heard + 1)
		heard++;
	assert_int_equal(heard, told);
	/* And the link is not waited for any more. */
	assert_int_equal(b->link.events, EPOLLIN);
}

static void a_monitor_that_is_gone_ends_the_loop(void **state)
{
	struct bench *b = *state;

	b->monitor = aw_fd_close(b->monitor);
	tell(b, 1);
	assert_true(b->report.is_broken);
	assert_int_equal(aw_loop_run(&b->loop), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_the_link_takes_is_told_at_once, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			nothing_is_lost_or_overtaken_while_the_monitor_is_slow, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_monitor_that_is_gone_ends_the_loop, set_up,
						tear_down),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
