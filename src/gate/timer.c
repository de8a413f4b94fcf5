#include "gate/timer.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/proc.h"

#define MS 1000000ull
#define SECOND 1000000000ull

static const uint64_t delays_ns[AW_TIMER_KINDS] = {
	[AW_TIMER_TALK] = 10 * SECOND,    [AW_TIMER_CONNECT] = 10 * SECOND,
	[AW_TIMER_STAGGER] = 250 * MS,    [AW_TIMER_LINGER] = 2 * SECOND,
	[AW_TIMER_REPEATS] = 10 * SECOND, [AW_TIMER_RETRY] = 100 * MS,
};

static void arm(struct aw_timers *timers, uint64_t due_ns)
{
	struct itimerspec spec = { .it_value = { .tv_sec = (time_t)(due_ns / SECOND),
						 .tv_nsec = (long)(due_ns % SECOND) } };

	timers->armed_ns = due_ns;
	(void)timerfd_settime(timers->watch.fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

static void fire_due(struct aw_timer *list, uint64_t now)
{
	while (list->next != list && list->next->due_ns <= now) {
		struct aw_timer *timer = list->next;

		aw_timer_stop(timer);
		timer->fire(timer);
	}
}

static int timers_ready(struct aw_watch *watch, uint32_t events)
{
	struct aw_timers *timers = AW_CONTAINER(watch, struct aw_timers, watch);
	uint64_t expirations, now = aw_now_ns(), next = 0;

	(void)events;
	if (read(watch->fd, &expirations, sizeof(expirations)) < 0)
		return 0;
	/* While it is armed in the past nothing that fires can arm it: done once below. */
	for (size_t i = 0; i < AW_TIMER_KINDS; i++)
		fire_due(&timers->list[i], now);
	for (size_t i = 0; i < AW_TIMER_KINDS; i++) {
		const struct aw_timer *first = timers->list[i].next;

		if (first != &timers->list[i] && (next == 0 || first->due_ns < next))
			next = first->due_ns;
	}
	timers->armed_ns = 0;
	if (next != 0)
		arm(timers, next);
	return 0;
}

int aw_timers_init(struct aw_timers *timers, struct aw_loop *loop, struct aw_error *err)
{
	*timers = (struct aw_timers){ .watch = { .ready = timers_ready } };
	for (size_t i = 0; i < AW_TIMER_KINDS; i++)
		timers->list[i].prev = timers->list[i].next = &timers->list[i];
	timers->watch.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (timers->watch.fd < 0)
		return aw_fail(err, errno, "timerfd_create");
	return aw_loop_watch(loop, &timers->watch, EPOLLIN, err);
}

static void start(struct aw_timers *timers, struct aw_timer *timer, enum aw_timer_kind kind,
		  uint64_t delay_ns)
{
	struct aw_timer *list = &timers->list[kind];

	aw_timer_stop(timer);
	timer->due_ns = aw_now_ns() + delay_ns;
	timer->prev = list->prev;
	timer->next = list;
	list->prev->next = timer;
	list->prev = timer;
	if (timers->armed_ns == 0 || timer->due_ns < timers->armed_ns)
		arm(timers, timer->due_ns);
}

void aw_timer_start(struct aw_timers *timers, struct aw_timer *timer, enum aw_timer_kind kind)
{
	start(timers, timer, kind, delays_ns[kind]);
}

void aw_timer_start_resolver(struct aw_timers *timers, struct aw_timer *timer, uint64_t delay_ns)
{
	start(timers, timer, AW_TIMER_RESOLVER, delay_ns);
}

void aw_timer_stop(struct aw_timer *timer)
{
	if (timer->next == NULL)
		return;
	timer->prev->next = timer->next;
	timer->next->prev = timer->prev;
	timer->prev = timer->next = NULL;
}
