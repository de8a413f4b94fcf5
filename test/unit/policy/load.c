/* Which files are read and trusted. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "policy-support.h"
#include "support/torture.h"

struct place {
	char root[64], config[96], project[96], system[96], file[96];
	int project_fd;
	struct aw_policy *policy;
	struct aw_policy_errors errors;
	struct aw_error err;
};

static struct place place;

static void remove_file(const char *path)
{
	assert_true(unlink(path) == 0 || errno == ENOENT);
}

static int make_place(void **state)
{
	(void)state;
	memset(&place, 0, sizeof(place));
	memcpy(place.root, "/tmp/policy-load-XXXXXX", sizeof("/tmp/policy-load-XXXXXX"));
	assert_non_null(mkdtemp(place.root));
	snprintf(place.config, sizeof(place.config), "%s/config", place.root);
	snprintf(place.project, sizeof(place.project), "%s/project", place.root);
	snprintf(place.system, sizeof(place.system), "%s/system.json", place.root);
	snprintf(place.file, sizeof(place.file), "%s/file.json", place.root);
	assert_int_equal(mkdir(place.config, 0700), 0);
	assert_int_equal(mkdir(place.project, 0700), 0);
	place.project_fd = open(place.project, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return place.project_fd < 0 ? -1 : 0;
}

static int drop_place(void **state)
{
	char path[160];

	(void)state;
	aw_policy_drop(&place.policy);
	aw_policy_errors_fini(&place.errors);
	close(place.project_fd);
	snprintf(path, sizeof(path), "%s/policy.json", place.config);
	remove_file(path);
	snprintf(path, sizeof(path), "%s/.warden.json", place.project);
	remove_file(path);
	snprintf(path, sizeof(path), "%s/other.json", place.project);
	remove_file(path);
	remove_file(place.system);
	remove_file(place.file);
	rmdir(place.config);
	rmdir(place.project);
	return rmdir(place.root);
}

static void write_text(const char *dir, const char *name, const char *text, mode_t mode)
{
	char path[160];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(aw_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static struct aw_policy_sources sources_of_place(void)
{
	return (struct aw_policy_sources){
		.system_file = place.system,
		.home = "/home/u",
		.config_dir = place.config,
		.workspace = place.project,
		.workspace_fd = place.project_fd,
	};
}

static int load(const struct aw_policy_sources *sources)
{
	aw_policy_drop(&place.policy);
	aw_policy_errors_fini(&place.errors);
	return aw_policy_load(sources, &place.policy, &place.errors, &place.err);
}

static void missing_files_are_no_error(void **state)
{
	const struct aw_policy_sources sources = sources_of_place();
	const struct aw_policy_sources bare = { .workspace_fd = -EBADF,
						.system_file = place.system };

	(void)state;
	assert_int_equal(load(&sources), 0);
	assert_string_equal(place.policy->preset, "balanced");
	assert_int_equal(load(&bare), 0);
}

static void user_and_project_files_are_read(void **state)
{
	const struct aw_policy_sources sources = sources_of_place();

	(void)state;
	write_text(place.config, "policy.json", "{\"env\": {\"pass\": [\"A\", \"B\"]}} // mine",
		   0600);
	write_text(place.project, ".warden.json", "{\"env\": {\"pass\": [\"B\", \"C\"]}}", 0666);
	assert_int_equal(load(&sources), 0);
	assert_int_equal(place.policy->env.count, 1);
	assert_true(has_text(&place.policy->env, "B"));
	assert_int_equal(place.policy->asks.count, 1);
}

static void the_users_entry_for_the_workspace_counts(void **state)
{
	struct aw_policy_sources sources = sources_of_place();
	char text[256];

	(void)state;
	snprintf(text, sizeof(text), "{\"projects\": {\"%s\": {\"env\": {\"pass\": [\"A\"]}}}}",
		 place.project);
	write_text(place.config, "policy.json", text, 0600);
	assert_int_equal(load(&sources), 0);
	assert_int_equal(place.policy->env.count, 1);
	sources.workspace = "/elsewhere";
	assert_int_equal(load(&sources), 0);
	assert_int_equal(place.policy->env.count, 0);
}

static void a_named_file_stands_in_for_the_users(void **state)
{
	struct aw_policy_sources sources = sources_of_place();

	(void)state;
	write_text(place.config, "policy.json", "{\"env\": {\"pass\": [\"A\"]}}", 0600);
	write_text(place.root, "file.json", "{\"env\": {\"pass\": [\"F\"]}}", 0600);
	sources.policy_file = place.file;
	assert_int_equal(load(&sources), 0);
	assert_int_equal(place.policy->env.count, 1);
	assert_true(has_text(&place.policy->env, "F"));
	remove_file(place.file);
	assert_int_equal(load(&sources), -EACCES);
	assert_int_equal(place.errors.item[0].kind, AW_POLICY_UNREADABLE);
}

/* Also by a link from outside: what counts is where the file lies. */
static void a_policy_from_the_workspace_is_not_the_users(void **state)
{
	struct aw_policy_sources sources = sources_of_place();
	char inside[160];

	(void)state;
	write_text(place.project, "other.json", "{}", 0600);
	snprintf(inside, sizeof(inside), "%s/other.json", place.project);
	sources.policy_file = inside;
	assert_int_equal(load(&sources), -EACCES);
	assert_non_null(strstr(place.errors.item[0].message, "workspace"));
	assert_int_equal(symlink(inside, place.file), 0);
	sources.policy_file = place.file;
	assert_int_equal(load(&sources), -EACCES);
	assert_non_null(strstr(place.errors.item[0].message, "workspace"));
	sources.workspace = "/elsewhere";
	assert_int_equal(load(&sources), 0);
}

