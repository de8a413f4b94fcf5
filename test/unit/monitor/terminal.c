/*
 * Each test runs in a child that has a terminal of its own: the "host" pty is its controlling terminal
 * and its standard descriptors, and the test holds the side where a person would sit. The "cell" pty
 * stands for the one that comes from a cell; the test writes to its slave as an agent would.
 */
#include "monitor/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "support/inside.h"

#define BULK (768 * 1024)

static struct aw_error err;

struct pty {
	int master, slave;
};

struct world {
	struct aw_terminal t;
	struct aw_loop loop;
	struct aw_watch timer;
	struct pty host, cell;
};

static bool open_pty(struct pty *pty, int flags)
{
	char name[64];

	pty->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (pty->master < 0 || grantpt(pty->master) < 0 || unlockpt(pty->master) < 0 ||
	    ptsname_r(pty->master, name, sizeof(name)) != 0)
		return false;
	pty->slave = open(name, O_RDWR | O_CLOEXEC | flags);
	return pty->slave >= 0;
}

static int stop_loop(struct aw_watch *watch, uint32_t events)
{
	struct world *w = AW_CONTAINER(watch, struct world, timer);
	uint64_t times;

	(void)events;
	(void)!read(watch->fd, &times, sizeof(times));
	aw_loop_stop(&w->loop, 0);
	return 0;
}

/* Let the loop work for a while. */
static int pump(struct world *w, long ms)
{
	struct itimerspec when = { .it_value = { ms / 1000, ms % 1000 * 1000000 } };

	w->loop.stop = 0;
	if (timerfd_settime(w->timer.fd, 0, &when, NULL) < 0)
		return -errno;
	return aw_loop_run(&w->loop);
}

/* A session whose controlling terminal is the host pty, on those of 0, 1, 2 that @is_tty names. */
static bool make(struct world *w, const char *is_tty)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	memset(w, 0, sizeof(*w));
	(void)signal(SIGHUP, SIG_IGN);
	if (setsid() < 0 || !open_pty(&w->host, 0) || !open_pty(&w->cell, O_NOCTTY))
		return false;
	for (int i = 0; i < 3; i++)
		if (dup2(is_tty[i] == 't' ? w->host.slave : null, i) < 0)
			return false;
	aw_terminal_init(&w->t);
	w->timer = (struct aw_watch){ .ready = stop_loop };
	w->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	return aw_loop_init(&w->loop, &err) == 0 &&
	       aw_loop_watch(&w->loop, &w->timer, EPOLLIN, &err) == 0;
}

static bool attach(struct world *w)
{
	struct termios raw;

	/* As a program that wants every byte as it is would leave it. */
	if (tcgetattr(w->cell.slave, &raw) < 0)
		return false;
	cfmakeraw(&raw);
	return tcsetattr(w->cell.slave, TCSANOW, &raw) == 0 &&
	       aw_terminal_attach(&w->t, w->cell.master, &w->loop, &err) == 0;
}

/* What can be read of a descriptor now, as text. */
static const char *take(int fd)
{
	static char text[4096];
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t n = 0;

	while (n < sizeof(text) - 1 && poll(&p, 1, 20) > 0) {
		ssize_t got = read(fd, text + n, sizeof(text) - 1 - n);

		if (got <= 0)
			break;
		n += (size_t)got;
	}
	text[n] = '\0';
	return text;
}

/* Let the loop work until exactly @text has come out at @fd. */
static bool arrives(struct world *w, int fd, const char *text)
{
	char got[256] = "";
	size_t n = 0;

	for (int i = 0; i < 500 && n < strlen(text); i++) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t len;

		if (pump(w, 10) < 0)
			return false;
		if (poll(&p, 1, 0) <= 0)
			continue;
		len = read(fd, got + n, sizeof(got) - 1 - n);
		if (len < 0)
			return false;
		n += (size_t)len;
	}
	return strcmp(got, text) == 0 && pump(w, 20) == 0 && strcmp(take(fd), "") == 0;
}

static bool is_raw(int fd)
{
	struct termios now;

	return tcgetattr(fd, &now) == 0 && (now.c_lflag & (ICANON | ECHO | ISIG)) == 0 &&
	       (now.c_oflag & OPOST) == 0;
}

