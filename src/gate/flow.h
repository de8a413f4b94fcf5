/*
 * flow - one direction of a connection: bytes from one socket to another.
 *
 * How far a flow goes is set before it runs: to the end of the stream (the default), @left bytes, or
 * to the end of a chunked body. First go the bytes in `held`, then what the source gives. Small
 * amounts are copied; a source that fills whole reads is moved with splice(2), which copies nothing
 * into this process. At most AW_FLOW_HELD_MAX bytes are held while the other side does not take them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "gate/pipes.h"
#include "wire/http-chunked.h"

#define AW_FLOW_SCRATCH (16 * 1024)
#define AW_FLOW_HELD_MAX (AW_HTTP_HEAD_MAX + 8 * 1024 + AW_FLOW_SCRATCH)
#define AW_FLOW_ENDLESS UINT64_MAX

enum aw_flow_state {
	AW_FLOW_WAIT_IN = 1, /* the source has nothing now */
	AW_FLOW_WAIT_OUT,    /* the sink takes nothing now */
	AW_FLOW_DONE,        /* as far as it goes, and everything delivered */
};

struct aw_flow {
	int from, to;
	struct aw_buf held;
	struct aw_pipe pipe;
	size_t in_pipe;
	uint64_t left;                   /* still to be taken from the source */
	struct aw_http_chunked *chunked; /* follow this body instead of `left` */
	struct aw_buf *behind;           /* chunked: gets what lay behind the body's end */
	uint64_t moved;                  /* delivered, over all its runs */
	bool is_ended;                   /* the source said end of stream */
	bool is_bulk;
};

/* What flows share. */
struct aw_flow_tools {
	struct aw_pipes pipes;
	char scratch[AW_FLOW_SCRATCH];
};

void aw_flow_init(struct aw_flow *flow, int from, int to);
void aw_flow_fini(struct aw_flow *flow, struct aw_flow_tools *tools);

/*
 * Move what can be moved now, within reason. Returns an aw_flow_state, -EPIPE or another errno of
 * either socket, -EBADMSG for a malformed chunked body or bytes behind it that `behind` cannot take.
 */
int aw_flow_run(struct aw_flow *flow, struct aw_flow_tools *tools);

/* Only deliver what is held. 0 when nothing is any more, AW_FLOW_WAIT_OUT, -errno. */
int aw_flow_push(struct aw_flow *flow);

/* False while the body that the flow was set to move is not all taken; always true without one. */
bool aw_flow_is_whole(const struct aw_flow *flow);

/* Begin with bytes that were read already: takes from @buf what belongs to this flow. 0 or -errno. */
int aw_flow_prime(struct aw_flow *flow, struct aw_buf *buf);
