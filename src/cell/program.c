#include "cell/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "policy/paths.h"

#define HOPS_MAX 8
#define HEAD_MAX 4096

/* What every cell has already. */
static const char *const system_trees[] = { "/usr",    "/bin",       "/sbin",
					    "/lib",    "/lib32",     "/lib64",
					    "/libx32", "/nix/store", "/gnu/store" };

/* Where people's own programs lie when PATH does not say so: a login that read no profile. */
static const char *const home_bins[] = { ".local/bin", "bin",        ".npm-global/bin",  ".bun/bin",
					 ".cargo/bin", ".volta/bin", ".local/share/pnpm" };

static bool is_system(const char *path)
{
	for (size_t i = 0; i < AW_ARRAY_LEN(system_trees); i++)
		if (aw_path_is_within(path, system_trees[i]))
			return true;
	return false;
}

static bool is_in_workspace(const struct aw_program_search *search, const char *path)
{
	return search->workspace != NULL && aw_path_is_within(path, search->workspace);
}

/* An executable regular file, as its canonical path; NULL otherwise. */
static char *real_program(const char *name)
{
	autofree char *path = realpath(name, NULL);
	struct stat st;

	if (path == NULL || stat(path, &st) < 0 || !S_ISREG(st.st_mode) || access(path, X_OK) < 0)
		return NULL;
	return AW_TAKE_PTR(path);
}

/*
 * A program of @dir that is not of the workspace, nor named by a link in it: such a link could lead to
 * any tree of the person's, which would then be granted.
 */
static char *probe(const struct aw_program_search *search, const char *dir, size_t dir_len,
		   const char *name)
{
	char joined[PATH_MAX];
	autofree char *path = NULL, *real_dir = NULL;

	if (dir_len == 0 || dir[0] != '/' ||
	    aw_str_format(joined, sizeof(joined), "%.*s", (int)dir_len, dir) < 0)
		return NULL;
	real_dir = realpath(joined, NULL);
	if (real_dir == NULL || is_in_workspace(search, real_dir) ||
	    aw_str_format(joined, sizeof(joined), "%s/%s", real_dir, name) < 0)
		return NULL;
	path = real_program(joined);
	return path == NULL || is_in_workspace(search, path) ? NULL : AW_TAKE_PTR(path);
}

int aw_program_find(const struct aw_program_search *search, const char *name, char **ret,
		    struct aw_error *err)
{
	struct aw_str rest = aw_str_from(search->path), dir;

	if (strchr(name, '/') != NULL) {
		*ret = real_program(name);
		return *ret == NULL ? aw_refuse(err, ENOENT, "there is no program '%s'", name) : 0;
	}
	while (aw_str_next(&rest, ':', &dir)) {
		*ret = probe(search, dir.ptr, dir.len, name);
		if (*ret != NULL)
			return 0;
	}
	for (size_t i = 0; i < AW_ARRAY_LEN(home_bins); i++) {
		char own[PATH_MAX];

		if (aw_str_format(own, sizeof(own), "%s/%s", search->home, home_bins[i]) < 0)
			continue;
		*ret = probe(search, own, strlen(own), name);
		if (*ret != NULL)
			return 0;
	}
	return aw_refuse(err, ENOENT, "'%s' is not installed", name);
}

/* "DIR/lib/node_modules/pkg/cli.js": the outermost node_modules, where its dependencies lie too. */
static size_t node_tree(const char *path)
{
	const char *found = strstr(path, "/node_modules/");

	return found == NULL ? 0 : (size_t)(found - path) + strlen("/node_modules");
}

