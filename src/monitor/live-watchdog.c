/*
 * The watchdog: where no control group can be had and the policy lets limits degrade, memory is
 * looked at ten times a second and the session killed when it is over. Between two looks more can be
 * taken than the limit allows; cpu and io are not limited at all. Both are on record as degraded.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/own.h"
#include "cell/usage.h"
#include "monitor/live-internal.h"

#define PERIOD_NS 100000000L

static int look(struct aw_watch *watch, uint32_t events)
{
	struct aw_live *live = AW_CONTAINER(watch, struct aw_live, watchdog);
	struct aw_error none;
	struct aw_usage usage;
	uint64_t times;

	(void)events;
	if (read(watch->fd, &times, sizeof(times)) != (ssize_t)sizeof(times) || live->cell.pid <= 0)
		return 0;
	if (aw_usage_measure(live->cell.pid, &usage, &none) < 0 ||
	    usage.memory_bytes <= live->watched_memory)
		return 0;
	aw_live_end(live, AW_SESSION_LIMIT, 128 + SIGKILL, "the memory limit of %llu MiB (watched)",
		    (unsigned long long)(live->watched_memory >> 20));
	aw_live_kill_cell(live);
	return 0;
}

int aw_live_start_watchdog(struct aw_live *live, uint64_t memory_bytes, struct aw_error *err)
{
	struct itimerspec period = { .it_interval.tv_nsec = PERIOD_NS,
				     .it_value.tv_nsec = PERIOD_NS };

	live->watched_memory = memory_bytes;
	live->watchdog = (struct aw_watch){ .ready = look };
	live->watchdog.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (live->watchdog.fd < 0 || timerfd_settime(live->watchdog.fd, 0, &period, NULL) < 0)
		return aw_fail(err, errno, "start the watchdog");
	return aw_loop_watch(&live->loop, &live->watchdog, EPOLLIN, err);
}
