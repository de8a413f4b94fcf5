/* Where things are: disks, hierarchies and groups, by the kernel's own tables. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "cell/cgroup-internal.h"

#define PATH_ROOM (PATH_MAX + 64)
#define FILE_MAX 65536

/* Does a comma-separated list have @word as a whole element? */
static bool has_word(struct aw_str list, const char *word)
{
	struct aw_str one;

	while (aw_str_next(&list, ',', &one))
		if (aw_str_is(one, word))
			return true;
	return false;
}

/* "ID PARENT MAJOR:MINOR ROOT MOUNTPOINT OPTIONS [TAGS] - TYPE SOURCE SUPEROPTIONS" */
static bool is_hierarchy(struct aw_str line, const char *controller, struct aw_str *ret_point)
{
	struct aw_str field, type = { 0 }, options = { 0 };
	size_t index = 0, behind = 0;

	while (aw_str_next(&line, ' ', &field)) {
		if (behind > 0 || aw_str_is(field, "-"))
			behind++;
		if (index++ == 4)
			*ret_point = field;
		if (behind == 2)
			type = field;
		if (behind == 4)
			options = field;
	}
	return aw_str_is(type, "cgroup") && has_word(options, controller);
}

/* Only where the host has them: others may be mounted for containers. */
bool aw_cgroup_find_mount(const char *table, const char *controller, char *out, size_t size)
{
	struct aw_str rest = aw_str_from(table), line, point = { 0 };

	while (aw_str_next(&rest, '\n', &line))
		if (is_hierarchy(line, controller, &point) &&
		    aw_str_starts(point, "/sys/fs/cgroup/"))
			return aw_str_format(out, size, "%.*s", (int)point.len, point.ptr) >= 0;
	return false;
}

int aw_cgroup_find_group(const char *table, const char *mount, const char *name, char *out,
			 size_t size, struct aw_error *err)
{
	struct aw_str rest = aw_str_from(table), line;
	char end[AW_SCOPE_NAME_MAX + 1];

	(void)aw_str_format(end, sizeof(end), "/%s", name);
	while (aw_str_next(&rest, '\n', &line)) {
		if (!aw_str_starts(line, "0::/"))
			continue;
		if (!aw_str_ends(line, end))
			break;
		if (aw_str_format(out, size, "%s%.*s", mount, (int)line.len - 3, line.ptr + 3) < 0)
			return aw_fail(err, ENAMETOOLONG, "find the group %s", name);
		return 0;
	}
	return aw_refuse(err, ENOTSUP, "systemd did not put the cell into %s", name);
}

static int read_beside(const char *dir, const char *file, char **ret)
{
	char path[PATH_ROOM + 16];
	struct aw_error none;

	(void)aw_str_format(path, sizeof(path), "%s/%s", dir, file);
	return aw_read_file(AT_FDCWD, path, FILE_MAX, ret, &none) < 0 ? -none.code : 0;
}

/* "MAJOR:MINOR\n" */
static bool parse_device(const char *text, dev_t *ret)
{
	char *end;
	unsigned long id = strtoul(text, &end, 10);

	if (end == text || *end != ':')
		return false;
	*ret = makedev((unsigned)id, (unsigned)strtoul(end + 1, NULL, 10));
	return true;
}

/* A partition's directory lies in its disk's. */
bool aw_cgroup_find_disk(const char *sys, dev_t device, dev_t *ret, char *ret_name, size_t size)
{
	autofree char *text = NULL, *events = NULL;
	char dir[PATH_ROOM], path[PATH_ROOM + 16];
	const char *name;

	(void)aw_str_format(dir, sizeof(dir), "%s/dev/block/%u:%u", sys, major(device),
			    minor(device));
	(void)aw_str_format(path, sizeof(path), "%s/partition", dir);
	if (access(path, F_OK) == 0)
		(void)aw_str_format(dir, sizeof(dir), "%s/dev/block/%u:%u/..", sys, major(device),
				    minor(device));
	if (read_beside(dir, "dev", &text) < 0 || read_beside(dir, "uevent", &events) < 0)
		return false;
	name = strstr(events, "DEVNAME=");
	if (name == NULL || !parse_device(text, ret))
		return false;
	name += strlen("DEVNAME=");
	return aw_str_format(ret_name, size, "%.*s", (int)strcspn(name, "\n"), name) >= 0;
}

static bool is_stale_scope(int parent, const char *name, time_t older_than_s)
{
	static const char begin[] = AW_CGROUP_PARENT "-", end[] = ".scope";
	autofree char *text = NULL;
	char path[NAME_MAX + 32];
	struct aw_error none;
	struct stat st;

	if (!aw_str_starts(aw_str_from(name), begin) || !aw_str_ends(aw_str_from(name), end) ||
	    fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    time(NULL) - st.st_mtime < older_than_s)
		return false;
	(void)aw_str_format(path, sizeof(path), "%s/cgroup.events", name);
	return aw_read_file(parent, path, FILE_MAX, &text, &none) > 0 &&
	       strstr(text, "populated 0\n") != NULL;
}

bool aw_cgroup_find_stale_scope(const char *parent, time_t older_than_s, char *out, size_t size)
{
	DIR *dir = opendir(parent);
	const struct dirent *entry;
	bool is_found = false;

	if (dir == NULL)
		return false;
	while (!is_found && (entry = readdir(dir)) != NULL)
		is_found = is_stale_scope(dirfd(dir), entry->d_name, older_than_s) &&
			   aw_str_format(out, size, "%s", entry->d_name) >= 0;
	(void)closedir(dir);
	return is_found;
}
