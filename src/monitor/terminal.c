#include "monitor/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"

#define DRAIN_MAX (4 * 1024 * 1024)
#define DRAIN_WAIT_MS 2000

/* Mouse, focus and paste reports off, cursor on, keyboard protocol of xterm and kitty off. */
static const char mode_reset[] =
	"\033[?1000l\033[?1002l\033[?1003l\033[?1004l\033[?1006l\033[?2004l"
	"\033[?25h\033[>4m\033[<u\033[0m";

/* A description of our own: non-blocking here without being so for the shell that shares ours. */
static int reopen_terminal(int fd)
{
	char path[32];
	int own;

	(void)aw_str_format(path, sizeof(path), "/proc/self/fd/%d", fd);
	own = open(path, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (own < 0) /* after su the node may belong to another user: /dev/tty is always ours */
		own = open("/dev/tty", O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return own;
}

void aw_terminal_init(struct aw_terminal *t)
{
	*t = (struct aw_terminal){ .fd = -EBADF, .master = -EBADF };
	for (int i = 0; i < 3; i++) {
		t->is_tty[i] = isatty(i) == 1;
		if (t->is_tty[i] && t->fd < 0)
			t->fd = reopen_terminal(i);
	}
	if (t->fd < 0 || tcgetattr(t->fd, &t->saved) < 0) {
		t->fd = aw_fd_close(t->fd);
		memset(t->is_tty, 0, sizeof(t->is_tty));
	}
}

void aw_terminal_size(const struct aw_terminal *t, unsigned short *ret_rows,
		      unsigned short *ret_columns)
{
	struct winsize window = { .ws_row = 24, .ws_col = 80 };

	if (t->fd >= 0)
		(void)ioctl(t->fd, TIOCGWINSZ, &window);
	*ret_rows = window.ws_row;
	*ret_columns = window.ws_col;
}

static bool is_foreground(const struct aw_terminal *t)
{
	return tcgetpgrp(t->fd) == getpgrp();
}

static void go_raw(struct aw_terminal *t)
{
	struct termios raw = t->saved;

	if (t->is_raw || !is_foreground(t))
		return;
	cfmakeraw(&raw);
	t->is_raw = tcsetattr(t->fd, TCSADRAIN, &raw) == 0;
	t->may_read = t->is_raw;
}

/* Wait for what each side can take and give now; both directions stop at a full buffer. */
static int update(struct aw_terminal *t)
{
	struct aw_error err;
	uint32_t host = 0, cell = 0;

	if (t->may_read && t->in.len == 0)
		host |= EPOLLIN;
	if (t->out.len > 0)
		host |= EPOLLOUT;
	if (t->out.len == 0)
		cell |= EPOLLIN;
	if (t->in.len > 0)
		cell |= EPOLLOUT;
	if (t->master < 0)
		cell = 0;
	if (aw_loop_watch(t->loop, &t->host, host, &err) < 0 ||
	    aw_loop_watch(t->loop, &t->cell, cell, &err) < 0)
		return -err.code;
	return 0;
}

/* False when the far side is gone for good. */
static bool fill(int fd, struct aw_terminal_pipe *pipe)
{
	ssize_t n = read(fd, pipe->data, sizeof(pipe->data));

	if (n > 0) {
		pipe->start = 0;
		pipe->len = (size_t)n;
		return true;
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static bool flush_pipe(int fd, struct aw_terminal_pipe *pipe)
{
	ssize_t n = write(fd, pipe->data + pipe->start, pipe->len);

	if (n >= 0) {
		pipe->start += (size_t)n;
		pipe->len -= (size_t)n;
		return true;
	}
	return errno == EAGAIN || errno == EINTR;
}

static void lose_host(struct aw_terminal *t)
{
	t->may_read = false;
	t->out.len = 0;
	aw_loop_unwatch(t->loop, &t->host);
}

static int host_ready(struct aw_watch *watch, uint32_t events)
{
	struct aw_terminal *t = AW_CONTAINER(watch, struct aw_terminal, host);

	if ((events & EPOLLIN) && t->in.len == 0 && !fill(t->fd, &t->in))
		lose_host(t);
	if ((events & EPOLLOUT) && t->out.len > 0 && !flush_pipe(t->fd, &t->out))
		lose_host(t);
	if (events & (EPOLLHUP | EPOLLERR))
		lose_host(t);
	if (t->in.len > 0 && t->master >= 0)
		(void)flush_pipe(t->master, &t->in);
	return update(t);
}

static int cell_ready(struct aw_watch *watch, uint32_t events)
{
	struct aw_terminal *t = AW_CONTAINER(watch, struct aw_terminal, cell);

	if ((events & EPOLLOUT) && t->in.len > 0)
		(void)flush_pipe(t->master, &t->in);
	if ((events & (EPOLLIN | EPOLLHUP)) && t->out.len == 0 && !fill(t->master, &t->out)) {
		/* EIO: nobody holds the slave now. It may be opened again, but there is nothing to hear. */
		aw_loop_unwatch(t->loop, &t->cell);
		t->master = aw_fd_close(t->master);
	}
	if (t->out.len > 0 && !flush_pipe(t->fd, &t->out))
		lose_host(t);
	return update(t);
}

int aw_terminal_attach(struct aw_terminal *t, int take_master, struct aw_loop *loop,
		       struct aw_error *err)
{
	int flags = fcntl(take_master, F_GETFL);

	t->master = take_master;
	t->loop = loop;
	if (flags < 0 || fcntl(take_master, F_SETFL, flags | O_NONBLOCK) < 0)
		return aw_fail(err, errno, "make the pty non-blocking");
	t->host = (struct aw_watch){ .fd = t->fd, .ready = host_ready };
	t->cell = (struct aw_watch){ .fd = t->master, .ready = cell_ready };
	go_raw(t);
	return update(t);
}

void aw_terminal_resized(struct aw_terminal *t)
{
	struct winsize window;

	if (t->fd >= 0 && t->master >= 0 && ioctl(t->fd, TIOCGWINSZ, &window) == 0)
		(void)ioctl(t->master, TIOCSWINSZ, &window);
}

void aw_terminal_continued(struct aw_terminal *t)
{
	if (t->fd < 0 || t->master < 0)
		return;
	t->is_raw = false;
	go_raw(t);
	aw_terminal_resized(t);
	(void)update(t);
}

static bool write_patiently(int fd, struct aw_terminal_pipe *pipe)
{
	while (pipe->len > 0) {
		struct pollfd p = { .fd = fd, .events = POLLOUT };

		if (poll(&p, 1, DRAIN_WAIT_MS) <= 0 || !flush_pipe(fd, pipe))
			return false;
	}
	return true;
}

void aw_terminal_drain(struct aw_terminal *t)
{
	size_t copied = 0;

	if (t->fd < 0)
		return;
	while (write_patiently(t->fd, &t->out) && t->master >= 0 && copied < DRAIN_MAX) {
		if (!fill(t->master, &t->out) || t->out.len == 0)
			break;
		copied += t->out.len;
	}
}

void aw_terminal_restore(struct aw_terminal *t, bool is_abnormal)
{
	sigset_t ttou, old;

	if (t->fd < 0 || !t->is_raw)
		return;
	/* From the background this call would stop us before it has done its work. */
	sigemptyset(&ttou);
	sigaddset(&ttou, SIGTTOU);
	(void)sigprocmask(SIG_BLOCK, &ttou, &old);
	if (is_abnormal)
		(void)!write(t->fd, mode_reset, sizeof(mode_reset) - 1);
	(void)tcsetattr(t->fd, TCSAFLUSH, &t->saved);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	t->is_raw = t->may_read = false;
}

void aw_terminal_restore_orphaned(struct aw_terminal *t)
{
	struct termios now, raw = t->saved;

	cfmakeraw(&raw);
	if (t->fd < 0 || tcgetattr(t->fd, &now) < 0)
		return;
	t->is_raw = now.c_lflag == raw.c_lflag && now.c_iflag == raw.c_iflag &&
		    now.c_oflag == raw.c_oflag;
	aw_terminal_restore(t, true);
}

void aw_terminal_fini(struct aw_terminal *t)
{
	aw_terminal_restore(t, false);
	t->fd = aw_fd_close(t->fd);
	t->master = aw_fd_close(t->master);
}
