/*
 * live-internal - the monitor's state while a session lives, and how its parts meet.
 *
 * Each part owns the fields named after it and is one file: cell (link to pid 1), gate (link and
 * verdicts), signals (and the time limit), control (commands of other terminals), guard (protected
 * files), end (cleaning up, telling).
 */
#pragma once

#include "base/loop.h"
#include "cell/cgroup.h"
#include "cell/launch.h"
#include "event/event.h"
#include "ipc/ipc.h"
#include "monitor/janitor.h"
#include "monitor/live.h"
#include "monitor/relay.h"
#include "monitor/terminal.h"
#include "store/journal.h"
#include "store/registry.h"

#define AW_LIVE_CLIENTS_MAX 16
#define AW_LIVE_DENIALS_MAX 64
#define AW_LIVE_FILES_KEPT 512       /* descriptors that the cell's limit is below ours */
#define AW_LIVE_GRACE_NS 2000000000u /* between asking the agent to end and killing it */

struct aw_live;

/* What gate refused, counted by what and why, for the summary at the end. */
struct aw_live_denial {
	char name[AW_NET_NAME_MAX + 1];
	uint16_t port;
	uint8_t outcome, reason;
	unsigned count;
};

struct aw_live_client {
	struct aw_live *live;
	struct aw_watch watch; /* fd -EBADF: free */
	uint32_t job;          /* 0: none */
	bool waits_for_end;
};

struct aw_live {
	const struct aw_prepared *prepared;
	const struct aw_live_options *options;
	struct aw_loop loop;

	struct aw_state state;
	struct aw_session session;
	struct aw_journal journal;
	struct aw_event event;
	bool has_session, has_journal;

	struct aw_child cell;
	struct aw_watch cell_link, cell_death;
	struct aw_ipc_cell_ready ready;
	int mountinfo, user_ns, mount_ns;
	bool is_started, is_empty;
	uint64_t started_ns, started_wall_ns;
	struct aw_cgroup cgroup;
	unsigned limits_hit; /* aw_cgroup_hits, when it was last looked at */
	char *home_source;   /* private home on the host; NULL: none is kept */
	struct aw_buf notice;

	struct aw_child gate;
	struct aw_watch gate_link, gate_death;
	struct aw_ipc_resolvers resolvers; /* what gate asks now */
	struct aw_net *net;                /* the policy's rules and those of this session */
	int listeners[AW_IPC_LISTENERS_MAX];
	uint64_t connections, refused;
	uint64_t second;            /* in which refusals are counted, */
	unsigned in_second, folded; /* those written, and those that were too many */
	struct aw_live_denial denials[AW_LIVE_DENIALS_MAX];
	unsigned denial_count, denials_beyond;

	struct aw_terminal terminal;
	struct aw_relay relay;
	struct aw_janitor janitor;

	struct aw_watch signals, timer;
	int inotify; /* of guard and name servers; the janitor holds the last reference */
	struct aw_watch watchdog; /* fd -EBADF: limits are enforced, or there are none */
	uint64_t watched_memory;
	int asked_signal; /* what somebody outside asked the session to end with; 0: nobody */
	bool is_ending;   /* somebody asked for the end: the timer is the grace time now */

	struct aw_watch control;
	struct aw_live_client clients[AW_LIVE_CLIENTS_MAX];
	uint32_t last_job;

	struct aw_live_guard *guard; /* NULL: nothing is protected */

	struct aw_live_outcome outcome;
	struct aw_error failure; /* of Warden itself */
	struct aw_ipc_message message;
};

/* live-cell.c */
int aw_live_start_cell(struct aw_live *live, struct aw_error *err);
int aw_live_hand_over_plan(struct aw_live *live, struct aw_error *err);
int aw_live_signal_job(struct aw_live *live, uint32_t job, int sig);
void aw_live_kill_cell(struct aw_live *live);

/* live-gate.c */
int aw_live_start_gate(struct aw_live *live, struct aw_error *err);
int aw_live_set_up_gate(struct aw_live *live, struct aw_error *err); /* the cell's listeners came */
int aw_live_push_policy(struct aw_live *live, struct aw_error *err);
void aw_live_flush_folded(
	struct aw_live *live); /* write how many refusals were not written one by one */
const char *aw_live_outcome_text(uint8_t outcome); /* enum aw_ipc_outcome, for a person */

/* live-signals.c */
int aw_live_watch_signals(struct aw_live *live, struct aw_error *err);
uint64_t aw_live_raise_files(void); /* ours to the hard limit; returns what the cell may have */
int aw_live_start_clock(struct aw_live *live, struct aw_error *err);

/* live-watchdog.c */
int aw_live_start_watchdog(struct aw_live *live, uint64_t memory_bytes, struct aw_error *err);

/* live-limits.c */
bool aw_live_wants_group(const struct aw_live *live);
int aw_live_make_group(struct aw_live *live, struct aw_error *err); /* the session is open */
uint64_t aw_live_process_limit(const struct aw_live *live);         /* for RLIMIT_NPROC; 0: none */
int aw_live_settle_group(struct aw_live *live, struct aw_error *err); /* before CELL_GO */
void aw_live_read_hits(struct aw_live *live);    /* while pid 1 lives: records what was run into */
bool aw_live_end_by_limit(struct aw_live *live); /* false: none was seen that kills */
void aw_live_tell_hits(const struct aw_live *live);

/* live-control.c */
int aw_live_open_control(struct aw_live *live, struct aw_error *err);
void aw_live_tell_job(struct aw_live *live, enum aw_ipc_type type,
		      const struct aw_ipc_cell_job *job, int fd);
void aw_live_close_control(struct aw_live *live);

/* live-guard.c */
int aw_live_start_guard(struct aw_live *live, struct aw_error *err);
int aw_live_guard_frozen(struct aw_live *live, bool is_complete, struct aw_error *err);
void aw_live_stop_guard(struct aw_live *live);

/* live-end.c */

/* The first reason counts; ending itself is one of the calls below. */
void aw_live_end(struct aw_live *live, enum aw_session_end_reason reason, int exit_code,
		 const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Send @sig to the agent and kill after the grace time; SIGKILL, or asked a second time: kill at once. */
void aw_live_ask_to_end(struct aw_live *live, int sig);

/* Warden itself failed: before the agent started the session is refused, after that it ends closed. */
void aw_live_fail(struct aw_live *live, const struct aw_error *why);
void aw_live_finish(struct aw_live *live);
void aw_live_summarise(const struct aw_live *live);

/* Begin an event in live->event and, when its fields are added, append it. A journal that fails ends the session. */
struct aw_event *aw_live_event(struct aw_live *live, enum aw_event_kind kind);
void aw_live_record(struct aw_live *live);

/* One line of JSON to --status-fd. */
void aw_live_status(const struct aw_live *live, const char *event);
