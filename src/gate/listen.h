/*
 * listen - the sockets inside the cell that clients connect to.
 *
 * They are paused, not polled, when gate must not take on more: while the monitor is behind, and when
 * descriptors ran out (until a connection ends).
 */
#pragma once

#include "base/loop.h"
#include "gate/timer.h"
#include "ipc/ipc.h"

struct aw_gate;

struct aw_listener {
	struct aw_watch watch;
	struct aw_gate *gate;
	uint8_t kind; /* enum aw_ipc_listener_kind */
};

struct aw_listeners {
	struct aw_listener listener[AW_IPC_LISTENERS_MAX];
	size_t count;
	struct aw_timer retry;
	bool is_short_of_fds;
};

/* Take the listeners of a set-up message over and put them in the shape that gate needs. */
int aw_listeners_init(struct aw_gate *gate, struct aw_ipc_message *message, struct aw_error *err);

/* Watch what may be watched now. */
int aw_listeners_update(struct aw_gate *gate, struct aw_error *err);

/* A descriptor came free. */
void aw_listeners_fd_freed(struct aw_gate *gate);
