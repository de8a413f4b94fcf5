/*
 * session-internal - what session.c and registry.c share.
 */
#pragma once

#include "store/session.h"

#define AW_SESSION_META_NAME "session.json"
#define AW_SESSION_STATUS_NAME "status.json"
#define AW_SESSION_LOCK_NAME "lock"

/* JSON forms, in session_file.c. They return 0 or -errno; -EBADMSG is malformed. */
int aw_session_write_meta(int dir_fd, const struct aw_session_meta *meta, struct aw_error *err);
int aw_session_read_meta(int dir_fd, struct aw_session_meta *ret, struct aw_error *err);
int aw_session_write_status(int dir_fd, const struct aw_session_status *status,
			    struct aw_error *err);
int aw_session_read_status(int dir_fd, struct aw_session_status *ret, struct aw_error *err);

/*
 * Hold STATE/lock: shared to make a session, exclusive to sweep. Returns the fd that holds it.
 * Shared: waits up to two seconds, then -EBUSY. Exclusive: -EBUSY at once.
 */
int aw_session_lock_registry(const struct aw_state *state, bool is_exclusive, struct aw_error *err);

/* Whether the lock in a session's runtime directory is held: 1, 0 (also: no lock), -errno. */
int aw_session_is_locked(int run_fd, struct aw_error *err);

/* Remove the directory @name in @dir_fd with what is in it; no link is followed. 0 or -errno. */
int aw_session_remove_tree(int dir_fd, const char *name, struct aw_error *err);

int aw_session_host_name(char out[65]);
