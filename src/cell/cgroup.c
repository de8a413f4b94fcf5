#include "cell/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "cell/cgroup-internal.h"

#define TABLE_MAX (4 * 1024 * 1024)
#define PATH_ROOM (PATH_MAX + 64)
#define SCOPE_LIMIT_MS 5000
#define ABANDON_LIMIT_MS 1000
#define REMOVE_LIMIT_MS 5000
#define REMOVE_PAUSE_MAX_MS 64

bool aw_cgroup_is_wanted(const struct aw_cgroup_limits *limits)
{
	for (size_t i = 0; i < AW_CGROUP_LIMITS; i++)
		if (limits->of[i] > 0)
			return true;
	return false;
}

void aw_cgroup_miss(struct aw_cgroup_missing *missing, enum aw_cgroup_limit limit,
		    const struct aw_error *why)
{
	if (missing->limits == 0)
		missing->why = *why;
	missing->limits |= 1U << limit;
}

void aw_cgroup_miss_all(struct aw_cgroup_missing *missing, const struct aw_error *why)
{
	missing->why = *why;
	missing->limits = (1U << AW_CGROUP_LIMITS) - 1;
}

/* Overlays and memory are on no disk, btrfs may be on several: st_dev is a number that no disk has. */
int aw_cgroup_check_disk(const struct aw_cgroup *group, enum aw_cgroup_limit limit,
			 struct aw_error *err)
{
	if (limit != AW_CGROUP_IO || group->node[0] != '\0')
		return 0;
	return aw_refuse(
		err, ENOTSUP,
		"the project's file system (%u:%u) is not on one disk, so its speed cannot "
		"be limited",
		major(group->limits.device), minor(group->limits.device));
}

/* "memory, io: WHY". Without any limit in force there is no group. */
static int conclude(struct aw_cgroup *group, const struct aw_cgroup_missing *missing,
		    struct aw_error *err)
{
	char list[64] = "";
	size_t len = 0;

	for (unsigned i = 0; i < AW_CGROUP_LIMITS; i++) {
		if (group->limits.of[i] == 0)
			continue;
		if (!(missing->limits & 1U << i)) {
			group->held |= 1U << i;
			continue;
		}
		(void)aw_str_format(list + len, sizeof(list) - len, "%s%s", len > 0 ? ", " : "",
				    aw_cgroup_limit_name(i));
		len = strlen(list);
	}
	if (missing->limits == 0)
		return 0;
	if (group->held == 0)
		aw_cgroup_remove(group);
	*err = missing->why;
	err->code = ENOTSUP;
	return aw_while(err, "%s", list);
}

static void connect_scope(struct aw_cgroup *group, struct aw_cgroup_missing *missing)
{
	struct aw_error why;

	group->version = 2;
	group->is_scope = true;
	if (aw_scope_connect(&group->scope, &why) == 0)
		return;
	(void)aw_while(&why,
		       "only the user's systemd can make a control group for this user, and it "
		       "is not to be had (log in as this user, or: loginctl enable-linger)");
	aw_cgroup_miss_all(missing, &why);
}

static void find_node(struct aw_cgroup *group)
{
	char name[AW_CGROUP_NODE_MAX - sizeof("/dev/")];

	if (group->limits.of[AW_CGROUP_IO] > 0 &&
	    aw_cgroup_find_disk("/sys", group->limits.device, &group->limits.device, name,
				sizeof(name)))
		(void)aw_str_format(group->node, sizeof(group->node), "/dev/%s", name);
}

int aw_cgroup_create(const char *id, const struct aw_cgroup_limits *limits, struct aw_cgroup *ret,
		     struct aw_error *err)
{
	struct aw_cgroup_missing missing = { 0 };
	struct statfs st;

