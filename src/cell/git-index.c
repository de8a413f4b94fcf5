#include "cell/git-index.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "cell/git-named.h"
#include "policy/paths.h"

#define HEADER_LEN 12
#define MODE_AT 24
#define ID_AT 40
#define FLAG_EXTENDED 0x4000u
#define NAME_LEN_MASK 0x0fffu
#define MODE_KIND 0170000u
#define MODE_GITLINK 0160000u

struct reader {
	const unsigned char *at, *end, *entry;
	size_t id_len;
	uint32_t version;
	char path[PATH_MAX]; /* of the entry before, until it is read */
	size_t path_len;
};

static uint32_t get_u32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The offset encoding of packs: each byte but the last has its top bit, and counts for one more. */
static bool read_varint(struct reader *r, size_t *ret)
{
	size_t value = 0;

	while (r->at < r->end && value <= PATH_MAX) {
		unsigned char c = *r->at++;

		value = (value << 7) + (c & 0x7f);
		if (!(c & 0x80)) {
			*ret = value;
			return true;
		}
		value++;
	}
	return false;
}

/* The text at the reader, which a NUL ends, behind the first @kept bytes of the path before. */
static bool read_path(struct reader *r, size_t kept)
{
	size_t left = (size_t)(r->end - r->at);
	const unsigned char *nul = left > 0 ? memchr(r->at, '\0', left) : NULL;
	size_t len = nul == NULL ? 0 : (size_t)(nul - r->at);

	if (nul == NULL || len >= sizeof(r->path) - kept)
		return false;
	memcpy(r->path + kept, r->at, len + 1);
	r->path_len = kept + len;
	r->at = nul + 1;
	return true;
}

static bool read_compressed(struct reader *r)
{
	size_t dropped;

	return read_varint(r, &dropped) && dropped <= r->path_len &&
	       read_path(r, r->path_len - dropped);
}

static bool read_padded(struct reader *r)
{
	size_t len;

	if (!read_path(r, 0))
		return false;
	len = ((size_t)(r->at - r->entry) + 7) & ~(size_t)7;
	if (len > (size_t)(r->end - r->entry))
		return false;
	r->at = r->entry + len;
	return true;
}

static bool read_entry(struct reader *r, uint32_t *ret_mode)
{
	size_t head = ID_AT + r->id_len + 2, named;
	unsigned flags;

	r->entry = r->at;
	if ((size_t)(r->end - r->at) < head + 2)
		return false;
	*ret_mode = get_u32(r->entry + MODE_AT);
	flags = (unsigned)r->entry[head - 2] << 8 | r->entry[head - 1];
	if ((flags & FLAG_EXTENDED) && r->version == 2)
		return false;
	r->at += head + (flags & FLAG_EXTENDED ? 2 : 0);
	if (!(r->version == 4 ? read_compressed(r) : read_padded(r)))
		return false;
	named = flags & NAME_LEN_MASK;
	return named == (r->path_len < NAME_LEN_MASK ? r->path_len : NAME_LEN_MASK);
}

static int read_entries(struct reader *r, uint32_t count, struct aw_texts *ret,
			struct aw_error *err)
{
	uint32_t mode;

	for (uint32_t i = 0; i < count; i++) {
		if (!read_entry(r, &mode))
			return aw_refuse(err, EBADMSG, "entry %u of a git index is none", i);
		if ((mode & MODE_KIND) == MODE_GITLINK && aw_grants_add(ret, r->path, err) < 0)
			return -err->code;
	}
	return 0;
}

int aw_git_index_parse(struct aw_str bytes, struct aw_texts *ret, struct aw_error *err)
{
	static const size_t id_lens[] = { 20, 32 }; /* SHA-1 and SHA-256: the index does not say */
	const unsigned char *p = (const unsigned char *)bytes.ptr;
	int result = -EBADMSG;
	uint32_t version;

	if (bytes.len < HEADER_LEN || memcmp(p, "DIRC", 4) != 0)
		return aw_refuse(err, EBADMSG, "not a git index");
	version = get_u32(p + 4);
	if (version < 2 || version > 4)
		return aw_refuse(err, EBADMSG, "a git index of version %u", version);
	for (size_t i = 0; result == -EBADMSG && i < AW_ARRAY_LEN(id_lens); i++) {
		struct reader r = {
			.at = p + HEADER_LEN,
			.end = p + bytes.len,
			.id_len = id_lens[i],
			.version = version,
		};

		result = read_entries(&r, get_u32(p + 8), ret, err);
	}
	return result;
}

