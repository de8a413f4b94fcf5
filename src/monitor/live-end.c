/* How a session ends, and what is said about it. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/proc.h"
#include "monitor/home.h"
#include "monitor/live-internal.h"

#define CELL_DEATH_MS 5000

struct aw_event *aw_live_event(struct aw_live *live, enum aw_event_kind kind)
{
	aw_event_begin(&live->event, kind, aw_wall_ns());
	return &live->event;
}

/* Without a record there is no session: a full disk or a dead journal ends it closed. */
void aw_live_record(struct aw_live *live)
{
	struct aw_error err = { 0 };

	if (!live->has_journal || aw_journal_append(&live->journal, &live->event, &err) == 0)
		return;
	aw_live_end(live, AW_SESSION_JOURNAL_FAILED, 125, "the journal: %s", err.message);
	aw_live_kill_cell(live);
}

void aw_live_end(struct aw_live *live, enum aw_session_end_reason reason, int exit_code,
		 const char *format, ...)
{
	va_list args;

	if (live->outcome.reason != 0)
		return;
	live->outcome.reason = reason;
	live->outcome.exit_code = exit_code;
	va_start(args, format);
	(void)vsnprintf(live->outcome.detail, sizeof(live->outcome.detail), format, args);
	va_end(args);
}

void aw_live_fail(struct aw_live *live, const struct aw_error *why)
{
	live->failure = *why;
	aw_live_end(live, live->is_started ? AW_SESSION_FAILED : AW_SESSION_REFUSED,
		    live->is_started ? 125 : 78, "%s", why->message);
	aw_live_kill_cell(live);
}

void aw_live_status(const struct aw_live *live, const char *event)
{
	const struct aw_live_outcome *o = &live->outcome;
	char line[512];
	int n;

	if (live->options->status_fd < 0)
		return;
	if (o->reason == 0)
		n = aw_str_format(line, sizeof(line), "{\"event\":\"%s\",\"session\":\"%s\"}\n",
				  event, live->session.meta.id);
	else
		n = aw_str_format(
			line, sizeof(line),
			"{\"event\":\"%s\",\"session\":\"%s\",\"reason\":\"%s\",\"exit_code\":%d}\n",
			event, live->session.meta.id, aw_session_reason_name(o->reason),
			o->exit_code);
	if (n > 0)
		(void)aw_write_all(live->options->status_fd, line, (size_t)n);
}

/*
 * Not waited for: everything inside is dead and reaped (CELL_EMPTY), and what is left, taking down
 * namespaces, holds a waiting parent for 2 to 3 ms. Our own parent's init takes the exit status.
 */
static void close_child(struct aw_child *child)
{
	child->pidfd = aw_fd_close(child->pidfd);
	child->link = aw_fd_close(child->link);
}

static void record_end(struct aw_live *live)
{
	struct aw_event *event = aw_live_event(live, AW_EVENT_SESSION_END);

	aw_event_add_str(event, "reason",
			 aw_str_from(aw_session_reason_name(live->outcome.reason)));
	aw_event_add_i64(event, "exit_code", live->outcome.exit_code);
	aw_event_add_str(event, "detail", aw_str_from(live->outcome.detail));
	aw_event_add_u64(event, "connections", live->connections);
	aw_event_add_u64(event, "refused", live->refused);
	aw_live_record(live);
}

/* The last verdicts may still be on the link: gate goes only after they were read. */
static void end_gate(struct aw_live *live)
{
	if (live->gate.pidfd < 0)
		return;
	aw_loop_unwatch(&live->loop, &live->gate_death);
	while (live->gate_link.events != 0 && aw_ipc_wait_readable(live->gate.link, 0))
		(void)live->gate_link.ready(&live->gate_link, EPOLLIN);
	aw_loop_unwatch(&live->loop, &live->gate_link);
	aw_live_flush_folded(live);
	(void)aw_pidfd_kill(live->gate.pidfd, SIGKILL);
}

/* The guard's last look is at what nobody inside can change any more. */
static void end_cell(struct aw_live *live)
{
	struct pollfd death = { .fd = live->cell.pidfd, .events = POLLIN };

	aw_live_kill_cell(live);
	if (live->cell.pidfd >= 0 && poll(&death, 1, CELL_DEATH_MS) != 1)
		(void)fprintf(stderr, "warden: the cell is not dead after %d s\n",
			      CELL_DEATH_MS / 1000);
}

