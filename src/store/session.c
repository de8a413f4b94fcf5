#include "store/session.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "base/proc.h"
#include "store/session-internal.h"

/* Crockford's base32: 0 and 1 are there, the letters they are taken for (i, l, o) and u are not. */
#define ID_DIGITS "0123456789abcdefghjkmnpqrstvwxyz"
#define ID_TRIES 16
#define LOCK_TRIES 2000
#define LOCK_PAUSE_NS 1000000
#define STAT_MAX 1024

bool aw_session_is_id(const char *text)
{
	return strlen(text) == AW_SESSION_ID_LEN && strspn(text, ID_DIGITS) == AW_SESSION_ID_LEN;
}

static int make_id(char id[AW_SESSION_ID_LEN + 1], struct aw_error *err)
{
	unsigned char random[AW_SESSION_ID_LEN];

	/* Requests up to 256 bytes are never cut short once the kernel's pool is up. */
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return aw_fail(err, errno, "get random bytes for a session id");
	for (size_t i = 0; i < AW_SESSION_ID_LEN; i++)
		id[i] = ID_DIGITS[random[i] & 31];
	id[AW_SESSION_ID_LEN] = '\0';
	return 0;
}

static int set_lock(int fd, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET };

	return fcntl(fd, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
}

int aw_session_lock_registry(const struct aw_state *state, bool is_exclusive, struct aw_error *err)
{
	const struct timespec pause = { .tv_nsec = LOCK_PAUSE_NS };
	autoclose int fd = openat(state->state_fd, "lock",
				  O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	int r = -EAGAIN;

	if (fd < 0)
		return aw_fail(err, errno, "open the registry's lock");
	/* Not F_OFD_SETLKW: a sweep that somebody stopped must not hold up every start for ever. */
	for (int i = 0; i < LOCK_TRIES && r == -EAGAIN; i++) {
		if (i > 0)
			(void)nanosleep(&pause, NULL);
		r = set_lock(fd, is_exclusive ? F_WRLCK : F_RDLCK);
		if (is_exclusive)
			break;
	}
	if (r == -EAGAIN)
		return aw_refuse(err, EBUSY, "the registry of sessions is busy");
	return r < 0 ? aw_fail(err, -r, "lock the registry") : AW_TAKE_FD(fd);
}

int aw_session_is_locked(int run_fd, struct aw_error *err)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	autoclose int fd = openat(run_fd, AW_SESSION_LOCK_NAME,
				  O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && (errno == ENOENT || errno == ELOOP || errno == ENXIO))
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return aw_fail(err, errno, "open a session's lock");
	if (!S_ISREG(st.st_mode))
		return 0;
	if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
		return aw_fail(err, errno, "look at a session's lock");
	return lock.l_type != F_UNLCK;
}

int aw_session_host_name(char out[65])
{
	struct utsname name;

	if (uname(&name) < 0)
		return -errno;
	return aw_str_format(out, 65, "%s", name.nodename);
}

/*
 * Field 22 of /proc/PID/stat. The name in field 2 may contain anything, so count from its end. One
 * read without an allocation: this is part of every start.
 */
static int start_of(pid_t pid, uint64_t *ret, struct aw_error *err)
{
	char path[32], text[STAT_MAX];
	struct aw_str rest, field = { 0 };
	autoclose int fd = -EBADF;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return aw_fail(err, errno, "read '%s'", path);
	text[n] = '\0';
	rest = aw_str_from(strrchr(text, ')'));
	for (int i = 2; i <= 22; i++)
		if (!aw_str_next(&rest, ' ', &field))
			return aw_refuse(err, EBADMSG, "'%s' is too short", path);
	if (aw_str_to_u64(field, UINT64_MAX, ret) < 0)
		return aw_refuse(err, EBADMSG, "'%s' has no start time", path);
	return 0;
}

static int describe(const struct aw_state *state, const char *project, const char *agent,
		    struct aw_session_meta *meta, struct aw_error *err)
{
	int r = aw_str_format(meta->project, sizeof(meta->project), "%s", project);

	if (r >= 0)
		r = aw_str_format(meta->agent, sizeof(meta->agent), "%s", agent);
	if (r >= 0)
		r = aw_str_format(meta->run_path, sizeof(meta->run_path), "%s", state->run_path);
	if (r >= 0)
		r = aw_session_host_name(meta->host);
	if (r < 0)
		return aw_fail(err, -r, "describe the session");
	meta->started_ns = aw_wall_ns();
	meta->pid = getpid();
	meta->uid = state->uid;
	return start_of(meta->pid, &meta->pid_started, err);
}

/* The directory under sessions/ is what makes an id unique. */
static int make_dir(const struct aw_state *state, struct aw_session *session, struct aw_error *err)
{
	char *id = session->meta.id;
	int r;

	for (int i = 0; i < ID_TRIES; i++) {
		r = make_id(id, err);
		if (r < 0)
			return r;
		if (mkdirat(state->sessions_fd, id, 0700) == 0) {
			session->dir_fd = aw_state_enter(state->sessions_fd, id, state->uid, err);
			return session->dir_fd < 0 ? session->dir_fd : 0;
		}
		if (errno != EEXIST)
			return aw_fail(err, errno, "make a session's directory");
	}
	return aw_refuse(err, EEXIST, "no free session id");
}

