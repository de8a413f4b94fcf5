#include "gate/timer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/proc.h"

struct bench {
	struct aw_loop loop;
	struct aw_timers timers;
	struct alarm {
		struct aw_timer timer;
		struct bench *bench;
		int fired, order;
		bool is_restarting, is_last;
	} a, b, c;
	int fired;
};

static void fired(struct aw_timer *timer)
{
	struct alarm *alarm = AW_CONTAINER(timer, struct alarm, timer);

	alarm->fired++;
	alarm->order = ++alarm->bench->fired;
	if (alarm->is_restarting && alarm->fired < 3)
		aw_timer_start_resolver(&alarm->bench->timers, timer, 1000000);
	else if (alarm->is_last)
		aw_loop_stop(&alarm->bench->loop, 0);
}

static void open_bench(struct bench *b)
{
	struct aw_error err;

	*b = (struct bench){ 0 };
	b->a.timer.fire = b->b.timer.fire = b->c.timer.fire = fired;
	b->a.bench = b->b.bench = b->c.bench = b;
	assert_int_equal(aw_loop_init(&b->loop, &err), 0);
	assert_int_equal(aw_timers_init(&b->timers, &b->loop, &err), 0);
}

static void close_bench(struct bench *b)
{
	(void)close(b->timers.watch.fd);
	aw_loop_fini(&b->loop);
}

static bool is_armed(const struct bench *b)
{
	struct itimerspec left;

	assert_int_equal(timerfd_gettime(b->timers.watch.fd, &left), 0);
	return left.it_value.tv_sec != 0 || left.it_value.tv_nsec != 0;
}

static void fires_in_order_of_time_and_not_early(void **state)
{
	struct bench b;
	uint64_t begin = aw_now_ns();

	(void)state;
	open_bench(&b);
	b.a.is_last = true;
	aw_timer_start(&b.timers, &b.a.timer, AW_TIMER_STAGGER);
	aw_timer_start(&b.timers, &b.b.timer, AW_TIMER_RETRY);
	aw_timer_start_resolver(&b.timers, &b.c.timer, 10000000);
	assert_int_equal(aw_loop_run(&b.loop), 0);
	assert_true(aw_now_ns() - begin >= 250000000);
	assert_int_equal(b.c.order, 1);
	assert_int_equal(b.b.order, 2);
	assert_int_equal(b.a.order, 3);
	close_bench(&b);
}

static void a_stopped_timer_does_not_fire(void **state)
{
	struct bench b;

	(void)state;
	open_bench(&b);
	b.b.is_last = true;
	aw_timer_start_resolver(&b.timers, &b.a.timer, 1000000);
	aw_timer_start(&b.timers, &b.b.timer, AW_TIMER_RETRY);
	aw_timer_stop(&b.a.timer);
	aw_timer_stop(&b.a.timer);
	assert_int_equal(aw_loop_run(&b.loop), 0);
	assert_int_equal(b.a.fired, 0);
	assert_int_equal(b.b.fired, 1);
	close_bench(&b);
}

static void a_timer_may_start_itself_again(void **state)
{
	struct bench b;

	(void)state;
	open_bench(&b);
	b.a.is_restarting = b.a.is_last = true;
	aw_timer_start_resolver(&b.timers, &b.a.timer, 1000000);
	assert_int_equal(aw_loop_run(&b.loop), 0);
	assert_int_equal(b.a.fired, 3);
	close_bench(&b);
}

static void without_timers_nothing_wakes(void **state)
{
	struct bench b;

	(void)state;
	open_bench(&b);
	assert_false(is_armed(&b));
	b.a.is_last = true;
	aw_timer_start_resolver(&b.timers, &b.a.timer, 1000000);
	assert_true(is_armed(&b));
	assert_int_equal(aw_loop_run(&b.loop), 0);
	assert_false(is_armed(&b));
	close_bench(&b);
}

static void starting_again_puts_a_timer_off(void **state)
{
	struct bench b;
	uint64_t begin = aw_now_ns();

	(void)state;
	open_bench(&b);
	b.a.is_last = true;
	aw_timer_start(&b.timers, &b.a.timer, AW_TIMER_RETRY);
	aw_timer_start(&b.timers, &b.a.timer, AW_TIMER_STAGGER);
	assert_int_equal(aw_loop_run(&b.loop), 0);
	assert_int_equal(b.a.fired, 1);
	assert_true(aw_now_ns() - begin >= 250000000);
	close_bench(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fires_in_order_of_time_and_not_early),
		cmocka_unit_test(a_stopped_timer_does_not_fire),
		cmocka_unit_test(a_timer_may_start_itself_again),
		cmocka_unit_test(without_timers_nothing_wakes),
		cmocka_unit_test(starting_again_puts_a_timer_off),
	};

	return cmocka_run_group_tests_name("timer", tests, NULL, NULL);
}
