#include "monitor/home.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"

#define LOGIN_FILE_MAX (1024 * 1024)
#define NAME_KEPT 40
#define HASH_BYTES 8

/* A copy between two homes: where from, where to, and whose the copy is. */
struct copy {
	int from, to;
	uid_t uid;
	gid_t gid;
	bool is_chowned;
};

/* "api-3f9c0a1b2c3d4e5f": readable, and unique by the hash of the whole path. */
static void home_name(const char *project, char *out, size_t size)
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	char hex[2 * HASH_BYTES + 1], name[NAME_KEPT + 1];
	const char *base = strrchr(project, '/');
	size_t n = 0;

	(void)crypto_hash_sha256(hash, (const unsigned char *)project, strlen(project));
	(void)sodium_bin2hex(hex, sizeof(hex), hash, HASH_BYTES);
	for (base = base != NULL ? base + 1 : project; *base != '\0' && n < NAME_KEPT; base++) {
		bool is_plain = (*base >= 'a' && *base <= 'z') || (*base >= 'A' && *base <= 'Z') ||
				(*base >= '0' && *base <= '9') || *base == '_' || *base == '-';

		name[n++] = is_plain ? *base : '_';
	}
	name[n] = '\0';
	(void)aw_str_format(out, size, "%s-%s", name, hex);
}

/* A directory of the state, ours, without a symbolic link in its name. */
static int open_state_dir(const struct aw_state *state, const char *path, struct aw_error *err)
{
	autoclose int path_fd = aw_mkdir_beneath(state->state_fd, path, 0700, err);
	int fd;

	if (path_fd < 0)
		return path_fd;
	fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? aw_fail(err, errno, "open '%s'", path) : fd;
}

static int own(int fd, const struct copy *c)
{
	return c->is_chowned && fchown(fd, c->uid, c->gid) < 0 ? -errno : 0;
}

static int write_copy(const struct copy *c, int dir, const char *name, const char *text, size_t len,
		      struct aw_error *err)
{
	char temporary[64];
	autoclose int fd = -EBADF;
	int r;

	(void)aw_str_format(temporary, sizeof(temporary), ".warden-copy-%d", (int)getpid());
	(void)unlinkat(dir, temporary, 0);
	fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return aw_fail(err, errno, "write the login file '%s'", name);
	r = aw_write_all(fd, text, len);
	if (r == 0)
		r = own(fd, c);
	if (r == 0 && renameat(dir, temporary, dir, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir, temporary, 0);
	return r < 0 ? aw_fail(err, -r, "write the login file '%s'", name) : 0;
}

/* Make the directories of @path below the copy's target, each given to its owner. */
static int make_parents(const struct copy *c, const char *path, const char **ret_name,
			struct aw_error *err)
{
	const char *slash = strrchr(path, '/');
	autofree char *dir = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path));
	autoclose int path_fd = -EBADF;
	int fd;

	*ret_name = slash == NULL ? path : slash + 1;
	if (dir == NULL)
		return aw_fail(err, ENOMEM, "copy '%s'", path);
	path_fd = aw_mkdir_beneath(c->to, dir, 0700, err);
	if (path_fd < 0)
		return path_fd;
	fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return aw_fail(err, errno, "open '%s'", dir);
	if (slash != NULL && own(fd, c) < 0) {
		(void)close(fd);
		return aw_fail(err, errno, "give '%s' to the agent", dir);
	}
	return fd;
}

static bool is_equal(int dir, const char *name, const char *text, size_t len)
{
	autofree char *there = NULL;
	struct aw_error none;
	autoclose int fd = aw_open_beneath(dir, name, O_RDONLY | O_NOFOLLOW, &none);
	ssize_t n = fd < 0 ? -1 : aw_read_text(fd, LOGIN_FILE_MAX, &there, &none);

	return n == (ssize_t)len && memcmp(there, text, len) == 0;
}

/* 1 copied, 0 there is nothing to copy. */
static int copy_file(const struct copy *c, const char *path, struct aw_error *err)
{
	autofree char *text = NULL;
	struct aw_error missing;
	autoclose int fd = aw_open_beneath(c->from, path, O_RDONLY | O_NOFOLLOW, &missing);
	autoclose int dir = -EBADF;
	const char *name;
	ssize_t n;

	n = fd < 0 ? -1 : aw_read_text(fd, LOGIN_FILE_MAX, &text, &missing);
	if (n < 0)
		return 0;
	dir = make_parents(c, path, &name, err);
	if (dir < 0)
		return dir;
	if (is_equal(dir, name, text, (size_t)n))
		return 0;
	return write_copy(c, dir, name, text, (size_t)n, err) < 0 ? -err->code : 1;
}

