#include "gate/pipes.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/own.h"

static bool make(struct aw_pipe *ret)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return false;
	/* Beyond the user's share of pipe pages this fails and the pipe stays small: still good. */
	(void)fcntl(ends[1], F_SETPIPE_SZ, AW_PIPE_SIZE);
	*ret = (struct aw_pipe){ .in = ends[1], .out = ends[0] };
	return true;
}

void aw_pipes_init(struct aw_pipes *pipes, size_t count)
{
	*pipes = (struct aw_pipes){ 0 };
	while (pipes->made < count && make(&pipes->spare[pipes->spare_count])) {
		pipes->spare_count++;
		pipes->made++;
	}
}

bool aw_pipes_take(struct aw_pipes *pipes, struct aw_pipe *ret)
{
	if (pipes->spare_count > 0) {
		*ret = pipes->spare[--pipes->spare_count];
		return true;
	}
	if (pipes->made >= AW_PIPES_MAX || !make(ret))
		return false;
	pipes->made++;
	return true;
}

void aw_pipes_give(struct aw_pipes *pipes, struct aw_pipe *pipe, bool is_empty)
{
	if (is_empty) {
		pipes->spare[pipes->spare_count++] = *pipe;
	} else {
		(void)close(pipe->in);
		(void)close(pipe->out);
		pipes->made--;
	}
	*pipe = (struct aw_pipe){ -EBADF, -EBADF };
}
