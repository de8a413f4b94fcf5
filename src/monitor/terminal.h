/*
 * terminal - the person's terminal on one side, the cell's private pty on the other.
 *
 * The agent never holds a descriptor of the host's terminal: it gets the slave of a pty of its own,
 * as controlling terminal, exactly on those of stdin, stdout and stderr that are terminals here. The
 * monitor copies bytes between the two, in raw mode, with constant memory and without ever blocking:
 * it works on an open file description of its own, so that the shell's stays blocking.
 *
 * Whatever happens, aw_terminal_restore puts the host's terminal back; the janitor calls it too.
 */
#pragma once

#include <stdbool.h>
#include <termios.h>

#include "base/error.h"
#include "base/loop.h"

#define AW_TERMINAL_CHUNK 16384

struct aw_terminal_pipe {
	char data[AW_TERMINAL_CHUNK];
	size_t start, len;
};

struct aw_terminal {
	int fd;         /* own description of the host's terminal; -EBADF: there is none */
	bool is_tty[3]; /* which of 0, 1, 2 are it */
	bool is_raw, may_read;
	struct termios saved;
	int master; /* the cell's pty; owned; -EBADF until attached */
	struct aw_loop *loop;
	struct aw_watch host, cell;
	struct aw_terminal_pipe in, out;
};

/* Look at 0, 1 and 2; opens nothing of the cell yet. Never fails: without a terminal there is none. */
void aw_terminal_init(struct aw_terminal *t);

/* The size to give the pty before the agent starts. */
void aw_terminal_size(const struct aw_terminal *t, unsigned short *ret_rows,
		      unsigned short *ret_columns);

/* Take over @take_master, go raw if this process is in the foreground, and start to copy. */
int aw_terminal_attach(struct aw_terminal *t, int take_master, struct aw_loop *loop,
		       struct aw_error *err);

void aw_terminal_resized(struct aw_terminal *t); /* on SIGWINCH */
void aw_terminal_continued(
	struct aw_terminal *t); /* on SIGCONT: the job may be in the foreground now */

/* The agent has ended: copy what is still in the pty (bounded), then restore. */
void aw_terminal_drain(struct aw_terminal *t);

/*
 * Leave raw mode and drop input that was typed or answered meanwhile, so that it does not reach the
 * shell. With @is_abnormal also switch off mouse, paste and focus reports and show the cursor.
 */
void aw_terminal_restore(struct aw_terminal *t, bool is_abnormal);

/* For the janitor, which was forked before anything was raw: restore if the terminal is raw now. */
void aw_terminal_restore_orphaned(struct aw_terminal *t);
void aw_terminal_fini(struct aw_terminal *t);
