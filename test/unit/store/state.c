#include "store/state.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/str.h"
#include "store/scratch.h"

static struct aw_error err;

struct paths {
	char home[128], state_home[128], runtime[128];
};

static struct paths paths_of(const struct scratch *s)
{
	struct paths p;

	(void)snprintf(p.home, sizeof(p.home), "%s/home", s->path);
	(void)snprintf(p.state_home, sizeof(p.state_home), "%s/deep/er/state", s->path);
	(void)snprintf(p.runtime, sizeof(p.runtime), "%s/runtime", s->path);
	assert_int_equal(mkdir(p.home, 0755), 0);
	assert_int_equal(mkdir(p.runtime, 0700), 0);
	return p;
}

static struct aw_state_env env_of(const struct paths *p)
{
	return (struct aw_state_env){ p->home, NULL, p->runtime, geteuid() };
}

static int open_state(const struct aw_state_env *env)
{
	struct aw_state state;
	int r = aw_state_open(env, &state, &err);

	if (r == 0)
		aw_state_fini(&state);
	return r;
}

static void assert_private(const char *directory, const char *below)
{
	char path[256];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s%s", directory, below);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
}

static void makes_what_is_missing_below_home(void **state)
{
	struct paths p = paths_of(*state);
	struct aw_state_env env = env_of(&p);

	assert_int_equal(open_state(&env), 0);
	assert_private(p.home, "/.local/state/warden");
	assert_private(p.home, "/.local/state/warden/sessions");
	assert_private(p.runtime, "/warden");
	assert_int_equal(open_state(&env), 0);
}

static void xdg_state_home_comes_first(void **state)
{
	struct paths p = paths_of(*state);
	struct aw_state_env env = env_of(&p);

	env.xdg_state_home = p.state_home;
	env.home = NULL;
	assert_int_equal(open_state(&env), 0);
	assert_private(p.state_home, "/warden/sessions");
}

static void a_relative_variable_counts_as_unset(void **state)
{
	struct paths p = paths_of(*state);
	struct aw_state_env env = env_of(&p);

	env.xdg_state_home = "state";
	env.xdg_runtime_dir = "runtime";
	assert_int_equal(open_state(&env), 0);
	assert_private(p.home, "/.local/state/warden/run");
	env.home = "";
	assert_int_equal(open_state(&env), -ENOENT);
}

static void without_a_runtime_directory_of_ours_it_is_in_the_state(void **state)
{
	struct paths p = paths_of(*state);
	struct aw_state_env env = env_of(&p);

	env.xdg_runtime_dir = "/nowhere/at/all";
	assert_int_equal(open_state(&env), 0);
	assert_private(p.home, "/.local/state/warden/run");
	/* Another's, as after su: root makes one, anybody else finds root's. */
	env.xdg_runtime_dir = geteuid() == 0 ? p.runtime : "/";
	if (geteuid() == 0)
		assert_int_equal(chown(p.runtime, 12345, 12345), 0);
	assert_int_equal(open_state(&env), 0);
	assert_int_equal(faccessat(AT_FDCWD, "/warden", F_OK, 0), -1);
}

static void both_runtime_directories_are_known(void **state)
{
	struct paths p = paths_of(*state);
	struct aw_state_env env = env_of(&p);
	struct aw_state opened;

	env.xdg_runtime_dir = NULL;
	assert_int_equal(open_state(&env), 0);
	env = env_of(&p);
	assert_int_equal(aw_state_open(&env, &opened, &err), 0);
	assert_true(opened.fallback_run_fd >= 0);
	assert_true(aw_str_ends(aw_str_from(opened.run_path), "/runtime/warden"));
	aw_state_fini(&opened);
	assert_int_equal(opened.state_fd, -EBADF);
}

