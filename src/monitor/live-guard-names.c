/* What the guard knows of names, and what it tells about them. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/own.h"
#include "cell/appeared.h"
#include "monitor/live-guard-internal.h"
#include "policy/paths.h"

/* The innermost grant that shows it: its place on the host may have another name. */
static const struct aw_view_grant *grant_of(const struct aw_grants *g, const char *at)
{
	const struct aw_view_grant *found = NULL;

	for (size_t i = 0; i < g->bind_count; i++)
		if (aw_path_is_within(at, g->binds[i].at) &&
		    (found == NULL || strlen(g->binds[i].at) > strlen(found->at)))
			found = &g->binds[i];
	return found;
}

int aw_guard_host_path(const struct aw_prepared *p, const char *at, char *out)
{
	const struct aw_view_grant *grant = grant_of(&p->grants, at);

	if (aw_path_is_within(at, p->workspace_at))
		return aw_str_format(out, PATH_MAX, "%s%s", p->workspace.path,
				     at + strlen(p->workspace_at));
	if (grant != NULL)
		return aw_str_format(out, PATH_MAX, "%s%s", grant->source, at + strlen(grant->at));
	return aw_str_format(out, PATH_MAX, "%s", at);
}

void aw_guard_record(struct aw_live *live, enum aw_event_kind kind, const char *path)
{
	struct aw_event *event = aw_live_event(live, kind);

	aw_event_add_str(event, "path", aw_str_from(path));
	aw_live_record(live);
}

bool aw_guard_is_pinned(const struct aw_live *live, const char *host)
{
	const struct aw_grants *g = &live->prepared->grants;
	const struct aw_texts *lists[] = { &g->pins, &g->protects };
	char path[PATH_MAX];

	for (size_t l = 0; l < AW_ARRAY_LEN(lists); l++)
		for (size_t i = 0; i < lists[l]->count; i++)
			if (aw_guard_host_path(live->prepared, lists[l]->text[i], path) >= 0 &&
			    strcmp(path, host) == 0)
				return true;
	return false;
}

/* False: there are more than can be told. */
static bool note_created(struct aw_live_guard *guard, const struct aw_texts *found)
{
	struct aw_error none;

	for (size_t i = 0; i < found->count; i++) {
		const char *host = found->text[i];

		if (aw_grants_has(&guard->created, host))
			continue;
		if (aw_grants_add(&guard->created, host, &none) < 0)
			return false;
		aw_guard_record(guard->live, AW_EVENT_PROTECT_CREATED, host);
	}
	return true;
}

/* Of a project that was too large from the start the person was told then. */
static void note_incomplete(const struct aw_live_guard *guard)
{
	const struct aw_str what =
		AW_STR("the project cannot be looked through to its end for new repositories");
	const struct aw_live *live = guard->live;

	aw_event_add_str(aw_live_event(guard->live, AW_EVENT_NOTE), "what", what);
	aw_live_record(guard->live);
	if (!live->options->is_quiet && !live->prepared->grants.has_unseen_repositories)
		(void)fprintf(stderr,
			      "warden: %s: there may be some that run code on your "
			      "machine later\n",
			      what.ptr);
}

static void find_appeared_in(struct aw_live_guard *guard, const struct aw_protect_place *place)
{
	const struct aw_appeared what = {
		.project = *place,
		.g = &guard->live->prepared->grants,
		.since_ns = guard->live->started_wall_ns,
		.classes = guard->live->prepared->policy->protect,
	};
	struct aw_texts found = { 0 };
	struct aw_error err = { 0 };
	bool is_complete = true;

	if (aw_appeared_find(&what, &found, &is_complete, &err) < 0)
		is_complete = false;
	if (!note_created(guard, &found) || !is_complete)
		note_incomplete(guard);
	aw_texts_fini(&found);
}

/* Names that could not be held because they were not there: found now, told and on record. */
void aw_guard_find_appeared(struct aw_live_guard *guard)
{
	const struct aw_prepared *p = guard->live->prepared;
	const struct aw_protect_place project = { p->workspace.fd, p->workspace.path,
						  p->workspace_at };
	const struct aw_policy_list *mounts = &p->policy->mounts;
	char host[PATH_MAX];

	if (guard->live->started_wall_ns == 0)
		return;
	find_appeared_in(guard, &project);
	for (size_t i = 0; i < mounts->count; i++) {
		const char *at = mounts->entry[i].text;
		autoclose int fd = -EBADF;

		if (!mounts->entry[i].is_writable || aw_guard_host_path(p, at, host) < 0)
			continue;
		fd = open(host, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0)
			find_appeared_in(guard, &(struct aw_protect_place){ fd, host, at });
	}
}

static void tell(const struct aw_texts *paths, const char *what)
{
	char shown[512];

	for (size_t i = 0; i < paths->count; i++) {
		(void)aw_str_escape(aw_str_from(paths->text[i]), shown, sizeof(shown));
		(void)fprintf(stderr, "warden: %s: %s\n", what, shown);
	}
}

/* What was done to the person's own files is said in any case. */
void aw_guard_tell(const struct aw_live_guard *guard)
{
	if (!guard->live->options->is_quiet)
		tell(&guard->created,
		     "new or changed in this session, and may run on your machine later");
	tell(&guard->replaced,
	     "replaced or removed on the host in this session; look at it before you use it");
	tell(&guard->restored, "replaced on the host while the agent could write to what replaced "
			       "it, so that it is now as it was before");
	if (guard->restored.count > 0)
		(void)fprintf(stderr,
			      "warden: what it was replaced with is kept in %s/sessions/%s\n",
			      guard->live->state.path, guard->live->session.meta.id);
}