	*ret = (struct aw_cgroup)AW_CGROUP_INIT;
	ret->limits = *limits;
	find_node(ret);
	if (aw_str_format(ret->id, sizeof(ret->id), "%s", id) < 0)
		return aw_fail(err, ENAMETOOLONG, "make a control group for '%s'", id);
	if (statfs(AW_CGROUP_MOUNT, &st) < 0) {
		(void)aw_fail(err, errno, "find control groups at " AW_CGROUP_MOUNT);
		aw_cgroup_miss_all(&missing, err);
	} else if (st.f_type != CGROUP2_SUPER_MAGIC) {
		/* A hybrid host has a version 2 without controllers beside those of version 1. */
		aw_cgroup_make_v1(ret, &missing);
	} else if (geteuid() == 0) {
		aw_cgroup_make_v2(ret, &missing);
	} else {
		connect_scope(ret, &missing);
	}
	if (aw_cgroup_is_pending(ret))
		return 0;
	return conclude(ret, &missing, err);
}

static int start_scope(struct aw_cgroup *group, struct aw_error *err)
{
	const char *node = group->node[0] != '\0' ? group->node : NULL;
	struct aw_scope_property properties[AW_CGROUP_PROPERTIES_MAX];
	size_t count = aw_cgroup_properties(&group->limits, node, properties);
	char unit[AW_SCOPE_NAME_MAX];

	(void)aw_str_format(unit, sizeof(unit), AW_CGROUP_PARENT "-%s.scope", group->id);
	return aw_scope_start(&group->scope, unit, group->pid, properties, count, err);
}

int aw_cgroup_join(struct aw_cgroup *group, pid_t pid, struct aw_error *err)
{
	group->pid = pid;
	if (aw_cgroup_is_pending(group))
		return start_scope(group, err);
	for (unsigned i = 0; group->version == 1 && i < group->dir_count; i++) {
		char path[PATH_ROOM], text[32];

		(void)aw_str_format(path, sizeof(path), "%s/cgroup.procs", group->dirs[i]);
		(void)aw_str_format(text, sizeof(text), "%d", (int)pid);
		if (aw_write_file(AT_FDCWD, path, text, err) < 0)
			return aw_while(err, "put the cell under its limits");
	}
	return 0;
}

bool aw_cgroup_is_pending(const struct aw_cgroup *group)
{
	return group->scope.fd >= 0;
}

/* The pid is our child's and not waited for yet, so it is nobody else's. */
static int find_scope(struct aw_cgroup *group, struct aw_error *err)
{
	autofree char *table = NULL;
	char path[64];

	(void)aw_str_format(path, sizeof(path), "/proc/%d/cgroup", (int)group->pid);
	if (aw_read_file(AT_FDCWD, path, TABLE_MAX, &table, err) < 0 ||
	    aw_cgroup_find_group(table, AW_CGROUP_MOUNT, group->scope.unit, group->dirs[0],
				 PATH_MAX, err) < 0)
		return -err->code;
	group->dir_count = 1;
	return 0;
}

/* What is not delegated to the user has no files in the scope. */
static int measure_scope(struct aw_cgroup *group, enum aw_cgroup_limit limit, struct aw_error *err)
{
	if (aw_cgroup_check_disk(group, limit, err) < 0)
		return -err->code;
	if (aw_cgroup_measure(2, group->dirs[0], &group->limits, limit, err) == 0)
		return 0;
	if (err->code == ENOENT)
		return aw_refuse(err, ENOTSUP,
				 "the %s controller is not delegated to users (in "
				 "/etc/systemd/system/user@.service.d/delegate.conf: [Service] "
				 "Delegate=cpu cpuset io memory pids; then systemctl "
				 "daemon-reload and log in again)",
				 aw_cgroup_controller(2, limit));
	return -err->code;
}

/*
 * A cell that dies before it is moved leaves a scope that nothing ever leaves, so that systemd does not
 * notice it. The janitor's copy of a group is such a one too: its connection is closed, and the scope
 * most likely gone already.
 */
static void abandon_scope(struct aw_cgroup *group)
{
	struct aw_error none;

	if (group->pid > 0)
		(void)aw_scope_wait(&group->scope, ABANDON_LIMIT_MS, &none);
	aw_scope_fini(&group->scope);
	if (group->pid > 0)
		(void)aw_scope_stop(group->scope.unit, ABANDON_LIMIT_MS, &none);
}

