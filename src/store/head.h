/*
 * head - journal.head: where a journal ended, so that a cut at its end is found.
 *
 *	{"v":1,"session":"k3v9x0ab","segment":1,"seq":42,"hash":"<64 hex digits>"}
 */
#pragma once

#include "base/error.h"
#include "event/chain.h"

#define AW_HEAD_NAME "journal.head"

struct aw_head {
	uint32_t segment; /* the last one */
	uint64_t seq;     /* of the last line */
	struct aw_chain last;
};

/* Replace the file, whole or not at all. */
int aw_head_write(int dir_fd, const char *session, const struct aw_head *head,
		  struct aw_error *err);

/* Returns 0, -ENOENT when there is none, -EBADMSG when it is not one of ours, or -errno. */
int aw_head_read(int dir_fd, struct aw_head *ret, struct aw_error *err);
