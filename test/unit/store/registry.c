#include "store/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "store/registered.h"
#include "store/session-internal.h"
#include "support/torture.h"

static struct aw_error err;

static void end(const struct registered *r, struct aw_session *session)
{
	struct aw_session_status status = { .reason = AW_SESSION_STOPPED };

	assert_int_equal(aw_session_end(&r->state, session, &status, &err), 0);
}

static size_t count(const struct registered *r, enum aw_registry_scope scope)
{
	struct aw_registry list;
	size_t n;

	assert_int_equal(aw_registry_list(&r->state, scope, &list, &err), 0);
	n = list.count;
	aw_registry_fini(&list);
	return n;
}

static void lists_each_with_what_became_of_it(void **state)
{
	struct registered *r = *state;
	struct aw_session ended, alive;
	struct aw_registry list;
	char dead[9];

	registered_create(r, "/a", &ended);
	end(r, &ended);
	registered_kill_one(r, "/b", dead);
	registered_create(r, "/c", &alive);
	assert_int_equal(aw_registry_list(&r->state, AW_REGISTRY_ALL, &list, &err), 0);
	assert_int_equal(list.count, 3);
	assert_string_equal(list.entry[0].id, alive.meta.id); /* newest first */
	assert_int_equal(list.entry[0].life, AW_SESSION_ALIVE);
	assert_string_equal(list.entry[1].id, dead);
	assert_int_equal(list.entry[1].life, AW_SESSION_DEAD);
	assert_string_equal(list.entry[2].id, ended.meta.id);
	assert_int_equal(list.entry[2].life, AW_SESSION_ENDED);
	aw_registry_fini(&list);
	assert_int_equal(count(r, AW_REGISTRY_ALIVE), 1);
	end(r, &alive);
}

static void a_session_of_another_host_is_left_alone(void **state)
{
	struct registered *r = *state;
	struct aw_registry list;
	struct aw_session session;
	char id[9];

	registered_kill_one(r, "/a", id);
	assert_int_equal(aw_session_load(&r->state, id, &session.meta, &err), 0);
	memcpy(session.meta.host, "elsewhere", 10);
	session.dir_fd = aw_session_open_dir(&r->state, id, &err);
	assert_int_equal(aw_session_write_meta(session.dir_fd, &session.meta, &err), 0);
	(void)close(session.dir_fd);
	assert_int_equal(aw_registry_list(&r->state, AW_REGISTRY_ALL, &list, &err), 0);
	assert_int_equal(list.entry[0].life, AW_SESSION_ELSEWHERE);
	aw_registry_fini(&list);
	assert_int_equal(aw_registry_sweep(&r->state, AW_REGISTRY_EVERYTHING, &err), 0);
	assert_false(registered_has(r, id, "status.json"));
}

static void finds_by_id_beginning_and_directory(void **state)
{
	struct registered *r = *state;
	struct aw_session one, two;
	struct aw_session_meta meta;
	char prefix[9], path[160];
	size_t n;

	(void)snprintf(path, sizeof(path), "%s/../runtime", r->home);
	registered_create(r, "/nowhere", &one);
	registered_create(r, r->runtime, &two);
	assert_int_equal(aw_registry_find(&r->state, AW_REGISTRY_ALIVE, one.meta.id, &meta, &err),
			 0);
	assert_string_equal(meta.project, "/nowhere");
	for (n = 0; one.meta.id[n] == two.meta.id[n]; n++)
		continue;
	(void)snprintf(prefix, sizeof(prefix), "%.*s", (int)n + 1, two.meta.id);
	assert_int_equal(aw_registry_find(&r->state, AW_REGISTRY_ALIVE, prefix, &meta, &err), 0);
	assert_string_equal(meta.id, two.meta.id);
	assert_int_equal(aw_registry_find(&r->state, AW_REGISTRY_ALIVE, path, &meta, &err), 0);
	assert_string_equal(meta.id, two.meta.id);
	assert_int_equal(aw_registry_find(&r->state, AW_REGISTRY_ALIVE, "/", &meta, &err), -ENOENT);
	assert_int_equal(aw_registry_find(&r->state, AW_REGISTRY_ALIVE, NULL, &meta, &err),
			 -ENOTUNIQ);
	assert_non_null(strstr(err.message, one.meta.id));
	assert_non_null(strstr(err.message, two.meta.id));
	end(r, &one);
	assert_int_equal(aw_registry_find(&r->state, AW_REGISTRY_ALIVE, NULL, &meta, &err), 0);
	assert_string_equal(meta.id, two.meta.id);
	end(r, &two);
	assert_int_equal(aw_registry_find(&r->state, AW_REGISTRY_ALIVE, "", &meta, &err), -ENOENT);
	assert_int_equal(aw_registry_find(&r->state, AW_REGISTRY_ALL, two.meta.id, &meta, &err), 0);
}

