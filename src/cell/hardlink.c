#include "cell/hardlink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"

struct search {
	const struct aw_protect_place *place;
	struct aw_grants *g;
	unsigned depth_left, names_left;
	struct aw_error *err;
};

static int note(const struct search *s, const char *path, const char *what)
{
	char shown[512];

	(void)aw_str_escape(aw_str_from(path), shown, sizeof(shown));
	return aw_grants_note(s->g, s->err, "%s %s", shown, what);
}

static int remember(const struct search *s, const char *path)
{
	char at[PATH_MAX];

	if (aw_protect_join(s->place->at, path, at, s->err) < 0 ||
	    aw_grants_add(&s->g->linked, at, s->err) < 0)
		return -s->err->code;
	return note(s, path, "has another name (a hard link), by which it can be written");
}

static int look(struct search *s, int dir_fd, const char *name, const char *path);

static int look_into(struct search *s, const char *path)
{
	DIR *dir = aw_protect_list(s->place->fd, path);
	const struct dirent *entry;
	char below[PATH_MAX];
	int r = 0;

	while (r == 0 && dir != NULL && (entry = readdir(dir)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (s->names_left == 0)
			break;
		s->names_left--;
		r = aw_protect_join(path, entry->d_name, below, s->err);
		if (r == 0)
			r = look(s, dirfd(dir), entry->d_name, below);
	}
	if (dir != NULL)
		(void)closedir(dir);
	return r;
}

static int look(struct search *s, int dir_fd, const char *name, const char *path)
{
	struct stat st;
	int r;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (S_ISREG(st.st_mode))
		return st.st_nlink > 1 ? remember(s, path) : 0;
	if (!S_ISDIR(st.st_mode) || s->depth_left == 0)
		return 0;
	s->depth_left--;
	r = look_into(s, path);
	s->depth_left++;
	return r;
}

int aw_hardlink_find(const struct aw_protect_place *place, const char *path, struct aw_grants *g,
		     struct aw_error *err)
{
	struct search s = {
		.place = place,
		.g = g,
		.depth_left = AW_HARDLINK_DEPTH_MAX,
		.names_left = AW_HARDLINK_NAMES_MAX,
		.err = err,
	};
	int r = look(&s, place->fd, path, path);

	if (r < 0 || s.names_left > 0)
		return r;
	return note(&s, path, "is too large to be looked through for hard links");
}
