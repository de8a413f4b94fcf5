#include "cell/rearm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "cell/workspace.h"

static int bind_over_itself(const struct aw_rearm_point *point, struct aw_error *err)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
				.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV };
	autoclose int target = (int)syscall(SYS_openat2, AT_FDCWD, point->at, &how, sizeof(how));
	autoclose int tree = -EBADF;

	if (target < 0)
		return errno == ENOENT ? 0
				       : aw_fail(err, errno, "open '%s' in the cell", point->at);
	if (point->is_read_only)
		attr.attr_set |= MOUNT_ATTR_RDONLY;
	tree = (int)syscall(SYS_open_tree, target, "",
			    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
	if (tree < 0 ||
	    syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr,
		    sizeof(attr)) < 0 ||
	    syscall(SYS_move_mount, tree, "", target, "",
		    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return aw_fail(err, errno, "protect '%s' again", point->at);
	return 0;
}

static _Noreturn void helper(int user_ns, int mount_ns, const struct aw_rearm_point *points,
			     size_t count, int out)
{
	struct aw_error err = { 0 };

	if (setns(user_ns, CLONE_NEWUSER) < 0 || setns(mount_ns, CLONE_NEWNS) < 0)
		(void)aw_fail(&err, errno, "enter the cell's namespaces");
	for (size_t i = 0; err.code == 0 && i < count; i++)
		(void)bind_over_itself(&points[i], &err);
	(void)aw_write_all(out, &err, sizeof(err));
	_exit(0);
}

int aw_rearm(int user_ns, int mount_ns, const struct aw_rearm_point *points, size_t count,
	     struct aw_error *err)
{
	struct aw_error story;
	autoclose int in = -EBADF;
	int ends[2];
	ssize_t n;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return aw_fail(err, errno, "pipe");
	in = ends[0];
	pid = fork();
	if (pid == 0)
		helper(user_ns, mount_ns, points, count, ends[1]);
	(void)close(ends[1]);
	if (pid < 0)
		return aw_fail(err, errno, "fork");
	do
		n = read(in, &story, sizeof(story));
	while (n < 0 && errno == EINTR);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (n != (ssize_t)sizeof(story))
		return aw_refuse(err, EPROTO, "the helper ended without an answer");
	if (story.code == 0)
		return 0;
	*err = story;
	return -err->code;
}

bool aw_mountinfo_has(struct aw_str text, const char *path)
{
	struct aw_str line;
	char point[4096];

	while (aw_str_next(&text, '\n', &line))
		if (aw_mountinfo_point(line, point, sizeof(point)) && strcmp(point, path) == 0)
			return true;
	return false;
}