static void two_in_one_directory_are_not_guessed(void **state)
{
	struct registered *r = *state;
	struct aw_session session[10];
	struct aw_session_meta meta;

	for (size_t i = 0; i < 10; i++)
		registered_create(r, r->runtime, &session[i]);
	assert_int_equal(aw_registry_find(&r->state, AW_REGISTRY_ALIVE, r->runtime, &meta, &err),
			 -ENOTUNIQ);
	assert_non_null(strstr(err.message, "10 sessions fit"));
	assert_true(aw_str_ends(aw_str_from(err.message), "..."));
	for (size_t i = 0; i < 10; i++)
		end(r, &session[i]);
}

static void the_dead_are_swept_and_written_down(void **state)
{
	static const enum aw_registry_depth depths[] = { AW_REGISTRY_RUNTIME,
							 AW_REGISTRY_EVERYTHING };
	struct registered *r = *state;
	struct aw_session alive;
	char dead[9];

	registered_create(r, "/alive", &alive);
	for (size_t i = 0; i < 2; i++) {
		struct aw_session_status status;

		registered_kill_one(r, "/dead", dead);
		assert_int_equal(aw_registry_sweep(&r->state, depths[i], &err), 1);
		assert_false(registered_has(r, dead, ""));
		assert_int_equal(aw_session_load_status(&r->state, dead, &status, &err), 0);
		assert_int_equal(status.reason, AW_SESSION_UNEXPECTED);
		assert_int_equal(status.exit_code, -1);
		assert_true(status.started_ns > 0 && status.ended_ns >= status.started_ns);
		assert_int_equal(aw_registry_sweep(&r->state, depths[i], &err), 0);
	}
	assert_true(registered_has(r, alive.meta.id, ""));
	assert_int_equal(aw_session_is_alive(&alive.meta, &err), 1);
	end(r, &alive);
}

/* After a reboot the runtime directory is gone with its file system. */
static void a_power_cut_is_found_by_the_thorough_sweep(void **state)
{
	struct registered *r = *state;
	char dead[9];

	registered_kill_one(r, "/dead", dead);
	assert_int_equal(aw_session_remove_tree(r->state.run_fd, dead, &err), 0);
	assert_int_equal(aw_registry_sweep(&r->state, AW_REGISTRY_RUNTIME, &err), 0);
	assert_int_equal(aw_registry_sweep(&r->state, AW_REGISTRY_EVERYTHING, &err), 1);
	assert_true(registered_has(r, dead, "status.json"));
}

static void a_word_that_was_said_stays(void **state)
{
	struct aw_session_status status = { .reason = AW_SESSION_BREACH, .exit_code = 99 };
	struct registered *r = *state;
	autoclose int dir = -EBADF;
	char dead[9];

	registered_kill_one(r, "/dead", dead);
	dir = aw_session_open_dir(&r->state, dead, &err);
	assert_int_equal(aw_session_write_status(dir, &status, &err), 0);
	assert_int_equal(aw_registry_sweep(&r->state, AW_REGISTRY_EVERYTHING, &err), 1);
	assert_false(registered_has(r, dead, ""));
	assert_int_equal(aw_session_load_status(&r->state, dead, &status, &err), 0);
	assert_int_equal(status.reason, AW_SESSION_BREACH);
}

static void sessions_started_without_the_variable_are_swept_too(void **state)
{
	struct registered *r = *state, bare = *r;
	struct aw_state both;
	char dead[9];

	registered_open(r, true, &bare.state);
	registered_kill_one(&bare, "/dead", dead);
	registered_open(r, false, &both);
	assert_int_equal(aw_registry_sweep(&both, AW_REGISTRY_RUNTIME, &err), 1);
	assert_false(registered_has(&bare, dead, ""));
	aw_state_fini(&both);
	aw_state_fini(&bare.state);
}

static void a_session_that_was_never_born_leaves_nothing(void **state)
{
	struct registered *r = *state;

	assert_int_equal(mkdirat(r->state.sessions_fd, "00000000", 0700), 0);
	assert_int_equal(mkdirat(r->state.run_fd, "00000000", 0700), 0);
	assert_int_equal(mkdirat(r->state.sessions_fd, "00000001", 0700), 0);
	assert_int_equal(mkdirat(r->state.run_fd, "00000002", 0700), 0);
	assert_int_equal(aw_registry_sweep(&r->state, AW_REGISTRY_EVERYTHING, &err), 3);
	assert_int_equal(aw_registry_sweep(&r->state, AW_REGISTRY_EVERYTHING, &err), 0);
	assert_int_equal(rmdir(r->state.run_path), 0);
}

/* A power cut may empty session.json; the journal beside it is evidence. */
static void a_journal_without_a_readable_session_is_kept(void **state)
{
	struct registered *r = *state;
	struct scratch here = { .fd = -1 };

	assert_int_equal(mkdirat(r->state.sessions_fd, "00000000", 0700), 0);
	here.fd = aw_session_open_dir(&r->state, "00000000", &err);
	scratch_store(&here, "session.json", "", 0);
	scratch_store(&here, "journal-000001.ndjson", "{}\n", 3);
	(void)close(here.fd);
	assert_int_equal(aw_registry_sweep(&r->state, AW_REGISTRY_EVERYTHING, &err), 1);
	assert_true(registered_has(r, "00000000", "journal-000001.ndjson"));
	assert_true(registered_has(r, "00000000", "status.json"));
	assert_int_equal(count(r, AW_REGISTRY_ALL), 0);
}

