/*
 * janitor - a tiny process that is there before the cell starts and outlives a killed monitor.
 *
 * While the monitor lives it sleeps. If the monitor ends without having said "done" (kill -9, a
 * crash, out of memory), it kills the cell and gate, thaws what was frozen, restores the terminal and
 * removes what the session left on the host. It holds only descriptors, never the policy or a secret.
 */
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "cell/cgroup.h"
#include "monitor/terminal.h"
#include "store/state.h"

struct aw_janitor_duties {
	int cell, gate;               /* pidfds to kill; -EBADF: none */
	struct aw_terminal *terminal; /* to restore */
	struct aw_state *state;       /* to sweep the session from; its lock is ours to let go */
	struct aw_cgroup *cgroup;     /* to kill, thaw and remove; in memory shared with it */
	int inotify; /* held only, so that its last close is not the monitor's; -EBADF */
};

struct aw_janitor {
	pid_t pid;
	int link; /* our end; "done" is one byte */
};

/*
 * Fork it. In the child every descriptor but those of @duties is closed and nothing of the monitor's
 * memory is used beyond them.
 */
int aw_janitor_start(const struct aw_janitor_duties *duties, struct aw_janitor *ret,
		     struct aw_error *err);

/* End one that another has taken over from. */
void aw_janitor_recall(struct aw_janitor *janitor);

/*
 * The monitor has cleaned up itself: send it away. It is not waited for; it ends after the monitor, and
 * so holds the last reference to @take_over (at most AW_JANITOR_TAKES_MAX, none negative) and to the
 * inotify descriptor. Closing the last one of a mount namespace or of a watch waits for the kernel, up
 * to 16 ms, and that shall not be the end of the session. The caller closes its own.
 */
#define AW_JANITOR_TAKES_MAX 4
void aw_janitor_dismiss(struct aw_janitor *janitor, const int *take_over, size_t count);
