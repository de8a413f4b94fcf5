#include "store/registered.h"

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

void registered_open(const struct registered *registered, bool is_bare, struct aw_state *ret)
{
	const struct aw_state_env env = {
		.home = registered->home,
		.xdg_runtime_dir = is_bare ? NULL : registered->runtime,
		.uid = geteuid(),
	};
	struct aw_error err;

	if (aw_state_open(&env, ret, &err) < 0)
		fail_msg("%s", err.message);
}

int registered_setup(void **state)
{
	struct registered *registered = calloc(1, sizeof(*registered));

	assert_non_null(registered);
	assert_int_equal(scratch_setup((void **)&registered->scratch), 0);
	(void)snprintf(registered->home, sizeof(registered->home), "%s/home",
		       registered->scratch->path);
	(void)snprintf(registered->runtime, sizeof(registered->runtime), "%s/runtime",
		       registered->scratch->path);
	assert_int_equal(mkdir(registered->home, 0700), 0);
	assert_int_equal(mkdir(registered->runtime, 0700), 0);
	registered_open(registered, false, &registered->state);
	*state = registered;
	return 0;
}

int registered_teardown(void **state)
{
	struct registered *registered = *state;

	aw_state_fini(&registered->state);
	assert_int_equal(scratch_teardown((void **)&registered->scratch), 0);
	free(registered);
	return 0;
}

void registered_create(const struct registered *registered, const char *project,
		       struct aw_session *ret)
{
	struct aw_error err;

	if (aw_session_create(&registered->state, project, "claude", ret, &err) < 0)
		fail_msg("%s", err.message);
}

void registered_kill_one(const struct registered *registered, const char *project, char id[9])
{
	struct aw_session session;
	struct aw_error err;
	int ready[2];
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (aw_session_create(&registered->state, project, "claude", &session, &err) < 0 ||
		    write(ready[1], session.meta.id, 9) != 9)
			_exit(1);
		(void)pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], id, 9), 9);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	(void)close(ready[0]);
	(void)close(ready[1]);
}

bool registered_has(const struct registered *registered, const char *id, const char *name)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%s%s%s", id, name[0] != '\0' ? "/" : "", name);
	return faccessat(name[0] != '\0' ? registered->state.sessions_fd : registered->state.run_fd,
			 path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}
