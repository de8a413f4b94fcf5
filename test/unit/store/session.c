#include "store/session.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/proc.h"
#include "store/registered.h"
#include "store/session-internal.h"

static struct aw_error err;

static void end(const struct registered *r, struct aw_session *session)
{
	struct aw_session_status status = { .reason = AW_SESSION_EXITED, .exit_code = 42 };

	status.ended_ns = session->meta.started_ns + 5;
	assert_int_equal(aw_session_end(&r->state, session, &status, &err), 0);
}

static void a_new_session_is_alive_and_knows_itself(void **state)
{
	struct registered *r = *state;
	struct aw_session_meta meta;
	struct aw_session session;

	registered_create(r, "/home/u/my project\n\xff", &session);
	assert_true(aw_session_is_id(session.meta.id));
	assert_int_equal(aw_session_load(&r->state, session.meta.id, &meta, &err), 0);
	assert_string_equal(meta.project, "/home/u/my project\n\xff");
	assert_string_equal(meta.agent, "claude");
	assert_string_equal(meta.run_path, r->state.run_path);
	assert_int_equal(meta.pid, getpid());
	assert_int_equal(meta.uid, geteuid());
	assert_true(meta.started_ns <= aw_wall_ns() && meta.pid_started > 0);
	assert_int_equal(aw_session_is_alive(&meta, &err), 1);
	end(r, &session);
}

static void an_ended_session_says_how(void **state)
{
	struct registered *r = *state;
	struct aw_session_status status;
	struct aw_session session;
	struct aw_session_meta meta;

	registered_create(r, "/p", &session);
	meta = session.meta;
	assert_int_equal(aw_session_load_status(&r->state, meta.id, &status, &err), -ENOENT);
	scratch_store(r->scratch, "x", "", 0);
	assert_int_equal(mkfifoat(session.run_fd, "control", 0600), 0);
	end(r, &session);
	assert_int_equal(session.lock_fd, -EBADF);
	assert_int_equal(aw_session_load_status(&r->state, meta.id, &status, &err), 0);
	assert_int_equal(status.reason, AW_SESSION_EXITED);
	assert_int_equal(status.exit_code, 42);
	assert_true(status.started_ns == meta.started_ns);
	assert_true(status.ended_ns == meta.started_ns + 5);
	assert_string_equal(status.detail, "");
	assert_int_equal(aw_session_is_alive(&meta, &err), 0);
	assert_false(registered_has(r, meta.id, ""));
	assert_true(registered_has(r, meta.id, "session.json"));
}

static void ids_do_not_repeat_and_are_easy_to_read(void **state)
{
	struct registered *r = *state;
	char ids[64][AW_SESSION_ID_LEN + 1];

	for (size_t i = 0; i < 64; i++) {
		struct aw_session session;

		registered_create(r, "/p", &session);
		memcpy(ids[i], session.meta.id, sizeof(ids[i]));
		assert_null(strpbrk(ids[i], "ilou"));
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(ids[i], ids[j]);
		end(r, &session);
	}
	assert_false(aw_session_is_id(""));
	assert_false(aw_session_is_id("0123456"));
	assert_false(aw_session_is_id("012345678"));
	assert_false(aw_session_is_id("0123456L"));
	assert_false(aw_session_is_id("../../xy"));
}

static void a_killed_monitor_is_not_alive(void **state)
{
	struct registered *r = *state;
	struct aw_session_meta meta;
	char id[9];

	registered_kill_one(r, "/p", id);
	assert_int_equal(aw_session_load(&r->state, id, &meta, &err), 0);
	assert_int_equal(aw_session_is_alive(&meta, &err), 0);
	assert_int_equal(aw_session_monitor(&meta, &err), -ESRCH);
}

