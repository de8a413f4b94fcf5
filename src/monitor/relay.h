/*
 * relay - stdin, stdout and stderr of the agent when they are files or pipes of the host.
 *
 * The agent does not get the host's own descriptor. Of a file it could change mode and times, and where
 * there is no Landlock open it again for more than it was given; out of a pipe that it was given to write
 * to it could read what others write there (/proc/self/fd), and its flags are the caller's too. So it
 * gets a pipe, and a small process of its own copies, so that a slow reader or disk holds the copier and
 * never the monitor. Output descriptors of the same file share one pipe: the order of what is written
 * stays.
 *
 * A file as stdin is copied ahead, and put back afterwards to what the agent really read, so that
 * `while read line; do warden run ...; done < file` goes on where it should. A pipe as stdin is passed on:
 * what was read ahead of it could not be put back. Sockets and devices are passed on as well.
 */
#pragma once

#include <sys/types.h>

#include "base/error.h"

struct aw_relay {
	int stdio[3];  /* what the agent gets as 0, 1, 2; the pipe ends are ours to close */
	int pidfds[3]; /* of the copiers; -EBADF: none */
	int input; /* second hold of the pipe that is the agent's stdin, to see what is left in it */
};

#define AW_RELAY_INIT                                                                       \
	{                                                                                   \
		.stdio = { 0, 1, 2 }, .pidfds = { -EBADF, -EBADF, -EBADF }, .input = -EBADF \
	}

/* Look at 0, 1 and 2 and start what is needed. @uid, @gid: of the agent, outside. */
int aw_relay_start(struct aw_relay *ret, uid_t uid, gid_t gid, struct aw_error *err);

/* The agent has its ends now: close ours, so that the copiers see the end of it. */
void aw_relay_release(struct aw_relay *relay);

/* Everything inside is dead: wait until what was written has been copied, put stdin back. */
void aw_relay_finish(struct aw_relay *relay);
