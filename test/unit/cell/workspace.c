#include "cell/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/str.h"
#include "support/inside.h"
#include "support/place.h"
#include "support/torture.h"

#define ME 1000
#define OTHER 1001

static struct aw_error err;

static const struct aw_workspace_host host = {
	.home = "/home/me",
	.state_dir = "/home/me/.local/state/warden",
	.config_dir = "/home/me/.config/warden",
	.program_dir = "/home/me/src/warden/build",
};

static int judge(const char *path)
{
	return aw_workspace_judge(path, ME, ME, false, &host, &err);
}

static void a_project_is_given(void **state)
{
	static const char *const projects[] = {
		"/home/me/api",
		"/home/me/src/other",
		"/home/me/.config/nvim",
		"/home/me2",
		"/tmp/x",
		"/srv/www",
		"/opt/app",
		"/var/www/site",
		"/mnt/data/project",
		"/usrlocal",
		"/etcetera",
		"/data/x",
		"/root/x",
		"/home/me/src/warden-2",
		"/home/me/a\nb",
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(projects); i++)
		if (judge(projects[i]) != 0)
			fail_msg("'%s' is refused: %s", projects[i], err.message);
}

static void every_refused_place_is_refused_with_its_reason(void **state)
{
	static const struct {
		const char *path, *reason;
	} refused[] = {
		{ "/", "the whole system" },
		{ "/home/me", "your home directory, with all your keys" },
		{ "/home", "your home directory lies inside it" },
		{ "/bin", "belongs to the system" },
		{ "/boot/grub", "belongs to the system" },
		{ "/dev/shm", "belongs to the system" },
		{ "/etc", "belongs to the system" },
		{ "/etc/nginx", "belongs to the system" },
		{ "/lib", "belongs to the system" },
		{ "/lib32", "belongs to the system" },
		{ "/lib64/x", "belongs to the system" },
		{ "/libx32", "belongs to the system" },
		{ "/proc/self", "belongs to the system" },
		{ "/run/user/1000", "belongs to the system" },
		{ "/sbin", "belongs to the system" },
		{ "/sys/fs/cgroup", "belongs to the system" },
		{ "/usr", "belongs to the system" },
		{ "/usr/local/src/x", "belongs to the system" },
		{ "/nix/store", "belongs to the system" },
		{ "/gnu", "belongs to the system" },
		{ "/snap/x", "belongs to the system" },
		{ "/lost+found", "belongs to the system" },
		{ "/root", "shared by many" },
		{ "/mnt", "shared by many" },
		{ "/media", "shared by many" },
		{ "/opt", "shared by many" },
		{ "/srv", "shared by many" },
		{ "/tmp", "shared by many" },
		{ "/var", "shared by many" },
		{ "/var/tmp", "shared by many" },
		{ "/var/lib", "shared by many" },
		{ "/var/log", "shared by many" },
		{ "/var/cache", "shared by many" },
		{ "/var/spool", "shared by many" },
		{ "/var/www", "shared by many" },
		{ "/Users", "shared by many" },
		{ "/data", "shared by many" },
		{ "/workspaces", "shared by many" },
		{ "/home/me/.local/state/warden", "Warden's own state" },
		{ "/home/me/.local/state/warden/homes/x", "Warden's own state" },
		{ "/home/me/.local/state", "Warden's own state" },
		{ "/home/me/.local", "Warden's own state" },
		{ "/home/me/.config", "Warden's own state or configuration" },
		{ "/home/me/.config/warden", "Warden's own state or configuration" },
		{ "/home/me/.config/warden/agents", "Warden's own state or configuration" },
		{ "/home/me/src/warden/build", "this Warden itself runs from there" },
		{ "/home/me/src/warden", "this Warden itself runs from there" },
		{ "/home/me/src", "this Warden itself runs from there" },
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(refused); i++) {
		if (judge(refused[i].path) != -EACCES)
			fail_msg("'%s' is not refused", refused[i].path);
		if (strstr(err.message, refused[i].reason) == NULL)
			fail_msg("'%s': %s", refused[i].path, err.message);
	}
}

