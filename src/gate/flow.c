#include "gate/flow.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "base/own.h"

#define ROUNDS 8 /* then others get their turn */
#define MIN(a, b) ((a) < (b) ? (a) : (b))

void aw_flow_init(struct aw_flow *flow, int from, int to)
{
	*flow = (struct aw_flow){
		.from = from,
		.to = to,
		.held = AW_BUF_INIT(AW_FLOW_HELD_MAX),
		.pipe = { -EBADF, -EBADF },
		.left = AW_FLOW_ENDLESS,
	};
}

static void give_pipe_back(struct aw_flow *flow, struct aw_flow_tools *tools)
{
	if (flow->pipe.in >= 0)
		aw_pipes_give(&tools->pipes, &flow->pipe, flow->in_pipe == 0);
	flow->in_pipe = 0;
}

void aw_flow_fini(struct aw_flow *flow, struct aw_flow_tools *tools)
{
	give_pipe_back(flow, tools);
	aw_buf_fini(&flow->held);
}

static bool is_again(void)
{
	return errno == EAGAIN || errno == EINTR;
}

/* Counts what the flow may take of @bytes. -EBADMSG when the body is malformed. */
static ssize_t admit(struct aw_flow *flow, struct aw_str bytes)
{
	enum aw_http_flaw flaw;
	size_t n = MIN(bytes.len, flow->left);

	if (flow->chunked != NULL)
		return aw_http_chunked_feed(flow->chunked, bytes, &flaw);
	if (flow->left != AW_FLOW_ENDLESS)
		flow->left -= n;
	return (ssize_t)n;
}

static bool is_complete(const struct aw_flow *flow)
{
	if (flow->chunked != NULL)
		return aw_http_chunked_is_done(flow->chunked);
	return flow->left == 0;
}

bool aw_flow_is_whole(const struct aw_flow *flow)
{
	return is_complete(flow) || (flow->chunked == NULL && flow->left == AW_FLOW_ENDLESS);
}

int aw_flow_prime(struct aw_flow *flow, struct aw_buf *buf)
{
	ssize_t n = buf->len > 0 && !is_complete(flow) ? admit(flow, aw_buf_str(buf)) : 0;
	int r;

	if (n <= 0)
		return (int)n;
	r = aw_buf_append(&flow->held, buf->data, (size_t)n);
	if (r == 0)
		aw_buf_consume(buf, (size_t)n);
	return r;
}

static int push_held(struct aw_flow *flow)
{
	while (flow->held.len > 0) {
		ssize_t n = send(flow->to, flow->held.data, flow->held.len, MSG_NOSIGNAL);

		if (n < 0)
			return is_again() ? AW_FLOW_WAIT_OUT : -errno;
		flow->moved += (uint64_t)n;
		aw_buf_consume(&flow->held, (size_t)n);
	}
	/* An idle tunnel keeps no memory. */
	aw_buf_fini(&flow->held);
	return 0;
}

static int push_pipe(struct aw_flow *flow)
{
	while (flow->in_pipe > 0) {
		ssize_t n = splice(flow->pipe.out, NULL, flow->to, NULL, flow->in_pipe,
				   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

		if (n < 0)
			return is_again() ? AW_FLOW_WAIT_OUT : -errno;
		flow->moved += (uint64_t)n;
		flow->in_pipe -= (size_t)n;
	}
	return 0;
}

/* Keep what the sink did not take, and what lies behind the end of the body. */
static int keep_rest(struct aw_flow *flow, struct aw_str unsent, struct aw_str behind)
{
	int r = aw_buf_append(&flow->held, unsent.ptr, unsent.len);

	if (r < 0 || behind.len == 0)
		return r;
	if (flow->behind == NULL)
		return -EBADMSG;
	return aw_buf_append(flow->behind, behind.ptr, behind.len);
}

/* Bytes read (0 at the end of the stream), -EAGAIN, -errno. */
static ssize_t copy_once(struct aw_flow *flow, struct aw_flow_tools *tools)
{
	ssize_t got = recv(flow->from, tools->scratch,
			   MIN(sizeof(tools->scratch), flow->chunked ? SIZE_MAX : flow->left), 0);
	ssize_t mine, sent;
	int r;

	if (got <= 0)
		return got == 0 ? 0 : is_again() ? -EAGAIN : -errno;
	mine = admit(flow, (struct aw_str){ tools->scratch, (size_t)got });
	if (mine < 0)
		return mine;
	sent = mine > 0 ? send(flow->to, tools->scratch, (size_t)mine, MSG_NOSIGNAL) : 0;
	if (sent < 0 && !is_again())
		return -errno;
	if (sent < 0)
		sent = 0;
	flow->moved += (uint64_t)sent;
	r = keep_rest(flow, (struct aw_str){ tools->scratch + sent, (size_t)(mine - sent) },
		      (struct aw_str){ tools->scratch + mine, (size_t)(got - mine) });
	if (r < 0)
		return r;
	flow->is_bulk = got == sizeof(tools->scratch) && flow->chunked == NULL;
	return got;
}

/* As copy_once, into the pipe; the sink gets it in the next round. */
static ssize_t splice_once(struct aw_flow *flow)
{
	ssize_t n = splice(flow->from, NULL, flow->pipe.in, NULL, MIN(AW_PIPE_SIZE, flow->left),
			   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

	if (n < 0)
		return is_again() ? -EAGAIN : -errno;
	flow->in_pipe = (size_t)n;
	if (flow->left != AW_FLOW_ENDLESS)
		flow->left -= (size_t)n;
	return n;
}

static ssize_t pull(struct aw_flow *flow, struct aw_flow_tools *tools)
{
	bool has_pipe = flow->pipe.in >= 0;

	if (flow->is_bulk && !has_pipe)
		has_pipe = aw_pipes_take(&tools->pipes, &flow->pipe);
	return flow->is_bulk && has_pipe ? splice_once(flow) : copy_once(flow, tools);
}

int aw_flow_push(struct aw_flow *flow)
{
	int r = push_held(flow);

	return r == 0 ? push_pipe(flow) : r;
}

static int run_rounds(struct aw_flow *flow, struct aw_flow_tools *tools)
{
	int r = aw_flow_push(flow);

	for (int i = 0; i < ROUNDS && r == 0; i++) {
		ssize_t n;

		if (flow->is_ended || is_complete(flow))
			return AW_FLOW_DONE;
		n = pull(flow, tools);
		if (n == -EAGAIN)
			return AW_FLOW_WAIT_IN;
		if (n < 0)
			return (int)n;
		flow->is_ended = n == 0;
		r = aw_flow_push(flow);
		/* A short read emptied the source: it need not be asked again. */
		if (r == 0 && n > 0 && (size_t)n < sizeof(tools->scratch) && !is_complete(flow))
			return AW_FLOW_WAIT_IN;
	}
	if (r == 0 && (flow->is_ended || is_complete(flow)))
		return AW_FLOW_DONE;
	return r == 0 ? AW_FLOW_WAIT_IN : r;
}

int aw_flow_run(struct aw_flow *flow, struct aw_flow_tools *tools)
{
	int r = run_rounds(flow, tools);

	if (flow->in_pipe == 0)
		give_pipe_back(flow, tools);
	return r;
}