/* "HOME/.nvm/versions/node/v20.1.0/...": one component behind a version manager's directory. */
static size_t version_tree(const char *path)
{
	static const char *const managers[] = {
		"/.nvm/versions/node/",
		"/.pyenv/versions/",
		"/.local/share/fnm/node-versions/",
		"/.rbenv/versions/",
		"/.volta/tools/image/node/",
		"/.local/share/uv/tools/",
		"/.local/pipx/venvs/",
		"/.local/share/pipx/venvs/",
		"/.asdf/installs/",
		"/.local/share/mise/installs/",
	};

	for (size_t i = 0; i < AW_ARRAY_LEN(managers); i++) {
		const char *found = strstr(path, managers[i]);
		size_t n;

		if (found == NULL)
			continue;
		n = (size_t)(found - path) + strlen(managers[i]);
		return n + strcspn(path + n, "/");
	}
	return 0;
}

/* Directories that hold many people's or many programs' things: never granted as "the tree". */
static bool is_broad(const char *dir, size_t len, const char *home)
{
	static const char *const broad[] = { "",      "/opt", "/usr/local", "/srv", "/home",
					     "/root", "/tmp", "/var",       "/mnt", "/media" };
	static const char *const broad_home[] = { "", "/.local", "/.config", "/.cache",
						  "/.local/share" };
	size_t home_len = strlen(home);

	for (size_t i = 0; i < AW_ARRAY_LEN(broad); i++)
		if (len == strlen(broad[i]) && strncmp(dir, broad[i], len) == 0)
			return true;
	if (len > 6 && strncmp(dir, "/home/", 6) == 0 && memchr(dir + 6, '/', len - 6) == NULL)
		return true; /* somebody's home */
	if (len < home_len || strncmp(dir, home, home_len) != 0)
		return false;
	for (size_t i = 0; i < AW_ARRAY_LEN(broad_home); i++)
		if (len - home_len == strlen(broad_home[i]) &&
		    strncmp(dir + home_len, broad_home[i], len - home_len) == 0)
			return true;
	return false;
}

/* "TREE/bin/name": TREE, where it is a virtual environment or a directory of this program alone. */
static size_t bin_tree(const char *path, const char *home,
		       bool (*has_file)(const char *dir, const char *name))
{
	const char *slash = strrchr(path, '/');
	size_t len = (size_t)(slash - path);
	char tree[PATH_MAX];

	if (len < 4 || strncmp(path + len - 4, "/bin", 4) != 0)
		return 0;
	len -= 4;
	if (is_broad(path, len, home))
		return 0;
	if (aw_str_format(tree, sizeof(tree), "%.*s", (int)len, path) < 0)
		return 0;
	return has_file(tree, "pyvenv.cfg") || has_file(tree, "lib") || has_file(tree, "share")
		       ? len
		       : 0;
}

char *aw_program_tree(const char *path, const char *home,
		      bool (*has_file)(const char *dir, const char *name))
{
	size_t len = node_tree(path);

	if (len == 0)
		len = version_tree(path);
	if (len == 0)
		len = bin_tree(path, home, has_file);
	return aw_str_dup((struct aw_str){ path, len > 0 ? len : strlen(path) });
}

static bool has_file(const char *dir, const char *name)
{
	char path[PATH_MAX];

	return aw_str_format(path, sizeof(path), "%s/%s", dir, name) >= 0 &&
	       access(path, F_OK) == 0;
}

static ssize_t read_head(const char *path, char *head)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n = fd < 0 ? -1 : read(fd, head, HEAD_MAX);

	return n < 0 ? -errno : n;
}

/* The next word of a script's first line: the kernel and env(1) take blanks and tabs alike. */
static bool next_word(struct aw_str *line, struct aw_str *ret)
{
	size_t n = 0;

	*line = aw_str_trim(*line);
	while (n < line->len && line->ptr[n] != ' ' && line->ptr[n] != '\t')
		n++;
	*ret = (struct aw_str){ line->ptr, n };
	line->ptr += n;
	line->len -= n;
	return n > 0;
}

