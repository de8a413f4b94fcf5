/*
 * A session's group made by root's own hand. Version 2 is one tree: warden/ID with every controller
 * that is needed enabled on the way. Version 1 is one tree per controller: the same warden/ID in each,
 * and a freezer.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "cell/cgroup-internal.h"

#define TABLE_MAX (4 * 1024 * 1024)
#define PATH_ROOM (PATH_MAX + 64)
#define MAKE_TRIES 16

/*
 * A monitor that is killed before it has a janitor leaves its group, with nothing in it. What is in use
 * cannot be removed, and what is younger may be waiting for its first process.
 */
void aw_cgroup_sweep(const char *parent, time_t older_than_s)
{
	DIR *dir = opendir(parent);
	const struct dirent *entry;
	struct stat st;

	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.' &&
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISDIR(st.st_mode) && time(NULL) - st.st_mtime >= older_than_s)
			(void)unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
	(void)closedir(dir);
}

/* The parent may go with another session's end between the two calls. Returns the index. */
static int add_dir(struct aw_cgroup *group, const char *mount, struct aw_error *err)
{
	char parent[PATH_MAX];
	char *dir;

	if (group->dir_count == AW_CGROUP_DIRS_MAX)
		return aw_fail(err, ENAMETOOLONG, "make a control group");
	dir = group->dirs[group->dir_count];
	if (aw_str_format(parent, sizeof(parent), "%s/" AW_CGROUP_PARENT, mount) < 0 ||
	    aw_str_format(dir, PATH_MAX, "%s/%s", parent, group->id) < 0)
		return aw_fail(err, ENAMETOOLONG, "make a control group");
	for (unsigned i = 0; i < group->dir_count; i++)
		if (strcmp(group->dirs[i], dir) == 0)
			return (int)i;
	group->dir_count++; /* first: whoever has to remove it may look at any moment */
	for (int tries = 0; tries < MAKE_TRIES; tries++) {
		if (mkdir(parent, 0755) < 0 && errno != EEXIST)
			break;
		if (mkdir(dir, 0755) == 0) {
			aw_cgroup_sweep(parent, AW_CGROUP_STALE_S);
			return (int)group->dir_count - 1;
		}
		if (errno != ENOENT)
			break;
	}
	group->dir_count--;
	return aw_fail(err, errno, "make the control group '%s'", dir);
}

/* Write and read back. */
static int impose(const struct aw_cgroup *group, const char *dir, enum aw_cgroup_limit limit,
		  struct aw_error *err)
{
	if (aw_cgroup_check_disk(group, limit, err) < 0)
		return -err->code;
	if (aw_cgroup_write(group->version, dir, &group->limits, limit, err) < 0)
		return -err->code;
	return aw_cgroup_measure(group->version, dir, &group->limits, limit, err);
}

static int impose_v1(struct aw_cgroup *group, const char *table, enum aw_cgroup_limit limit,
		     struct aw_error *err)
{
	const char *controller = aw_cgroup_controller(1, limit);
	char mount[PATH_MAX];
	int dir;

	/* What is written back later counts for nobody: the limit would hold for reading alone. */
	if (controller == NULL)
		return aw_refuse(err, ENOTSUP, "cgroup v1 cannot limit what is written to disks");
	if (!aw_cgroup_find_mount(table, controller, mount, sizeof(mount)))
		return aw_refuse(err, ENOTSUP, "this host has no %s controller", controller);
	dir = add_dir(group, mount, err);
	return dir < 0 ? dir : impose(group, group->dirs[dir], limit, err);
}

void aw_cgroup_make_v1(struct aw_cgroup *group, struct aw_cgroup_missing *missing)
{
	autofree char *table = NULL;
	struct aw_error why;
	char mount[PATH_MAX];

	group->version = 1;
	if (aw_read_file(AT_FDCWD, "/proc/self/mountinfo", TABLE_MAX, &table, &why) < 0) {
		aw_cgroup_miss_all(missing, &why);
		return;
	}
	for (unsigned i = 0; i < AW_CGROUP_LIMITS; i++)
		if (group->limits.of[i] > 0 && impose_v1(group, table, i, &why) < 0)
			aw_cgroup_miss(missing, i, &why);
	if (group->dir_count > 0 && aw_cgroup_find_mount(table, "freezer", mount, sizeof(mount)))
		(void)add_dir(group, mount, &why); /* pid 1 can stop the others too */
}

/*
 * Enable a controller for the children of @dir; what is enabled already may be asked for again. The
 * root of a container's namespace is no true root: while it has processes itself, it is EBUSY.
 */
static int enable(const char *dir, const char *controller, struct aw_error *err)
{
	char path[PATH_ROOM], text[32];

	if (aw_str_format(path, sizeof(path), "%s/cgroup.subtree_control", dir) < 0)
		return aw_fail(err, ENAMETOOLONG, "'%s'", dir);
	(void)aw_str_format(text, sizeof(text), "+%s", controller);
	if (aw_write_file(AT_FDCWD, path, text, err) == 0)
		return 0;
	if (err->code == EBUSY)
		return aw_refuse(err, EBUSY,
				 "the control group of this container has processes of its own, so "
				 "no limits can be set below it (an init that moves them, like "
				 "systemd, makes it possible)");
	return aw_while(err, "enable %s", controller);
}

static int impose_v2(struct aw_cgroup *group, enum aw_cgroup_limit limit, struct aw_error *err)
{
	const char *controller = aw_cgroup_controller(2, limit);

	if (enable(AW_CGROUP_MOUNT, controller, err) < 0 ||
	    enable(AW_CGROUP_MOUNT "/" AW_CGROUP_PARENT, controller, err) < 0)
		return -err->code;
	return impose(group, group->dirs[0], limit, err);
}

/*
 * The session's directory comes first: it holds its parent, and what is enabled there, while other
 * sessions end.
 */
void aw_cgroup_make_v2(struct aw_cgroup *group, struct aw_cgroup_missing *missing)
{
	struct aw_error why;

	group->version = 2;
	if (add_dir(group, AW_CGROUP_MOUNT, &why) < 0) {
		aw_cgroup_miss_all(missing, &why);
		return;
	}
	for (unsigned i = 0; i < AW_CGROUP_LIMITS; i++)
		if (group->limits.of[i] > 0 && impose_v2(group, i, &why) < 0)
			aw_cgroup_miss(missing, i, &why);
	group->dir_fd = open(group->dirs[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (group->dir_fd < 0) {
		(void)aw_fail(&why, errno, "open '%s'", group->dirs[0]);
		aw_cgroup_miss_all(missing, &why);
	}
}
