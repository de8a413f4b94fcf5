#include "cell/view.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "policy/paths.h"

#define ETC_COPY_MAX 65536

/* Where programs and libraries are. A distribution has each as a directory or as a link into /usr. */
static const char *const system_roots[] = {
	"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"
};

/* Whole trees beside /usr in which some systems keep programs, without anything private in them. */
static const char *const program_roots[] = { "/nix/store", "/gnu/store" };

/*
 * What of /etc programs need and no secret can be in; all the rest of /etc is not there. Names that
 * hold credentials on some hosts (npmrc, pip.conf, gitconfig, ssh, docker) are left out. A mount is
 * the dearest part of a start, so small files are copied, and this list is no longer than it must be.
 */
static const char *const etc_trees[] = {
	"alternatives",
	"ca-certificates",
	"crypto-policies",
	"fonts",
	"java-11-openjdk",
	"java-17-openjdk",
	"java-21-openjdk",
	"ld.so.cache",
	"maven",
	"pki",
	"ssl",
};

static const char *const etc_copies[] = { "localtime", "protocols", "services", "timezone" };

static const struct {
	const char *at, *content;
} etc_files[] = {
	{ "/etc/passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\n" AW_CELL_USER
			 ":x:1001:1001:agent:" AW_CELL_HOME ":/bin/bash\n"
			 "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
	{ "/etc/group", "root:x:0:\ntty:x:5:\n" AW_CELL_USER ":x:1001:\nnogroup:x:65534:\n" },
	{ "/etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
				"services: files\nprotocols: files\n" },
	{ "/etc/hosts", "127.0.0.1 localhost " AW_CELL_HOSTNAME "\n::1 localhost ip6-localhost\n" },
	{ "/etc/hostname", AW_CELL_HOSTNAME "\n" },
	{ "/etc/ssh/ssh_config", "Host *\n    StrictHostKeyChecking accept-new\n" },
};

static const char *const device_nodes[] = { "/dev/null",   "/dev/zero",    "/dev/full",
					    "/dev/random", "/dev/urandom", "/dev/tty" };

static const struct {
	const char *at, *target;
} device_links[] = {
	{ "/dev/fd", "/proc/self/fd" },       { "/dev/stdin", "/proc/self/fd/0" },
	{ "/dev/stdout", "/proc/self/fd/1" }, { "/dev/stderr", "/proc/self/fd/2" },
	{ "/dev/ptmx", "pts/ptmx" },
};

/*
 * What a user namespace shares with the user's uid outside and a filter cannot see: names below
 * /proc/sys/user. The agent's share is capped, so that it cannot starve the monitor. (Namespaces and
 * fanotify, which are counted there too, are refused by the filter.)
 */
static const struct {
	const char *name;
	uint64_t value;
} shared_caps[] = {
	{ "max_inotify_instances", 64 },
	{ "max_inotify_watches", 32768 },
};

static void add_program_roots(struct aw_plan_builder *b)
{
	aw_plan_bind(b, "/usr", "/usr", AW_PLAN_READ_ONLY);
	for (size_t i = 0; i < AW_ARRAY_LEN(system_roots); i++) {
		char target[PATH_MAX];
		ssize_t n = readlink(system_roots[i], target, sizeof(target) - 1);

		if (n > 0) {
			target[n] = '\0';
			aw_plan_symlink(b, system_roots[i], target);
		} else {
			aw_plan_bind(b, system_roots[i], system_roots[i],
				     AW_PLAN_READ_ONLY | AW_PLAN_OPTIONAL);
		}
	}
	for (size_t i = 0; i < AW_ARRAY_LEN(program_roots); i++)
		aw_plan_bind(b, program_roots[i], program_roots[i],
			     AW_PLAN_READ_ONLY | AW_PLAN_OPTIONAL);
}

/* True when /etc/@name was a link and is shown as that link (localtime, on some systems all of ssl). */
static bool add_etc_link(struct aw_plan_builder *b, const char *path)
{
	char target[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof(target) - 1);

	if (n <= 0)
		return false;
	target[n] = '\0';
	aw_plan_symlink(b, path, target);
	return true;
}

static void add_etc_tree(struct aw_plan_builder *b, const char *name)
{
	char path[64];

	(void)aw_str_format(path, sizeof(path), "/etc/%s", name);
	if (access(path, F_OK) == 0 && !add_etc_link(b, path))
		aw_plan_bind(b, path, path, AW_PLAN_READ_ONLY | AW_PLAN_OPTIONAL | AW_PLAN_NOEXEC);
}

static void add_etc_copy(struct aw_plan_builder *b, const char *name)
{
	autofree char *text = NULL;
	struct aw_error missing;
	char path[64];
	ssize_t n;

	(void)aw_str_format(path, sizeof(path), "/etc/%s", name);
	if (add_etc_link(b, path))
		return;
	n = aw_read_file(AT_FDCWD, path, ETC_COPY_MAX, &text, &missing);
	if (n >= 0)
		aw_plan_file(b, path, 0644, (struct aw_str){ text, (size_t)n });
}

static void add_etc(const struct aw_view *view, struct aw_plan_builder *b)
{
	aw_plan_dir(b, "/etc", 0755);
	for (size_t i = 0; i < AW_ARRAY_LEN(etc_trees); i++)
		add_etc_tree(b, etc_trees[i]);
	for (size_t i = 0; i < AW_ARRAY_LEN(etc_copies); i++)
		add_etc_copy(b, etc_copies[i]);
	for (size_t i = 0; i < AW_ARRAY_LEN(etc_files); i++)
		aw_plan_file(b, etc_files[i].at, 0644, aw_str_from(etc_files[i].content));
	aw_plan_symlink(b, "/etc/os-release", "../usr/lib/os-release");
	aw_plan_symlink(b, "/etc/mtab", "/proc/self/mounts");
	/* Without a network there is nobody to ask: a resolver then fails at once. */
	aw_plan_file(b, "/etc/resolv.conf", 0644,
		     view->has_network
			     ? AW_STR("nameserver 127.0.0.1\noptions timeout:2 attempts:2\n")
			     : AW_STR("# offline: no name servers\n"));
	aw_plan_file(b, "/etc/warden/notice", 0644, view->notice);
}

static void add_kernel_places(struct aw_plan_builder *b)
{
	aw_plan_proc(b, "/proc");
	aw_plan_dir(b, "/dev", 0755);
	for (size_t i = 0; i < AW_ARRAY_LEN(device_nodes); i++)
		aw_plan_bind(b, device_nodes[i], device_nodes[i],
			     AW_PLAN_DEVICE | AW_PLAN_SINGLE | AW_PLAN_NOEXEC);
	for (size_t i = 0; i < AW_ARRAY_LEN(device_links); i++)
		aw_plan_symlink(b, device_links[i].at, device_links[i].target);
	aw_plan_devpts(b, "/dev/pts");
}

static void add_private_places(const struct aw_view *view, struct aw_plan_builder *b)
{
	aw_plan_tmpfs(b, "/tmp", 01777, view->tmp_size);
	aw_plan_tmpfs(b, "/dev/shm", 01777, view->tmp_size);
	aw_plan_symlink(b, "/var/tmp", "/tmp");
	aw_plan_dir(b, "/run", 0755);
	aw_plan_symlink(b, "/var/run", "/run");
	if (view->home_source != NULL)
		aw_plan_bind(b, view->home_source, view->home_at, 0);
	else
		aw_plan_tmpfs(b, view->home_at, 0700, view->tmp_size);
}

static void add_workspace(const struct aw_view *view, struct aw_plan_builder *b)
{
	if (view->is_workspace_hidden)
		aw_plan_dir(b, view->workspace_at, 0755);
	else if (view->workspace_is_tree)
		aw_plan_tree(b, view->workspace_at, 0);
	else
		aw_plan_bind_inode(b, view->workspace, view->workspace_at, 0, view->workspace_dev,
				   view->workspace_ino);
	if (!aw_path_is_within(view->workspace_at, AW_PATH_WORKSPACE))
		aw_plan_symlink(b, AW_PATH_WORKSPACE, view->workspace_at);
}

static void add_grants(const struct aw_view *view, struct aw_plan_builder *b)
{
	for (size_t i = 0; i < view->grant_count; i++) {
		const struct aw_view_grant *grant = &view->grants[i];

		if (grant->is_tree) {
			aw_plan_tree(b, grant->at, grant->is_writable ? 0 : AW_PLAN_READ_ONLY);
			continue;
		}

		aw_plan_bind_inode(b, grant->source, grant->at,
				   (grant->is_writable ? 0U : AW_PLAN_READ_ONLY) |
					   (grant->is_optional ? AW_PLAN_OPTIONAL : 0U),
				   grant->dev, grant->ino);
	}
}

static void add_protections(const struct aw_view *view, struct aw_plan_builder *b)
{
	for (size_t i = 0; i < view->pin_count; i++)
		aw_plan_pin(b, view->pins[i], AW_PLAN_OPTIONAL);
	for (size_t i = 0; i < view->protect_count; i++)
		aw_plan_pin(b, view->protects[i], AW_PLAN_READ_ONLY | AW_PLAN_OPTIONAL);
	for (size_t i = 0; i < view->mask_count; i++)
		aw_plan_mask(b, view->masks[i], AW_PLAN_OPTIONAL);
}

/* The view is the first word on reading; Landlock says again, in its own way, what may be written. */
static void add_landlock(const struct aw_view *view, struct aw_plan_builder *b)
{
	static const char *const writable[] = { "/tmp", "/dev/shm", "/proc" };

	aw_plan_allow(b, "/", AW_PLAN_ACCESS_READ);
	for (size_t i = 0; i < AW_ARRAY_LEN(writable); i++)
		aw_plan_allow(b, writable[i], AW_PLAN_ACCESS_WRITE);
	aw_plan_allow(b, view->home_at, AW_PLAN_ACCESS_WRITE);
	if (!view->is_workspace_hidden)
		aw_plan_allow(b, view->workspace_at, AW_PLAN_ACCESS_WRITE);
	for (size_t i = 0; i < view->grant_count; i++)
		if (view->grants[i].is_writable)
			aw_plan_allow(b, view->grants[i].at, AW_PLAN_ACCESS_WRITE);
	for (size_t i = 0; i < AW_ARRAY_LEN(device_nodes); i++)
		aw_plan_allow(b, device_nodes[i], AW_PLAN_ACCESS_DEVICE);
	aw_plan_allow(b, "/dev/pts", AW_PLAN_ACCESS_DEVICE);
}

int aw_view_decide(const struct aw_view *view, struct aw_plan_builder *b, struct aw_error *err)
{
	static const char *const taken[] = { "/usr", "/etc", "/proc", "/dev",
					     "/sys", "/run", "/boot" };

	for (size_t i = 0; i < AW_ARRAY_LEN(taken); i++)
		if (aw_path_is_within(view->workspace_at, taken[i]))
			return aw_refuse(err, EINVAL,
					 "a project below %s cannot be shown in a cell: move it",
					 taken[i]);
	add_program_roots(b);
	add_etc(view, b);
	add_kernel_places(b);
	add_private_places(view, b);
	add_workspace(view, b);
	add_grants(view, b);
	add_protections(view, b);
	add_landlock(view, b);
	for (size_t i = 0; i < AW_ARRAY_LEN(shared_caps); i++)
		aw_plan_cap(b, shared_caps[i].name, shared_caps[i].value);
	return 0;
}

const char *aw_view_home_for(const char *workspace)
{
	return aw_path_is_within(workspace, AW_CELL_HOME) ? AW_CELL_HOME ".warden" : AW_CELL_HOME;
}
