#include "base/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"

/* A counter that is ready to read from the start, and what its callback is to do. */
struct bell {
	struct aw_watch watch;
	struct aw_loop *loop;
	struct bell *other;
	uint32_t events;
	int calls, value;
};

static int stop_with_value(struct aw_watch *watch, uint32_t events)
{
	struct bell *b = AW_CONTAINER(watch, struct bell, watch);

	b->calls++;
	b->events = events;
	aw_loop_stop(b->loop, b->value);
	return 0;
}

static int return_value(struct aw_watch *watch, uint32_t events)
{
	struct bell *b = AW_CONTAINER(watch, struct bell, watch);

	(void)events;
	b->calls++;
	return b->value;
}

/* Both bells ring in one round: whichever comes first silences the other. */
static int silence_the_other(struct aw_watch *watch, uint32_t events)
{
	struct bell *b = AW_CONTAINER(watch, struct bell, watch);

	(void)events;
	b->calls++;
	aw_loop_unwatch(b->loop, &b->other->watch);
	return -ECANCELED;
}

static int free_the_other_and_go_on(struct aw_watch *watch, uint32_t events)
{
	struct bell *b = AW_CONTAINER(watch, struct bell, watch);

	(void)events;
	b->calls++;
	if (b->other != NULL) {
		aw_loop_unwatch(b->loop, &b->other->watch);
		(void)aw_fd_close(b->other->watch.fd);
		free(b->other);
		b->other = NULL;
		return 0;
	}
	aw_loop_stop(b->loop, 0);
	return 0;
}

static int free_itself(struct aw_watch *watch, uint32_t events)
{
	struct bell *b = AW_CONTAINER(watch, struct bell, watch);
	struct aw_loop *loop = b->loop;

	(void)events;
	aw_loop_unwatch(loop, watch);
	(void)aw_fd_close(watch->fd);
	free(b);
	aw_loop_stop(loop, 3);
	return 0;
}

static int stop_on_the_third_call(struct aw_watch *watch, uint32_t events)
{
	struct bell *b = AW_CONTAINER(watch, struct bell, watch);

	(void)events;
	if (++b->calls == 3)
		aw_loop_stop(b->loop, 0);
	return 0;
}

/* As silence_the_other, by the way that leaves the rest to a close. */
static int forget_the_other_and_close_it(struct aw_watch *watch, uint32_t events)
{
	struct bell *b = AW_CONTAINER(watch, struct bell, watch);

	(void)events;
	b->calls++;
	aw_loop_forget(b->loop, &b->other->watch);
	b->other->watch.fd = aw_fd_close(b->other->watch.fd);
	return -ECANCELED;
}

/* Both ring in one round: the other's descriptor is taken over by the third. */
static int move_the_other(struct aw_watch *watch, uint32_t events)
{
	struct bell *b = AW_CONTAINER(watch, struct bell, watch);
	struct aw_error err;

	(void)events;
	b->calls++;
	aw_loop_unwatch(b->loop, watch);
	return aw_loop_move(b->loop, &b->other->watch, &b->other->other->watch, EPOLLIN, &err);
}

static int watch_for_writing(struct aw_watch *watch, uint32_t events)
{
	struct bell *b = AW_CONTAINER(watch, struct bell, watch);
	struct aw_error err;

	b->calls++;
	b->events = events;
	if (events & EPOLLOUT) {
		aw_loop_stop(b->loop, 0);
		return 0;
	}
	return aw_loop_watch(b->loop, watch, EPOLLOUT, &err);
}

static void open_loop(struct aw_loop *loop)
{
	struct aw_error err;

	assert_int_equal(aw_loop_init(loop, &err), 0);
}

/* Hang up a bell that is @rung (ready to read) or silent. */
static void hang_up(struct aw_loop *loop, struct bell *b, bool rung,
		    int (*ready)(struct aw_watch *watch, uint32_t events))
{
	struct aw_error err;
	int fd = eventfd(rung ? 1 : 0, EFD_CLOEXEC);

	assert_true(fd >= 0);
	*b = (struct bell){ .watch = { .fd = fd, .ready = ready }, .loop = loop };
	assert_int_equal(aw_loop_watch(loop, &b->watch, EPOLLIN, &err), 0);
}

static void take_down(struct bell *b)
{
	aw_loop_unwatch(b->loop, &b->watch);
	b->watch.fd = aw_fd_close(b->watch.fd);
}

static void ends_with_the_value_of_stop(void **state)
{
	autodrop(aw_loop_fini) struct aw_loop loop;
	struct bell b;

	(void)state;
	open_loop(&loop);
	hang_up(&loop, &b, true, stop_with_value);
	b.value = 7;
	assert_int_equal(aw_loop_run(&loop), 7);
	assert_int_equal(b.calls, 1);
	assert_int_equal(b.events, EPOLLIN);
	take_down(&b);
}

static void a_stop_before_the_run_ends_it_at_once(void **state)
{
	autodrop(aw_loop_fini) struct aw_loop loop;
	struct bell b;

	(void)state;
	open_loop(&loop);
	hang_up(&loop, &b, true, return_value);
	aw_loop_stop(&loop, 0);
	assert_int_equal(aw_loop_run(&loop), 0);
	assert_int_equal(b.calls, 0);
	take_down(&b);
}

