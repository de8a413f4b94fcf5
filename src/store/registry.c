#include "store/registry.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "base/proc.h"
#include "store/dir-internal.h"
#include "store/session-internal.h"

#define NAMED_MAX 8 /* sessions that a message lists */

/* The next entry that has the form of an id; NULL at the end. */
static const char *next_id(DIR *dir)
{
	const char *name;

	do
		name = aw_dir_next(dir);
	while (name != NULL && !aw_session_is_id(name));
	return name;
}

static bool has_status(const struct aw_state *state, const char *id)
{
	char path[AW_SESSION_ID_LEN + sizeof("/" AW_SESSION_STATUS_NAME)];

	(void)aw_str_format(path, sizeof(path), "%s/" AW_SESSION_STATUS_NAME, id);
	return faccessat(state->sessions_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Returns enum aw_session_life, or -errno when session.json cannot be used. */
static int judge(const struct aw_state *state, const char *id, struct aw_session_meta *meta,
		 struct aw_error *err)
{
	char host[65];
	int r = aw_session_load(state, id, meta, err);

	if (r < 0)
		return r;
	if (has_status(state, id))
		return AW_SESSION_ENDED;
	r = aw_session_host_name(host);
	if (r >= 0 && strcmp(host, meta->host) != 0)
		return AW_SESSION_ELSEWHERE;
	r = aw_session_is_alive(meta, err);
	if (r != 0)
		return r < 0 ? r : AW_SESSION_ALIVE;
	/* It may have ended between the two looks; the status is written before the lock goes. */
	return has_status(state, id) ? AW_SESSION_ENDED : AW_SESSION_DEAD;
}

static int add_entry(struct aw_registry *registry, const struct aw_session_meta *meta,
		     enum aw_session_life life)
{
	struct aw_registry_entry *entry = registry->entry;

	/* Room for a power of two: full when the count is one (or zero). */
	if ((registry->count & (registry->count - 1)) == 0) {
		size_t room = registry->count == 0 ? 1 : registry->count * 2;

		entry = reallocarray(registry->entry, room, sizeof(*entry));
		if (entry == NULL)
			return -ENOMEM;
		registry->entry = entry;
	}
	entry = &registry->entry[registry->count++];
	memcpy(entry->id, meta->id, sizeof(entry->id));
	entry->life = life;
	entry->started_ns = meta->started_ns;
	return 0;
}

static int newer_first(const void *a, const void *b)
{
	const struct aw_registry_entry *x = a, *y = b;

	if (x->started_ns != y->started_ns)
		return x->started_ns < y->started_ns ? 1 : -1;
	return strcmp(x->id, y->id);
}

int aw_registry_list(const struct aw_state *state, enum aw_registry_scope scope,
		     struct aw_registry *ret, struct aw_error *err)
{
	autodrop(aw_dir_close) DIR *dir = aw_dir_open(state->sessions_fd, ".", err);
	autodrop(aw_registry_fini) struct aw_registry registry = { 0 };
	struct aw_session_meta meta;
	struct aw_error ignored;
	const char *id;

	if (dir == NULL)
		return aw_while(err, "list the sessions");
	while ((id = next_id(dir)) != NULL) {
		int life;

		if (scope == AW_REGISTRY_ALIVE && has_status(state, id))
			continue;
		life = judge(state, id, &meta, &ignored);
		if (life == -ENOMEM)
			return aw_fail(err, ENOMEM, "list the sessions");
		if (life < 0 || (scope == AW_REGISTRY_ALIVE && life != AW_SESSION_ALIVE))
			continue;
		if (add_entry(&registry, &meta, (enum aw_session_life)life) < 0)
			return aw_fail(err, ENOMEM, "list the sessions");
	}
	if (registry.count > 1)
		qsort(registry.entry, registry.count, sizeof(*registry.entry), newer_first);
	*ret = registry;
	registry = (struct aw_registry){ 0 };
	return 0;
}

void aw_registry_fini(struct aw_registry *registry)
{
	free(registry->entry);
	*registry = (struct aw_registry){ 0 };
}

/* Keep the entries for which @is_wanted says so. */
static void keep(struct aw_registry *registry,
		 bool (*is_wanted)(const struct aw_state *, const char *id, const char *operand),
		 const struct aw_state *state, const char *operand)
{
	size_t kept = 0;

	for (size_t i = 0; i < registry->count; i++)
		if (is_wanted(state, registry->entry[i].id, operand))
			registry->entry[kept++] = registry->entry[i];
	registry->count = kept;
}

static bool has_prefix(const struct aw_state *state, const char *id, const char *operand)
{
	(void)state;
	return aw_str_starts(aw_str_from(id), operand);
}

static bool has_project(const struct aw_state *state, const char *id, const char *operand)
{
	struct aw_session_meta meta;
	struct aw_error ignored;

	return aw_session_load(state, id, &meta, &ignored) == 0 &&
	       strcmp(meta.project, operand) == 0;
}

static int pick_one(const struct aw_state *state, const struct aw_registry *registry,
		    const char *operand, struct aw_session_meta *ret, struct aw_error *err)
{
	char names[NAMED_MAX * (AW_SESSION_ID_LEN + 1) + 8] = "";
	size_t at = 0;

	if (registry->count == 1)
		return aw_session_load(state, registry->entry[0].id, ret, err);
	if (registry->count == 0 && operand == NULL)
		return aw_refuse(err, ENOENT, "there is no session");
	if (registry->count == 0)
		return aw_refuse(err, ENOENT, "there is no session '%s'", operand);
	for (size_t i = 0; i < registry->count && i < NAMED_MAX; i++)
		at += (size_t)aw_str_format(names + at, sizeof(names) - at, " %s",
					    registry->entry[i].id);
	return aw_refuse(err, ENOTUNIQ, "%zu sessions fit:%s%s", registry->count, names,
			 registry->count > NAMED_MAX ? " ..." : "");
}

int aw_registry_find(const struct aw_state *state, enum aw_registry_scope scope,
		     const char *operand, struct aw_session_meta *ret, struct aw_error *err)
{
	autodrop(aw_registry_fini) struct aw_registry all = { 0 };
	char project[PATH_MAX];
	size_t count;
	int r = aw_registry_list(state, scope, &all, err);

	if (r < 0)
		return r;
	if (operand == NULL || operand[0] == '\0')
		return pick_one(state, &all, NULL, ret, err);
	count = all.count;
	keep(&all, has_prefix, state, operand);
	if (all.count > 0 || realpath(operand, project) == NULL)
		return pick_one(state, &all, operand, ret, err);
	/* No id begins like that, so all entries are still there behind the count. */
	all.count = count;
	keep(&all, has_project, state, project);
	return pick_one(state, &all, operand, ret, err);
}

/* Killed between its directory and session.json: nothing of a session is in there yet. */
static int remove_unborn(const struct aw_state *state, int dir_fd, const char *id,
			 struct aw_error *err)
{
	(void)unlinkat(dir_fd, "." AW_SESSION_META_NAME ".new", 0);
	if (unlinkat(state->sessions_fd, id, AT_REMOVEDIR) == 0)
		return 0;
	return aw_fail(err, errno, "remove the unfinished session '%s'", id);
}

/* Write down that session @id ended unexpectedly, unless it said itself how it ended. */
static int record_death(const struct aw_state *state, const char *id, struct aw_error *err)
{
	autoclose int dir = aw_session_open_dir(state, id, err);
	struct aw_session_status status = {
		.reason = AW_SESSION_UNEXPECTED,
		.exit_code = -1,
		.ended_ns = aw_wall_ns(),
		.detail = "the monitor was killed; found by a later command",
	};
	struct aw_session_meta meta;
	int r;

	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	r = aw_session_read_meta(dir, &meta, err);
	if (r == -ENOENT)
		return remove_unborn(state, dir, id, err);
	if (has_status(state, id))
		return 0;
	status.started_ns = r == 0 ? meta.started_ns : 0;
	return aw_session_write_status(dir, &status, err);
}

/* Returns 1 when @id in the runtime directory @run_fd was swept, 0 when it lives, -errno. */
static int sweep_runtime(const struct aw_state *state, int run_fd, const char *id,
			 struct aw_error *err)
{
	struct aw_session_meta meta;
	struct aw_error ignored;
	autoclose int run = -EBADF;
	int r = judge(state, id, &meta, &ignored);

	if (r == AW_SESSION_ALIVE || r == AW_SESSION_ELSEWHERE)
		return 0;
	run = aw_state_enter(run_fd, id, state->uid, err);
	if (run < 0)
		return run == -ENOENT ? 0 : run; /* it ended by itself meanwhile */
	r = aw_session_is_locked(run, err);
	if (r != 0)
		return r < 0 ? r : 0;
	r = record_death(state, id, err);
	if (r == 0)
		r = aw_session_remove_tree(run_fd, id, err);
	return r < 0 ? r : 1;
}

/* As sweep_runtime, for a session under sessions/ that never said how it ended. */
static int sweep_session(const struct aw_state *state, const char *id, struct aw_error *err)
{
	struct aw_session_meta meta;
	struct aw_error ignored;
	autoclose int runtime = -EBADF;
	int r;

	if (has_status(state, id))
		return 0;
	r = judge(state, id, &meta, err);
	if (r > 0 && r != AW_SESSION_DEAD)
		return 0;
	if (r < 0 && r != -ENOENT && r != -EBADMSG)
		return aw_while(err, "look at session '%s'", id);
	if (r == AW_SESSION_DEAD)
		runtime = aw_state_enter(AT_FDCWD, meta.run_path, state->uid, &ignored);
	r = record_death(state, id, err);
	if (r == 0 && runtime >= 0)
		r = aw_session_remove_tree(runtime, id, err);
	return r < 0 ? r : 1;
}

struct sweep {
	const struct aw_state *state;
	int count, failed; /* failed: the first -errno */
	struct aw_error *err;
};

/* Sweep what stands in @dir_fd: a runtime directory, or (@is_runtime false) sessions/ itself. */
static void sweep_dir(struct sweep *sweep, int dir_fd, bool is_runtime)
{
	struct aw_error err;
	autodrop(aw_dir_close) DIR *dir = dir_fd < 0 ? NULL : aw_dir_open(dir_fd, ".", &err);
	const char *id;

	while (dir != NULL && (id = next_id(dir)) != NULL) {
		int r = is_runtime ? sweep_runtime(sweep->state, dir_fd, id, &err)
				   : sweep_session(sweep->state, id, &err);

		if (r > 0)
			sweep->count++;
		if (r >= 0 || sweep->failed < 0)
			continue;
		sweep->failed = r;
		*sweep->err = err;
	}
}

int aw_registry_sweep(const struct aw_state *state, enum aw_registry_depth depth,
		      struct aw_error *err)
{
	autoclose int registry = aw_session_lock_registry(state, true, err);
	struct sweep sweep = { .state = state, .err = err };

	if (registry == -EBUSY)
		return 0;
	if (registry < 0)
		return registry;
	sweep_dir(&sweep, state->run_fd, true);
	sweep_dir(&sweep, state->fallback_run_fd, true);
	if (depth == AW_REGISTRY_EVERYTHING)
		sweep_dir(&sweep, state->sessions_fd, false);
	return sweep.failed < 0 ? sweep.failed : sweep.count;
}
