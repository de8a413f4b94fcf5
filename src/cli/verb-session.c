/* ps, status, stop, down: what runs, how it ended, and ending it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "base/proc.h"
#include "cli/cli.h"
#include "confine/posture.h"
#include "event/flat.h"
#include "ipc/ipc.h"

struct flags {
	bool wants_json, is_last, is_forced;
	const char *operand;
};

static int parse(char *const *args, const char *verb, struct flags *ret)
{
	*ret = (struct flags){ 0 };
	for (; *args != NULL; args++) {
		if (strcmp(*args, "--json") == 0)
			ret->wants_json = true;
		else if (strcmp(*args, "--last") == 0)
			ret->is_last = true;
		else if (strcmp(*args, "--force") == 0)
			ret->is_forced = true;
		else if ((*args)[0] == '-' || ret->operand != NULL)
			return aw_cli_usage(verb, "'%s' is not understood", *args);
		else
			ret->operand = *args;
	}
	return 0;
}

static void print_flat(struct aw_flat *flat)
{
	struct aw_str line = aw_flat_end(flat, (struct aw_str){ 0 });

	(void)fwrite(line.ptr, 1, line.len, stdout);
}

static void print_session(const struct aw_session_meta *meta, bool as_json)
{
	unsigned long long seconds = (aw_wall_ns() - meta->started_ns) / 1000000000u;
	struct aw_flat flat;
	char project[512];

	if (as_json) {
		aw_flat_begin(&flat, 0, AW_FLAT_MAX);
		aw_flat_add_str(&flat, "session", aw_str_from(meta->id));
		aw_flat_add_str(&flat, "agent", aw_str_from(meta->agent));
		aw_flat_add_str(&flat, "project", aw_str_from(meta->project));
		aw_flat_add_u64(&flat, "pid", (uint64_t)meta->pid);
		aw_flat_add_u64(&flat, "started_ns", meta->started_ns);
		print_flat(&flat);
		return;
	}
	(void)aw_str_escape(aw_str_from(meta->project), project, sizeof(project));
	(void)printf("%-10s %-14s %8d %6llus  %s\n", meta->id, meta->agent, (int)meta->pid, seconds,
		     project);
}

int aw_verb_ps(char *const *args)
{
	struct aw_registry registry = { 0 };
	struct aw_cli_place place;
	struct aw_error err = { 0 };
	struct flags flags;
	int r = parse(args, "ps", &flags);

	if (r != 0)
		return r;
	if (aw_cli_open_place(&place, &err) < 0)
		return aw_cli_fail(AW_EXIT_USAGE, &err);
	if (aw_registry_sweep(&place.state, AW_REGISTRY_EVERYTHING, &err) < 0 ||
	    aw_registry_list(&place.state, AW_REGISTRY_ALIVE, &registry, &err) < 0) {
		aw_cli_close_place(&place);
		return aw_cli_fail(AW_EXIT_USAGE, &err);
	}
	if (!flags.wants_json && registry.count > 0)
		(void)printf("%-10s %-14s %8s %7s  %s\n", "SESSION", "AGENT", "MONITOR", "FOR",
			     "PROJECT");
	for (size_t i = 0; i < registry.count; i++) {
		struct aw_session_meta meta;

		if (aw_session_load(&place.state, registry.entry[i].id, &meta, &err) == 0)
			print_session(&meta, flags.wants_json);
	}
	aw_registry_fini(&registry);
	aw_cli_close_place(&place);
	return AW_EXIT_OK;
}

static int print_ended(const struct aw_session_meta *meta, const struct aw_session_status *status,
		       bool as_json)
{
	struct aw_flat flat;
	char project[512], detail[512];

	if (as_json) {
		aw_flat_begin(&flat, 0, AW_FLAT_MAX);
		aw_flat_add_str(&flat, "session", aw_str_from(meta->id));
		aw_flat_add_str(&flat, "state", AW_STR("ended"));
		aw_flat_add_str(&flat, "reason",
				aw_str_from(aw_session_reason_name(status->reason)));
		aw_flat_add_i64(&flat, "exit_code", status->exit_code);
		aw_flat_add_str(&flat, "agent", aw_str_from(meta->agent));
		aw_flat_add_str(&flat, "project", aw_str_from(meta->project));
		aw_flat_add_str(&flat, "detail", aw_str_from(status->detail));
		print_flat(&flat);
		return AW_EXIT_OK;
	}
	(void)aw_str_escape(aw_str_from(meta->project), project, sizeof(project));
	(void)aw_str_escape(aw_str_from(status->detail), detail, sizeof(detail));
	(void)printf(
		"session    %s (ended)\nagent      %s\nproject    %s\nreason     %s\nexit code  %d\n",
		meta->id, meta->agent, project, aw_session_reason_name(status->reason),
		status->exit_code);
	if (detail[0] != '\0')
		(void)printf("detail     %s\n", detail);
	return AW_EXIT_OK;
}

static int status_of_last(const struct aw_cli_place *place, bool as_json)
{
	struct aw_registry registry = { 0 };
	struct aw_session_status status;
	struct aw_session_meta meta;
	struct aw_error err = { 0 };
	int code = AW_EXIT_NO;

	if (aw_registry_sweep(&place->state, AW_REGISTRY_EVERYTHING, &err) < 0 ||
	    aw_registry_list(&place->state, AW_REGISTRY_ALL, &registry, &err) < 0)
		return aw_cli_fail(AW_EXIT_USAGE, &err);
	for (size_t i = 0; i < registry.count && code != AW_EXIT_OK; i++) {
		const char *id = registry.entry[i].id;

		if (registry.entry[i].life == AW_SESSION_ENDED &&
		    aw_session_load(&place->state, id, &meta, &err) == 0 &&
		    aw_session_load_status(&place->state, id, &status, &err) == 0)
			code = print_ended(&meta, &status, as_json);
	}
	aw_registry_fini(&registry);
	if (code != AW_EXIT_OK)
		(void)fputs("warden: no session has ended yet\n", stderr);
	return code;
}

static int ask(int link, enum aw_ipc_type type, const void *payload, size_t len,
	       struct aw_ipc_message *answer, struct aw_error *err)
{
	int r = aw_ipc_send(link, type, payload, len, NULL, 0, err);

	if (r == 0)
		r = aw_ipc_recv(link, AW_IPC_CLIENT, AW_IPC_MONITOR, answer, err);
	if (r == 0)
		return aw_refuse(err, EPIPE, "the session ended meanwhile");
	if (r > 0 && answer->type == AW_IPC_TELL_REFUSED) {
		memcpy(err, answer->payload, sizeof(*err));
		return -err->code;
	}
	return r < 0 ? r : 0;
}

static void print_running(const struct aw_session_meta *meta, const struct aw_ipc_status *s,
			  bool as_json)
{
	struct aw_flat flat;
	char project[512];

	if (as_json) {
		aw_flat_begin(&flat, 0, AW_FLAT_MAX);
		aw_flat_add_str(&flat, "session", aw_str_from(meta->id));
		aw_flat_add_str(&flat, "state", AW_STR("running"));
		aw_flat_add_str(&flat, "agent", aw_str_from(meta->agent));
		aw_flat_add_str(&flat, "project", aw_str_from(meta->project));
		aw_flat_add_u64(&flat, "running_ns", s->running_ns);
		aw_flat_add_u64(&flat, "jobs", s->jobs);
		aw_flat_add_u64(&flat, "connections", s->connections);
		aw_flat_add_u64(&flat, "refused", s->refused);
		aw_flat_add_u64(&flat, "events", s->events);
		aw_flat_add_u64(&flat, "landlock_abi", s->landlock_abi);
		aw_flat_add_bool(&flat, "posture_held", s->checks_held == AW_POSTURE_ALL);
		aw_flat_add_bool(&flat, "network", s->has_network);
		print_flat(&flat);
		return;
	}
	(void)aw_str_escape(aw_str_from(meta->project), project, sizeof(project));
	(void)printf(
		"session      %s (running for %llu s, %u jobs)\nagent        %s\nproject      %s\n"
		"posture      %s, Landlock ABI %u\nnetwork      %s: %llu connections, %llu refused\n"
		"events       %llu\n",
		meta->id, (unsigned long long)(s->running_ns / 1000000000u), s->jobs, meta->agent,
		project,
		s->checks_held == AW_POSTURE_ALL ? "every check held" : "NOT every check held",
		s->landlock_abi, s->has_network ? "by gate" : "none",
		(unsigned long long)s->connections, (unsigned long long)s->refused,
		(unsigned long long)s->events);
}

int aw_verb_status(char *const *args)
{
	static struct aw_ipc_message answer;
	struct aw_session_meta meta;
	struct aw_cli_place place;
	struct aw_error err = { 0 };
	struct aw_ipc_status status;
	autoclose int link = -EBADF;
	struct flags flags;
	int r = parse(args, "status", &flags);

	if (r != 0)
		return r;
	if (aw_cli_open_place(&place, &err) < 0)
		return aw_cli_fail(AW_EXIT_USAGE, &err);
	if (flags.is_last) {
		r = status_of_last(&place, flags.wants_json);
		aw_cli_close_place(&place);
		return r;
	}
	link = aw_cli_connect(&place.state, flags.operand, &meta, &err);
	aw_cli_close_place(&place);
	if (link < 0)
		return aw_cli_fail(link == -ENOENT ? AW_EXIT_NO : AW_EXIT_USAGE, &err);
	if (ask(link, AW_IPC_ASK_STATUS, NULL, 0, &answer, &err) < 0)
		return aw_cli_fail(AW_EXIT_USAGE, &err);
	memcpy(&status, answer.payload, sizeof(status));
	print_running(&meta, &status, flags.wants_json);
	return AW_EXIT_OK;
}

static int stop_one(const struct aw_state *state, const char *operand, bool is_forced,
		    struct aw_error *err)
{
	static struct aw_ipc_message answer;
	struct aw_ipc_stop stop = { .is_forced = is_forced };
	struct aw_session_meta meta;
	autoclose int link = aw_cli_connect(state, operand, &meta, err);
	int r;

	if (link < 0)
		return link;
	r = ask(link, AW_IPC_ASK_STOP, &stop, sizeof(stop), &answer, err);
	if (r < 0 && r != -EPIPE)
		return r;
	(void)printf("stopped %s\n", meta.id);
	return 0;
}

int aw_verb_stop(char *const *args)
{
	struct aw_cli_place place;
	struct aw_error err = { 0 };
	struct flags flags;
	int r = parse(args, "stop", &flags);

	if (r != 0)
		return r;
	if (aw_cli_open_place(&place, &err) < 0)
		return aw_cli_fail(AW_EXIT_USAGE, &err);
	r = stop_one(&place.state, flags.operand, flags.is_forced, &err);
	aw_cli_close_place(&place);
	return r < 0 ? aw_cli_fail(r == -ENOENT ? AW_EXIT_NO : AW_EXIT_USAGE, &err) : AW_EXIT_OK;
}

int aw_verb_down(char *const *args)
{
	struct aw_registry registry = { 0 };
	struct aw_cli_place place;
	struct aw_error err = { 0 };
	struct flags flags;
	int r = parse(args, "down", &flags), code = AW_EXIT_OK;

	if (r != 0)
		return r;
	if (aw_cli_open_place(&place, &err) < 0)
		return aw_cli_fail(AW_EXIT_USAGE, &err);
	r = aw_registry_list(&place.state, AW_REGISTRY_ALIVE, &registry, &err);
	if (r < 0)
		code = aw_cli_fail(AW_EXIT_USAGE, &err);
	for (size_t i = 0; i < registry.count; i++) {
		r = stop_one(&place.state, registry.entry[i].id, flags.is_forced, &err);
		if (r < 0 && r != -ENOENT) /* it may have ended by itself meanwhile */
			code = aw_cli_fail(AW_EXIT_USAGE, &err);
	}
	aw_registry_fini(&registry);
	aw_cli_close_place(&place);
	return code;
}