static void ends_with_what_a_callback_fails_with(void **state)
{
	autodrop(aw_loop_fini) struct aw_loop loop;
	struct bell b;

	(void)state;
	open_loop(&loop);
	hang_up(&loop, &b, true, return_value);
	b.value = -EPROTO;
	assert_int_equal(aw_loop_run(&loop), -EPROTO);
	take_down(&b);
}

static void what_is_not_read_is_told_again(void **state)
{
	autodrop(aw_loop_fini) struct aw_loop loop;
	struct bell b;

	(void)state;
	open_loop(&loop);
	hang_up(&loop, &b, true, stop_on_the_third_call);
	assert_int_equal(aw_loop_run(&loop), 0);
	assert_int_equal(b.calls, 3);
	take_down(&b);
}

static void an_unwatched_bell_is_not_heard_in_the_same_round(void **state)
{
	autodrop(aw_loop_fini) struct aw_loop loop;
	struct bell a, b;

	(void)state;
	open_loop(&loop);
	hang_up(&loop, &a, true, silence_the_other);
	hang_up(&loop, &b, true, silence_the_other);
	a.other = &b;
	b.other = &a;
	assert_int_equal(aw_loop_run(&loop), -ECANCELED);
	assert_int_equal(loop.queued, 2);
	assert_int_equal(a.calls + b.calls, 1);
	take_down(&a);
	take_down(&b);
}

static void a_callback_may_free_another_watch_of_the_same_round(void **state)
{
	autodrop(aw_loop_fini) struct aw_loop loop;
	struct bell *a = malloc(sizeof(*a)), *b = malloc(sizeof(*b)), *left;

	(void)state;
	assert_true(a != NULL && b != NULL);
	open_loop(&loop);
	hang_up(&loop, a, true, free_the_other_and_go_on);
	hang_up(&loop, b, true, free_the_other_and_go_on);
	a->other = b;
	b->other = a;
	assert_int_equal(aw_loop_run(&loop), 0);
	/* Level-triggered: the one that is left rang again, alone, and ended the run. */
	left = loop.queue[0].data.ptr;
	assert_int_equal(left->calls, 2);
	take_down(left);
	free(left);
}

static void a_callback_may_free_its_own_watch(void **state)
{
	autodrop(aw_loop_fini) struct aw_loop loop;
	struct bell *b = malloc(sizeof(*b));

	(void)state;
	assert_non_null(b);
	open_loop(&loop);
	hang_up(&loop, b, true, free_itself);
	assert_int_equal(aw_loop_run(&loop), 3);
}

static void watching_again_changes_what_is_waited_for(void **state)
{
	autodrop(aw_loop_fini) struct aw_loop loop;
	struct bell b;

	(void)state;
	open_loop(&loop);
	hang_up(&loop, &b, true, watch_for_writing);
	assert_int_equal(aw_loop_run(&loop), 0);
	assert_int_equal(b.calls, 2);
	assert_int_equal(b.events, EPOLLOUT);
	take_down(&b);
}

static void watching_for_nothing_is_unwatching(void **state)
{
	autodrop(aw_loop_fini) struct aw_loop loop;
	struct aw_error err;
	struct bell silent, b;

	(void)state;
	open_loop(&loop);
	hang_up(&loop, &silent, true, return_value);
	assert_int_equal(aw_loop_watch(&loop, &silent.watch, 0, &err), 0);
	assert_int_equal(silent.watch.events, 0);
	hang_up(&loop, &b, true, stop_on_the_third_call);
	assert_int_equal(aw_loop_run(&loop), 0);
	assert_int_equal(silent.calls, 0);
	take_down(&silent);
	take_down(&b);
}

static void a_hang_up_is_told_unasked(void **state)
{
	autodrop(aw_loop_fini) struct aw_loop loop;
	struct aw_error err;
	struct bell b = { .loop = &loop };
	int ends[2];

	(void)state;
	open_loop(&loop);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	b.watch = (struct aw_watch){ .fd = ends[0], .ready = stop_with_value };
	assert_int_equal(aw_loop_watch(&loop, &b.watch, EPOLLPRI, &err), 0);
	(void)aw_fd_close(ends[1]);
	assert_int_equal(aw_loop_run(&loop), 0);
	assert_int_equal(b.events & EPOLLHUP, EPOLLHUP);
	take_down(&b);
}

static void what_cannot_be_watched_is_an_error_with_its_number(void **state)
{
	autodrop(aw_loop_fini) struct aw_loop loop;
	struct aw_watch watch = { .fd = -EBADF, .ready = return_value };
	struct aw_error err;

	(void)state;
	open_loop(&loop);
	assert_int_equal(aw_loop_watch(&loop, &watch, EPOLLIN, &err), -EBADF);
	assert_int_equal(err.code, EBADF);
	assert_int_equal(watch.events, 0);
	aw_loop_unwatch(&loop, &watch);
}

static void note_alarm(int sig)
{
	(void)sig;
}