static void dismiss_janitor(struct aw_live *live)
{
	const int handles[] = { live->mountinfo, live->user_ns, live->mount_ns };
	bool has_handles = live->mountinfo >= 0;

	aw_janitor_dismiss(&live->janitor, handles, has_handles ? AW_ARRAY_LEN(handles) : 0);
}

static void take_login(struct aw_live *live)
{
	struct aw_error err = { 0 };
	int changed = aw_home_take_login(live->prepared, &live->state, live->home_source, &err);

	if (changed == 0)
		return;
	aw_event_add_str(aw_live_event(live, AW_EVENT_NOTE), "what",
			 changed < 0
				 ? aw_str_from(err.message)
				 : AW_STR("the agent's login, which all projects share, changed"));
	aw_live_record(live);
	if (!live->options->is_quiet)
		(void)fprintf(stderr, "warden: the login of %s, which all projects share, %s\n",
			      live->prepared->agent_name,
			      changed < 0 ? err.message : "was changed in this session");
}

void aw_live_finish(struct aw_live *live)
{
	struct aw_session_status status = { 0 };
	struct aw_error err;

	if (live->outcome.reason == 0)
		aw_live_end(live, AW_SESSION_FAILED, 125, "the session ended without a reason");
	end_gate(live);
	if (!live->is_empty)
		end_cell(live);
	aw_live_stop_guard(live);
	if (live->is_started)
		take_login(live);
	aw_terminal_drain(&live->terminal);
	aw_relay_finish(&live->relay);
	aw_terminal_restore(&live->terminal, live->outcome.reason != AW_SESSION_EXITED ||
						     live->outcome.exit_code > 128);
	if (live->has_journal) {
		record_end(live);
		(void)aw_journal_close(&live->journal, &err);
	}
	aw_live_status(live, "ended");
	aw_live_close_control(live);
	/* Pid 1 stays until what its group counted has been read. */
	live->cell.link = aw_fd_close(live->cell.link);
	aw_cgroup_remove(&live->cgroup);
	if (live->has_session) {
		status.reason = live->outcome.reason;
		status.exit_code = live->outcome.exit_code;
		status.ended_ns = aw_wall_ns();
		memcpy(status.detail, live->outcome.detail, sizeof(status.detail));
		(void)aw_session_end(&live->state, &live->session, &status, &err);
	}
	dismiss_janitor(live);
	close_child(&live->gate);
	close_child(&live->cell);
}

static void print_denials(const struct aw_live *live)
{
	unsigned shown = live->denial_count < 10 ? live->denial_count : 10;

	for (unsigned i = 0; i < shown; i++) {
		const struct aw_live_denial *d = &live->denials[i];
		char port[16] = "";

		if (d->port != 0)
			(void)aw_str_format(port, sizeof(port), ":%u", d->port);
		(void)fprintf(stderr, "warden:   %s%s, %u %s: %s\n",
			      d->name[0] != '\0' ? d->name : "(no name)", port, d->count,
			      d->count == 1 ? "time" : "times",
			      d->outcome == AW_IPC_REFUSED_RULE ? aw_net_reason_text(d->reason)
								: aw_live_outcome_text(d->outcome));
	}
	if (live->denial_count > shown || live->denials_beyond > 0)
		(void)fprintf(stderr, "warden:   and more: warden logs proxy %s\n",
			      live->session.meta.id);
}

/* The host to grant is for the person to name: an agent could put one first in this list. */
static bool has_grantable(const struct aw_live *live)
{
	for (unsigned i = 0; i < live->denial_count; i++)
		if (live->denials[i].outcome == AW_IPC_REFUSED_RULE &&
		    (live->denials[i].reason == AW_NET_NOT_GRANTED ||
		     live->denials[i].reason == AW_NET_PORT_NOT_GRANTED))
			return true;
	return false;
}

void aw_live_summarise(const struct aw_live *live)
{
	if (live->failure.code != 0)
		(void)fprintf(stderr, "warden: %s\n", live->failure.message);
	else if (live->outcome.reason != AW_SESSION_EXITED)
		(void)fprintf(stderr, "warden: ended by %s\n", live->outcome.detail);
	if (live->options->is_quiet)
		return;
	aw_live_tell_hits(live);
	if (live->refused == 0)
		return;
	(void)fprintf(stderr, "warden: %llu %s refused:\n", (unsigned long long)live->refused,
		      live->refused == 1 ? "attempt was" : "attempts were");
	print_denials(live);
	if (has_grantable(live))
		(void)fprintf(stderr, "warden: to grant one: warden allowlist add HOST[:PORT]\n");
}
