/*
 * state - Warden's two directories of a user: what stays, and what lives as long as a session.
 *
 *	state     $XDG_STATE_HOME/warden, else $HOME/.local/state/warden
 *	runtime   $XDG_RUNTIME_DIR/warden if that is a directory of this user, else STATE/run
 *
 * Both hold a directory per session: STATE/sessions/ID and RUNTIME/ID. Both are refused (-EACCES)
 * unless they are real directories (no symbolic link as the last component), owned by this user,
 * and closed to group and others. As the XDG specification says, a relative path in a variable
 * counts as unset. The environment is handed in, the user data base is never asked.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct aw_state_env {
	const char *home, *xdg_state_home, *xdg_runtime_dir; /* NULL or empty: unset */
	uid_t uid;                                           /* whose directories: geteuid() */
};

struct aw_state {
	uid_t uid;
	int state_fd, sessions_fd, run_fd; /* its own */
	int fallback_run_fd; /* STATE/run if it exists and is not `run_fd`, else -EBADF */
	char path[PATH_MAX];
	char run_path[PATH_MAX];
};

/*
 * Open both, making what is missing with mode 0700, parents too. Made below $HOME only if $HOME is
 * this user's, so that a root shell with another's $HOME leaves no files there. -ENOENT when no
 * variable names a place, -EACCES when a directory is not safe, -errno.
 */
int aw_state_open(const struct aw_state_env *env, struct aw_state *ret, struct aw_error *err);
void aw_state_fini(struct aw_state *state);

/*
 * Open the directory @name in @dir_fd, its last component under the rules above. Returns an fd;
 * -ENOENT, -EACCES, -errno.
 */
int aw_state_enter(int dir_fd, const char *name, uid_t uid, struct aw_error *err);
