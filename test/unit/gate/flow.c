#include "gate/flow.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/own.h"

#define BIG (1024 * 1024)

/* A flow between two socket pairs: what is written at `source` comes out at `sink`. */
struct bench {
	struct aw_flow_tools tools;
	struct aw_flow flow;
	int source, sink;
	int inner[2];
	char *data, *got;
};

static int set_up(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	int in[2], out[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, in) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, out) < 0)
		return -1;
	b->source = in[0];
	b->inner[0] = in[1];
	b->inner[1] = out[0];
	b->sink = out[1];
	b->data = malloc(BIG);
	b->got = malloc(BIG);
	for (size_t i = 0; i < BIG; i++)
		b->data[i] = (char)(i * 7 + i / 251);
	aw_pipes_init(&b->tools.pipes, 1);
	aw_flow_init(&b->flow, b->inner[0], b->inner[1]);
	*state = b;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *b = *state;
	struct aw_pipe pipe;

	aw_flow_fini(&b->flow, &b->tools);
	while (b->tools.pipes.spare_count > 0 && aw_pipes_take(&b->tools.pipes, &pipe))
		aw_pipes_give(&b->tools.pipes, &pipe, false);
	(void)aw_fd_close(b->source);
	(void)aw_fd_close(b->sink);
	(void)aw_fd_close(b->inner[0]);
	(void)aw_fd_close(b->inner[1]);
	free(b->data);
	free(b->got);
	free(b);
	return 0;
}

static void say(struct bench *b, const char *text)
{
	assert_int_equal(send(b->source, text, strlen(text), 0), (ssize_t)strlen(text));
}

static void expect(struct bench *b, const char *text)
{
	ssize_t n = recv(b->sink, b->got, BIG, 0);

	assert_int_equal(n < 0 ? 0 : n, (ssize_t)strlen(text));
	assert_memory_equal(b->got, text, strlen(text));
}

static int run(struct bench *b)
{
	return aw_flow_run(&b->flow, &b->tools);
}

/* Push BIG bytes through while the sink is read by turns. */
static void move_big(struct bench *b)
{
	size_t sent = 0, got = 0;

	while (got < BIG) {
		ssize_t n = sent < BIG ? send(b->source, b->data + sent, BIG - sent, 0) : 0;

		sent += n > 0 ? (size_t)n : 0;
		assert_true(run(b) > 0);
		n = recv(b->sink, b->got + got, BIG - got, 0);
		got += n > 0 ? (size_t)n : 0;
	}
	assert_memory_equal(b->got, b->data, BIG);
	assert_int_equal(b->flow.moved, BIG);
}

static void small_amounts_arrive_at_once_and_need_no_pipe(void **state)
{
	struct bench *b = *state;

	say(b, "hello");
	assert_int_equal(run(b), AW_FLOW_WAIT_IN);
	expect(b, "hello");
	assert_int_equal(b->flow.pipe.in, -EBADF);
	assert_int_equal(b->flow.moved, 5);
	assert_null(b->flow.held.data);
}

static void large_amounts_arrive_whole_and_give_their_pipe_back(void **state)
{
	struct bench *b = *state;

	move_big(b);
	assert_true(b->flow.is_bulk);
	assert_int_equal(b->tools.pipes.spare_count, b->tools.pipes.made);
}

static void without_a_pipe_they_are_copied(void **state)
{
	struct bench *b = *state;
	size_t made = b->tools.pipes.made;
	struct aw_pipe taken;

	assert_true(aw_pipes_take(&b->tools.pipes, &taken));
	b->tools.pipes.made = AW_PIPES_MAX;
	move_big(b);
	assert_int_equal(b->flow.pipe.in, -EBADF);
	b->tools.pipes.made = made;
	aw_pipes_give(&b->tools.pipes, &taken, true);
}

static void a_sink_that_takes_nothing_stops_the_source(void **state)
{
	struct bench *b = *state;
	size_t held = 0;
	int r = 0;

	for (int i = 0; i < 1000 && r != AW_FLOW_WAIT_OUT; i++) {
		(void)!send(b->source, b->data, BIG, 0);
		r = run(b);
		held = b->flow.held.len + b->flow.in_pipe;
	}
	assert_int_equal(r, AW_FLOW_WAIT_OUT);
	/* However often it is asked again, no more is taken in. */
	assert_int_equal(run(b), AW_FLOW_WAIT_OUT);
	assert_int_equal(b->flow.held.len + b->flow.in_pipe, held);
	assert_true(held <= AW_FLOW_HELD_MAX + AW_PIPE_SIZE);
}

static void the_end_of_the_stream_comes_after_everything_else(void **state)
{
	struct bench *b = *state;

	say(b, "last words");
	assert_int_equal(shutdown(b->source, SHUT_WR), 0);
	assert_int_equal(run(b), AW_FLOW_WAIT_IN);
	expect(b, "last words");
	assert_int_equal(run(b), AW_FLOW_DONE);
	assert_true(b->flow.is_ended && aw_flow_is_whole(&b->flow));
}

