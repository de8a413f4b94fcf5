#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/own.h"
#include "store/dir-internal.h"
#include "store/session-internal.h"

/* Runtime directories are flat; deeper than this is not ours. */
#define DEPTH_MAX 8

static int remove_entry(int dir_fd, const char *name, int depth, struct aw_error *err);

static int remove_content(int dir_fd, const char *name, int depth, struct aw_error *err)
{
	autodrop(aw_dir_close) DIR *dir = aw_dir_open(dir_fd, name, err);
	const char *entry;
	int r = 0;

	if (dir == NULL)
		return err->code == ENOENT ? 0 : -err->code;
	while (r == 0 && (entry = aw_dir_next(dir)) != NULL)
		r = remove_entry(dirfd(dir), entry, depth, err);
	return r;
}

static int remove_dir(int dir_fd, const char *name, int depth, struct aw_error *err)
{
	int r;

	if (depth == DEPTH_MAX)
		return aw_refuse(err, EMLINK, "'%s' is nested too deep", name);
	r = remove_content(dir_fd, name, depth + 1, err);
	if (r < 0)
		return r;
	if (unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return aw_fail(err, errno, "remove directory '%s'", name);
	return 0;
}

static int remove_entry(int dir_fd, const char *name, int depth, struct aw_error *err)
{
	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return aw_fail(err, errno, "remove '%s'", name);
	return remove_dir(dir_fd, name, depth, err);
}

int aw_session_remove_tree(int dir_fd, const char *name, struct aw_error *err)
{
	return remove_dir(dir_fd, name, 0, err);
}