static int without_terminal(void *state)
{
	static struct world w;
	unsigned short rows, columns;

	(void)state;
	INSIDE(make(&w, "..."));
	INSIDE(w.t.fd == -EBADF && w.t.master == -EBADF);
	INSIDE(!w.t.is_tty[0] && !w.t.is_tty[1] && !w.t.is_tty[2]);
	aw_terminal_size(&w.t, &rows, &columns);
	INSIDE(rows == 24 && columns == 80);
	aw_terminal_drain(&w.t);
	aw_terminal_resized(&w.t);
	aw_terminal_continued(&w.t);
	aw_terminal_restore(&w.t, true);
	aw_terminal_restore_orphaned(&w.t);
	aw_terminal_fini(&w.t);
	return 0;
}

static void without_a_terminal_nothing_is_done(void **state)
{
	(void)state;
	assert_int_equal(inside_child(without_terminal, NULL), 0);
}

static int some_terminals(void *state)
{
	static struct world w;
	struct winsize window = { .ws_row = 11, .ws_col = 22 };
	unsigned short rows, columns;

	(void)state;
	INSIDE(make(&w, ".t."));
	INSIDE(!w.t.is_tty[0] && w.t.is_tty[1] && !w.t.is_tty[2] && w.t.fd >= 0);
	INSIDE(ioctl(w.host.slave, TIOCSWINSZ, &window) == 0);
	aw_terminal_size(&w.t, &rows, &columns);
	INSIDE(rows == 11 && columns == 22);
	/* Non-blocking is our own description, not the shell's that shares descriptor 1. */
	INSIDE(fcntl(w.t.fd, F_GETFL) & O_NONBLOCK);
	INSIDE(!(fcntl(1, F_GETFL) & O_NONBLOCK));
	INSIDE(fcntl(w.t.fd, F_GETFD) & FD_CLOEXEC);
	return 0;
}

static void each_descriptor_is_looked_at_by_itself(void **state)
{
	(void)state;
	assert_int_equal(inside_child(some_terminals, NULL), 0);
}

static int raw_and_back(void *state)
{
	static struct world w;
	struct termios before, after;

	(void)state;
	INSIDE(make(&w, "ttt"));
	INSIDE(tcgetattr(w.host.slave, &before) == 0 && !is_raw(w.host.slave));
	INSIDE(attach(&w) && w.t.is_raw && is_raw(w.host.slave));
	INSIDE(fcntl(w.cell.master, F_GETFL) & O_NONBLOCK);
	aw_terminal_restore(&w.t, false);
	INSIDE(tcgetattr(w.host.slave, &after) == 0);
	INSIDE(memcmp(&before, &after, sizeof(before)) == 0 && !w.t.is_raw);
	INSIDE(strcmp(take(w.host.master), "") == 0);
	return 0;
}

static void the_hosts_terminal_goes_raw_and_comes_back_as_it_was(void **state)
{
	(void)state;
	assert_int_equal(inside_child(raw_and_back, NULL), 0);
}

static int copy_both_ways(void *state)
{
	static struct world w;

	(void)state;
	INSIDE(make(&w, "ttt") && attach(&w));
	/* Ctrl-C and Ctrl-Z are bytes here: the cell's terminal makes signals of them. */
	INSIDE(write(w.host.master, "typed\003\032\r", 8) == 8);
	INSIDE(write(w.cell.slave, "a\tb\r\n\033[1m\377", 11) == 11);
	INSIDE(arrives(&w, w.cell.slave, "typed\003\032\r"));
	INSIDE(arrives(&w, w.host.master, "a\tb\r\n\033[1m\377"));
	return 0;
}

static void bytes_pass_both_ways_untouched(void **state)
{
	(void)state;
	assert_int_equal(inside_child(copy_both_ways, NULL), 0);
}

/* Byte number @i of the bulk. */
static char bulk(size_t i)
{
	return (char)(i * 7 + i / 251);
}

static _Noreturn void write_bulk(int fd)
{
	static char chunk[4096];

	for (size_t at = 0; at < BULK; at += sizeof(chunk)) {
		for (size_t i = 0; i < sizeof(chunk); i++)
			chunk[i] = bulk(at + i);
		for (size_t done = 0; done < sizeof(chunk);) {
			ssize_t n = write(fd, chunk + done, sizeof(chunk) - done);

			if (n <= 0)
				_exit(1);
			done += (size_t)n;
		}
	}
	_exit(0);
}

static _Noreturn void read_bulk(int fd)
{
	static char chunk[4096];

	for (size_t at = 0; at < BULK;) {
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n <= 0)
			_exit(2);
		for (ssize_t i = 0; i < n; i++)
			if (chunk[i] != bulk(at++))
				_exit(3);
	}
	_exit(0);
}