static void anothers_directory_is_refused_but_not_to_root(void **state)
{
	(void)state;
	assert_int_equal(aw_workspace_judge("/srv/x", OTHER, ME, false, &host, &err), -EACCES);
	assert_non_null(strstr(err.message, "another user"));
	assert_int_equal(aw_workspace_judge("/srv/x", 0, ME, false, &host, &err), -EACCES);
	assert_int_equal(aw_workspace_judge("/srv/x", OTHER, 0, false, &host, &err), 0);
}

static void a_whole_drive_is_refused_to_root_too(void **state)
{
	(void)state;
	assert_int_equal(aw_workspace_judge("/mnt/usb", ME, ME, true, &host, &err), -EACCES);
	assert_non_null(strstr(err.message, "whole drive"));
	assert_int_equal(aw_workspace_judge("/mnt/usb", ME, 0, true, &host, &err), -EACCES);
}

static void a_refusal_shows_no_control_characters(void **state)
{
	(void)state;
	assert_int_equal(judge("/etc/\033[2Jx\n"), -EACCES);
	assert_null(strchr(err.message, '\033'));
	assert_null(strchr(err.message, '\n'));
}

static void without_known_directories_the_rest_still_holds(void **state)
{
	const struct aw_workspace_host bare = { .home = "/home/me" };

	(void)state;
	assert_int_equal(aw_workspace_judge("/srv/x", ME, ME, false, &bare, &err), 0);
	assert_int_equal(aw_workspace_judge("/home/me", ME, ME, false, &bare, &err), -EACCES);
}

#define LINE(root, point) "36 35 98:0 " root " " point " rw,noatime shared:1 - ext4 /dev/sda1 rw"

static void the_point_of_a_mountinfo_line_is_unescaped(void **state)
{
	static const struct {
		struct aw_str line;
		const char *point; /* NULL: there is none */
	} rows[] = {
		{ AW_STR(LINE("/", "/mnt/a\\040b")), "/mnt/a b" },
		{ AW_STR(LINE("/", "/mnt/a\\011b\\012c\\134d")), "/mnt/a\tb\nc\\d" },
		{ AW_STR(LINE("/", "/mnt/\\344\\270\\255")), "/mnt/\344\270\255" },
		{ AW_STR(LINE("/", "/a\\04")), "/a\\04" },
		{ AW_STR(LINE("/", "/a\\")), "/a\\" },
		{ AW_STR(LINE("/", "/a\\089")), "/a\\089" },
		{ AW_STR(LINE("/", "/a\\0401")), "/a 1" },
		{ AW_STR("36 35 98:0 / /end"), "/end" },
		{ AW_STR("36 35 98:0 /"), NULL },
		{ AW_STR(""), NULL },
	};
	char point[64];

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(rows); i++) {
		bool has = aw_mountinfo_point(rows[i].line, point, sizeof(point));

		assert_int_equal(has, rows[i].point != NULL);
		if (has)
			assert_string_equal(point, rows[i].point);
	}
}

static void a_point_that_does_not_fit_is_no_point(void **state)
{
	struct aw_str line = AW_STR(LINE("/", "/abcde"));
	char point[8];

	(void)state;
	assert_true(aw_mountinfo_point(line, point, 7));
	assert_false(aw_mountinfo_point(line, point, 6));
	assert_false(aw_mountinfo_point(line, point, 1));
}

static void only_the_root_of_a_file_system_is_a_drive(void **state)
{
	(void)state;
	assert_true(aw_mountinfo_is_drive(AW_STR(LINE("/", "/mnt/usb")), "/mnt/usb"));
	assert_true(aw_mountinfo_is_drive(AW_STR(LINE("/", "/mnt/u\\040b")), "/mnt/u b"));
	assert_false(aw_mountinfo_is_drive(AW_STR(LINE("/sub", "/mnt/usb")), "/mnt/usb"));
	assert_false(aw_mountinfo_is_drive(AW_STR(LINE("/", "/mnt/usb")), "/mnt/us"));
	assert_false(aw_mountinfo_is_drive(AW_STR(LINE("/", "/mnt/usb")), "/mnt/usb/x"));
	assert_false(aw_mountinfo_is_drive(AW_STR("36 35"), "/mnt/usb"));
}