static bool is_there(int dir, const char *path)
{
	struct aw_error none;
	autoclose int fd = aw_open_beneath(dir, path, O_PATH | O_NOFOLLOW, &none);

	return fd >= 0;
}

/* Returns how many were copied. With @only_missing what is there already stays. */
static int copy_list(const struct copy *c, const struct aw_policy_list *paths, bool only_missing,
		     struct aw_error *err)
{
	int copied = 0;

	for (size_t i = 0; i < paths->count; i++) {
		const char *path = paths->entry[i].text;
		int r = only_missing && is_there(c->to, path) ? 0 : copy_file(c, path, err);

		if (r < 0)
			return r;
		copied += r;
	}
	return copied;
}

static bool has_login(const struct aw_agent *agent)
{
	return agent != NULL && agent->auth_paths.count + agent->login_paths.count > 0;
}

static int open_login(const struct aw_state *state, const struct aw_agent *agent,
		      struct aw_error *err)
{
	char path[128];

	if (aw_str_format(path, sizeof(path), "logins/%s", agent->name) < 0)
		return aw_refuse(err, ENAMETOOLONG, "agent name '%s'", agent->name);
	return open_state_dir(state, path, err);
}

static int put_login(const struct aw_prepared *prepared, const struct aw_state *state,
		     struct copy *copy, struct aw_error *err)
{
	autoclose int login = open_login(state, prepared->agent, err);

	if (login < 0)
		return login;
	copy->from = login;
	if (copy_list(copy, &prepared->agent->auth_paths, false, err) < 0)
		return -err->code;
	return copy_list(copy, &prepared->agent->login_paths, true, err) < 0 ? -err->code : 0;
}

int aw_home_prepare(const struct aw_prepared *prepared, const struct aw_state *state, char **ret,
		    struct aw_error *err)
{
	char name[NAME_KEPT + 2 * HASH_BYTES + 8], path[sizeof(name) + 8];
	autoclose int home = -EBADF;
	autofree char *whole = NULL;
	struct copy copy = { .uid = prepared->outside_uid, .gid = prepared->outside_gid };

	*ret = NULL;
	if (prepared->is_ephemeral)
		return 0;
	home_name(prepared->workspace.path, name, sizeof(name));
	(void)aw_str_format(path, sizeof(path), "homes/%s", name);
	whole = aw_str_print("%s/%s", state->path, path);
	if (whole == NULL)
		return aw_fail(err, ENOMEM, "the project's private home");
	home = open_state_dir(state, path, err);
	if (home < 0)
		return aw_while(err, "the project's private home");
	copy.is_chowned = prepared->is_root_started;
	copy.to = home;
	if (own(home, &copy) < 0)
		return aw_fail(err, errno, "give the private home to the agent");
	if (has_login(prepared->agent) && put_login(prepared, state, &copy, err) < 0)
		return aw_while(
			err, "put the login into the private home %s (remove what is wrong there)",
			whole);
	*ret = AW_TAKE_PTR(whole);
	return 0;
}

int aw_home_take_login(const struct aw_prepared *prepared, const struct aw_state *state,
		       const char *home, struct aw_error *err)
{
	autoclose int login = -EBADF, from = -EBADF;
	struct copy copy = { 0 };
	int taken, r = 0;

	if (home == NULL || !has_login(prepared->agent))
		return 0;
	login = open_login(state, prepared->agent, err);
	if (login < 0)
		return login;
	from = open(home, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (from < 0)
		return aw_fail(err, errno, "open the private home");
	copy.from = from;
	copy.to = login;
	taken = copy_list(&copy, &prepared->agent->auth_paths, false, err);
	if (taken >= 0 && prepared->is_login)
		r = copy_list(&copy, &prepared->agent->login_paths, false, err);
	return taken < 0 || r < 0 ? -err->code : taken + r;
}

int aw_home_import_login(const struct aw_agent *agent, const char *host_home,
			 const struct aw_state *state, struct aw_error *err)
{
	autoclose int login = open_login(state, agent, err);
	autoclose int from = -EBADF;
	struct copy copy = { .to = login };
	int copied, r = 0;

	if (login < 0)
		return login;
	from = open(host_home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (from < 0)
		return aw_fail(err, errno, "open '%s'", host_home);
	copy.from = from;
	copied = copy_list(&copy, &agent->auth_paths, false, err);
	if (copied >= 0)
		r = copy_list(&copy, &agent->login_paths, false, err);
	return copied < 0 || r < 0 ? -err->code : copied + r;
}