static void a_signal_does_not_end_the_run(void **state)
{
	const struct sigaction action = { .sa_handler = note_alarm };
	const struct itimerval in_10_ms = { .it_value.tv_usec = 10000 };
	autodrop(aw_loop_fini) struct aw_loop loop;
	struct sigaction before;
	struct bell b;
	pid_t child;

	(void)state;
	open_loop(&loop);
	hang_up(&loop, &b, false, stop_with_value);
	assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &in_10_ms, NULL), 0);
	child = fork();
	if (child == 0) {
		(void)usleep(60000);
		_exit(eventfd_write(b.watch.fd, 1));
	}
	assert_int_equal(aw_loop_run(&loop), 0);
	assert_int_equal(b.calls, 1);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
	take_down(&b);
}

static void the_loop_is_close_on_exec_and_leaves_the_fds_to_their_owners(void **state)
{
	struct aw_loop loop;
	struct bell b;

	(void)state;
	open_loop(&loop);
	assert_int_equal(fcntl(loop.epoll_fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	hang_up(&loop, &b, true, return_value);
	aw_loop_fini(&loop);
	assert_int_equal(loop.epoll_fd, -EBADF);
	assert_true(fcntl(b.watch.fd, F_GETFD) >= 0);
	(void)aw_fd_close(b.watch.fd);
}

static void a_forgotten_and_closed_bell_is_not_heard_in_the_same_round(void **state)
{
	autodrop(aw_loop_fini) struct aw_loop loop;
	struct bell a, b;

	(void)state;
	open_loop(&loop);
	hang_up(&loop, &a, true, forget_the_other_and_close_it);
	hang_up(&loop, &b, true, forget_the_other_and_close_it);
	a.other = &b;
	b.other = &a;
	assert_int_equal(aw_loop_run(&loop), -ECANCELED);
	assert_int_equal(a.calls + b.calls, 1);
	/* The one that rang is alone now, and what it would forget is no descriptor any more. */
	assert_int_equal(aw_loop_run(&loop), -ECANCELED);
	assert_int_equal(a.calls + b.calls, 2);
	take_down(&a);
	take_down(&b);
}

static void a_moved_descriptor_is_heard_by_its_new_watch_alone(void **state)
{
	autodrop(aw_loop_fini) struct aw_loop loop;
	struct bell a, b,
		heir = { .loop = &loop, .watch = { .fd = -EBADF, .ready = stop_with_value } };
	int fd;

	(void)state;
	open_loop(&loop);
	/* epoll tells of these two in the order in which they began to ring. */
	hang_up(&loop, &a, true, move_the_other);
	hang_up(&loop, &b, true, return_value);
	a.other = &b;
	b.other = &heir;
	b.value = -ECANCELED;
	heir.value = 5;
	fd = b.watch.fd;
	assert_int_equal(aw_loop_run(&loop), 5);
	assert_int_equal(a.calls, 1);
	assert_int_equal(b.calls, 0);
	assert_int_equal(heir.calls, 1);
	assert_int_equal(b.watch.fd, -EBADF);
	assert_int_equal(heir.watch.fd, fd);
	take_down(&a);
	take_down(&heir);
}

static void a_descriptor_that_is_not_watched_cannot_be_moved(void **state)
{
	autodrop(aw_loop_fini) struct aw_loop loop;
	struct bell a, heir = { .watch = { .fd = -EBADF } };
	struct aw_error err;

	(void)state;
	open_loop(&loop);
	hang_up(&loop, &a, false, return_value);
	aw_loop_unwatch(&loop, &a.watch);
	assert_int_equal(aw_loop_move(&loop, &a.watch, &heir.watch, EPOLLIN, &err), -ENOENT);
	assert_int_equal(heir.watch.fd, -EBADF);
	assert_true(a.watch.fd >= 0);
	take_down(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_with_the_value_of_stop),
		cmocka_unit_test(a_stop_before_the_run_ends_it_at_once),
		cmocka_unit_test(ends_with_what_a_callback_fails_with),
		cmocka_unit_test(what_is_not_read_is_told_again),
		cmocka_unit_test(an_unwatched_bell_is_not_heard_in_the_same_round),
		cmocka_unit_test(a_callback_may_free_another_watch_of_the_same_round),
		cmocka_unit_test(a_callback_may_free_its_own_watch),
		cmocka_unit_test(watching_again_changes_what_is_waited_for),
		cmocka_unit_test(watching_for_nothing_is_unwatching),
		cmocka_unit_test(a_hang_up_is_told_unasked),
		cmocka_unit_test(what_cannot_be_watched_is_an_error_with_its_number),
		cmocka_unit_test(a_forgotten_and_closed_bell_is_not_heard_in_the_same_round),
		cmocka_unit_test(a_moved_descriptor_is_heard_by_its_new_watch_alone),
		cmocka_unit_test(a_descriptor_that_is_not_watched_cannot_be_moved),
		cmocka_unit_test(a_signal_does_not_end_the_run),
		cmocka_unit_test(the_loop_is_close_on_exec_and_leaves_the_fds_to_their_owners),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