static void a_directory_that_is_open_to_others_is_refused(void **state)
{
	static const char *const below[] = { "", "/sessions" };
	struct paths p = paths_of(*state);
	struct aw_state_env env = env_of(&p);
	char path[256];

	assert_int_equal(open_state(&env), 0);
	for (size_t i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof(path), "%s/.local/state/warden%s", p.home, below[i]);
		for (mode_t bit = 1; bit < 0100; bit <<= 1) {
			assert_int_equal(chmod(path, 0700 | bit), 0);
			assert_int_equal(open_state(&env), -EACCES);
			assert_non_null(strstr(err.message, "chmod 700"));
		}
		assert_int_equal(chmod(path, 0700), 0);
	}
	(void)snprintf(path, sizeof(path), "%s/warden", p.runtime);
	assert_int_equal(chmod(path, 0750), 0);
	assert_int_equal(open_state(&env), -EACCES);
}

static void a_planted_link_is_refused(void **state)
{
	struct paths p = paths_of(*state);
	struct aw_state_env env = env_of(&p);
	char path[256], target[256];

	assert_int_equal(open_state(&env), 0);
	(void)snprintf(target, sizeof(target), "%s/.local/state/warden", p.home);
	(void)snprintf(path, sizeof(path), "%s/warden", p.runtime);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(symlink(target, path), 0);
	assert_int_equal(open_state(&env), -EACCES);
	assert_int_equal(unlink(path), 0);
	(void)snprintf(path, sizeof(path), "%s/moved", p.home);
	assert_int_equal(rename(target, path), 0);
	assert_int_equal(symlink(path, target), 0);
	assert_int_equal(open_state(&env), -EACCES);
}

static void a_file_in_its_place_is_refused(void **state)
{
	struct paths p = paths_of(*state);
	struct aw_state_env env = env_of(&p);
	struct scratch *s = *state;

	scratch_store(s, "runtime/warden", "", 0);
	assert_int_equal(open_state(&env), -EACCES);
}

/* People move .local about: above what is ours, links are followed. */
static void a_link_above_is_followed(void **state)
{
	struct paths p = paths_of(*state);
	struct aw_state_env env = env_of(&p);
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/.local", p.home);
	assert_int_equal(symlink("../runtime", path), 0);
	assert_int_equal(open_state(&env), 0);
	assert_private(p.runtime, "/state/warden");
}

static void what_belongs_to_another_is_refused(void **state)
{
	struct paths p = paths_of(*state);
	struct aw_state_env env = env_of(&p);

	assert_int_equal(open_state(&env), 0);
	env.uid++;
	env.xdg_runtime_dir = NULL;
	assert_int_equal(open_state(&env), -EACCES);
	assert_non_null(strstr(err.message, "belongs to user"));
}

static void nothing_is_made_in_the_home_of_another(void **state)
{
	struct paths p = paths_of(*state);
	struct aw_state_env env = env_of(&p);
	char path[256];

	env.uid++;
	assert_int_equal(open_state(&env), -EACCES);
	(void)snprintf(path, sizeof(path), "%s/.local", p.home);
	assert_int_equal(access(path, F_OK), -1);
}

static void a_path_that_is_too_long_is_refused(void **state)
{
	struct paths p = paths_of(*state);
	struct aw_state_env env = env_of(&p);
	char longer[PATH_MAX];

	memset(longer, '/', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	env.xdg_state_home = longer;
	assert_int_equal(open_state(&env), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SCRATCH(makes_what_is_missing_below_home),
		IN_SCRATCH(xdg_state_home_comes_first),
		IN_SCRATCH(a_relative_variable_counts_as_unset),
		IN_SCRATCH(without_a_runtime_directory_of_ours_it_is_in_the_state),
		IN_SCRATCH(both_runtime_directories_are_known),
		IN_SCRATCH(a_directory_that_is_open_to_others_is_refused),
		IN_SCRATCH(a_planted_link_is_refused),
		IN_SCRATCH(a_file_in_its_place_is_refused),
		IN_SCRATCH(a_link_above_is_followed),
		IN_SCRATCH(what_belongs_to_another_is_refused),
		IN_SCRATCH(nothing_is_made_in_the_home_of_another),
		IN_SCRATCH(a_path_that_is_too_long_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
