/*
 * loop - one epoll loop over descriptors; every role of Warden is one of these and nothing else.
 *
 * The owner embeds a struct aw_watch per descriptor, so that watching allocates nothing:
 *
 *	struct conn { struct aw_watch watch; ... };
 *	c->watch = (struct aw_watch){ .fd = fd, .ready = conn_ready };
 *	aw_loop_watch(loop, &c->watch, EPOLLIN, err);
 *
 * In `ready` the owner finds itself with AW_CONTAINER(watch, struct conn, watch). It may unwatch and
 * free itself or any other watch there: aw_loop_unwatch makes events that are still queued for that
 * watch in this round disappear. A negative return of `ready` ends aw_loop_run with that value.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/error.h"

#define AW_CONTAINER(pointer, type, member) \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))
#define AW_LOOP_EVENTS 64

struct aw_loop;

struct aw_watch {
	int fd;
	int (*ready)(struct aw_watch *watch, uint32_t events);
	uint32_t events; /* what is waited for now; 0 = not watched */
	void *data;      /* the owner's, for watches that are not embedded */
};

struct aw_loop {
	int epoll_fd;
	int stop; /* set by aw_loop_stop: 1 + value to return */
	struct epoll_event queue[AW_LOOP_EVENTS];
	int queued, next;
};

int aw_loop_init(struct aw_loop *loop, struct aw_error *err);
void aw_loop_fini(struct aw_loop *loop); /* the watches' fds stay with their owners */

/* Wait for @events (EPOLLIN, EPOLLOUT, ...; level-triggered). Again with other events: changes them. */
int aw_loop_watch(struct aw_loop *loop, struct aw_watch *watch, uint32_t events,
		  struct aw_error *err);

/* Stop watching; a watch that is not watched is left alone. Before its fd is closed. */
void aw_loop_unwatch(struct aw_loop *loop, struct aw_watch *watch);

/*
 * Stop watching a descriptor that is closed next and that nobody else holds: the close takes it out of
 * epoll, so that this costs no system call.
 */
void aw_loop_forget(struct aw_loop *loop, struct aw_watch *watch);

/*
 * Go on watching @from's descriptor as @to, for @events, with @to's callback: one system call where an
 * unwatch and a watch are two. @from is unwatched and without a descriptor afterwards.
 */
int aw_loop_move(struct aw_loop *loop, struct aw_watch *from, struct aw_watch *to, uint32_t events,
		 struct aw_error *err);

/* Handle events until aw_loop_stop (returns its value) or a callback fails (returns that). */
int aw_loop_run(struct aw_loop *loop);
void aw_loop_stop(struct aw_loop *loop, int value); /* @value >= 0 */
