#include "cell/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "cell/grants.h"
#include "policy/paths.h"

#define MOUNTINFO_MAX (4 * 1024 * 1024)

/* Neither these nor anything below them is a project. */
static const char *const system_trees[] = {
	"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32",     "/proc",
	"/run", "/sbin", "/sys", "/usr", "/nix", "/gnu",   "/snap",  "/lost+found",
};

/* These hold projects of many: their children may be given, they themselves not. */
static const char *const shared_parents[] = {
	"/home",      "/root",    "/mnt",     "/media",   "/opt",        "/srv",
	"/tmp",       "/var",     "/var/tmp", "/var/lib", "/var/log",    "/var/cache",
	"/var/spool", "/var/www", "/Users",   "/data",    "/workspaces",
};

static const char *const secret_names[] = { ".ssh", ".aws", ".kube", ".gnupg" };

static int refuse(const char *path, struct aw_error *err, const char *why)
{
	char shown[256];

	(void)aw_str_escape(aw_str_from(path), shown, sizeof(shown));
	return aw_refuse(err, EACCES, "'%s' is not given to an agent: %s; name a project directory",
			 shown, why);
}

static bool is_one_of(const char *path, const char *const *list, size_t count, bool or_below)
{
	for (size_t i = 0; i < count; i++)
		if (or_below ? aw_path_is_within(path, list[i]) : strcmp(path, list[i]) == 0)
			return true;
	return false;
}

static bool overlaps(const char *path, const char *own)
{
	return own != NULL && (aw_path_is_within(path, own) || aw_path_is_within(own, path));
}

int aw_workspace_judge(const char *path, uid_t owner, uid_t caller, bool is_whole_drive,
		       const struct aw_workspace_host *host, struct aw_error *err)
{
	if (strcmp(path, "/") == 0)
		return refuse(path, err, "it is the whole system");
	if (strcmp(path, host->home) == 0)
		return refuse(path, err, "it is your home directory, with all your keys");
	if (aw_path_is_within(host->home, path))
		return refuse(path, err, "your home directory lies inside it");
	if (is_one_of(path, system_trees, AW_ARRAY_LEN(system_trees), true))
		return refuse(path, err, "it belongs to the system");
	if (is_one_of(path, shared_parents, AW_ARRAY_LEN(shared_parents), false))
		return refuse(path, err, "it is shared by many projects and programs");
	if (overlaps(path, host->state_dir) || overlaps(path, host->config_dir))
		return refuse(path, err, "Warden's own state or configuration lies there");
	if (host->program_dir != NULL && aw_path_is_within(host->program_dir, path))
		return refuse(path, err, "this Warden itself runs from there");
	if (is_whole_drive)
		return refuse(path, err, "it is the root of a mounted file system, a whole drive");
	if (caller != 0 && owner != caller)
		return refuse(path, err, "it belongs to another user");
	return 0;
}

/*
 * proc_pid_mountinfo(5): id parent major:minor ROOT MOUNTPOINT ... with blanks as \040. A root of "/"
 * is the whole file system; a bind of a directory names that directory.
 */
static bool mountinfo_field(struct aw_str line, size_t index, struct aw_str *ret)
{
	for (size_t i = 0; i <= index; i++)
		if (!aw_str_next(&line, ' ', ret))
			return false;
	return true;
}

static bool is_octal(const char *p)
{
	for (size_t i = 0; i < 3; i++)
		if (p[i] < '0' || p[i] > '7')
			return false;
	return true;
}

bool aw_mountinfo_point(struct aw_str line, char *out, size_t size)
{
	struct aw_str field;
	size_t n = 0;

	if (!mountinfo_field(line, 4, &field))
		return false;
	for (size_t i = 0; i < field.len; i++) {
		const char *p = field.ptr + i;

		if (n + 1 >= size)
			return false;
		if (*p == '\\' && i + 3 < field.len && is_octal(p + 1)) {
			out[n++] = (char)((p[1] - '0') * 64 + (p[2] - '0') * 8 + (p[3] - '0'));
			i += 3;
		} else {
			out[n++] = *p;
		}
	}
	out[n] = '\0';
	return true;
}

bool aw_mountinfo_is_drive(struct aw_str line, const char *path)
{
	char point[PATH_MAX];
	struct aw_str root;

	return mountinfo_field(line, 3, &root) && aw_str_is(root, "/") &&
	       aw_mountinfo_point(line, point, sizeof(point)) && strcmp(point, path) == 0;
}

