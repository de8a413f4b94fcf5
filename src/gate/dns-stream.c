/* DNS over TCP (RFC 7766): framed messages, as many as a client likes, answered in order. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/own.h"
#include "gate/gate.h"

#define IN_MAX (2 + AW_DNS_QUERY_MAX)
#define OUT_MAX 2048 /* our answers are a name and an address */

struct aw_dns_stream {
	struct aw_gate *gate;
	struct aw_dns_stream *prev, *next;
	struct aw_watch watch;
	struct aw_timer timer; /* a client that is silent for so long has asked all it wanted */
	struct aw_buf in;
};

static void close_stream(struct aw_dns_stream *stream)
{
	struct aw_dns *dns = &stream->gate->dns;

	aw_timer_stop(&stream->timer);
	aw_loop_unwatch(&stream->gate->loop, &stream->watch);
	(void)aw_fd_close(stream->watch.fd);
	aw_buf_fini(&stream->in);
	if (stream->prev != NULL)
		stream->prev->next = stream->next;
	else
		dns->streams = stream->next;
	if (stream->next != NULL)
		stream->next->prev = stream->prev;
	dns->stream_count--;
	aw_listeners_fd_freed(stream->gate);
	free(stream);
}

static void timer_fired(struct aw_timer *timer)
{
	close_stream(AW_CONTAINER(timer, struct aw_dns_stream, timer));
}

/* Answer one message; false when the client does not take the answer. */
static bool answer(struct aw_dns_stream *stream, struct aw_str message)
{
	uint8_t out[2 + OUT_MAX];
	size_t len = aw_dns_answer(stream->gate, message, false, out + 2, OUT_MAX);

	if (len == 0)
		return true;
	aw_dns_frame_write(len, out);
	return send(stream->watch.fd, out, 2 + len, MSG_NOSIGNAL) == (ssize_t)(2 + len);
}

/* Everything that is complete, unless the monitor has to catch up first. */
static void answer_all(struct aw_dns_stream *stream)
{
	struct aw_loop *loop = &stream->gate->loop;
	struct aw_error err;
	bool is_behind;

	while (!(is_behind = aw_report_is_behind(&stream->gate->report))) {
		struct aw_str message;
		ssize_t n = aw_dns_frame_parse(aw_buf_str(&stream->in), &message);

		if (n == -EAGAIN)
			break;
		if (n < 0 || !answer(stream, message)) {
			close_stream(stream);
			return;
		}
		aw_buf_consume(&stream->in, (size_t)n);
	}
	if (aw_loop_watch(loop, &stream->watch, is_behind ? 0 : EPOLLIN, &err) < 0)
		close_stream(stream);
}

static int stream_ready(struct aw_watch *watch, uint32_t events)
{
	struct aw_dns_stream *stream = AW_CONTAINER(watch, struct aw_dns_stream, watch);
	size_t room = IN_MAX - stream->in.len;
	ssize_t n = -1;

	(void)events;
	if (aw_buf_reserve(&stream->in, room) == 0)
		n = recv(watch->fd, stream->in.data + stream->in.len, room, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		close_stream(stream);
		return 0;
	}
	stream->in.len += (size_t)n;
	aw_timer_start(&stream->gate->timers, &stream->timer, AW_TIMER_TALK);
	answer_all(stream);
	return 0;
}

void aw_dns_stream_open(struct aw_gate *gate, int take_fd)
{
	struct aw_dns_stream *stream = NULL;
	struct aw_error err;

	if (gate->dns.stream_count < AW_DNS_STREAMS)
		stream = calloc(1, sizeof(*stream));
	if (stream == NULL) {
		(void)aw_fd_close(take_fd);
		return;
	}
	*stream = (struct aw_dns_stream){ .gate = gate,
					  .next = gate->dns.streams,
					  .watch = { .fd = take_fd, .ready = stream_ready },
					  .timer.fire = timer_fired,
					  .in = AW_BUF_INIT(IN_MAX) };
	if (stream->next != NULL)
		stream->next->prev = stream;
	gate->dns.streams = stream;
	gate->dns.stream_count++;
	aw_timer_start(&gate->timers, &stream->timer, AW_TIMER_TALK);
	if (aw_loop_watch(&gate->loop, &stream->watch, EPOLLIN, &err) < 0)
		close_stream(stream);
}

void aw_dns_unpark(struct aw_gate *gate)
{
	struct aw_dns_stream *next;

	for (struct aw_dns_stream *stream = gate->dns.streams; stream != NULL; stream = next) {
		next = stream->next;
		answer_all(stream);
	}
}
