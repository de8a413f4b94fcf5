#include "support/place.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"

#define TEXT_MAX (4 * 1024 * 1024)

int place_setup(void **state)
{
	struct place *place = calloc(1, sizeof(*place));
	char path[] = "/tmp/warden-place-XXXXXX";

	assert_non_null(place);
	assert_non_null(mkdtemp(path));
	place->path = realpath(path, NULL);
	assert_non_null(place->path);
	place->fd = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(place->fd >= 0);
	*state = place;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st;
	(void)type;
	(void)walk;
	return remove(path);
}

int place_teardown(void **state)
{
	struct place *place = *state;
	int r = nftw(place->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);

	(void)close(place->fd);
	for (size_t i = 0; i < place->text_count; i++)
		free(place->text[i]);
	free(place->text);
	free(place->path);
	free(place);
	return r;
}

static char *keep(struct place *place, char *take_text)
{
	char **larger = reallocarray(place->text, place->text_count + 1, sizeof(*place->text));

	assert_non_null(larger);
	place->text = larger;
	assert_non_null(take_text);
	place->text[place->text_count++] = take_text;
	return take_text;
}

const char *place_at(struct place *place, const char *name)
{
	return keep(place,
		    *name == '\0' ? strdup(place->path) : aw_str_print("%s/%s", place->path, name));
}

/* mkdir -p of what is in front of the last slash. */
static void make_parents(struct place *place, const char *name)
{
	for (const char *slash = strchr(name, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		char part[PATH_MAX];

		assert_true(aw_str_format(part, sizeof(part), "%.*s", (int)(slash - name), name) >
			    0);
		assert_true(mkdirat(place->fd, part, 0755) == 0 || errno == EEXIST);
	}
}

const char *place_dir(struct place *place, const char *name)
{
	make_parents(place, name);
	assert_true(mkdirat(place->fd, name, 0755) == 0 || errno == EEXIST);
	return place_at(place, name);
}

const char *place_bytes(struct place *place, const char *name, const void *bytes, size_t len)
{
	autoclose int fd = -EBADF;

	make_parents(place, name);
	fd = openat(place->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(aw_write_all(fd, bytes, len), 0);
	assert_int_equal(fchmod(fd, 0644), 0);
	return place_at(place, name);
}

const char *place_file(struct place *place, const char *name, const char *content)
{
	return place_bytes(place, name, content, strlen(content));
}

const char *place_program(struct place *place, const char *name, const char *content)
{
	const char *path = place_file(place, name, content);

	assert_int_equal(chmod(path, 0755), 0);
	return path;
}

const char *place_link(struct place *place, const char *name, const char *target)
{
	make_parents(place, name);
	assert_int_equal(symlinkat(target, place->fd, name), 0);
	return place_at(place, name);
}

void place_fifo(struct place *place, const char *name)
{
	make_parents(place, name);
	assert_int_equal(mkfifoat(place->fd, name, 0644), 0);
}

const char *place_read(struct place *place, const char *name)
{
	struct aw_error none;
	char *text;

	if (aw_read_file(place->fd, name, TEXT_MAX, &text, &none) < 0)
		return NULL;
	return keep(place, text);
}

bool place_has(const struct place *place, const char *name)
{
	return place_mode(place, name) != 0;
}

mode_t place_mode(const struct place *place, const char *name)
{
	struct stat st;

	return fstatat(place->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_mode : 0;
}
