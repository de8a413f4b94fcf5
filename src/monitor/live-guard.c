/*
 * The watch over protected files: while a session lives, everything that was pinned or made read-only
 * must still be so.
 *
 * Two signs make it look: a change in the cell's mount table (a host's rename over a mounted name
 * takes the mount away), and a change of a name in a directory that holds protected names. If
 * a mount is missing: freeze the cell, wait until the host is done with the name, put the content of
 * before back (held.h), bind again, thaw. What came in between does not stay.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "cell/protect.h"
#include "cell/rearm.h"
#include "monitor/live-guard-internal.h"
#include "policy/paths.h"

#define MOUNTINFO_MAX (4 * 1024 * 1024)
#define NAMES_MASK \
	(IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ONLYDIR | IN_EXCL_UNLINK)
#define SETTLE_NS 30000000L /* the host has not touched a protected name for so long */
#define SETTLES_MAX 20
#define REARM_ROUNDS_MAX 16
#define KEPT_MAX 32 /* copies of what replaced a protected file, at most 1 MiB each */

static const char *dir_of(const struct aw_live_guard *guard, int wd)
{
	for (size_t i = 0; i < guard->dir_count; i++)
		if (guard->dirs[i].wd == wd)
			return guard->dirs[i].host;
	return NULL;
}

/* Watch a directory; writes are only heard where a held file lies, since the agent writes all day. */
static int watch_dir(struct aw_live_guard *guard, const char *host, uint32_t mask,
		     struct aw_error *err)
{
	struct guard_dir *larger;
	int wd = inotify_add_watch(guard->live->inotify, host, mask | IN_MASK_ADD);

	if (wd < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : aw_fail(err, errno, "watch '%s'", host);
	if (dir_of(guard, wd) != NULL)
		return 0;
	larger = reallocarray(guard->dirs, guard->dir_count + 1, sizeof(*larger));
	if (larger == NULL)
		return aw_fail(err, ENOMEM, "watch '%s'", host);
	guard->dirs = larger;
	guard->dirs[guard->dir_count] = (struct guard_dir){ .wd = wd, .host = strdup(host) };
	if (guard->dirs[guard->dir_count].host == NULL)
		return aw_fail(err, ENOMEM, "watch '%s'", host);
	guard->dir_count++;
	return 0;
}

static bool is_in_repository(const struct aw_grants *g, const char *at)
{
	for (size_t i = 0; i < g->repositories.count; i++)
		if (aw_path_is_within(at, g->repositories.text[i]))
			return true;
	return false;
}

/* Watch the directory that a protected name is in: a new one, if it was replaced. */
static int watch_parent(struct aw_live_guard *guard, const char *at, struct aw_error *err)
{
	uint32_t mask = NAMES_MASK;
	char host[PATH_MAX];
	char *slash;

	if (aw_guard_host_path(guard->live->prepared, at, host) < 0)
		return 0;
	if (aw_held_find(&guard->held, host) != NULL)
		mask |= IN_MODIFY;
	slash = strrchr(host, '/');
	if (slash == NULL || slash == host)
		return 0;
	*slash = '\0';
	return watch_dir(guard, host, mask, err);
}

static int watch_parents(struct aw_live_guard *guard, struct aw_error *err)
{
	const struct aw_texts *protects = &guard->live->prepared->grants.protects;

	for (size_t i = 0; i < protects->count; i++)
		if (watch_parent(guard, protects->text[i], err) < 0)
			return -err->code;
	return 0;
}

/* Remember what a protected name contains, and watch the directory that it is in. */
static int hold(struct aw_live_guard *guard, const char *at, bool is_read_only,
		struct aw_error *err)
{
	const struct aw_prepared *p = guard->live->prepared;
	struct aw_held_file *file = NULL;
	char host[PATH_MAX];

