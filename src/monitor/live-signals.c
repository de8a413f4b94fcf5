/* Signals to the monitor and the clock of the session. */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/own.h"
#include "base/proc.h"
#include "monitor/live-internal.h"

static const int watched_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGCONT };

/* SIGINT and SIGQUIT are for the agent to handle, as if it ran here; the others end the session. */
static void on_signal(struct aw_live *live, int sig)
{
	switch (sig) {
	case SIGWINCH:
		aw_terminal_resized(&live->terminal);
		break;
	case SIGCONT:
		aw_terminal_continued(&live->terminal);
		break;
	case SIGINT:
	case SIGQUIT:
		if (live->is_started)
			(void)aw_live_signal_job(live, 0, sig);
		else
			aw_live_ask_to_end(live, SIGKILL);
		break;
	default:
		aw_live_ask_to_end(live, sig);
		break;
	}
}

static int signals_ready(struct aw_watch *watch, uint32_t events)
{
	struct aw_live *live = AW_CONTAINER(watch, struct aw_live, signals);
	struct signalfd_siginfo info;

	(void)events;
	while (read(watch->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		on_signal(live, (int)info.ssi_signo);
	return 0;
}

/* The time limit; or, once somebody asked for the end, the end of the agent's grace. */
static int timer_ready(struct aw_watch *watch, uint32_t events)
{
	struct aw_live *live = AW_CONTAINER(watch, struct aw_live, timer);
	uint64_t times;

	(void)events;
	if (read(watch->fd, &times, sizeof(times)) != (ssize_t)sizeof(times))
		return 0;
	if (live->is_ending) {
		aw_live_kill_cell(live);
		return 0;
	}
	aw_live_end(live, AW_SESSION_TIME_LIMIT, 124, "the time limit of %llu s",
		    (unsigned long long)live->prepared->policy->limit[AW_LIMIT_TIME_S]);
	aw_live_ask_to_end(live, SIGTERM);
	return 0;
}

/*
 * Descriptors in flight are counted per user, and a sender is held to its own soft limit: ours is the
 * hard one, and the cell gets less (AW_LIVE_FILES_KEPT), so that what the agent leaves in flight does
 * not keep us from passing descriptors.
 */
uint64_t aw_live_raise_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_max >= 2 * AW_LIVE_FILES_KEPT ? limit.rlim_max - AW_LIVE_FILES_KEPT
							: limit.rlim_max / 2;
}

int aw_live_watch_signals(struct aw_live *live, struct aw_error *err)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < AW_ARRAY_LEN(watched_signals); i++)
		sigaddset(&set, watched_signals[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return aw_fail(err, errno, "block signals");
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN); /* the journal reports a full disk itself */
	live->signals = (struct aw_watch){ .ready = signals_ready };
	live->signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (live->signals.fd < 0)
		return aw_fail(err, errno, "signalfd");
	live->timer = (struct aw_watch){ .ready = timer_ready };
	live->timer.fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (live->timer.fd < 0)
		return aw_fail(err, errno, "timerfd_create");
	if (aw_loop_watch(&live->loop, &live->signals, EPOLLIN, err) < 0)
		return -err->code;
	return aw_loop_watch(&live->loop, &live->timer, EPOLLIN, err);
}

static int set_timer(struct aw_live *live, uint64_t ns)
{
	struct itimerspec when = {
		.it_value = { .tv_sec = (time_t)(ns / 1000000000u),
			      .tv_nsec = (long)(ns % 1000000000u) },
	};

	return timerfd_settime(live->timer.fd, 0, &when, NULL) < 0 ? -errno : 0;
}

int aw_live_start_clock(struct aw_live *live, struct aw_error *err)
{
	uint64_t limit_s = live->prepared->policy->limit[AW_LIMIT_TIME_S];
	int r = limit_s == 0 ? 0 : set_timer(live, limit_s * 1000000000u);

	return r < 0 ? aw_fail(err, -r, "start the time limit") : 0;
}

void aw_live_ask_to_end(struct aw_live *live, int sig)
{
	bool is_patient = sig != SIGKILL && live->is_started && !live->is_ending;

	if (live->asked_signal == 0)
		live->asked_signal = sig;
	if (!is_patient || aw_live_signal_job(live, 0, sig) < 0 ||
	    set_timer(live, AW_LIVE_GRACE_NS) < 0) {
		aw_live_kill_cell(live);
		return;
	}
	live->is_ending = true;
}
