/*
 * timer - deadlines of many connections on one timerfd.
 *
 * Every kind has one delay, so that a kind's timers lie in order and starting one is appending it. The
 * descriptor is armed for the earliest and left alone when that one is stopped: a timer that never
 * fires costs no system call, and a gate without timers is not woken at all.
 */
#pragma once

#include <stdint.h>

#include "base/loop.h"

enum aw_timer_kind {
	AW_TIMER_TALK,     /* the client owes bytes: a head, a hello */
	AW_TIMER_CONNECT,  /* the whole of a connection attempt */
	AW_TIMER_STAGGER,  /* the next address joins the race (RFC 8305) */
	AW_TIMER_LINGER,   /* a refused client gets this long to read its answer */
	AW_TIMER_REPEATS,  /* identical DNS refusals are counted for this long */
	AW_TIMER_RETRY,    /* a listener that found no descriptors tries again */
	AW_TIMER_RESOLVER, /* c-ares; any delay, one timer */
	AW_TIMER_KINDS
};

struct aw_timer {
	struct aw_timer *prev, *next; /* NULL when not started */
	uint64_t due_ns;
	void (*fire)(struct aw_timer *timer); /* stopped when it is called */
};

struct aw_timers {
	struct aw_watch watch;
	struct aw_timer list[AW_TIMER_KINDS]; /* ring heads */
	uint64_t armed_ns;                    /* 0: not armed */
};

int aw_timers_init(struct aw_timers *timers, struct aw_loop *loop, struct aw_error *err);

/* (Re)start. @timer->fire is set; @kind is not AW_TIMER_RESOLVER. */
void aw_timer_start(struct aw_timers *timers, struct aw_timer *timer, enum aw_timer_kind kind);

/* (Re)start the resolver's one timer. */
void aw_timer_start_resolver(struct aw_timers *timers, struct aw_timer *timer, uint64_t delay_ns);

void aw_timer_stop(struct aw_timer *timer);