	if (aw_guard_host_path(p, at, host) < 0)
		return aw_fail(err, ENAMETOOLONG, "'%s'", at);
	if (is_read_only && aw_held_add(&guard->held, host, &file, err) < 0)
		return -err->code;
	if (file != NULL)
		file->is_needed = is_in_repository(&p->grants, at);
	return watch_parent(guard, at, err);
}

static int hold_all(struct aw_live_guard *guard, const struct aw_texts *texts, bool is_read_only,
		    struct aw_error *err)
{
	for (size_t i = 0; i < texts->count; i++)
		if (hold(guard, texts->text[i], is_read_only, err) < 0)
			return -err->code;
	return 0;
}

/* A name of the table that lies directly in the project and was not there at the start. */
static bool is_protected_name(const struct aw_live *live, const char *host)
{
	size_t count, root = strlen(live->prepared->workspace.path);
	const struct aw_protect_name *names = aw_protect_names(&count);

	if (!aw_path_is_within(host, live->prepared->workspace.path) || host[root] == '\0')
		return false;
	for (size_t i = 0; i < count; i++)
		if ((names[i].class & live->prepared->policy->protect) &&
		    strcmp(host + root + 1, names[i].path) == 0)
			return true;
	return false;
}

static void on_lost_events(struct aw_live_guard *guard)
{
	guard->is_busy = true;
	for (size_t i = 0; i < guard->held.count; i++)
		guard->held.file[i].is_changed = true;
}

static void on_name(struct aw_live_guard *guard, const struct inotify_event *event)
{
	struct aw_live *live = guard->live;
	const char *dir = dir_of(guard, event->wd);
	struct aw_held_file *file;
	char host[PATH_MAX];
	struct aw_error none;

	if (event->mask & IN_Q_OVERFLOW)
		on_lost_events(guard);
	if (event->len == 0 || dir == NULL ||
	    aw_str_format(host, sizeof(host), "%s/%s", dir, event->name) < 0)
		return;
	file = aw_held_find(&guard->held, host);
	if (file != NULL) {
		guard->is_busy = true;
		file->is_changed = file->is_changed || (event->mask & IN_MODIFY);
		return;
	}
	if (!(event->mask & (IN_CREATE | IN_MOVED_TO)) || !is_protected_name(live, host) ||
	    aw_guard_is_pinned(live, host) || aw_grants_has(&guard->created, host))
		return;
	if (aw_grants_add(&guard->created, host, &none) == 0)
		aw_guard_record(live, AW_EVENT_PROTECT_CREATED, host);
}

static void read_names(struct aw_live_guard *guard)
{
	char buffer[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n;

	while ((n = read(guard->live->inotify, buffer, sizeof(buffer))) > 0) {
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *event = (const void *)(buffer + at);

			on_name(guard, event);
			at += (ssize_t)sizeof(*event) + event->len;
		}
	}
}

/* Whether what is not mounted could be: it is there, or it is put back. */
static bool is_due(struct aw_live_guard *guard, const char *at)
{
	struct aw_held_file *file;
	char host[PATH_MAX];

	if (aw_guard_host_path(guard->live->prepared, at, host) < 0)
		return false;
	file = aw_held_find(&guard->held, host);
	if (file == NULL)
		return faccessat(AT_FDCWD, host, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	file->is_lost = true;
	return aw_held_is_due(file);
}

/* Collect what should be mounted, is not, and could be: pins first, as they hold what lies in them. */
static size_t find_missing(struct aw_live_guard *guard, struct aw_str table,
			   struct aw_rearm_point *ret)
{
	const struct aw_grants *g = &guard->live->prepared->grants;
	const struct aw_texts *lists[] = { &g->pins, &g->protects };
	size_t count = 0;

	for (size_t l = 0; l < AW_ARRAY_LEN(lists); l++) {
		for (size_t i = 0; i < lists[l]->count; i++) {
			const char *at = lists[l]->text[i];

			if (!aw_mountinfo_has(table, at) && is_due(guard, at))
				ret[count++] =
					(struct aw_rearm_point){ .at = at, .is_read_only = l == 1 };
		}
	}
	return count;
}

static int look(struct aw_live_guard *guard, struct aw_rearm_point *points, size_t *ret_count,
		struct aw_error *err)
{
	struct aw_live *live = guard->live;
	autofree char *table = NULL;
	ssize_t n;

	if (lseek(live->mountinfo, 0, SEEK_SET) < 0)
		return aw_fail(err, errno, "read the cell's mount table");
	n = aw_read_any(live->mountinfo, MOUNTINFO_MAX, &table, err);
	if (n < 0)
		return (int)n;
	*ret_count = find_missing(guard, (struct aw_str){ table, (size_t)n }, points);
	return 0;
}

static int start_freezing(struct aw_live_guard *guard, const struct aw_rearm_point *points,
			  size_t count, struct aw_error *err)
{
	for (size_t i = 0; i < count; i++)
		aw_guard_record(guard->live, AW_EVENT_PROTECT_DETACHED, points[i].at);
	guard->state = GUARD_FREEZING;
	return aw_ipc_send(guard->live->cell.link, AW_IPC_CELL_FREEZE, NULL, 0, NULL, 0, err);
}

static int check(struct aw_live_guard *guard)
{
	struct aw_rearm_point points[2 * AW_GRANTS_MAX];
	struct aw_live *live = guard->live;
	struct aw_error err = { 0 };
	size_t count = 0;
	int r;

	read_names(guard);
	if (guard->state != GUARD_WATCHING || live->outcome.reason != 0)
		return 0;
	aw_held_reread(&guard->held);
	r = look(guard, points, &count, &err);
	if (r == 0 && count > 0)
		r = start_freezing(guard, points, count, &err);
	if (r == 0)
		aw_held_accept(&guard->held);
	if (r < 0)
		aw_live_fail(live, &err);
	return 0;
}

static int names_ready(struct aw_watch *watch, uint32_t events)
{
	(void)events;
	return check(AW_CONTAINER(watch, struct aw_live_guard, names));
}

static int mounts_ready(struct aw_watch *watch, uint32_t events)
{
	(void)events;
	return check(AW_CONTAINER(watch, struct aw_live_guard, mounts));
}

static int note_replaced(struct aw_live_guard *guard, const char *host, const char *kept,
			 struct aw_error *err)
{
	struct aw_event *event = aw_live_event(guard->live, AW_EVENT_PROTECT_REVERTED);

	aw_event_add_str(event, "path", aw_str_from(host));
	aw_event_add_str(event, "kept", aw_str_from(kept));
	aw_live_record(guard->live);
	guard->kept++;
	return aw_grants_add(&guard->restored, host, err);
}

/*
 * A directory, or a file whose directory went with it: there is nothing to put back, the person has to
 * look. A file that is there, and could be anybody's, must not pass for the one that was protected.
 */
static int judge_other(struct aw_live_guard *guard, const char *host, bool is_read_only,
		       struct aw_error *err)
{
	struct stat st;

	if (lstat(host, &st) < 0)
		return 0;
	if (is_read_only && !S_ISDIR(st.st_mode))
		return aw_refuse(err, ESTALE,
				 "'%s' was replaced, and what it was before cannot be put back",
				 host);
	return aw_grants_add(&guard->replaced, host, err);
}

static int judge(struct aw_live_guard *guard, const struct aw_rearm_point *point,
		 struct aw_error *err)
{
	struct aw_live *live = guard->live;
	char host[PATH_MAX], kept[64];
	struct aw_held_file *file;
	int r;

	if (aw_guard_host_path(live->prepared, point->at, host) < 0)
		return 0;
	file = aw_held_find(&guard->held, host);
	if (file == NULL)
		return judge_other(guard, host, point->is_read_only, err);
	r = aw_held_restore(file, guard->kept < KEPT_MAX ? live->session.dir_fd : -EBADF, kept,
			    sizeof(kept), err);
	if (r == -ESTALE)
		return judge_other(guard, host, point->is_read_only, err);
	return r > 0 ? note_replaced(guard, host, kept, err) : r;
}

/* With the cell standing still: judge and bind until nothing is missing. */
static int rearm(struct aw_live_guard *guard, struct aw_error *err)
{
	struct aw_rearm_point points[2 * AW_GRANTS_MAX];
	struct aw_live *live = guard->live;
	size_t count = 0;
	int r = 0;

	for (int round = 0; round < REARM_ROUNDS_MAX; round++) {
		r = look(guard, points, &count, err);
		if (r < 0 || count == 0)
			return r;
		for (size_t i = 0; r == 0 && i < count; i++)
			r = judge(guard, &points[i], err);
		if (r == 0)
			r = aw_rearm(live->user_ns, live->mount_ns, points, count, err);
		if (r == 0)
			r = watch_parents(guard, err);
		if (r < 0)
			return r;
		for (size_t i = 0; i < count; i++)
			aw_guard_record(live, AW_EVENT_PROTECT_REARMED, points[i].at);
	}
	return aw_refuse(err, EBUSY, "'%s' is replaced again and again", points[0].at);
}

static int set_settle_timer(struct aw_live_guard *guard)
{
	struct itimerspec when = { .it_value.tv_nsec = SETTLE_NS };

	guard->is_busy = false;
	return timerfd_settime(guard->settle.fd, 0, &when, NULL) < 0 ? -errno : 0;
}

static int settle_ready(struct aw_watch *watch, uint32_t events)
{
	struct aw_live_guard *guard = AW_CONTAINER(watch, struct aw_live_guard, settle);
	struct aw_live *live = guard->live;
	struct aw_error err = { 0 };
	uint64_t times;
	int r;

	(void)events;
	(void)!read(watch->fd, &times, sizeof(times));
	read_names(guard);
	if (guard->is_busy && guard->settles++ < SETTLES_MAX && set_settle_timer(guard) == 0)
		return 0;
	r = rearm(guard, &err);
	guard->state = GUARD_WATCHING;
	if (r == 0)
		r = aw_ipc_send(live->cell.link, AW_IPC_CELL_THAW, NULL, 0, NULL, 0, &err);
	if (r < 0) {
		(void)aw_while(&err, "put a lost protection back");
		aw_live_fail(live, &err);
	}
	return 0;
}

int aw_live_guard_frozen(struct aw_live *live, bool is_complete, struct aw_error *err)
{
	struct aw_live_guard *guard = live->guard;

	if (guard == NULL || guard->state != GUARD_FREEZING)
		return 0;
	if (!is_complete)
		return aw_refuse(err, EBUSY,
				 "the cell would not stand still while a protection was lost");
	read_names(guard); /* up to here the cell may have had its hands in it */
	guard->state = GUARD_SETTLING;
	guard->settles = 0;
	return set_settle_timer(guard) < 0 ? aw_fail(err, errno, "wait for the host") : 0;
}

static int watch_all(struct aw_live_guard *guard, struct aw_error *err)
{
	struct aw_live *live = guard->live;
	struct aw_watch *const watches[] = { &guard->mounts, &guard->names, &guard->settle };
	static const uint32_t events[] = { EPOLLPRI, EPOLLIN, EPOLLIN };

	guard->mounts = (struct aw_watch){ .fd = live->mountinfo, .ready = mounts_ready };
	guard->names = (struct aw_watch){ .fd = live->inotify, .ready = names_ready };
	guard->settle = (struct aw_watch){ .ready = settle_ready };
	guard->settle.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (guard->settle.fd < 0)
		return aw_fail(err, errno, "timerfd_create");
	for (size_t i = 0; i < AW_ARRAY_LEN(watches); i++)
		if (aw_loop_watch(&live->loop, watches[i], events[i], err) < 0)
			return -err->code;
	return 0;
}

int aw_live_start_guard(struct aw_live *live, struct aw_error *err)
{
	const struct aw_grants *g = &live->prepared->grants;
	struct aw_live_guard *guard = calloc(1, sizeof(*guard));
	int r;

	if (guard == NULL)
		return aw_fail(err, ENOMEM, "watch the protected files");
	live->guard = guard;
	guard->live = live;
	guard->settle.fd = -EBADF;
	r = watch_dir(guard, live->prepared->workspace.path, NAMES_MASK, err);
	if (r == 0)
		r = hold_all(guard, &g->pins, false, err);
	if (r == 0)
		r = hold_all(guard, &g->protects, true, err);
	return r < 0 ? r : watch_all(guard, err);
}

/* The last moments: a mount may be lost that nobody saw go, or that the cell's end came before. */
static void settle_last(struct aw_live_guard *guard)
{
	struct aw_rearm_point points[2 * AW_GRANTS_MAX];
	struct aw_error err = { 0 };
	size_t count = 0;

	read_names(guard);
	if (look(guard, points, &count, &err) < 0)
		(void)fprintf(stderr, "warden: at the end of the session: %s\n", err.message);
	/* One that cannot be put back does not keep the others from it. */
	for (size_t i = 0; i < count; i++)
		if (judge(guard, &points[i], &err) < 0)
			(void)fprintf(stderr, "warden: at the end of the session: %s\n",
				      err.message);
	for (size_t i = 0; i < guard->held.count; i++)
		if (guard->held.file[i].is_lost)
			(void)aw_grants_add(&guard->replaced, guard->held.file[i].path, &err);
}

void aw_live_stop_guard(struct aw_live *live)
{
	struct aw_live_guard *guard = live->guard;

	if (guard == NULL)
		return;
	settle_last(guard);
	aw_loop_unwatch(&live->loop, &guard->mounts);
	aw_loop_unwatch(&live->loop, &guard->names);
	aw_loop_unwatch(&live->loop, &guard->settle);
	(void)aw_fd_close(guard->settle.fd);
	aw_guard_find_appeared(guard);
	aw_guard_tell(guard);
	for (size_t i = 0; i < guard->dir_count; i++)
		free(guard->dirs[i].host);
	free(guard->dirs);
	aw_held_fini(&guard->held);
	aw_texts_fini(&guard->created);
	aw_texts_fini(&guard->restored);
	aw_texts_fini(&guard->replaced);
	free(guard);
	live->guard = NULL;
}
