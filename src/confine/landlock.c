#include "confine/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"
#include "base/uapi.h"

#define ABI_1_RIGHTS ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1)

/* What each ABI brought. ABI 4 is about ports; the cell's namespace has no way out to rule on. */
static const struct version {
	int abi;
	uint64_t rights, scopes;
} versions[] = {
	{ 1, ABI_1_RIGHTS, 0 },
	{ 2, LANDLOCK_ACCESS_FS_REFER, 0 },
	{ 3, LANDLOCK_ACCESS_FS_TRUNCATE, 0 },
	{ 5, LANDLOCK_ACCESS_FS_IOCTL_DEV, 0 },
	{ 6, 0, LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | LANDLOCK_SCOPE_SIGNAL },
};

/* REFER lets a file move in from elsewhere; the way out of there is REMOVE. */
static const struct meaning {
	unsigned right;
	uint64_t access;
} meanings[] = {
	{ AW_LANDLOCK_READ, LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR },
	{ AW_LANDLOCK_EXEC, LANDLOCK_ACCESS_FS_EXECUTE },
	{ AW_LANDLOCK_WRITE, LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE |
				     LANDLOCK_ACCESS_FS_REFER | LANDLOCK_ACCESS_FS_MAKE_REG |
				     LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_SYM |
				     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO },
	{ AW_LANDLOCK_REMOVE, LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR },
	{ AW_LANDLOCK_DEVICE, LANDLOCK_ACCESS_FS_IOCTL_DEV },
};

/* A rule on a file that names a right only directories have is EINVAL. */
#define FILE_RIGHTS                                                   \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | \
	 LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_TRUNCATE | \
	 LANDLOCK_ACCESS_FS_IOCTL_DEV)

static struct aw_landlock_ruleset_attr all_of(int abi)
{
	struct aw_landlock_ruleset_attr attr = { 0 };

	for (size_t i = 0; i < AW_ARRAY_LEN(versions); i++) {
		if (versions[i].abi > abi)
			break;
		attr.handled_access_fs |= versions[i].rights;
		attr.scoped |= versions[i].scopes;
	}
	return attr;
}

int aw_landlock_abi(struct aw_error *err)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi < 0 ? aw_fail(err, errno, "ask for Landlock") : (int)abi;
}

static int create(int abi, struct aw_error *err)
{
	struct aw_landlock_ruleset_attr attr = all_of(abi);
	long fd = syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

	return fd < 0 ? aw_fail(err, errno, "create a Landlock ruleset") : (int)fd;
}

int aw_landlock_begin(int abi, struct aw_error *err)
{
	if (abi < AW_LANDLOCK_ABI_MIN)
		return aw_refuse(err, ENOTSUP,
				 "Landlock ABI %d cannot allow moving files between directories "
				 "(Linux 5.19 can)",
				 abi);
	return create(abi, err);
}

int aw_landlock_allow(int ruleset, int abi, int fd, unsigned rights, struct aw_error *err)
{
	struct landlock_path_beneath_attr rule = { .parent_fd = fd };
	struct stat st;

	if (fstat(fd, &st) < 0)
		return aw_fail(err, errno, "look at what a Landlock rule is for");
	for (size_t i = 0; i < AW_ARRAY_LEN(meanings); i++)
		if ((rights & meanings[i].right) != 0)
			rule.allowed_access |= meanings[i].access;
	rule.allowed_access &= all_of(abi).handled_access_fs;
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= FILE_RIGHTS;
	/* Nothing left (DEVICE before ABI 5): no rule. The kernel would call it ENOMSG. */
	if (rule.allowed_access == 0)
		return 0;
	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return aw_fail(err, errno, "add a Landlock rule");
	return 0;
}

int aw_landlock_allow_path(int ruleset, int abi, const char *path, unsigned rights,
			   struct aw_error *err)
{
	autoclose int fd = open(path, O_PATH | O_CLOEXEC);
	int r;

	if (fd < 0)
		return aw_fail(err, errno, "open '%s' for a Landlock rule", path);
	r = aw_landlock_allow(ruleset, abi, fd, rights, err);
	return r < 0 ? aw_while(err, "allow '%s'", path) : 0;
}

int aw_landlock_enforce(int ruleset, struct aw_error *err)
{
	if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		return aw_fail(err, errno, "enforce the Landlock ruleset");
	return 0;
}

int aw_landlock_deny_all(int abi, struct aw_error *err)
{
	autoclose int ruleset = create(abi, err);

	return ruleset < 0 ? ruleset : aw_landlock_enforce(ruleset, err);
}