/* 0 once a child has ended well; its code otherwise, -1 while it runs. */
static int ended(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, WNOHANG) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static int copy_much(void *state)
{
	static struct world w;
	pid_t writer, reader;
	int r = -1;

	(void)state;
	INSIDE(make(&w, "ttt") && attach(&w));
	writer = fork();
	if (writer == 0)
		write_bulk(w.cell.slave);
	/* Nobody reads yet: what waits is bounded, and the writer stands still. */
	INSIDE(pump(&w, 100) == 0);
	INSIDE(w.t.out.len > 0 && ended(writer) == -1);
	reader = fork();
	if (reader == 0)
		read_bulk(w.host.master);
	for (int i = 0; r == -1 && i < 200; i++) {
		INSIDE(pump(&w, 50) == 0);
		r = ended(reader);
	}
	INSIDE(r == 0);
	INSIDE(ended(writer) == 0);
	return 0;
}

static void a_slow_reader_holds_the_writer_and_loses_nothing(void **state)
{
	(void)state;
	assert_int_equal(inside_child(copy_much, NULL), 0);
}

static int change_size(void *state)
{
	static struct world w;
	struct winsize window = { .ws_row = 50, .ws_col = 132 }, inside;

	(void)state;
	INSIDE(make(&w, "ttt") && attach(&w));
	INSIDE(ioctl(w.host.slave, TIOCSWINSZ, &window) == 0);
	aw_terminal_resized(&w.t);
	INSIDE(ioctl(w.cell.slave, TIOCGWINSZ, &inside) == 0);
	INSIDE(inside.ws_row == 50 && inside.ws_col == 132);
	return 0;
}

static void the_size_is_handed_on(void **state)
{
	(void)state;
	assert_int_equal(inside_child(change_size, NULL), 0);
}

static int last_words(void *state)
{
	static struct world w;

	(void)state;
	INSIDE(make(&w, "ttt") && attach(&w));
	INSIDE(write(w.cell.slave, "last words\r\n", 12) == 12);
	(void)close(w.cell.slave);
	aw_terminal_drain(&w.t);
	INSIDE(strcmp(take(w.host.master), "last words\r\n") == 0);
	/* Nothing more: it does not wait for what cannot come. */
	aw_terminal_drain(&w.t);
	aw_terminal_fini(&w.t);
	INSIDE(w.t.fd == -EBADF && w.t.master == -EBADF && !is_raw(w.host.slave));
	return 0;
}

static void what_is_still_in_the_pty_at_the_end_is_shown(void **state)
{
	(void)state;
	assert_int_equal(inside_child(last_words, NULL), 0);
}

static int typed_ahead(void *state)
{
	static struct world w;
	struct pollfd p = { .events = POLLIN };

	(void)state;
	INSIDE(make(&w, "ttt") && attach(&w));
	INSIDE(write(w.host.master, "rm -rf /\r", 9) == 9);
	p.fd = w.t.fd; /* the kernel takes a moment to bring it there */
	INSIDE(poll(&p, 1, 5000) == 1);
	aw_terminal_restore(&w.t, false);
	INSIDE(fcntl(0, F_SETFL, O_NONBLOCK) == 0);
	INSIDE(strcmp(take(0), "") == 0);
	return 0;
}

static void what_was_typed_for_the_agent_does_not_reach_the_shell(void **state)
{
	(void)state;
	assert_int_equal(inside_child(typed_ahead, NULL), 0);
}

static int abnormal_end(void *state)
{
	static struct world w;
	const char *said;

	(void)state;
	INSIDE(make(&w, "ttt") && attach(&w));
	aw_terminal_restore(&w.t, true);
	said = take(w.host.master);
	INSIDE(strstr(said, "\033[?25h") != NULL && strstr(said, "\033[?1000l") != NULL);
	INSIDE(strstr(said, "\033[?2004l") != NULL && !is_raw(w.host.slave));
	/* Once: a second call has nothing to restore. */
	aw_terminal_restore(&w.t, true);
	INSIDE(strcmp(take(w.host.master), "") == 0);
	return 0;
}

static void after_an_abnormal_end_reports_are_off_and_the_cursor_is_shown(void **state)
{
	(void)state;
	assert_int_equal(inside_child(abnormal_end, NULL), 0);
}

static int orphaned(void *state)
{
	static struct world w;
	static struct aw_terminal janitors;

	(void)state;
	INSIDE(make(&w, "ttt"));
	janitors = w.t; /* as a fork before anything was raw has it */
	aw_terminal_restore_orphaned(&janitors);
	INSIDE(strcmp(take(w.host.master), "") == 0);
	INSIDE(attach(&w) && is_raw(w.host.slave));
	aw_terminal_restore_orphaned(&janitors);
	INSIDE(!is_raw(w.host.slave));
	INSIDE(strstr(take(w.host.master), "\033[?25h") != NULL);
	return 0;
}