static void planted_links_lead_nowhere(void **state)
{
	struct registered *r = *state;
	struct aw_session session;
	struct aw_session_meta meta;

	registered_create(r, "/p", &session);
	assert_int_equal(symlinkat(session.meta.id, r->state.sessions_fd, "00000000"), 0);
	assert_int_equal(symlinkat(session.meta.id, r->state.run_fd, "00000001"), 0);
	assert_int_equal(symlinkat("/etc", r->state.run_fd, "00000002"), 0);
	assert_int_equal(count(r, AW_REGISTRY_ALL), 1);
	assert_true(aw_session_load(&r->state, "00000000", &meta, &err) < 0);
	assert_int_equal(aw_registry_sweep(&r->state, AW_REGISTRY_EVERYTHING, &err), -EACCES);
	assert_int_equal(access("/etc/passwd", F_OK), 0);
	assert_int_equal(aw_session_is_alive(&session.meta, &err), 1);
	end(r, &session);
}

static void no_sweep_looks_at_what_is_being_made(void **state)
{
	struct registered *r = *state;
	autoclose int making = aw_session_lock_registry(&r->state, false, &err);

	assert_true(making >= 0);
	assert_int_equal(mkdirat(r->state.run_fd, "00000000", 0700), 0);
	assert_int_equal(aw_registry_sweep(&r->state, AW_REGISTRY_EVERYTHING, &err), 0);
	assert_true(registered_has(r, "00000000", ""));
	making = aw_fd_close(making);
	assert_int_equal(aw_registry_sweep(&r->state, AW_REGISTRY_EVERYTHING, &err), 1);
}

static void live_and_end(const struct registered *r)
{
	for (;;) {
		struct aw_session session;

		if (aw_session_create(&r->state, "/p", "claude", &session, &err) < 0)
			_exit(1);
		end(r, &session);
	}
}

/* Killed anywhere between its birth and its end, beside others that live, end and sweep. */
static void wherever_a_session_is_killed_nothing_stays_behind(void **state)
{
	struct registered *r = *state;
	struct aw_registry list;

	for (unsigned round = 0; round < 60; round++) {
		struct aw_session alive;
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0)
			live_and_end(r);
		registered_create(r, "/alive", &alive);
		(void)usleep(300 + round * 41);
		if (aw_registry_sweep(&r->state, AW_REGISTRY_RUNTIME, &err) < 0)
			fail_msg("%s", err.message);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		assert_true(aw_registry_sweep(&r->state, AW_REGISTRY_EVERYTHING, &err) >= 0);
		assert_int_equal(count(r, AW_REGISTRY_ALIVE), 1);
		assert_true(registered_has(r, alive.meta.id, ""));
		end(r, &alive);
		assert_int_equal(rmdir(r->state.run_path), 0);
		assert_int_equal(mkdir(r->state.run_path, 0700), 0);
		aw_state_fini(&r->state);
		registered_open(r, false, &r->state);
	}
	assert_int_equal(aw_registry_list(&r->state, AW_REGISTRY_ALL, &list, &err), 0);
	for (size_t i = 0; i < list.count; i++)
		assert_int_equal(list.entry[i].life, AW_SESSION_ENDED);
	aw_registry_fini(&list);
}

static int attempt(void *state)
{
	const struct registered *r = state;
	autodrop(aw_registry_fini) struct aw_registry list = { 0 };
	struct aw_error ignored;

	return aw_registry_list(&r->state, AW_REGISTRY_ALL, &list, &ignored);
}

static void out_of_memory_is_told(void **state)
{
	struct registered *r = *state;
	char dead[9];

	for (int i = 0; i < 3; i++)
		registered_kill_one(r, "/p", dead);
	assert_true(aw_torture(attempt, r) >= 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_REGISTRY(lists_each_with_what_became_of_it),
		IN_REGISTRY(a_session_of_another_host_is_left_alone),
		IN_REGISTRY(finds_by_id_beginning_and_directory),
		IN_REGISTRY(two_in_one_directory_are_not_guessed),
		IN_REGISTRY(the_dead_are_swept_and_written_down),
		IN_REGISTRY(a_power_cut_is_found_by_the_thorough_sweep),
		IN_REGISTRY(a_word_that_was_said_stays),
		IN_REGISTRY(sessions_started_without_the_variable_are_swept_too),
		IN_REGISTRY(a_session_that_was_never_born_leaves_nothing),
		IN_REGISTRY(a_journal_without_a_readable_session_is_kept),
		IN_REGISTRY(planted_links_lead_nowhere),
		IN_REGISTRY(no_sweep_looks_at_what_is_being_made),
		IN_REGISTRY(wherever_a_session_is_killed_nothing_stays_behind),
		IN_REGISTRY(out_of_memory_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
