/*
 * pipes - the pipes through which splice(2) moves bytes from one socket to another.
 *
 * A pipe is taken for as long as bytes lie in it and comes back empty, so that a few serve thousands
 * of tunnels. Some are made before gate confines itself: pipe pages are counted per user, and the
 * agent shares ours (KERNEL-FACTS: what the agent shares with the user's uid).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define AW_PIPES_MAX 64
#define AW_PIPE_SIZE (256 * 1024)

struct aw_pipe {
	int in, out; /* write into in, read from out */
};

struct aw_pipes {
	struct aw_pipe spare[AW_PIPES_MAX];
	size_t spare_count, made;
};

/* Make @count pipes now; fewer where the kernel refuses. */
void aw_pipes_init(struct aw_pipes *pipes, size_t count);

/* An empty pipe, made if none is spare; false when there is none to be had: copy instead. */
bool aw_pipes_take(struct aw_pipes *pipes, struct aw_pipe *ret);

/* Give back; one that is not empty is closed. */
void aw_pipes_give(struct aw_pipes *pipes, struct aw_pipe *pipe, bool is_empty);