/* A home with Warden's directories in it; the test program lies elsewhere. */
static struct aw_workspace_host host_in(struct place *p)
{
	return (struct aw_workspace_host){
		.home = place_dir(p, "home"),
		.state_dir = place_dir(p, "home/.local/state/warden"),
		.config_dir = place_dir(p, "home/.config/warden"),
		.program_dir = place_dir(p, "lib"),
	};
}

static int try(struct place *p, const char *name)
{
	autodrop(aw_workspace_fini) struct aw_workspace w = { .fd = -EBADF };
	struct aw_workspace_host own = host_in(p);

	return aw_workspace_open(place_at(p, name), &own, &w, &err);
}

static void opens_a_project_by_its_canonical_path(void **state)
{
	struct place *p = *state;
	autodrop(aw_workspace_fini) struct aw_workspace w = { .fd = -EBADF };
	struct aw_workspace_host own = host_in(p);
	struct stat st, there;

	place_dir(p, "home/proj/sub");
	place_link(p, "link", "home/proj");
	assert_int_equal(aw_workspace_open(place_at(p, "link/sub/.."), &own, &w, &err), 0);
	assert_string_equal(w.path, place_at(p, "home/proj"));
	assert_int_equal(w.uid, geteuid());
	assert_int_equal(w.secret_count, 0);
	assert_int_equal(fstat(w.fd, &st), 0);
	assert_int_equal(stat(w.path, &there), 0);
	assert_int_equal(st.st_ino, there.st_ino);
	assert_true(fcntl(w.fd, F_GETFL) & O_PATH);
	assert_true(fcntl(w.fd, F_GETFD) & FD_CLOEXEC);
}

static void a_link_to_a_refused_place_is_refused_as_that_place(void **state)
{
	struct place *p = *state;

	place_link(p, "root", "/");
	place_link(p, "system", "/usr/lib");
	place_link(p, "me", "home");
	assert_int_equal(try(p, "root"), -EACCES);
	assert_non_null(strstr(err.message, "the whole system"));
	assert_int_equal(try(p, "system"), -EACCES);
	assert_int_equal(try(p, "me"), -EACCES);
	assert_non_null(strstr(err.message, "your home directory"));
	assert_int_equal(try(p, "home/../home"), -EACCES);
}

static void own_directories_behind_links_are_found(void **state)
{
	struct place *p = *state;
	struct aw_workspace_host own = host_in(p);
	autodrop(aw_workspace_fini) struct aw_workspace w = { .fd = -EBADF };

	place_dir(p, "home/dotfiles/config");
	place_dir(p, "home/proj");
	place_link(p, "home/linked", "dotfiles/config");
	own.config_dir = place_at(p, "home/linked/warden"); /* which is not there yet */
	assert_int_equal(aw_workspace_open(place_at(p, "home/dotfiles"), &own, &w, &err), -EACCES);
	assert_non_null(strstr(err.message, "Warden's own"));
	own.state_dir = place_at(p, "home/linked");
	own.config_dir = place_at(p, "elsewhere/and/not/there");
	assert_int_equal(aw_workspace_open(place_at(p, "home/dotfiles/config"), &own, &w, &err),
			 -EACCES);
	assert_int_equal(aw_workspace_open(place_at(p, "home/proj"), &own, &w, &err), 0);
	assert_int_equal(aw_workspace_touches_own(place_at(p, "home/dotfiles"), &own, &err), 1);
	assert_int_equal(aw_workspace_touches_own(place_at(p, "elsewhere"), &own, &err), 1);
	assert_int_equal(aw_workspace_touches_own(place_at(p, "home/proj"), &own, &err), 0);
}

static void what_is_no_directory_is_refused(void **state)
{
	struct place *p = *state;

	place_file(p, "home/file", "");
	place_link(p, "home/loop", "loop");
	assert_int_equal(try(p, "home/missing"), -ENOENT);
	assert_int_equal(try(p, "home/file"), -ENOTDIR);
	assert_int_equal(try(p, "home/loop"), -ELOOP);
}

