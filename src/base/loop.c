#include "base/loop.h"

#include <errno.h>

#include "base/own.h"

int aw_loop_init(struct aw_loop *loop, struct aw_error *err)
{
	*loop = (struct aw_loop){ .epoll_fd = epoll_create1(EPOLL_CLOEXEC) };
	if (loop->epoll_fd < 0)
		return aw_fail(err, errno, "epoll_create1");
	return 0;
}

void aw_loop_fini(struct aw_loop *loop)
{
	loop->epoll_fd = aw_fd_close(loop->epoll_fd);
}

int aw_loop_watch(struct aw_loop *loop, struct aw_watch *watch, uint32_t events,
		  struct aw_error *err)
{
	struct epoll_event event = { .events = events, .data.ptr = watch };
	int op = watch->events != 0 ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (events == 0) {
		aw_loop_unwatch(loop, watch);
		return 0;
	}
	if (events == watch->events)
		return 0;
	if (epoll_ctl(loop->epoll_fd, op, watch->fd, &event) < 0)
		return aw_fail(err, errno, "watch descriptor %d", watch->fd);
	watch->events = events;
	return 0;
}

void aw_loop_forget(struct aw_loop *loop, struct aw_watch *watch)
{
	watch->events = 0;
	for (int i = loop->next; i < loop->queued; i++)
		if (loop->queue[i].data.ptr == watch)
			loop->queue[i].data.ptr = NULL;
}

void aw_loop_unwatch(struct aw_loop *loop, struct aw_watch *watch)
{
	if (watch->events == 0)
		return;
	aw_loop_forget(loop, watch);
	(void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
}

int aw_loop_move(struct aw_loop *loop, struct aw_watch *from, struct aw_watch *to, uint32_t events,
		 struct aw_error *err)
{
	struct epoll_event event = { .events = events, .data.ptr = to };

	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, from->fd, &event) < 0)
		return aw_fail(err, errno, "watch descriptor %d", from->fd);
	aw_loop_forget(loop, from);
	to->fd = AW_TAKE_FD(from->fd);
	to->events = events;
	return 0;
}

int aw_loop_run(struct aw_loop *loop)
{
	while (loop->stop == 0) {
		loop->queued = epoll_wait(loop->epoll_fd, loop->queue, AW_LOOP_EVENTS, -1);
		if (loop->queued < 0 && errno != EINTR)
			return -errno;
		for (loop->next = 0; loop->next < loop->queued && loop->stop == 0;) {
			struct epoll_event *event = &loop->queue[loop->next++];
			struct aw_watch *watch = event->data.ptr;
			int r;

			if (watch == NULL)
				continue;
			r = watch->ready(watch, event->events);
			if (r < 0)
				return r;
		}
	}
	return loop->stop - 1;
}

void aw_loop_stop(struct aw_loop *loop, int value)
{
	loop->stop = value + 1;
}
