/*
 * The watch over protected files: while a session lives, everything that was pinned or made read-only
 * must still be so.
 *
 * Two signs make it look: a change in the cell's mount table (a host's rename over a mounted name
 * takes the mount away), and a change of a name in a directory that holds protected names. If
 * a mount is missing: freeze the cell, bind it again, thaw. Between the loss and the freeze the cell
 * could write; whether it may have is told from the directory's own events and put on record.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "cell/protect.h"
#include "cell/rearm.h"
#include "monitor/live-internal.h"
#include "policy/paths.h"

#define MOUNTINFO_MAX (4 * 1024 * 1024)
#define WATCH_MASK                                                                      \
	(IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_MODIFY | IN_ONLYDIR | \
	 IN_EXCL_UNLINK)

struct guard_dir {
	int wd;
	char *host; /* directory on the host */
};

struct aw_live_guard {
	struct aw_live *live;
	struct aw_watch mounts, names;
	struct guard_dir *dirs;
	size_t dir_count;
	struct aw_texts created; /* protected names that came into being */
	struct aw_texts touched; /* host paths written while their mount was gone */
	bool is_freezing;
};

/* The host's name of a cell path: they differ only where the project is shown at /workspace. */
static int host_path(const struct aw_prepared *p, const char *at, char *out)
{
	const char *rest = at;

	if (aw_path_is_within(at, p->workspace_at)) {
		rest = at + strlen(p->workspace_at);
		return aw_str_format(out, PATH_MAX, "%s%s", p->workspace.path, rest);
	}
	return aw_str_format(out, PATH_MAX, "%s", at);
}