static void names_that_hold_keys_are_reported(void **state)
{
	struct place *p = *state;
	autodrop(aw_workspace_fini) struct aw_workspace w = { .fd = -EBADF };
	struct aw_workspace_host own = host_in(p);

	place_dir(p, "home/proj/.ssh");
	place_link(p, "home/proj/.aws", "/nowhere");
	place_file(p, "home/proj/.kube", ""); /* a file of that name holds no keys */
	assert_int_equal(aw_workspace_open(place_at(p, "home/proj"), &own, &w, &err), 0);
	assert_int_equal(w.secret_count, 2);
	assert_string_equal(w.secrets[0], ".ssh");
	assert_string_equal(w.secrets[1], ".aws");
}

static void all_four_names_fit(void **state)
{
	struct place *p = *state;
	autodrop(aw_workspace_fini) struct aw_workspace w = { .fd = -EBADF };
	struct aw_workspace_host own = host_in(p);

	place_dir(p, "proj/.ssh");
	place_dir(p, "proj/.aws");
	place_dir(p, "proj/.kube");
	place_dir(p, "proj/.gnupg");
	assert_int_equal(aw_workspace_open(place_at(p, "proj"), &own, &w, &err), 0);
	assert_int_equal(w.secret_count, 4);
}

static void anothers_directory_is_opened_by_root_alone(void **state)
{
	struct place *p = *state;

	place_dir(p, "proj");
	if (geteuid() == 0) {
		assert_int_equal(chown(place_at(p, "proj"), 12345, 12345), 0);
		assert_int_equal(try(p, "proj"), 0);
		return;
	}
	/* A user cannot give it away: a directory of root's that is nobody's project. */
	assert_int_equal(aw_workspace_judge("/var/lib/dpkg", 0, geteuid(), false, &host, &err),
			 -EACCES);
}

/* A drive of its own at proj/drive, and a part of it bound beside. */
static int open_on_drives(void *state)
{
	struct place *p = state;
	const char *drive = place_dir(p, "drive"), *part = place_dir(p, "part");

	INSIDE(mount("tmpfs", drive, "tmpfs", 0, NULL) == 0);
	/* By its name: the place's own descriptor stays outside of this mount namespace. */
	INSIDE(mkdir(place_at(p, "drive/sub"), 0755) == 0);
	INSIDE(mount(place_at(p, "drive/sub"), part, NULL, MS_BIND, NULL) == 0);
	INSIDE(try(p, "drive") == -EACCES);
	INSIDE(strstr(err.message, "whole drive") != NULL);
	INSIDE(try(p, "drive/sub") == 0);
	INSIDE(try(p, "part") == 0);
	return 0;
}

static void the_root_of_a_drive_is_recognised(void **state)
{
	inside_check(0, open_on_drives, *state);
}

struct attempt {
	const char *dir;
	struct aw_workspace_host host;
};

static int open_one(void *state)
{
	autodrop(aw_workspace_fini) struct aw_workspace w = { .fd = -EBADF };
	const struct attempt *attempt = state;

	return aw_workspace_open(attempt->dir, &attempt->host, &w, &err);
}

static void survives_a_lack_of_memory(void **state)
{
	struct attempt attempt = { place_dir(*state, "proj"), host_in(*state) };

	assert_true(aw_torture(open_one, &attempt) >= 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_project_is_given),
		cmocka_unit_test(every_refused_place_is_refused_with_its_reason),
		cmocka_unit_test(anothers_directory_is_refused_but_not_to_root),
		cmocka_unit_test(a_whole_drive_is_refused_to_root_too),
		cmocka_unit_test(a_refusal_shows_no_control_characters),
		cmocka_unit_test(without_known_directories_the_rest_still_holds),
		cmocka_unit_test(the_point_of_a_mountinfo_line_is_unescaped),
		cmocka_unit_test(a_point_that_does_not_fit_is_no_point),
		cmocka_unit_test(only_the_root_of_a_file_system_is_a_drive),
		IN_PLACE(opens_a_project_by_its_canonical_path),
		IN_PLACE(a_link_to_a_refused_place_is_refused_as_that_place),
		IN_PLACE(own_directories_behind_links_are_found),
		IN_PLACE(what_is_no_directory_is_refused),
		IN_PLACE(names_that_hold_keys_are_reported),
		IN_PLACE(all_four_names_fit),
		IN_PLACE(anothers_directory_is_opened_by_root_alone),
		IN_PLACE(the_root_of_a_drive_is_recognised),
		IN_PLACE(survives_a_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