static void a_limit_is_kept_to_the_byte(void **state)
{
	struct bench *b = *state;

	b->flow.left = 5;
	say(b, "helloGET /next");
	assert_int_equal(run(b), AW_FLOW_DONE);
	expect(b, "hello");
	assert_true(aw_flow_is_whole(&b->flow));
	assert_int_equal(recv(b->inner[0], b->got, BIG, 0), 9);
	assert_memory_equal(b->got, "GET /next", 9);
}

static void a_limit_is_kept_by_splice_too(void **state)
{
	struct bench *b = *state;

	b->flow.left = BIG;
	move_big(b);
	assert_int_equal(run(b), AW_FLOW_DONE);
	say(b, "next");
	assert_int_equal(run(b), AW_FLOW_DONE);
	expect(b, "");
}

static void an_end_before_the_limit_is_not_whole(void **state)
{
	struct bench *b = *state;

	b->flow.left = 10;
	say(b, "hello");
	assert_int_equal(shutdown(b->source, SHUT_WR), 0);
	(void)run(b);
	assert_int_equal(run(b), AW_FLOW_DONE);
	assert_false(aw_flow_is_whole(&b->flow));
}

static void a_chunked_body_ends_where_it_says(void **state)
{
	struct bench *b = *state;
	struct aw_http_chunked chunked = { 0 };
	autodrop(aw_buf_fini) struct aw_buf behind = AW_BUF_INIT(100);

	b->flow.chunked = &chunked;
	b->flow.behind = &behind;
	say(b, "5\r\nhel");
	assert_int_equal(run(b), AW_FLOW_WAIT_IN);
	expect(b, "5\r\nhel");
	assert_false(aw_flow_is_whole(&b->flow));
	say(b, "lo\r\n0\r\n\r\nGET /");
	assert_int_equal(run(b), AW_FLOW_DONE);
	expect(b, "lo\r\n0\r\n\r\n");
	assert_true(aw_flow_is_whole(&b->flow));
	assert_int_equal(behind.len, 5);
	assert_memory_equal(behind.data, "GET /", 5);
}

static void a_malformed_chunk_is_an_error_and_is_not_sent(void **state)
{
	struct bench *b = *state;
	struct aw_http_chunked chunked = { 0 };

	b->flow.chunked = &chunked;
	say(b, "zz\r\n");
	assert_int_equal(run(b), -EBADMSG);
	expect(b, "");
}

static void bytes_behind_a_chunked_body_that_nobody_takes_are_an_error(void **state)
{
	struct bench *b = *state;
	struct aw_http_chunked chunked = { 0 };

	b->flow.chunked = &chunked;
	say(b, "0\r\n\r\nextra");
	assert_int_equal(run(b), -EBADMSG);
}

static void what_was_read_before_goes_first(void **state)
{
	struct bench *b = *state;
	autodrop(aw_buf_fini) struct aw_buf before = AW_BUF_INIT(100);

	assert_int_equal(aw_buf_append_str(&before, "abcdef"), 0);
	b->flow.left = 8;
	assert_int_equal(aw_flow_prime(&b->flow, &before), 0);
	assert_int_equal(before.len, 0);
	say(b, "ghijk");
	assert_int_equal(run(b), AW_FLOW_DONE);
	expect(b, "abcdefgh");
}

static void only_what_belongs_to_it_is_taken_from_before(void **state)
{
	struct bench *b = *state;
	autodrop(aw_buf_fini) struct aw_buf before = AW_BUF_INIT(100);

	assert_int_equal(aw_buf_append_str(&before, "bodyGET /"), 0);
	b->flow.left = 4;
	assert_int_equal(aw_flow_prime(&b->flow, &before), 0);
	assert_int_equal(before.len, 5);
	assert_int_equal(run(b), AW_FLOW_DONE);
	expect(b, "body");
}

static void a_sink_that_is_gone_is_an_error(void **state)
{
	struct bench *b = *state;

	b->sink = aw_fd_close(b->sink);
	say(b, "hello");
	assert_int_equal(run(b), -EPIPE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(small_amounts_arrive_at_once_and_need_no_pipe),
		TEST(large_amounts_arrive_whole_and_give_their_pipe_back),
		TEST(without_a_pipe_they_are_copied),
		TEST(a_sink_that_takes_nothing_stops_the_source),
		TEST(the_end_of_the_stream_comes_after_everything_else),
		TEST(a_limit_is_kept_to_the_byte),
		TEST(a_limit_is_kept_by_splice_too),
		TEST(an_end_before_the_limit_is_not_whole),
		TEST(a_chunked_body_ends_where_it_says),
		TEST(a_malformed_chunk_is_an_error_and_is_not_sent),
		TEST(bytes_behind_a_chunked_body_that_nobody_takes_are_an_error),
		TEST(what_was_read_before_goes_first),
		TEST(only_what_belongs_to_it_is_taken_from_before),
		TEST(a_sink_that_is_gone_is_an_error),
	};

	return cmocka_run_group_tests_name("flow", tests, NULL, NULL);
}
