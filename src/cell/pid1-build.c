#include "cell/pid1-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"

#define MASKED_FILE "/.warden-denied"
#define MASKED_DIR "/.warden-denied.d"

/* Where the new root is mounted before we pivot into it: any directory that every Linux has. */
static const char *const staging_places[] = { "/tmp", "/mnt", "/var", "/usr" };

static int tree_of(int dir_fd, const char *path, unsigned flags)
{
	long fd = syscall(SYS_open_tree, dir_fd, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | flags);

	return fd < 0 ? -errno : (int)fd;
}

static int open_source(const struct aw_plan_header *plan, const struct aw_plan_op *op,
		       struct aw_error *err)
{
	const char *path = aw_plan_text_at(plan, op->source);
	autoclose int fd = tree_of(AT_FDCWD, path, op->flags & AW_PLAN_SINGLE ? 0 : AT_RECURSIVE);
	struct stat st;

	if (fd < 0 && (op->flags & AW_PLAN_OPTIONAL) && (fd == -ENOENT || fd == -ENOTDIR))
		return fd;
	if (fd < 0)
		return aw_fail(err, -fd, "take '%s' of the host", path);
	if (op->ino == 0)
		return AW_TAKE_FD(fd);
	/* What was decided about is what is shown: a name may have come to mean something else. */
	if (fstat(fd, &st) < 0 || st.st_dev != op->dev || st.st_ino != op->ino)
		return aw_refuse(err, ESTALE, "'%s' was replaced while the session started", path);
	return AW_TAKE_FD(fd);
}

int aw_build_open(const struct aw_plan_header *plan, struct aw_build *ret, struct aw_error *err)
{
	*ret = (struct aw_build){ .plan = plan, .root_fd = -EBADF, .parent_fd = -EBADF };
	ret->sources = calloc(plan->op_count + 1, sizeof(*ret->sources));
	if (ret->sources == NULL)
		return aw_fail(err, ENOMEM, "open the sources of the view");
	for (uint32_t i = 0; i < plan->op_count; i++)
		ret->sources[i] = -EBADF;
	for (uint32_t i = 0; i < plan->op_count; i++) {
		const struct aw_plan_op *op = aw_plan_op_at(plan, i);

		if (op->code != AW_PLAN_BIND)
			continue;
		err->code = 0;
		ret->sources[i] = open_source(plan, op, err);
		if (ret->sources[i] < 0 && err->code != 0)
			return -err->code;
	}
	return 0;
}

void aw_build_fini(struct aw_build *build)
{
	for (uint32_t i = 0; build->sources != NULL && i < build->plan->op_count; i++)
		(void)aw_fd_close(build->sources[i]);
	free(build->sources);
	build->sources = NULL;
	build->root_fd = aw_fd_close(build->root_fd);
	build->parent_fd = aw_fd_close(build->parent_fd);
}