/* What a monitor left that was killed before it had a janitor. */
static void sweep_scopes(const struct aw_cgroup *group)
{
	char parent[PATH_MAX], unit[AW_SCOPE_NAME_MAX];
	struct aw_error none;

	(void)aw_str_format(parent, sizeof(parent), "%.*s",
			    (int)(strrchr(group->dirs[0], '/') - group->dirs[0]), group->dirs[0]);
	while (aw_cgroup_find_stale_scope(parent, AW_CGROUP_STALE_S, unit, sizeof(unit)))
		if (aw_scope_stop(unit, ABANDON_LIMIT_MS, &none) < 0)
			break;
}

int aw_cgroup_settle(struct aw_cgroup *group, struct aw_error *err)
{
	struct aw_cgroup_missing missing = { 0 };
	struct aw_error why;
	int r;

	if (!aw_cgroup_is_pending(group))
		return 0;
	r = aw_scope_wait(&group->scope, SCOPE_LIMIT_MS, err);
	if (r == 0)
		r = find_scope(group, err);
	aw_scope_fini(&group->scope);
	if (r < 0)
		aw_cgroup_miss_all(&missing, err);
	else
		sweep_scopes(group);
	for (unsigned i = 0; r == 0 && i < AW_CGROUP_LIMITS; i++)
		if (group->limits.of[i] > 0 && measure_scope(group, i, &why) < 0)
			aw_cgroup_miss(&missing, i, &why);
	return conclude(group, &missing, err);
}

/* Write to @file in whichever of the directories has it. */
static int write_where_there(const struct aw_cgroup *group, const char *file, const char *text)
{
	struct aw_error none;
	int r = -ENOTSUP;

	for (unsigned i = 0; i < group->dir_count; i++) {
		char path[PATH_ROOM];

		(void)aw_str_format(path, sizeof(path), "%s/%s", group->dirs[i], file);
		if (access(path, W_OK) == 0)
			r = aw_write_file(AT_FDCWD, path, text, &none);
	}
	return r;
}

int aw_cgroup_freeze(const struct aw_cgroup *group, bool is_frozen)
{
	if (group->version == 2)
		return write_where_there(group, "cgroup.freeze", is_frozen ? "1" : "0");
	return write_where_there(group, "freezer.state", is_frozen ? "FROZEN" : "THAWED");
}

unsigned aw_cgroup_hits(const struct aw_cgroup *group)
{
	unsigned hits = 0;

	for (unsigned i = 0; i < group->dir_count; i++)
		hits |= aw_cgroup_hits_in(group->dirs[i]);
	return hits;
}

void aw_cgroup_kill(const struct aw_cgroup *group)
{
	if (group->version == 2)
		(void)write_where_there(group, "cgroup.kill", "1");
	else
		(void)aw_cgroup_freeze(group, false);
}

/* The parent goes with the last session; while another has a group in it, it stays. */
static void remove_dir(char *dir)
{
	long pause_ms = 1, waited_ms = 0;

	while (rmdir(dir) < 0 && errno == EBUSY && waited_ms < REMOVE_LIMIT_MS) {
		struct timespec pause = { .tv_nsec = pause_ms * 1000000 };

		(void)nanosleep(&pause, NULL);
		waited_ms += pause_ms;
		if (pause_ms < REMOVE_PAUSE_MAX_MS)
			pause_ms *= 2;
	}
	*strrchr(dir, '/') = '\0';
	(void)rmdir(dir);
}

void aw_cgroup_remove(struct aw_cgroup *group)
{
	if (aw_cgroup_is_pending(group))
		abandon_scope(group);
	for (unsigned i = 0; !group->is_scope && i < group->dir_count; i++)
		remove_dir(group->dirs[i]);
	group->dir_count = 0;
	group->version = 0;
	group->dir_fd = aw_fd_close(group->dir_fd);
}