struct search {
	struct aw_git_tree *tree;
	const struct aw_protect_place *project;
	const char *below; /* the work tree, relative to the project */
	struct aw_error *err;
};

static int tell(const struct search *s, const char *link)
{
	char dir[PATH_MAX], path[PATH_MAX];
	struct aw_error none;
	DIR *listing;

	if (aw_protect_join(s->below, link, dir, &none) < 0 ||
	    aw_protect_join(dir, ".git", path, &none) < 0)
		return 1;
	if (aw_protect_look(s->project->fd, path) == AW_PROTECT_NOTHING)
		return 0;
	listing = aw_protect_list(s->project->fd, path);
	if (listing != NULL)
		(void)closedir(listing);
	return s->tree->found(s->tree, listing != NULL ? AW_GIT_DIRECTORY : AW_GIT_POINTER, path,
			      s->err);
}

static int tell_all(const struct search *s, const struct aw_texts *links)
{
	int left_out = 0;

	for (size_t i = 0; i < links->count; i++) {
		int r = tell(s, links->text[i]);

		if (r < 0)
			return r;
		left_out |= r > 0;
	}
	return left_out;
}

/* One index file in a git directory. A link is none that git has made: it could lead to anything. */
static int read_index(const struct search *s, int dir_fd, const char *name)
{
	autodrop(aw_texts_fini) struct aw_texts links = { 0 };
	autofree char *bytes = NULL;
	autoclose int fd =
		openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct aw_error why;
	ssize_t n;
	int r, told;

	if (fd < 0)
		return errno != ENOENT;
	n = aw_read_text(fd, AW_GIT_INDEX_MAX, &bytes, &why);
	r = n < 0 ? (int)n : aw_git_index_parse((struct aw_str){ bytes, (size_t)n }, &links, &why);
	if (r == -ENOMEM)
		return aw_fail(s->err, ENOMEM, "read a git index");
	told = tell_all(s, &links);
	return told < 0 ? told : r < 0 || told > 0;
}

static bool is_index(const char *name)
{
	return strcmp(name, "index") == 0 || aw_str_starts(aw_str_from(name), "sharedindex.");
}

/* Takes @dir over, which may be NULL. */
static int read_indexes(const struct search *s, DIR *dir)
{
	const struct dirent *entry;
	int r = 0, left_out = 0;

	while (r >= 0 && dir != NULL && (entry = readdir(dir)) != NULL) {
		if (!is_index(entry->d_name))
			continue;
		r = read_index(s, dirfd(dir), entry->d_name);
		left_out |= r > 0;
	}
	if (dir != NULL)
		(void)closedir(dir);
	return r < 0 ? r : left_out;
}

/* Of the worktrees of a repository elsewhere, the project is one: which, is not worth asking. */
static int read_worktrees(struct search *s, int git_fd)
{
	DIR *dir = aw_protect_list(git_fd, "worktrees");
	const struct dirent *entry;
	int r = 0, left_out = 0;

	s->below = "";
	while (r >= 0 && dir != NULL && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		r = read_indexes(s, aw_protect_list(dirfd(dir), entry->d_name));
		left_out |= r > 0;
	}
	if (dir != NULL)
		(void)closedir(dir);
	return r < 0 ? r : left_out;
}

int aw_git_index_walk(struct aw_git_tree *tree, const struct aw_protect_place *project,
		      const char *at, struct aw_error *err)
{
	struct search s = { .tree = tree, .project = project, .err = err };
	size_t project_len = strlen(project->path), at_len = strlen(project->at);
	bool is_inside = aw_path_is_within(at, project->at);
	char git_dir[PATH_MAX], work_tree[PATH_MAX];
	autoclose int fd = -EBADF;
	int r = 0, more;

	if (aw_str_format(git_dir, sizeof(git_dir), "%s%s", is_inside ? project->path : "",
			  is_inside ? at + at_len : at) < 0)
		return 1;
	fd = open(git_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (aw_git_work_tree(project->path, git_dir, work_tree, err) < 0)
		return -err->code;
	if (aw_path_is_within(work_tree, project->path)) {
		s.below = work_tree + project_len + (work_tree[project_len] == '/');
		r = read_indexes(&s, aw_protect_list(fd, ""));
	}
	more = r < 0 ? r : read_worktrees(&s, fd);
	return more < 0 ? more : r | more;
}