static int attach(int tree, int target, unsigned flags)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID };

	if (!(flags & AW_PLAN_DEVICE))
		attr.attr_set |= MOUNT_ATTR_NODEV;
	if (flags & AW_PLAN_READ_ONLY)
		attr.attr_set |= MOUNT_ATTR_RDONLY;
	if (flags & AW_PLAN_NOEXEC)
		attr.attr_set |= MOUNT_ATTR_NOEXEC;
	if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr,
		    sizeof(attr)) < 0)
		return -errno;
	if (syscall(SYS_move_mount, tree, "", target, "",
		    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

/* Attach @tree at @at; a target that is missing is made, as a directory or a file like the source. */
static int bind_tree(struct aw_build *build, int tree, const char *at, unsigned flags)
{
	autoclose int target = aw_place_open(build, at);
	struct stat st;

	if (target == -ENOENT) {
		if (fstat(tree, &st) < 0)
			return -errno;
		if (S_ISDIR(st.st_mode)) {
			target = aw_place_dir(build, at, 0755);
		} else {
			int r = aw_place_file(build, at, 0444, AW_STR(""));

			target = r < 0 ? r : aw_place_open(build, at);
		}
	}
	aw_place_forget(build, at);
	return target < 0 ? target : attach(tree, target, flags);
}

static int op_dir(struct aw_build *build, const struct aw_plan_op *op, uint32_t index)
{
	int fd = aw_place_dir(build, aw_plan_text_at(build->plan, op->at), op->mode);

	(void)index;
	if (fd < 0)
		return fd;
	(void)close(fd);
	return 0;
}

static int op_file(struct aw_build *build, const struct aw_plan_op *op, uint32_t index)
{
	struct aw_str content = { aw_plan_blob_at(build->plan, op->blob), op->blob_len };

	(void)index;
	return aw_place_file(build, aw_plan_text_at(build->plan, op->at), op->mode, content);
}

static int op_symlink(struct aw_build *build, const struct aw_plan_op *op, uint32_t index)
{
	(void)index;
	return aw_place_symlink(build, aw_plan_text_at(build->plan, op->at),
				aw_plan_text_at(build->plan, op->source));
}

/* mount(2) wants a path: the magic link of the target's fd names exactly what we opened. */
static int mount_new(struct aw_build *build, const char *at, const char *type, unsigned long flags,
		     const char *options)
{
	autoclose int target = aw_place_dir(build, at, 0755);
	char path[64];

	if (target < 0)
		return target;
	aw_place_forget(build, at);
	(void)aw_str_format(path, sizeof(path), "/proc/self/fd/%d", target);
	return mount(type, path, type, flags, options) < 0 ? -errno : 0;
}

static int op_tmpfs(struct aw_build *build, const struct aw_plan_op *op, uint32_t index)
{
	const char *at = aw_plan_text_at(build->plan, op->at);
	char options[64];
	int fd, r;

	(void)index;
	if (op->size > 0)
		(void)aw_str_format(options, sizeof(options), "mode=%o,size=%llu", op->mode,
				    (unsigned long long)op->size);
	else
		(void)aw_str_format(options, sizeof(options), "mode=%o", op->mode);
	r = mount_new(build, at, "tmpfs", MS_NOSUID | MS_NODEV, options);
	if (r < 0)
		return r;
	fd = aw_place_open(build, at);
	if (fd < 0)
		return fd;
	r = aw_place_own(build, fd);
	(void)close(fd);
	return r;
}

static int op_proc(struct aw_build *build, const struct aw_plan_op *op, uint32_t index)
{
	(void)index;
	return mount_new(build, aw_plan_text_at(build->plan, op->at), "proc",
			 MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
}

static int op_devpts(struct aw_build *build, const struct aw_plan_op *op, uint32_t index)
{
	(void)index;
	return mount_new(build, aw_plan_text_at(build->plan, op->at), "devpts",
			 MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620,max=256");
}

static int op_bind(struct aw_build *build, const struct aw_plan_op *op, uint32_t index)
{
	autoclose int tree = AW_TAKE_FD(build->sources[index]);

	if (tree < 0)
		return 0; /* optional and not there */
	return bind_tree(build, tree, aw_plan_text_at(build->plan, op->at), op->flags);
}

static int op_pin(struct aw_build *build, const struct aw_plan_op *op, uint32_t index)
{
	autoclose int target = aw_place_open(build, aw_plan_text_at(build->plan, op->at));
	autoclose int tree = -EBADF;

	(void)index;
	if (target < 0)
		return (op->flags & AW_PLAN_OPTIONAL) && target == -ENOENT ? 0 : target;
	tree = tree_of(target, "", AT_EMPTY_PATH | AT_RECURSIVE);
	return tree < 0 ? tree : attach(tree, target, op->flags);
}

static int op_mask(struct aw_build *build, const struct aw_plan_op *op, uint32_t index)
{
	autoclose int target = aw_place_open(build, aw_plan_text_at(build->plan, op->at));
	autoclose int empty = -EBADF, tree = -EBADF;
	struct stat st;
	int r;

	(void)index;
	if (target < 0)
		return (op->flags & AW_PLAN_OPTIONAL) && target == -ENOENT ? 0 : target;
	if (fstat(target, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode)) {
		empty = aw_place_dir(build, MASKED_DIR, 0000);
	} else {
		r = aw_place_file(build, MASKED_FILE, 0000, AW_STR(""));
		if (r < 0 && r != -EEXIST)
			return r;
		empty = aw_place_open(build, MASKED_FILE);
	}
	if (empty < 0)
		return empty;
	tree = tree_of(empty, "", AT_EMPTY_PATH);
	return tree < 0 ? tree : attach(tree, target, AW_PLAN_READ_ONLY | AW_PLAN_NOEXEC);
}

static int (*const operations[AW_PLAN_CODE_COUNT])(struct aw_build *build,
						   const struct aw_plan_op *op, uint32_t index) = {
	[AW_PLAN_DIR] = op_dir,     [AW_PLAN_FILE] = op_file, [AW_PLAN_SYMLINK] = op_symlink,
	[AW_PLAN_TMPFS] = op_tmpfs, [AW_PLAN_PROC] = op_proc, [AW_PLAN_DEVPTS] = op_devpts,
	[AW_PLAN_BIND] = op_bind,   [AW_PLAN_TREE] = op_bind, [AW_PLAN_PIN] = op_pin,
	[AW_PLAN_MASK] = op_mask,
};

static int explain(const struct aw_plan_op *op, const char *at, int r, struct aw_error *err)
{
	if (op->code == AW_PLAN_PROC && r == -EPERM)
		return aw_refuse(
			err, EPERM,
			"mount /proc: the kernel refuses a new procfs while the outer one "
			"has masked parts (a container); run the container with an "
			"unmasked /proc (--security-opt unmask=/proc or systempaths=unconfined)");
	if (r == -ELOOP)
		return aw_refuse(err, ELOOP, "'%s' has a symbolic link in it and cannot be held",
				 at);
	return aw_fail(err, -r, "put '%s' in place", at);
}

static int run_operations(struct aw_build *build, struct aw_error *err)
{
	for (uint32_t i = 0; i < build->plan->op_count; i++) {
		const struct aw_plan_op *op = aw_plan_op_at(build->plan, i);
		int r;

		if (operations[op->code] == NULL)
			continue;
		r = operations[op->code](build, op, i);
		if (r < 0)
			return explain(op, aw_plan_text_at(build->plan, op->at), r, err);
	}
	return 0;
}

static int mount_staging(struct aw_build *build, struct aw_error *err)
{
	for (size_t i = 0; i < AW_ARRAY_LEN(staging_places); i++) {
		if (mount("tmpfs", staging_places[i], "tmpfs", MS_NOSUID | MS_NODEV,
			  "mode=0755,size=16m") < 0) {
			if (errno == ENOENT || errno == ENOTDIR)
				continue;
			return aw_fail(err, errno, "mount the cell's root at '%s'",
				       staging_places[i]);
		}
		build->root_fd = open(staging_places[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (build->root_fd < 0)
			return aw_fail(err, errno, "open the cell's root");
		return aw_place_own(build, build->root_fd);
	}
	return aw_refuse(err, ENOENT, "this host has no directory to mount the cell's root at");
}

static int pivot(const struct aw_build *build, struct aw_error *err)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };

	if (fchdir(build->root_fd) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return aw_fail(err, errno, "pivot_root");
	if (umount2(".", MNT_DETACH) < 0)
		return aw_fail(err, errno, "detach the host's root");
	if (syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &attr, sizeof(attr)) < 0)
		return aw_fail(err, errno, "make the cell's root read-only");
	return chdir("/") < 0 ? aw_fail(err, errno, "chdir /") : 0;
}

/* Hand the monitor's trees to the TREE operations, which then are like any BIND. */
static int take_trees(struct aw_build *build, const int *trees, size_t count, struct aw_error *err)
{
	for (uint32_t i = 0; i < build->plan->op_count; i++) {
		const struct aw_plan_op *op = aw_plan_op_at(build->plan, i);

		if (op->code != AW_PLAN_TREE)
			continue;
		if (op->mode >= count)
			return aw_refuse(err, EPROTO,
					 "the monitor sent %zu trees, the plan needs more", count);
		build->sources[i] = trees[op->mode];
	}
	return 0;
}

int aw_build_root(struct aw_build *build, const int *trees, size_t tree_count, struct aw_error *err)
{
	mode_t mask = umask(0);
	int r;

	r = take_trees(build, trees, tree_count, err);
	if (r == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		r = aw_fail(err, errno, "make the cell's mounts private");
	if (r == 0)
		r = mount_staging(build, err);
	if (r == 0)
		r = run_operations(build, err);
	if (r == 0)
		r = pivot(build, err);
	(void)umask(mask);
	return r < 0 ? aw_while(err, "build the cell's view") : 0;
}