static void a_users_file_that_everyone_may_write_is_refused(void **state)
{
	const struct aw_policy_sources sources = sources_of_place();

	(void)state;
	write_text(place.config, "policy.json", "{}", 0602);
	assert_int_equal(load(&sources), -EACCES);
	assert_non_null(strstr(place.errors.item[0].message, "everyone"));
	write_text(place.config, "policy.json", "{}", 0664);
	assert_int_equal(load(&sources), 0);
}

static void the_systems_file_belongs_to_root_alone(void **state)
{
	const struct aw_policy_sources sources = sources_of_place();

	(void)state;
	write_text(place.root, "system.json", "{\"env\": {\"pass\": []}}", 0664);
	assert_int_equal(load(&sources), -EACCES);
	write_text(place.root, "system.json", "{\"env\": {\"pass\": []}}", 0644);
	/* Only root can make a file that is root's. */
	assert_int_equal(load(&sources), geteuid() == 0 ? 0 : -EACCES);
	if (geteuid() != 0)
		assert_non_null(strstr(place.errors.item[0].message, "root"));
}

static void a_projects_policy_that_is_a_link_fifo_or_directory_is_refused(void **state)
{
	const struct aw_policy_sources sources = sources_of_place();
	char path[160];

	(void)state;
	snprintf(path, sizeof(path), "%s/.warden.json", place.project);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(load(&sources), -EACCES);
	assert_non_null(strstr(place.errors.item[0].message, "symbolic link"));
	remove_file(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(load(&sources), -EACCES);
	assert_non_null(strstr(place.errors.item[0].message, "regular"));
	remove_file(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(load(&sources), -EACCES);
	assert_int_equal(rmdir(path), 0);
}

static void errors_of_all_files_come_together(void **state)
{
	struct aw_policy_sources sources = sources_of_place();
	static const char *const allow[] = { "*", NULL };

	(void)state;
	sources.command.allow = allow;
	write_text(place.config, "policy.json", "{\"bad\": 1}", 0600);
	write_text(place.project, ".warden.json", "{,}", 0600);
	assert_int_equal(load(&sources), -EACCES);
	assert_int_equal(place.errors.count, 3);
	assert_non_null(error_at(&place.errors, "/bad"));
	assert_non_null(error_at(&place.errors, "--allow"));
	assert_non_null(strstr(place.err.message, "3 errors"));
}

static void a_command_line_is_held_to_the_same_rules(void **state)
{
	static const char *const mounts[] = { "/", "rel", NULL }, *const env[] = { "A=1", NULL };
	struct aw_policy_sources sources = sources_of_place();

	(void)state;
	sources.command =
		(struct aw_policy_command){ .preset = "lax", .mount_ro = mounts, .env = env };
	assert_int_equal(load(&sources), -EACCES);
	assert_int_equal(place.errors.count, 4);
	assert_non_null(error_at(&place.errors, "--ro"));
	assert_non_null(error_at(&place.errors, "--env"));
	assert_string_equal(place.errors.item[0].file, "command line");
}

static int attempt(void *state)
{
	const struct aw_policy_sources sources = sources_of_place();

	(void)state;
	return load(&sources);
}

static void every_failing_allocation_is_told(void **state)
{
	(void)state;
	spare_jansson();
	write_text(place.config, "policy.json", "{\"env\": {\"pass\": [\"A\"]}}", 0600);
	write_text(place.project, ".warden.json", "{\"env\": {\"pass\": [\"A\"]}}", 0600);
	assert_true(aw_torture(attempt, NULL) > 100);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_place, drop_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(missing_files_are_no_error),
		TEST(user_and_project_files_are_read),
		TEST(the_users_entry_for_the_workspace_counts),
		TEST(a_named_file_stands_in_for_the_users),
		TEST(a_policy_from_the_workspace_is_not_the_users),
		TEST(a_users_file_that_everyone_may_write_is_refused),
		TEST(the_systems_file_belongs_to_root_alone),
		TEST(a_projects_policy_that_is_a_link_fifo_or_directory_is_refused),
		TEST(errors_of_all_files_come_together),
		TEST(a_command_line_is_held_to_the_same_rules),
		TEST(every_failing_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