/* @path with the links of what exists of it resolved; the caller frees. NULL: out of memory. */
static char *resolve_existing(const char *path)
{
	autofree char *known = strdup(path);

	for (char *slash = NULL; known != NULL;) {
		autofree char *real = realpath(known, NULL);

		if (real != NULL)
			return aw_str_print("%s%s", real, path + strlen(known));
		slash = strrchr(known, '/');
		if (slash == NULL || slash == known)
			return strdup(path);
		*slash = '\0';
	}
	return NULL;
}

/* The directories of @host that a person may have moved behind links, resolved. */
struct own_dirs {
	char *state, *config;
};

static void own_dirs_fini(struct own_dirs *own)
{
	free(own->state);
	free(own->config);
}

static int resolve_own(const struct aw_workspace_host *host, struct own_dirs *ret,
		       struct aw_error *err)
{
	ret->state = host->state_dir != NULL ? resolve_existing(host->state_dir) : NULL;
	ret->config = host->config_dir != NULL ? resolve_existing(host->config_dir) : NULL;
	if ((host->state_dir != NULL && ret->state == NULL) ||
	    (host->config_dir != NULL && ret->config == NULL))
		return aw_fail(err, ENOMEM, "look for Warden's own directories");
	return 0;
}

int aw_workspace_touches_own(const char *path, const struct aw_workspace_host *host,
			     struct aw_error *err)
{
	autodrop(own_dirs_fini) struct own_dirs own = { NULL, NULL };

	if (resolve_own(host, &own, err) < 0)
		return -err->code;
	return overlaps(path, own.state) || overlaps(path, own.config);
}

static int is_whole_drive(const char *path, int fd, struct aw_error *err)
{
	autofree char *text = NULL;
	struct aw_str rest, line;
	struct stat here, above;
	ssize_t n;

	/* The root of a drive is on another device than its parent: most projects end here. */
	if (fstat(fd, &here) == 0 && fstatat(fd, "..", &above, 0) == 0 &&
	    here.st_dev == above.st_dev)
		return 0;
	n = aw_read_file(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_MAX, &text, err);
	if (n < 0)
		return (int)n;
	rest = (struct aw_str){ text, (size_t)n };
	while (aw_str_next(&rest, '\n', &line))
		if (aw_mountinfo_is_drive(line, path))
			return 1;
	return 0;
}

static void find_secrets(struct aw_workspace *workspace)
{
	for (size_t i = 0; i < AW_ARRAY_LEN(secret_names); i++) {
		struct stat st;

		if (fstatat(workspace->fd, secret_names[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    !S_ISREG(st.st_mode))
			workspace->secrets[workspace->secret_count++] = secret_names[i];
	}
}

int aw_workspace_open(const char *dir, const struct aw_workspace_host *host,
		      struct aw_workspace *ret, struct aw_error *err)
{
	autodrop(aw_workspace_fini) struct aw_workspace w = { .fd = -EBADF };
	autodrop(own_dirs_fini) struct own_dirs own = { NULL, NULL };
	struct aw_workspace_host real = *host;
	struct stat st, again;
	int drive, r;

	w.path = realpath(dir, NULL);
	if (w.path == NULL)
		return aw_fail(err, errno, "project '%s'", dir);
	w.fd = open(w.path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (w.fd < 0 || fstat(w.fd, &st) < 0)
		return aw_fail(err, errno, "project '%s'", dir);
	drive = is_whole_drive(w.path, w.fd, err);
	if (drive < 0)
		return drive;
	r = resolve_own(host, &own, err);
	if (r < 0)
		return r;
	real.state_dir = own.state;
	real.config_dir = own.config;
	r = aw_workspace_judge(w.path, st.st_uid, geteuid(), drive > 0, &real, err);
	if (r < 0)
		return r;
	/* The name still is what was opened: it is the name that the cell mounts. */
	if (lstat(w.path, &again) < 0 || again.st_dev != st.st_dev || again.st_ino != st.st_ino)
		return aw_refuse(err, EAGAIN, "project '%s' was replaced while it was checked",
				 dir);
	w.uid = st.st_uid;
	w.gid = st.st_gid;
	find_secrets(&w);
	*ret = w;
	w = (struct aw_workspace){ .fd = -EBADF };
	return 0;
}

void aw_workspace_fini(struct aw_workspace *workspace)
{
	free(workspace->path);
	workspace->path = NULL;
	workspace->fd = aw_fd_close(workspace->fd);
}
