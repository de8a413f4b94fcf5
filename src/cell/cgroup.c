#include "cell/cgroup.h"

#include <errno.h>

#include "base/own.h"

bool aw_cgroup_is_wanted(const struct aw_cgroup_limits *limits)
{
	return limits->memory_bytes > 0 || limits->processes > 0 || limits->cpu_milli > 0 ||
	       limits->io_bytes_s > 0;
}

int aw_cgroup_create(const char *id, const struct aw_cgroup_limits *limits, struct aw_cgroup *ret,
		     struct aw_error *err)
{
	(void)id;
	(void)limits;
	(void)ret;
	return aw_refuse(err, ENOTSUP, "no control group to be had");
}

int aw_cgroup_join(const struct aw_cgroup *group, pid_t pid, struct aw_error *err)
{
	(void)group;
	(void)pid;
	(void)err;
	return 0;
}

int aw_cgroup_freeze(const struct aw_cgroup *group, bool is_frozen)
{
	(void)group;
	(void)is_frozen;
	return -ENOTSUP;
}

const char *aw_cgroup_limit_hit(const struct aw_cgroup *group)
{
	(void)group;
	return NULL;
}

void aw_cgroup_kill(const struct aw_cgroup *group)
{
	(void)group;
}

void aw_cgroup_remove(struct aw_cgroup *group)
{
	group->dir_fd = aw_fd_close(group->dir_fd);
}
