/*
 * cgroup-internal - single limits: what is written where, and whether it is in force.
 *
 * Directories and roots of kernel file systems are parameters, so that tests can bring their own.
 */
#pragma once

#include "cell/cgroup.h"

#define AW_CGROUP_MOUNT "/sys/fs/cgroup"
#define AW_CGROUP_PARENT "warden"

/* Which limits do not hold, and why the first of them does not. */
struct aw_cgroup_missing {
	unsigned limits; /* 1 << enum aw_cgroup_limit */
	struct aw_error why;
};

void aw_cgroup_miss(struct aw_cgroup_missing *missing, enum aw_cgroup_limit limit,
		    const struct aw_error *why);
void aw_cgroup_miss_all(struct aw_cgroup_missing *missing, const struct aw_error *why);

/* cgroup-hand.c: make the group as root. What fails is noted in @missing. */
void aw_cgroup_make_v1(struct aw_cgroup *group, struct aw_cgroup_missing *missing);
void aw_cgroup_make_v2(struct aw_cgroup *group, struct aw_cgroup_missing *missing);

#define AW_CGROUP_STALE_S 60

/* Find a scope of ours below @parent that is this old and that nothing is in. */
bool aw_cgroup_find_stale_scope(const char *parent, time_t older_than_s, char *out, size_t size);

/* Remove what is empty below @parent and has not changed for this long. */
void aw_cgroup_sweep(const char *parent, time_t older_than_s);

/* -ENOTSUP if @limit is about a disk and the project is on none that can be limited. */
int aw_cgroup_check_disk(const struct aw_cgroup *group, enum aw_cgroup_limit limit,
			 struct aw_error *err);

/* The controller of a limit: "memory", "pids", "cpu" or "io"; NULL for io of version 1. */
const char *aw_cgroup_controller(unsigned version, enum aw_cgroup_limit limit);

/* Write @limit into the group at @dir; limits->device is the whole disk here. Errors as the kernel's. */
int aw_cgroup_write(unsigned version, const char *dir, const struct aw_cgroup_limits *limits,
		    enum aw_cgroup_limit limit, struct aw_error *err);

/* -ENOTSUP unless @limit, or less, is what the kernel says is in force at @dir. */
int aw_cgroup_measure(unsigned version, const char *dir, const struct aw_cgroup_limits *limits,
		      enum aw_cgroup_limit limit, struct aw_error *err);

/*
 * The whole disk below a file system's @device: only that can be limited. @sys is /sys. False for a file
 * system that is on no disk, or on several. @ret_name gets the name of its node in /dev.
 */
bool aw_cgroup_find_disk(const char *sys, dev_t device, dev_t *ret, char *ret_name, size_t size);

/* proc_pid_mountinfo(5): where the hierarchy of a version 1 @controller is mounted. */
bool aw_cgroup_find_mount(const char *table, const char *controller, char *out, size_t size);

/* proc_pid_cgroup(5): the directory of a version 2 group below @mount that must end in @name. */
int aw_cgroup_find_group(const char *table, const char *mount, const char *name, char *out,
			 size_t size, struct aw_error *err);

/* As aw_cgroup_hits, for one directory. */
unsigned aw_cgroup_hits_in(const char *dir);

/* The limits as properties of a scope; @node of the disk, or NULL. @ret has AW_CGROUP_PROPERTIES_MAX. */
#define AW_CGROUP_PROPERTIES_MAX 8

size_t aw_cgroup_properties(const struct aw_cgroup_limits *limits, const char *node,
			    struct aw_scope_property *ret);