/* The program that a script's first line asks for: "#!/usr/bin/env -S node --flag" asks for node. */
static bool script_interpreter(struct aw_str head, struct aw_str *ret)
{
	struct aw_str line, word;

	if (!aw_str_starts(head, "#!"))
		return false;
	head.ptr += 2;
	head.len -= 2;
	if (!aw_str_next(&head, '\n', &line) || !next_word(&line, &word))
		return false;
	*ret = word;
	if (!aw_str_ends(word, "/env"))
		return true;
	while (next_word(&line, &word))
		if (word.ptr[0] != '-' && memchr(word.ptr, '=', word.len) == NULL) {
			*ret = word;
			break;
		}
	return true;
}

/* PT_INTERP of a 64-bit ELF file (elf(5)), if it lies in the head that was read. */
static bool elf_interpreter(const char *head, size_t len, struct aw_str *ret)
{
	Elf64_Ehdr ehdr;

	if (len < sizeof(ehdr) || memcmp(head, ELFMAG, SELFMAG) != 0 ||
	    head[EI_CLASS] != ELFCLASS64)
		return false;
	memcpy(&ehdr, head, sizeof(ehdr));
	for (unsigned i = 0; i < ehdr.e_phnum; i++) {
		size_t at = ehdr.e_phoff + (size_t)i * sizeof(Elf64_Phdr);
		Elf64_Phdr phdr;

		if (at > len || len - at < sizeof(phdr))
			return false;
		memcpy(&phdr, head + at, sizeof(phdr));
		if (phdr.p_type != PT_INTERP)
			continue;
		if (phdr.p_offset > len || phdr.p_filesz == 0 ||
		    len - phdr.p_offset < phdr.p_filesz)
			return false;
		*ret = (struct aw_str){ head + phdr.p_offset, phdr.p_filesz - 1 };
		return true;
	}
	return false;
}

/* What @path needs next: the canonical path of its interpreter, or NULL when it needs none. */
static int next_hop(const struct aw_program_search *search, const char *path, char **ret,
		    struct aw_error *err)
{
	char head[HEAD_MAX];
	autofree char *name = NULL;
	ssize_t n = read_head(path, head);
	struct aw_str interpreter;
	struct aw_error none;

	*ret = NULL;
	if (n < 0) /* may be executed but not read: it cannot be a script then */
		return 0;
	if (!script_interpreter((struct aw_str){ head, (size_t)n }, &interpreter) &&
	    !elf_interpreter(head, (size_t)n, &interpreter))
		return 0;
	name = aw_str_dup(interpreter);
	if (name == NULL)
		return aw_fail(err, ENOMEM, "follow '%s'", path);
	if (is_in_workspace(search, name)) /* it is seen there as it is, wherever it leads */
		return 0;
	if (aw_program_find(search, name, ret, &none) < 0)
		return aw_refuse(err, ENOENT, "'%s' needs '%s', which is not on this host", path,
				 name);
	return 0;
}

static int grant_tree(const struct aw_program_search *search, const char *path, struct aw_grants *g,
		      struct aw_error *err)
{
	autofree char *tree = NULL, *bin = NULL;

	if (is_system(path))
		return 0;
	tree = aw_program_tree(path, search->home, has_file);
	bin = strndup(path, (size_t)(strrchr(path, '/') - path));
	if (tree == NULL || bin == NULL)
		return aw_fail(err, ENOMEM, "grant '%s'", path);
	if (aw_grants_bind(g, tree, tree, false, err) < 0)
		return -err->code;
	return aw_grants_add(&g->path, bin, err);
}

int aw_program_grant(const struct aw_program_search *search, const char *path, struct aw_grants *g,
		     struct aw_error *err)
{
	autofree char *at = strdup(path);

	if (at == NULL)
		return aw_fail(err, ENOMEM, "grant '%s'", path);
	for (int hop = 0; hop < HOPS_MAX; hop++) {
		char *next = NULL;
		int r = grant_tree(search, at, g, err);

		if (r == 0)
			r = next_hop(search, at, &next, err);
		if (r < 0 || next == NULL)
			return r;
		free(at);
		at = next;
	}
	return aw_refuse(err, ELOOP, "'%s' needs more than %d programs to start", path, HOPS_MAX);
}
