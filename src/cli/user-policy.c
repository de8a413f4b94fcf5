#include "cli/user-policy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "cli/policy-edit.h"
#include "policy/json.h"
#include "policy/paths.h"
#include "policy/policy.h"

#define NAME "policy.json"

/* The file: where it really is, and what stands in it. */
struct file {
	int lock; /* CONFIG: held while the file is read and replaced */
	int dir;  /* of the file itself */
	char path[PATH_MAX];
	const char *name; /* in @dir */
	char *text;
	size_t len;
};

static void file_fini(struct file *f)
{
	f->lock = aw_fd_close(f->lock);
	f->dir = aw_fd_close(f->dir);
	free(f->text);
	f->text = NULL;
}

/* A root shell with another's HOME would leave files behind that their owner cannot change. */
static int check_owner(int fd, const char *path, struct aw_error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return aw_fail(err, errno, "'%s'", path);
	if (st.st_uid != geteuid())
		return aw_refuse(err, EPERM, "'%s' belongs to another user", path);
	return 0;
}

static int check_home(const struct aw_user_policy_change *change, struct aw_error *err)
{
	autoclose int home = -EBADF;

	if (!aw_path_is_within(change->config_dir, change->home))
		return 0;
	home = open(change->home, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return home < 0 ? aw_fail(err, errno, "open '%s'", change->home)
			: check_owner(home, change->home, err);
}

/* mkdir -p; the person's own configuration may lie behind symbolic links. */
static int make_dirs(const char *path, struct aw_error *err)
{
	autofree char *part = strdup(path);

	if (part == NULL)
		return aw_fail(err, ENOMEM, "make '%s'", path);
	for (char *slash = strchr(part + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(part, 0700);
		*slash = '/';
	}
	if (mkdir(part, 0700) < 0 && errno != EEXIST)
		return aw_fail(err, errno, "make '%s'", path);
	return 0;
}

static int open_dir(const char *path, struct aw_error *err)
{
	autoclose int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return aw_fail(err, errno, "open '%s'", path);
	r = check_owner(fd, path, err);
	return r < 0 ? r : AW_TAKE_FD(fd);
}

static int lock_config(const struct aw_user_policy_change *change, struct file *f,
		       struct aw_error *err)
{
	int r = check_home(change, err);

	if (r == 0)
		r = make_dirs(change->config_dir, err);
	if (r == 0)
		r = f->lock = open_dir(change->config_dir, err);
	if (r >= 0 && flock(f->lock, LOCK_EX) < 0)
		return aw_fail(err, errno, "lock '%s'", change->config_dir);
	return r < 0 ? r : 0;
}

/* Where the file is, or would be. */
static int locate(const char *config_dir, struct file *f, struct aw_error *err)
{
	char *slash;

	if (aw_str_format(f->path, sizeof(f->path), "%s/" NAME, config_dir) < 0)
		return aw_fail(err, ENAMETOOLONG, "the policy in '%s'", config_dir);
	if (access(f->path, F_OK) == 0) {
		autofree char *real = realpath(f->path, NULL);

		if (real == NULL || aw_str_format(f->path, sizeof(f->path), "%s", real) < 0)
			return aw_fail(err, real == NULL ? errno : ENAMETOOLONG, "'%s'", f->path);
	}
	slash = strrchr(f->path, '/');
	f->name = slash + 1;
	*slash = '\0';
	f->dir = open_dir(f->path, err);
	*slash = '/';
	return f->dir < 0 ? f->dir : 0;
}

static bool is_empty(const struct file *f)
{
	return f->text == NULL || strspn(f->text, " \t\r\n") == f->len;
}

static int read_file(struct file *f, struct aw_error *err)
{
	static const char fresh[] = "{\n  \"version\": 1\n}\n";
	struct aw_error missing = { 0 };
	ssize_t n = aw_read_file(f->dir, f->name, AW_JSON_SIZE_MAX, &f->text, &missing);

	if (n < 0 && n != -ENOENT) {
		*err = missing;
		return aw_while(err, "read '%s'", f->path);
	}
	f->len = n < 0 ? 0 : (size_t)n;
	if (!is_empty(f))
		return 0;
	free(f->text);
	f->text = strdup(fresh);
	f->len = strlen(fresh);
	return f->text == NULL ? aw_fail(err, ENOMEM, "make '%s'", f->path) : 0;
}

/* "~/work/api" and "/home/u/work/api/" are one directory: the spelling that is there is taken. */
static char *project_key(const struct file *f, const struct aw_user_policy_change *change)
{
	autodrop(aw_json_drop) struct aw_json *json = NULL;
	char path[AW_PATH_MAX + 1];
	struct aw_json_fault fault;
	struct aw_error none;
	const char *key;
	json_t *value;

	if (aw_json_parse(f->text, f->len, &json, &fault) == 0) {
		json_object_foreach(json_object_get(json->root, "projects"), key, value)
		{
			if (aw_path_host(aw_str_from(key), change->home, path, &none) >= 0 &&
			    strcmp(path, change->project) == 0)
				return strdup(key);
		}
	}
	return strdup(change->project); /* a malformed text is the edit's to report */
}

static bool is_domain(const void *data, const char *element)
{
	const struct aw_domain *wanted = data;
	struct aw_domain domain;
	struct aw_error none;

	return aw_domain_parse(aw_str_from(element), AW_DOMAIN_GRANT, &domain, &none) == 0 &&
	       domain.form == wanted->form && domain.port == wanted->port &&
	       strcmp(domain.name, wanted->name) == 0;
}

static int edit(const struct file *f, const struct aw_user_policy_change *change,
		struct aw_buf *ret, struct aw_error *err)
{
	autofree char *project = change->project != NULL ? project_key(f, change) : NULL;
	const char *const keys[] = { "projects", project,           "capabilities",
				     "network",  "allowed_domains", NULL };
	struct aw_edit how = {
		.text = { f->text, f->len },
		.keys = change->project != NULL ? keys : keys + 2,
		.is_meant = is_domain,
		.data = change->domain,
	};
	struct aw_net_rule rule =
		aw_domain_rule(change->domain, AW_DOMAIN_GRANT, AW_NET_LAYER_USER);
	char text[AW_DOMAIN_TEXT_MAX];
	int r;

	if (change->project != NULL && project == NULL)
		return aw_fail(err, ENOMEM, "edit '%s'", f->path);
	aw_net_rule_format(&rule, text, sizeof(text));
	r = change->is_removed ? aw_edit_remove(&how, ret, err) : aw_edit_add(&how, text, ret, err);
	return r < 0 ? aw_while(err, "'%s'", f->path) : r;
}

/* A person's own text: after a power cut it is the old one or the new one, never an empty one. */
static int write_new(int fd, const struct aw_buf *text)
{
	int r = aw_write_all(fd, text->data, text->len);

	return r == 0 && fsync(fd) < 0 ? -errno : r;
}

static int replace(const struct file *f, const struct aw_buf *text, struct aw_error *err)
{
	char fresh[NAME_MAX + 1];
	autoclose int fd = -EBADF;
	int r;

	if (aw_str_format(fresh, sizeof(fresh), ".%s.%d", f->name, (int)getpid()) < 0)
		return aw_fail(err, ENAMETOOLONG, "replace '%s'", f->path);
	fd = openat(f->dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return aw_fail(err, errno, "replace '%s'", f->path);
	r = write_new(fd, text);
	if (r == 0 && renameat(f->dir, fresh, f->dir, f->name) < 0)
		r = -errno;
	if (r == 0)
		return 0;
	(void)unlinkat(f->dir, fresh, 0);
	return aw_fail(err, -r, "replace '%s'", f->path);
}

static int change_file(struct file *f, const struct aw_user_policy_change *change,
		       struct aw_policy_errors *errors, struct aw_error *err)
{
	autodrop(aw_buf_fini) struct aw_buf text = AW_BUF_INIT(AW_JSON_SIZE_MAX);
	int r = lock_config(change, f, err), changed;

	if (r == 0)
		r = locate(change->config_dir, f, err);
	if (r == 0)
		r = read_file(f, err);
	if (r < 0)
		return r;
	changed = edit(f, change, &text, err);
	if (changed <= 0)
		return changed;
	r = aw_policy_check(aw_buf_str(&text), AW_NET_LAYER_USER, f->path, change->home, errors,
			    err);
	if (r == 0)
		r = replace(f, &text, err);
	return r < 0 ? r : 1;
}

int aw_user_policy_change(const struct aw_user_policy_change *change,
			  struct aw_policy_errors *errors, struct aw_error *err)
{
	struct file f = { .lock = -EBADF, .dir = -EBADF };
	int r = change_file(&f, change, errors, err);

	file_fini(&f);
	return r;
}
