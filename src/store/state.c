#include "store/state.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"

static bool is_absolute(const char *path)
{
	return path != NULL && path[0] == '/';
}

int aw_state_enter(int dir_fd, const char *name, uid_t uid, struct aw_error *err)
{
	autoclose int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	/* With O_DIRECTORY a symbolic link is ENOTDIR on some kernels and ELOOP on others. */
	if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
		return aw_refuse(err, EACCES, "'%s' is not a directory (or a symbolic link)", name);
	if (fd < 0)
		return aw_fail(err, errno, "open directory '%s'", name);
	if (fstat(fd, &st) < 0)
		return aw_fail(err, errno, "fstat '%s'", name);
	if (st.st_uid != uid)
		return aw_refuse(err, EACCES, "'%s' belongs to user %u, not to user %u", name,
				 (unsigned)st.st_uid, (unsigned)uid);
	if ((st.st_mode & 077) != 0)
		return aw_refuse(err, EACCES, "'%s' is open to others (mode %03o): chmod 700 it",
				 name, (unsigned)st.st_mode & 0777);
	return AW_TAKE_FD(fd);
}

/* Enter @name, made first if it is missing. */
static int make_and_enter(int dir_fd, const char *name, uid_t uid, struct aw_error *err)
{
	int fd = aw_state_enter(dir_fd, name, uid, err);

	if (fd != -ENOENT)
		return fd;
	if (mkdirat(dir_fd, name, 0700) < 0 && errno != EEXIST)
		return aw_fail(err, errno, "make directory '%s'", name);
	return aw_state_enter(dir_fd, name, uid, err);
}

/*
 * mkdir -p of every directory above the last component. Links are followed here: people move their
 * home and .local about; only what is ours is held to the rules.
 */
static int make_parents(const char *path, struct aw_error *err)
{
	char part[PATH_MAX];

	if (aw_str_format(part, sizeof(part), "%s", path) < 0)
		return aw_fail(err, ENAMETOOLONG, "make '%s'", path);
	for (char *slash = strchr(part + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return aw_fail(err, errno, "make directory '%s'", part);
		*slash = '/';
	}
	return 0;
}

static int check_home(const char *home, uid_t uid, struct aw_error *err)
{
	struct stat st;

	if (stat(home, &st) < 0)
		return aw_fail(err, errno, "look at the home directory '%s'", home);
	if (st.st_uid != uid)
		return aw_refuse(err, EACCES,
				 "the home directory '%s' belongs to user %u, not to user %u: set "
				 "HOME or XDG_STATE_HOME",
				 home, (unsigned)st.st_uid, (unsigned)uid);
	return 0;
}

static int open_state_dir(const struct aw_state_env *env, char path[PATH_MAX], struct aw_error *err)
{
	bool is_named = is_absolute(env->xdg_state_home);
	int fd, r;

	if (!is_named && !is_absolute(env->home))
		return aw_refuse(err, ENOENT, "neither HOME nor XDG_STATE_HOME names a directory");
	r = is_named ? aw_str_format(path, PATH_MAX, "%s/warden", env->xdg_state_home)
		     : aw_str_format(path, PATH_MAX, "%s/.local/state/warden", env->home);
	if (r < 0)
		return aw_fail(err, -r, "find the state directory");
	fd = aw_state_enter(AT_FDCWD, path, env->uid, err);
	if (fd != -ENOENT)
		return fd;
	r = is_named ? 0 : check_home(env->home, env->uid, err);
	if (r == 0)
		r = make_parents(path, err);
	return r < 0 ? r : make_and_enter(AT_FDCWD, path, env->uid, err);
}

/* $XDG_RUNTIME_DIR is often another user's after su or sudo, or gone: then it does not count. */
static bool has_runtime_dir(const struct aw_state_env *env)
{
	struct stat st;

	return is_absolute(env->xdg_runtime_dir) && stat(env->xdg_runtime_dir, &st) == 0 &&
	       S_ISDIR(st.st_mode) && st.st_uid == env->uid;
}

static int open_run_dir(const struct aw_state_env *env, struct aw_state *state,
			struct aw_error *err)
{
	bool is_named = has_runtime_dir(env);
	int r;

	r = is_named ? aw_str_format(state->run_path, PATH_MAX, "%s/warden", env->xdg_runtime_dir)
		     : aw_str_format(state->run_path, PATH_MAX, "%s/run", state->path);
	if (r < 0)
		return aw_fail(err, -r, "find the runtime directory");
	if (!is_named)
		return make_and_enter(state->state_fd, "run", env->uid, err);
	/* Sessions that were started without the variable are in the other place. */
	state->fallback_run_fd = aw_state_enter(state->state_fd, "run", env->uid, err);
	if (state->fallback_run_fd < 0 && state->fallback_run_fd != -ENOENT)
		return state->fallback_run_fd;
	return make_and_enter(AT_FDCWD, state->run_path, env->uid, err);
}

int aw_state_open(const struct aw_state_env *env, struct aw_state *ret, struct aw_error *err)
{
	autodrop(aw_state_fini) struct aw_state state = {
		.uid = env->uid,
		.state_fd = -EBADF,
		.sessions_fd = -EBADF,
		.run_fd = -EBADF,
		.fallback_run_fd = -EBADF,
	};

	state.state_fd = open_state_dir(env, state.path, err);
	if (state.state_fd < 0)
		return aw_while(err, "open the state directory");
	state.sessions_fd = make_and_enter(state.state_fd, "sessions", env->uid, err);
	if (state.sessions_fd < 0)
		return aw_while(err, "open the state directory '%s'", state.path);
	state.run_fd = open_run_dir(env, &state, err);
	if (state.run_fd < 0)
		return aw_while(err, "open the runtime directory");
	*ret = state;
	state.state_fd = state.sessions_fd = state.run_fd = state.fallback_run_fd = -EBADF;
	return 0;
}

void aw_state_fini(struct aw_state *state)
{
	state->state_fd = aw_fd_close(state->state_fd);
	state->sessions_fd = aw_fd_close(state->sessions_fd);
	state->run_fd = aw_fd_close(state->run_fd);
	state->fallback_run_fd = aw_fd_close(state->fallback_run_fd);
}
