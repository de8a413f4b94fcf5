/*
 * session - the registry of sessions on disk: who runs, who ended and how.
 *
 *	STATE/sessions/ID/session.json     what it is: written once, at its start
 *	STATE/sessions/ID/status.json      how it ended: written once; the first word counts
 *	STATE/sessions/ID/journal-*        the journal (store/journal.h), in session.dir_fd
 *	RUNTIME/ID/lock                    held by the monitor for its life: held = alive
 *	RUNTIME/ID/...                     what lives as long: the control socket
 *	STATE/lock                         shared to make a session, exclusive to sweep
 *
 * The monitor:   aw_session_create -> work -> aw_session_end (or it is killed, and a sweep says so)
 * Other verbs:   aw_session_find or aw_session_list -> aw_session_load, aw_session_monitor
 *
 * The lock is an open-file-description lock (fcntl F_OFD_SETLK, Linux 3.15): it ends with the last
 * descriptor, whatever killed the holder. A role that the monitor forks must close `lock_fd`, else
 * a dead session looks alive; an exec closes it.
 *
 * session.json and status.json are one flat line (event/flat.h), mode 0600, replaced whole. They
 * are read strictly; a session whose session.json is malformed is treated as one that has none.
 * Where RUNTIME was is written down, so that a shell without $XDG_RUNTIME_DIR judges right. A home
 * that several hosts share: a session of another host name is neither alive nor dead: elsewhere.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "event/event.h"
#include "store/state.h"

#define AW_SESSION_ID_LEN AW_EVENT_SESSION_LEN
#define AW_SESSION_AGENT_MAX 63
#define AW_SESSION_DETAIL_MAX 255

/* How a session ended. */
enum aw_session_end_reason {
	AW_SESSION_EXITED = 1, /* the command ended by itself; exit_code 128 + N for a signal */
	AW_SESSION_TIME_LIMIT,
	AW_SESSION_LIMIT,   /* another limit killed it; `detail` names it */
	AW_SESSION_REFUSED, /* it never started: posture or policy */
	AW_SESSION_STOPPED, /* by a person: stop, down, a signal to the monitor */
	AW_SESSION_BREACH,
	AW_SESSION_GATE_DIED,
	AW_SESSION_JOURNAL_FAILED,
	AW_SESSION_FAILED,     /* Warden itself failed */
	AW_SESSION_UNEXPECTED, /* the monitor was killed: written by a sweep */
	AW_SESSION_REASON_COUNT
};

struct aw_session_meta {
	char id[AW_SESSION_ID_LEN + 1];
	char project[PATH_MAX]; /* canonical */
	char agent[AW_SESSION_AGENT_MAX + 1];
	char run_path[PATH_MAX]; /* RUNTIME, without the id */
	char host[65];
	uint64_t started_ns;  /* wall */
	pid_t pid;            /* of the monitor, */
	uint64_t pid_started; /* and when that started: clock ticks since boot, /proc/PID/stat */
	uid_t uid;
};

struct aw_session_status {
	enum aw_session_end_reason reason;
	int exit_code; /* what `warden run` returned; -1 unknown */
	uint64_t started_ns, ended_ns;
	char detail[AW_SESSION_DETAIL_MAX + 1]; /* a sentence, may be empty */
};

struct aw_session {
	struct aw_session_meta meta;
	int dir_fd;  /* STATE/sessions/ID */
	int run_fd;  /* RUNTIME/ID */
	int lock_fd; /* held */
};

const char *aw_session_reason_name(enum aw_session_end_reason reason);

/* Whether @text has the form of an id: AW_SESSION_ID_LEN of Crockford's base32 in lower case. */
bool aw_session_is_id(const char *text);

/*
 * Make a session of the calling process: a fresh id, both directories, the lock, session.json.
 * @project is a canonical path, @agent a name. Killed at any point it leaves what a sweep removes.
 * -ENAMETOOLONG, -EBUSY when a sweep holds the registry for two seconds, -errno.
 */
int aw_session_create(const struct aw_state *state, const char *project, const char *agent,
		      struct aw_session *ret, struct aw_error *err);

/*
 * Write @status (started_ns is filled in), remove RUNTIME/ID and let go of the lock and
 * descriptors. The session counts as ended even when an error is returned. Close the journal first.
 */
int aw_session_end(const struct aw_state *state, struct aw_session *session,
		   struct aw_session_status *status, struct aw_error *err);

/* Close the descriptors only: for a role that inherited them. */
void aw_session_drop(struct aw_session *session);

/* What a session is. -ENOENT when there is no such session, -EBADMSG when its file is malformed. */
int aw_session_load(const struct aw_state *state, const char *id, struct aw_session_meta *ret,
		    struct aw_error *err);

/* How a session ended. -ENOENT while it runs, or when nobody has swept it yet; -EBADMSG. */
int aw_session_load_status(const struct aw_state *state, const char *id,
			   struct aw_session_status *ret, struct aw_error *err);

/* Its directory STATE/sessions/ID, for the journal. Returns an fd or -errno. */
int aw_session_open_dir(const struct aw_state *state, const char *id, struct aw_error *err);

enum aw_session_life {
	AW_SESSION_ALIVE = 1,
	AW_SESSION_ENDED,    /* status.json says how */
	AW_SESSION_DEAD,     /* neither alive nor ended: its monitor was killed */
	AW_SESSION_ELSEWHERE /* on another host */
};

/* 1 alive, 0 not, -errno. Only looks at the lock. */
int aw_session_is_alive(const struct aw_session_meta *meta, struct aw_error *err);

/*
 * A pidfd of the monitor, checked against its start time: never that of a process that was given
 * the number later. -ESRCH when it is gone.
 */
int aw_session_monitor(const struct aw_session_meta *meta, struct aw_error *err);