static void the_janitor_restores_what_the_monitor_left_raw_and_only_that(void **state)
{
	(void)state;
	assert_int_equal(inside_child(orphaned, NULL), 0);
}

/* A job in the background: another process group has the terminal. */
static int background(void *state)
{
	static struct world w;
	sigset_t ttou;
	pid_t other;

	(void)state;
	sigemptyset(&ttou);
	sigaddset(&ttou, SIGTTOU);
	INSIDE(sigprocmask(SIG_BLOCK, &ttou, NULL) == 0);
	INSIDE(make(&w, "ttt"));
	other = fork();
	if (other == 0)
		for (;;)
			(void)pause();
	INSIDE(setpgid(other, other) == 0 && tcsetpgrp(0, other) == 0);
	INSIDE(attach(&w) && !w.t.is_raw && !is_raw(w.host.slave));
	INSIDE(write(w.host.master, "for the shell\n", 14) == 14);
	INSIDE(pump(&w, 50) == 0);
	INSIDE(strcmp(take(w.cell.slave), "") == 0);
	/* fg: the shell gives it to us and sends SIGCONT. */
	INSIDE(tcsetpgrp(0, getpgrp()) == 0);
	aw_terminal_continued(&w.t);
	INSIDE(w.t.is_raw && is_raw(w.host.slave));
	/* What had been typed for the shell and not read is dropped by nobody: it comes first. */
	INSIDE(write(w.host.master, "x", 1) == 1);
	INSIDE(arrives(&w, w.cell.slave, "for the shell\nx"));
	(void)kill(other, SIGKILL);
	return 0;
}

static void in_the_background_the_terminal_is_left_alone(void **state)
{
	(void)state;
	assert_int_equal(inside_child(background, NULL), 0);
}

static int hang_up(void *state)
{
	static struct world w;
	pid_t writer;
	int r = -1;

	(void)state;
	INSIDE(make(&w, "ttt") && attach(&w));
	writer = fork();
	if (writer == 0) {
		(void)close(w.host.master);
		write_bulk(w.cell.slave);
	}
	(void)close(w.host.master);
	for (int i = 0; r == -1 && i < 100; i++) {
		INSIDE(pump(&w, 20) == 0);
		r = ended(writer);
	}
	INSIDE(r == 0);
	INSIDE(!w.t.may_read && w.t.out.len == 0);
	return 0;
}

static void a_window_that_is_closed_does_not_block_the_agent(void **state)
{
	(void)state;
	assert_int_equal(inside_child(hang_up, NULL), 0);
}

static int agent_closes(void *state)
{
	static struct world w;

	(void)state;
	INSIDE(make(&w, "ttt") && attach(&w));
	INSIDE(write(w.cell.slave, "bye", 3) == 3);
	(void)close(w.cell.slave);
	INSIDE(arrives(&w, w.host.master, "bye"));
	INSIDE(w.t.master == -EBADF);
	/* Typing goes nowhere, and nothing spins. */
	INSIDE(write(w.host.master, "more", 4) == 4 && pump(&w, 50) == 0);
	return 0;
}

static void an_agent_that_lets_go_of_its_terminal_is_not_waited_for(void **state)
{
	(void)state;
	assert_int_equal(inside_child(agent_closes, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_terminal_nothing_is_done),
		cmocka_unit_test(each_descriptor_is_looked_at_by_itself),
		cmocka_unit_test(the_hosts_terminal_goes_raw_and_comes_back_as_it_was),
		cmocka_unit_test(bytes_pass_both_ways_untouched),
		cmocka_unit_test(a_slow_reader_holds_the_writer_and_loses_nothing),
		cmocka_unit_test(the_size_is_handed_on),
		cmocka_unit_test(what_is_still_in_the_pty_at_the_end_is_shown),
		cmocka_unit_test(what_was_typed_for_the_agent_does_not_reach_the_shell),
		cmocka_unit_test(after_an_abnormal_end_reports_are_off_and_the_cursor_is_shown),
		cmocka_unit_test(the_janitor_restores_what_the_monitor_left_raw_and_only_that),
		cmocka_unit_test(in_the_background_the_terminal_is_left_alone),
		cmocka_unit_test(a_window_that_is_closed_does_not_block_the_agent),
		cmocka_unit_test(an_agent_that_lets_go_of_its_terminal_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