static void an_inherited_lock_keeps_it_alive_until_it_is_closed(void **state)
{
	struct registered *r = *state;
	struct aw_session session;
	struct aw_session_meta meta;
	int go[2];
	pid_t pid;

	registered_create(r, "/p", &session);
	meta = session.meta;
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char byte;

		(void)close(go[1]);
		_exit(read(go[0], &byte, 1) == 0 ? 0 : 1);
	}
	aw_session_drop(&session);
	assert_int_equal(aw_session_is_alive(&meta, &err), 1);
	(void)close(go[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	(void)close(go[0]);
	assert_int_equal(aw_session_is_alive(&meta, &err), 0);
}

static void the_monitor_is_found_by_number_and_start(void **state)
{
	struct registered *r = *state;
	struct aw_session session;
	autoclose int pidfd = -EBADF;

	registered_create(r, "/p", &session);
	pidfd = aw_session_monitor(&session.meta, &err);
	assert_true(pidfd >= 0);
	assert_int_equal(aw_pidfd_kill(pidfd, 0), 0);
	session.meta.pid_started++;
	assert_int_equal(aw_session_monitor(&session.meta, &err), -ESRCH);
	session.meta.pid_started--;
	end(r, &session);
}

static void a_shell_without_the_runtime_variable_judges_right(void **state)
{
	struct registered *r = *state;
	struct aw_session session;
	struct aw_session_meta meta;
	struct aw_state bare;

	registered_create(r, "/p", &session);
	registered_open(r, true, &bare);
	assert_string_not_equal(bare.run_path, r->state.run_path);
	assert_int_equal(aw_session_load(&bare, session.meta.id, &meta, &err), 0);
	assert_int_equal(aw_session_is_alive(&meta, &err), 1);
	aw_state_fini(&bare);
	end(r, &session);
}

static void a_planted_lock_does_not_make_it_alive(void **state)
{
	struct registered *r = *state;
	struct aw_session_meta meta;
	char id[9], path[64];

	registered_kill_one(r, "/p", id);
	assert_int_equal(aw_session_load(&r->state, id, &meta, &err), 0);
	(void)snprintf(path, sizeof(path), "%s/lock", id);
	assert_int_equal(unlinkat(r->state.run_fd, path, 0), 0);
	assert_int_equal(aw_session_is_alive(&meta, &err), 0);
	assert_int_equal(mkfifoat(r->state.run_fd, path, 0600), 0);
	assert_int_equal(aw_session_is_alive(&meta, &err), 0);
	assert_int_equal(unlinkat(r->state.run_fd, path, 0), 0);
	assert_int_equal(symlinkat("/etc/passwd", r->state.run_fd, path), 0);
	assert_int_equal(aw_session_is_alive(&meta, &err), 0);
}

static void what_is_too_long_makes_no_session(void **state)
{
	struct registered *r = *state;
	struct aw_session session;
	char project[PATH_MAX + 1];

	project[0] = '/';
	memset(project + 1, 'p', sizeof(project) - 2);
	project[PATH_MAX] = '\0';
	assert_int_equal(aw_session_create(&r->state, project, "claude", &session, &err),
			 -ENAMETOOLONG);
	/* Fits, but not when every byte needs five. */
	memset(project + 1, 0xff, sizeof(project) - 2);
	project[PATH_MAX - 1] = '\0';
	assert_int_equal(aw_session_create(&r->state, project, "claude", &session, &err),
			 -ENAMETOOLONG);
	assert_int_equal(rmdir(r->state.run_path), 0); /* nothing was left in it */
}

static void the_longest_sane_project_is_kept_whole(void **state)
{
	struct registered *r = *state;
	struct aw_session session;
	struct aw_session_meta meta;
	char project[PATH_MAX];

	project[0] = '/';
	memset(project + 1, 'p', sizeof(project) - 2);
	project[PATH_MAX - 1] = '\0';
	registered_create(r, project, &session);
	assert_int_equal(aw_session_load(&r->state, session.meta.id, &meta, &err), 0);
	assert_string_equal(meta.project, project);
	end(r, &session);
}

static void a_full_disk_makes_no_session_and_leaves_nothing(void **state)
{
	struct registered *r = *state;
	struct rlimit limit, none;
	struct aw_session session;
	char sessions[PATH_MAX + 16];
	int made;

	(void)sigaction(SIGXFSZ, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	made = aw_session_create(&r->state, "/p", "claude", &session, &err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(made, -EFBIG);
	(void)snprintf(sessions, sizeof(sessions), "%s/sessions", r->state.path);
	assert_int_equal(rmdir(sessions), 0);
	assert_int_equal(rmdir(r->state.run_path), 0);
}

static void malformed_files_are_refused(void **state)
{
	static const char *const bad[] = { "", "{}\n", "{\"v\":1,\"id\":\"x\"}\n", "[]" };
	struct registered *r = *state;
	struct aw_session_status status;
	struct aw_session_meta meta;
	struct aw_session session;
	struct scratch here = { .fd = -1 };

	registered_create(r, "/p", &session);
	meta = session.meta;
	here.fd = fcntl(session.dir_fd, F_DUPFD_CLOEXEC, 0);
	end(r, &session);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		scratch_store(&here, "session.json", bad[i], strlen(bad[i]));
		scratch_store(&here, "status.json", bad[i], strlen(bad[i]));
		assert_int_equal(aw_session_load(&r->state, meta.id, &meta, &err), -EBADMSG);
		assert_int_equal(aw_session_load_status(&r->state, meta.id, &status, &err),
				 -EBADMSG);
	}
	(void)close(here.fd);
}

static void a_file_of_another_session_is_refused(void **state)
{
	struct registered *r = *state;
	struct aw_session session;
	struct aw_session_meta meta;
	char id[AW_SESSION_ID_LEN + 1];

	registered_create(r, "/p", &session);
	meta = session.meta;
	memcpy(id, meta.id, sizeof(id));
	memcpy(meta.id, "00000000", AW_SESSION_ID_LEN);
	assert_int_equal(aw_session_write_meta(session.dir_fd, &meta, &err), 0);
	assert_int_equal(aw_session_load(&r->state, id, &meta, &err), -EBADMSG);
	end(r, &session);
}

static void what_is_no_id_opens_nothing(void **state)
{
	struct registered *r = *state;
	struct aw_session_meta meta;

	assert_int_equal(aw_session_load(&r->state, "..", &meta, &err), -ENOENT);
	assert_int_equal(aw_session_load(&r->state, "", &meta, &err), -ENOENT);
	assert_int_equal(aw_session_load(&r->state, "00000000", &meta, &err), -ENOENT);
	assert_int_equal(aw_session_open_dir(&r->state, "../../..", &err), -ENOENT);
}

static void a_sweep_that_holds_on_is_waited_for_and_then_told(void **state)
{
	struct registered *r = *state;
	struct aw_session session;
	autoclose int held = aw_session_lock_registry(&r->state, true, &err);

	assert_true(held >= 0);
	assert_int_equal(aw_session_lock_registry(&r->state, true, &err), -EBUSY);
	assert_int_equal(aw_session_create(&r->state, "/p", "claude", &session, &err), -EBUSY);
}

static void every_reason_has_a_name_that_is_read_again(void **state)
{
	struct registered *r = *state;
	struct aw_session_status there = { .exit_code = -1, .detail = "why\n" }, back;

	for (int i = AW_SESSION_EXITED; i < AW_SESSION_REASON_COUNT; i++) {
		there.reason = (enum aw_session_end_reason)i;
		assert_int_equal(aw_session_write_status(r->scratch->fd, &there, &err), 0);
		assert_int_equal(aw_session_read_status(r->scratch->fd, &back, &err), 0);
		assert_int_equal(back.reason, i);
		assert_string_equal(back.detail, "why\n");
		assert_true(aw_session_reason_name(back.reason)[0] != '\0');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_REGISTRY(a_new_session_is_alive_and_knows_itself),
		IN_REGISTRY(an_ended_session_says_how),
		IN_REGISTRY(ids_do_not_repeat_and_are_easy_to_read),
		IN_REGISTRY(a_killed_monitor_is_not_alive),
		IN_REGISTRY(an_inherited_lock_keeps_it_alive_until_it_is_closed),
		IN_REGISTRY(the_monitor_is_found_by_number_and_start),
		IN_REGISTRY(a_shell_without_the_runtime_variable_judges_right),
		IN_REGISTRY(a_planted_lock_does_not_make_it_alive),
		IN_REGISTRY(what_is_too_long_makes_no_session),
		IN_REGISTRY(the_longest_sane_project_is_kept_whole),
		IN_REGISTRY(a_full_disk_makes_no_session_and_leaves_nothing),
		IN_REGISTRY(malformed_files_are_refused),
		IN_REGISTRY(a_file_of_another_session_is_refused),
		IN_REGISTRY(what_is_no_id_opens_nothing),
		IN_REGISTRY(a_sweep_that_holds_on_is_waited_for_and_then_told),
		IN_REGISTRY(every_reason_has_a_name_that_is_read_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
