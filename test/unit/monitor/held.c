#include "monitor/held.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "support/place.h"
#include "support/torture.h"

#define LARGE (AW_HELD_FILE_MAX + 1)

static struct aw_error err;

/* One held file "p/config", a directory for what it was replaced by, and what restoring gave. */
struct setting {
	struct place *place;
	struct aw_held held;
	struct aw_held_file *file;
	int keep;
	char kept[64];
};

/* Hold "p/config" as it is. */
static void hold(struct setting *s, struct place *place)
{
	const char *path = place_at(place, "p/config");

	*s = (struct setting){ .place = place };
	s->keep = open(place_dir(place, "keep"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(s->keep >= 0);
	assert_int_equal(aw_held_add(&s->held, path, &s->file, &err), 0);
	assert_non_null(s->file);
	assert_ptr_equal(aw_held_find(&s->held, path), s->file);
}

static void set_up(struct setting *s, struct place *place, const char *content)
{
	place_file(place, "p/config", content);
	hold(s, place);
}

static void take_down(struct setting *s)
{
	aw_held_fini(&s->held);
	(void)close(s->keep);
}

static int restore(struct setting *s)
{
	memset(s->kept, 'x', sizeof(s->kept) - 1);
	return aw_held_restore(s->file, s->keep, s->kept, sizeof(s->kept), &err);
}

/* Replace the file as an editor does: a new one, renamed over. */
static void replace(struct setting *s, const char *content)
{
	place_file(s->place, "p/new", content);
	assert_int_equal(renameat(s->place->fd, "p/new", s->place->fd, "p/config"), 0);
}

static void expect_text(struct setting *s, const char *name, const char *text)
{
	const char *found = place_read(s->place, name);

	assert_string_equal(found != NULL ? found : "(none)", text);
}

static void expect_kept(struct setting *s, const char *text)
{
	char name[128];

	assert_true(s->kept[0] != '\0');
	(void)snprintf(name, sizeof(name), "keep/%s", s->kept);
	expect_text(s, name, text);
	assert_int_equal(place_mode(s->place, name), S_IFREG | 0600);
}

static void expect_not_held(struct aw_held *held, const char *path)
{
	struct aw_held_file *file = &held->file[0];

	assert_int_equal(aw_held_add(held, path, &file, &err), 0);
	assert_null(file);
	assert_null(aw_held_find(held, path));
}

static void only_regular_files_of_bounded_size_are_held(void **state)
{
	static char large[LARGE + 1];
	static struct aw_held held;
	struct place *place = *state;
	struct aw_held_file *file;

	memset(large, 'x', LARGE);
	place_link(place, "link", "fits");
	place_fifo(place, "fifo");
	expect_not_held(&held, place_at(place, "none"));
	expect_not_held(&held, place_at(place, "none/at/all"));
	expect_not_held(&held, place_dir(place, "dir"));
	expect_not_held(&held, place_file(place, "large", large));
	expect_not_held(&held, place_at(place, "link"));
	expect_not_held(&held, place_at(place, "fifo"));
	assert_int_equal(held.count, 0);
	large[AW_HELD_FILE_MAX] = '\0';
	assert_int_equal(aw_held_add(&held, place_file(place, "fits", large), &file, &err), 0);
	assert_int_equal(held.count, 1);
	assert_int_equal(file->last.len, AW_HELD_FILE_MAX);
	aw_held_fini(&held);
	aw_held_fini(&held);
}

static void more_files_than_the_bound_are_not_held(void **state)
{
	static struct aw_held held;
	struct place *place = *state;
	struct aw_held_file *file;
	char name[16];

	for (unsigned i = 0; i < AW_HELD_MAX; i++) {
		(void)snprintf(name, sizeof(name), "f%u", i);
		assert_int_equal(aw_held_add(&held, place_file(place, name, ""), &file, &err), 0);
		assert_non_null(file);
	}
	expect_not_held(&held, place_file(place, "over", ""));
	assert_int_equal(held.count, AW_HELD_MAX);
	assert_non_null(aw_held_find(&held, place_at(place, "f0")));
	aw_held_fini(&held);
}

static void a_link_in_the_path_is_refused(void **state)
{
	static struct aw_held held;
	struct place *place = *state;
	struct aw_held_file *file;

	place_file(place, "real/config", "");
	place_link(place, "link", "real");
	assert_int_equal(aw_held_add(&held, place_at(place, "link/config"), &file, &err), -ELOOP);
	assert_null(file);
	assert_int_equal(held.count, 0);
}

static void what_came_in_its_place_is_taken_away_and_kept(void **state)
{
	struct setting s;

	set_up(&s, *state, "old");
	replace(&s, "new");
	assert_int_equal(restore(&s), 1);
	expect_text(&s, "p/config", "old");
	expect_kept(&s, "new");
	take_down(&s);
}

static void a_file_of_the_same_content_is_a_fresh_one_all_the_same(void **state)
{
	struct setting s;
	struct stat before, after;

	set_up(&s, *state, "old");
	replace(&s, "old");
	assert_int_equal(stat(s.file->path, &before), 0);
	assert_int_equal(restore(&s), 0);
	assert_string_equal(s.kept, "");
	assert_int_equal(stat(s.file->path, &after), 0);
	assert_int_not_equal(before.st_ino, after.st_ino);
	take_down(&s);
}

static void writers_of_what_was_replaced_reach_nothing(void **state)
{
	struct setting s;
	char *map;
	int fd;

	set_up(&s, *state, "old");
	replace(&s, "evil");
	fd = open(s.file->path, O_RDWR | O_CLOEXEC);
	map = mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	assert_int_equal(restore(&s), 1);
	assert_int_equal(pwrite(fd, "more", 4, 0), 4);
	memcpy(map, "also", 4);
	expect_text(&s, "p/config", "old");
	assert_int_equal(munmap(map, 4), 0);
	(void)close(fd);
	take_down(&s);
}

static void mode_and_owner_come_back_with_the_content(void **state)
{
	struct place *place = *state;
	struct setting s;
	struct stat st;
	uid_t uid = geteuid() == 0 ? 12345 : geteuid();
	gid_t gid = geteuid() == 0 ? 12346 : getegid();

	place_file(place, "p/config", "old");
	assert_int_equal(chown(place_at(place, "p/config"), uid, gid), 0);
	assert_int_equal(chmod(place_at(place, "p/config"), 0640), 0);
	hold(&s, place);
	replace(&s, "new");
	assert_int_equal(restore(&s), 1);
	assert_int_equal(stat(s.file->path, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0640);
	assert_int_equal(st.st_uid, uid);
	assert_int_equal(st.st_gid, gid);
	expect_kept(&s, "new");
	take_down(&s);
}

static void what_the_host_wrote_in_place_is_its_content_once_accepted(void **state)
{
	struct setting s;

	set_up(&s, *state, "old");
	place_file(s.place, "p/config", "written");
	aw_held_reread(&s.held); /* nobody said that it changed */
	aw_held_accept(&s.held);
	s.file->is_changed = true;
	aw_held_reread(&s.held);
	assert_false(s.file->is_changed);
	replace(&s, "evil");
	aw_held_accept(&s.held);
	assert_int_equal(restore(&s), 1);
	expect_text(&s, "p/config", "written");
	take_down(&s);
}

static void what_was_read_and_not_accepted_is_forgotten_by_a_restore(void **state)
{
	struct setting s;

	set_up(&s, *state, "old");
	replace(&s, "evil");
	s.file->is_changed = true;
	aw_held_reread(&s.held);
	assert_int_equal(restore(&s), 1);
	aw_held_accept(&s.held);
	replace(&s, "evil again");
	assert_int_equal(restore(&s), 1);
	expect_text(&s, "p/config", "old");
	take_down(&s);
}

static void what_cannot_be_read_is_replaced_and_not_kept(void **state)
{
	struct setting s;

	set_up(&s, *state, "old");
	assert_int_equal(unlink(s.file->path), 0);
	place_file(s.place, "evil", "evil");
	place_link(s.place, "p/config", "../evil");
	assert_int_equal(restore(&s), 1);
	assert_string_equal(s.kept, "");
	expect_text(&s, "p/config", "old");
	assert_int_equal(place_mode(s.place, "p/config") & S_IFMT, S_IFREG);
	expect_text(&s, "evil", "evil");
	assert_int_equal(unlink(s.file->path), 0);
	place_fifo(s.place, "p/config");
	assert_int_equal(restore(&s), 1);
	expect_text(&s, "p/config", "old");
	take_down(&s);
}

static void a_removed_file_is_due_only_if_it_is_needed(void **state)
{
	struct setting s;

	set_up(&s, *state, "old");
	assert_true(aw_held_is_due(s.file));
	assert_int_equal(unlink(s.file->path), 0);
	assert_false(aw_held_is_due(s.file));
	s.file->is_needed = true;
	assert_true(aw_held_is_due(s.file));
	assert_int_equal(restore(&s), 1);
	expect_text(&s, "p/config", "old");
	take_down(&s);
}

static void a_directory_that_is_gone_takes_its_files_along(void **state)
{
	struct setting s;

	set_up(&s, *state, "old");
	s.file->is_needed = true;
	assert_int_equal(unlink(s.file->path), 0);
	assert_int_equal(rmdir(place_at(s.place, "p")), 0);
	assert_false(aw_held_is_due(s.file));
	assert_int_equal(restore(&s), -ESTALE);
	place_dir(s.place, "p"); /* another of that name has to have it again */
	assert_true(aw_held_is_due(s.file));
	assert_int_equal(restore(&s), 1);
	expect_text(&s, "p/config", "old");
	take_down(&s);
}

static void what_was_read_while_its_mount_was_lost_is_not_taken(void **state)
{
	struct setting s;

	set_up(&s, *state, "old");
	replace(&s, "evil");
	s.file->is_changed = true;
	aw_held_reread(&s.held);
	s.file->is_lost = true; /* as the look at the mount table says after that */
	aw_held_accept(&s.held);
	s.file->is_changed = true;
	aw_held_reread(&s.held);
	aw_held_accept(&s.held);
	assert_int_equal(restore(&s), 1);
	assert_false(s.file->is_lost);
	expect_text(&s, "p/config", "old");
	take_down(&s);
}

static void what_grew_too_large_cannot_be_put_back(void **state)
{
	struct setting s;

	set_up(&s, *state, "old");
	assert_int_equal(truncate(s.file->path, LARGE), 0);
	s.file->is_changed = true;
	aw_held_reread(&s.held);
	aw_held_accept(&s.held);
	assert_int_equal(restore(&s), -ESTALE);
	take_down(&s);
}

static void a_directory_that_became_a_link_is_not_followed(void **state)
{
	struct setting s;

	set_up(&s, *state, "old");
	place_file(s.place, "host/config", "of the host");
	assert_int_equal(renameat(s.place->fd, "p", s.place->fd, "moved"), 0);
	place_link(s.place, "p", "host");
	assert_false(aw_held_is_due(s.file));
	assert_int_equal(restore(&s), -ESTALE);
	expect_text(&s, "host/config", "of the host");
	expect_text(&s, "moved/config", "old");
	take_down(&s);
}

static void without_a_place_to_keep_it_the_old_content_stands_all_the_same(void **state)
{
	struct setting s;

	set_up(&s, *state, "old");
	replace(&s, "evil");
	assert_int_equal(aw_held_restore(s.file, -EBADF, s.kept, sizeof(s.kept), &err), 1);
	assert_string_equal(s.kept, "");
	expect_text(&s, "p/config", "old");
	take_down(&s);
}

static void a_restore_that_fails_leaves_no_rest(void **state)
{
	struct setting s;

	set_up(&s, *state, "old");
	assert_int_equal(unlink(s.file->path), 0);
	place_dir(s.place, "p/config"); /* which no file can be renamed over */
	assert_int_equal(restore(&s), -EISDIR);
	assert_int_equal(rmdir(place_at(s.place, "p/config")), 0);
	assert_int_equal(rmdir(place_at(s.place, "p")), 0);
	take_down(&s);
}

static int attempt(void *state)
{
	static struct aw_held held;
	struct aw_held_file *file;
	int r = aw_held_add(&held, state, &file, &err);

	/* What cannot be read for want of memory is not held. */
	if (r == 0 && file == NULL)
		r = -ENOMEM;
	aw_held_fini(&held);
	return r;
}

static void survives_a_lack_of_memory(void **state)
{
	const char *path = place_file(*state, "p/config", "old");

	assert_true(aw_torture(attempt, (void *)(uintptr_t)path) >= 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(only_regular_files_of_bounded_size_are_held),
		IN_PLACE(more_files_than_the_bound_are_not_held),
		IN_PLACE(a_link_in_the_path_is_refused),
		IN_PLACE(what_came_in_its_place_is_taken_away_and_kept),
		IN_PLACE(a_file_of_the_same_content_is_a_fresh_one_all_the_same),
		IN_PLACE(writers_of_what_was_replaced_reach_nothing),
		IN_PLACE(mode_and_owner_come_back_with_the_content),
		IN_PLACE(what_the_host_wrote_in_place_is_its_content_once_accepted),
		IN_PLACE(what_was_read_and_not_accepted_is_forgotten_by_a_restore),
		IN_PLACE(what_cannot_be_read_is_replaced_and_not_kept),
		IN_PLACE(a_removed_file_is_due_only_if_it_is_needed),
		IN_PLACE(a_directory_that_is_gone_takes_its_files_along),
		IN_PLACE(what_was_read_while_its_mount_was_lost_is_not_taken),
		IN_PLACE(what_grew_too_large_cannot_be_put_back),
		IN_PLACE(a_directory_that_became_a_link_is_not_followed),
		IN_PLACE(without_a_place_to_keep_it_the_old_content_stands_all_the_same),
		IN_PLACE(a_restore_that_fails_leaves_no_rest),
		IN_PLACE(survives_a_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