static int make_runtime(const struct aw_state *state, struct aw_session *session,
			struct aw_error *err)
{
	const char *id = session->meta.id;
	int r;

	if (mkdirat(state->run_fd, id, 0700) < 0)
		return aw_fail(err, errno, "make a session's runtime directory");
	session->run_fd = aw_state_enter(state->run_fd, id, state->uid, err);
	if (session->run_fd < 0)
		return session->run_fd;
	session->lock_fd = openat(session->run_fd, AW_SESSION_LOCK_NAME,
				  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (session->lock_fd < 0)
		return aw_fail(err, errno, "make a session's lock");
	r = set_lock(session->lock_fd, F_WRLCK);
	return r < 0 ? aw_fail(err, -r, "hold a session's lock") : 0;
}

/* Undo a session that could not be made; @err keeps the reason. */
static void unmake(const struct aw_state *state, const struct aw_session *session)
{
	struct aw_error ignored;

	if (session->dir_fd < 0)
		return;
	(void)aw_session_remove_tree(state->run_fd, session->meta.id, &ignored);
	(void)aw_session_remove_tree(state->sessions_fd, session->meta.id, &ignored);
}

int aw_session_create(const struct aw_state *state, const char *project, const char *agent,
		      struct aw_session *ret, struct aw_error *err)
{
	autodrop(aw_session_drop) struct aw_session session = {
		.dir_fd = -EBADF,
		.run_fd = -EBADF,
		.lock_fd = -EBADF,
	};
	/* Until this is let go no sweep looks at what is half made here. */
	autoclose int registry = aw_session_lock_registry(state, false, err);
	int r = registry < 0 ? registry : describe(state, project, agent, &session.meta, err);

	if (r == 0)
		r = make_dir(state, &session, err);
	if (r == 0)
		r = make_runtime(state, &session, err);
	if (r == 0)
		r = aw_session_write_meta(session.dir_fd, &session.meta, err);
	if (r < 0) {
		unmake(state, &session);
		return aw_while(err, "make a session");
	}
	*ret = session;
	session.dir_fd = session.run_fd = session.lock_fd = -EBADF;
	return 0;
}

int aw_session_end(const struct aw_state *state, struct aw_session *session,
		   struct aw_session_status *status, struct aw_error *err)
{
	struct aw_error second;
	int r, removed;

	status->started_ns = session->meta.started_ns;
	/* First the word, then the lock: whoever sees a lock that nobody holds finds the word. */
	r = aw_session_write_status(session->dir_fd, status, err);
	removed = aw_session_remove_tree(state->run_fd, session->meta.id, &second);
	aw_session_drop(session);
	if (r == 0 && removed < 0) {
		*err = second;
		r = removed;
	}
	return r < 0 ? aw_while(err, "end the session") : 0;
}

void aw_session_drop(struct aw_session *session)
{
	session->dir_fd = aw_fd_close(session->dir_fd);
	session->run_fd = aw_fd_close(session->run_fd);
	session->lock_fd = aw_fd_close(session->lock_fd);
}

int aw_session_open_dir(const struct aw_state *state, const char *id, struct aw_error *err)
{
	if (!aw_session_is_id(id))
		return aw_refuse(err, ENOENT, "'%s' is not a session id", id);
	return aw_state_enter(state->sessions_fd, id, state->uid, err);
}

int aw_session_load(const struct aw_state *state, const char *id, struct aw_session_meta *ret,
		    struct aw_error *err)
{
	autoclose int dir = aw_session_open_dir(state, id, err);
	struct aw_session_meta meta;
	int r = dir < 0 ? dir : aw_session_read_meta(dir, &meta, err);

	if (r == 0 && strcmp(meta.id, id) != 0)
		r = aw_refuse(err, EBADMSG, "'" AW_SESSION_META_NAME "' is of session '%s'",
			      meta.id);
	if (r < 0)
		return aw_while(err, "load session '%s'", id);
	*ret = meta;
	return 0;
}

int aw_session_load_status(const struct aw_state *state, const char *id,
			   struct aw_session_status *ret, struct aw_error *err)
{
	autoclose int dir = aw_session_open_dir(state, id, err);
	int r = dir < 0 ? dir : aw_session_read_status(dir, ret, err);

	return r < 0 ? aw_while(err, "load how session '%s' ended", id) : 0;
}

int aw_session_is_alive(const struct aw_session_meta *meta, struct aw_error *err)
{
	autoclose int runtime = aw_state_enter(AT_FDCWD, meta->run_path, meta->uid, err);
	autoclose int run = -EBADF;

	if (runtime == -ENOENT)
		return 0;
	if (runtime < 0)
		return runtime;
	run = aw_state_enter(runtime, meta->id, meta->uid, err);
	if (run == -ENOENT)
		return 0;
	return run < 0 ? run : aw_session_is_locked(run, err);
}

int aw_session_monitor(const struct aw_session_meta *meta, struct aw_error *err)
{
	autoclose int pidfd = aw_pidfd_open(meta->pid, err);
	uint64_t started;

	if (pidfd < 0)
		return pidfd;
	/* The pidfd is held, so a number that was given away since shows in the start time. */
	if (start_of(meta->pid, &started, err) < 0 || started != meta->pid_started)
		return aw_refuse(err, ESRCH, "the monitor of session '%s' is gone", meta->id);
	return AW_TAKE_FD(pidfd);
}