static int watch_dir(struct aw_live_guard *guard, const char *host, struct aw_error *err)
{
	struct guard_dir *larger;
	int wd = inotify_add_watch(guard->live->inotify, host, WATCH_MASK);

	if (wd < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : aw_fail(err, errno, "watch '%s'", host);
	for (size_t i = 0; i < guard->dir_count; i++)
		if (guard->dirs[i].wd == wd)
			return 0;
	larger = reallocarray(guard->dirs, guard->dir_count + 1, sizeof(*larger));
	if (larger == NULL)
		return aw_fail(err, ENOMEM, "watch '%s'", host);
	guard->dirs = larger;
	guard->dirs[guard->dir_count].wd = wd;
	guard->dirs[guard->dir_count].host = strdup(host);
	if (guard->dirs[guard->dir_count].host == NULL)
		return aw_fail(err, ENOMEM, "watch '%s'", host);
	guard->dir_count++;
	return 0;
}

/* The directory that holds each protected name. */
static int watch_parents(struct aw_live_guard *guard, const struct aw_texts *texts,
			 struct aw_error *err)
{
	for (size_t i = 0; i < texts->count; i++) {
		char host[PATH_MAX];
		char *slash;

		if (host_path(guard->live->prepared, texts->text[i], host) < 0)
			return aw_fail(err, ENAMETOOLONG, "'%s'", texts->text[i]);
		slash = strrchr(host, '/');
		if (slash == NULL || slash == host)
			continue;
		*slash = '\0';
		if (watch_dir(guard, host, err) < 0)
			return -err->code;
	}
	return 0;
}

static const char *dir_of(const struct aw_live_guard *guard, int wd)
{
	for (size_t i = 0; i < guard->dir_count; i++)
		if (guard->dirs[i].wd == wd)
			return guard->dirs[i].host;
	return NULL;
}

static bool is_held(const struct aw_live *live, const char *host)
{
	const struct aw_grants *g = &live->prepared->grants;
	char path[PATH_MAX];

	for (size_t i = 0; i < g->protects.count; i++)
		if (host_path(live->prepared, g->protects.text[i], path) >= 0 &&
		    strcmp(path, host) == 0)
			return true;
	return false;
}

/* A name of the table, directly in the project. */
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

static void record_path(struct aw_live *live, enum aw_event_kind kind, const char *path)
{
	struct aw_event *event = aw_live_event(live, kind);

	aw_event_add_str(event, "path", aw_str_from(path));
	aw_live_record(live);
}

static void on_name(struct aw_live_guard *guard, const struct inotify_event *event)
{
	struct aw_live *live = guard->live;
	const char *dir = dir_of(guard, event->wd);
	char host[PATH_MAX];
	struct aw_error none;

	if (event->len == 0 || dir == NULL ||
	    aw_str_format(host, sizeof(host), "%s/%s", dir, event->name) < 0)
		return;
	if (event->mask & IN_MODIFY) {
		/* A mounted name is read-only inside: only the host can modify it, or its mount is gone. */
		if (is_held(live, host))
			(void)aw_grants_add(&guard->touched, host, &none);
		return;
	}
	if (!(event->mask & (IN_CREATE | IN_MOVED_TO)) || is_held(live, host) ||
	    !is_protected_name(live, host) || aw_grants_has(&guard->created, host))
		return;
	(void)aw_grants_add(&guard->created, host, &none);
	record_path(live, AW_EVENT_PROTECT_CREATED, host);
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

static ssize_t read_mountinfo(struct aw_live *live, char **ret, struct aw_error *err)
{
	if (lseek(live->mountinfo, 0, SEEK_SET) < 0)
		return aw_fail(err, errno, "read the cell's mount table");
	return aw_read_any(live->mountinfo, MOUNTINFO_MAX, ret, err);
}

/* Collect what should be mounted, is not, and could be: pins first, as they hold what lies in them. */
static size_t find_missing(struct aw_live *live, struct aw_str table, struct aw_rearm_point *ret)
{
	const struct aw_grants *g = &live->prepared->grants;
	const struct aw_texts *lists[] = { &g->pins, &g->protects };
	size_t count = 0;

	for (size_t l = 0; l < AW_ARRAY_LEN(lists); l++) {
		for (size_t i = 0; i < lists[l]->count; i++) {
			const char *at = lists[l]->text[i];
			char host[PATH_MAX];

			if (aw_mountinfo_has(table, at) ||
			    host_path(live->prepared, at, host) < 0 || access(host, F_OK) < 0)
				continue;
			ret[count++] = (struct aw_rearm_point){ .at = at, .is_read_only = l == 1 };
		}
	}
	return count;
}

static int look(struct aw_live_guard *guard, struct aw_rearm_point *points, size_t *ret_count,
		struct aw_error *err)
{
	autofree char *table = NULL;
	ssize_t n = read_mountinfo(guard->live, &table, err);

	if (n < 0)
		return (int)n;
	*ret_count = find_missing(guard->live, (struct aw_str){ table, (size_t)n }, points);
	return 0;
}

static int check(struct aw_live_guard *guard)
{
	struct aw_live *live = guard->live;
	struct aw_rearm_point points[2 * AW_GRANTS_MAX];
	struct aw_error err = { 0 };
	size_t count = 0;
	int r;

	read_names(guard);
	if (guard->is_freezing || live->outcome.reason != 0 || !live->is_started)
		return 0;
	r = look(guard, points, &count, &err);
	for (size_t i = 0; r == 0 && i < count; i++)
		record_path(live, AW_EVENT_PROTECT_DETACHED, points[i].at);
	if (r == 0 && count > 0) {
		guard->is_freezing = true;
		r = aw_ipc_send(live->cell.link, AW_IPC_CELL_FREEZE, NULL, 0, NULL, 0, &err);
	}
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

static void report_touched(struct aw_live_guard *guard)
{
	struct aw_live *live = guard->live;

	read_names(guard);
	for (size_t i = 0; i < guard->touched.count; i++) {
		struct aw_event *event = aw_live_event(live, AW_EVENT_PROTECT_REVERTED);

		aw_event_add_str(event, "path", aw_str_from(guard->touched.text[i]));
		aw_event_add_str(
			event, "what",
			AW_STR("written while it was not protected: look at it before use"));
		aw_live_record(live);
	}
}

int aw_live_guard_frozen(struct aw_live *live, struct aw_error *err)
{
	struct aw_live_guard *guard = live->guard;
	struct aw_rearm_point points[2 * AW_GRANTS_MAX];
	size_t count = 0;
	int r;

	if (guard == NULL || !guard->is_freezing)
		return 0;
	r = look(guard, points, &count, err);
	if (r == 0)
		r = aw_rearm(live->user_ns, live->mount_ns, points, count, err);
	if (r < 0)
		return aw_while(err, "put a lost protection back");
	report_touched(guard);
	for (size_t i = 0; i < count; i++)
		record_path(live, AW_EVENT_PROTECT_REARMED, points[i].at);
	guard->is_freezing = false;
	return aw_ipc_send(live->cell.link, AW_IPC_CELL_THAW, NULL, 0, NULL, 0, err);
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
	r = watch_dir(guard, live->prepared->workspace.path, err);
	if (r == 0)
		r = watch_parents(guard, &g->pins, err);
	if (r == 0)
		r = watch_parents(guard, &g->protects, err);
	guard->mounts = (struct aw_watch){ .fd = live->mountinfo, .ready = mounts_ready };
	guard->names = (struct aw_watch){ .fd = live->inotify, .ready = names_ready };
	if (r == 0)
		r = aw_loop_watch(&live->loop, &guard->mounts, EPOLLPRI, err);
	return r < 0 ? r : aw_loop_watch(&live->loop, &guard->names, EPOLLIN, err);
}

static void tell_person(const struct aw_live_guard *guard)
{
	if (guard->live->options->is_quiet)
		return;
	for (size_t i = 0; i < guard->created.count; i++)
		(void)fprintf(
			stderr,
			"warden: created in this session, and runs on your machine later: %s\n",
			guard->created.text[i]);
	for (size_t i = 0; i < guard->touched.count; i++)
		(void)fprintf(stderr, "warden: changed during this session, look before use: %s\n",
			      guard->touched.text[i]);
}

void aw_live_stop_guard(struct aw_live *live)
{
	struct aw_live_guard *guard = live->guard;

	if (guard == NULL)
		return;
	read_names(guard);
	aw_loop_unwatch(&live->loop, &guard->mounts);
	aw_loop_unwatch(&live->loop, &guard->names);
	tell_person(guard);
	for (size_t i = 0; i < guard->dir_count; i++)
		free(guard->dirs[i].host);
	free(guard->dirs);
	aw_texts_fini(&guard->created);
	aw_texts_fini(&guard->touched);
	free(guard);
	live->guard = NULL;
}
