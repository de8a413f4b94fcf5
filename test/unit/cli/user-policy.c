#include "cli/user-policy.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/str.h"
#include "store/scratch.h"

/* What one change is made with: a home of its own. */
struct change {
	struct aw_user_policy_change change;
	struct aw_domain domain;
	struct aw_policy_errors errors;
	struct aw_error err;
	char config_dir[128];
};

static int run(const struct scratch *s, const char *project, const char *text, bool is_removed,
	       struct change *ret)
{
	struct aw_error err;

	*ret = (struct change){ 0 };
	assert_int_equal(aw_domain_parse(aw_str_from(text), AW_DOMAIN_GRANT, &ret->domain, &err),
			 0);
	(void)snprintf(ret->config_dir, sizeof(ret->config_dir), "%s/.config/warden", s->path);
	ret->change = (struct aw_user_policy_change){
		.config_dir = ret->config_dir,
		.home = s->path,
		.project = project,
		.domain = &ret->domain,
		.is_removed = is_removed,
	};
	return aw_user_policy_change(&ret->change, &ret->errors, &ret->err);
}

static int changed(const struct scratch *s, const char *project, const char *text, bool is_removed)
{
	struct change c;
	int r = run(s, project, text, is_removed, &c);

	if (r < 0)
		fail_msg("%s", c.err.message);
	aw_policy_errors_fini(&c.errors);
	return r;
}

#define FILE_NAME ".config/warden/policy.json"

static void make_config(const struct scratch *s)
{
	assert_int_equal(mkdirat(s->fd, ".config", 0755), 0);
	assert_int_equal(mkdirat(s->fd, ".config/warden", 0755), 0);
}

static void write_policy(const struct scratch *s, const char *text)
{
	make_config(s);
	scratch_store(s, FILE_NAME, text, strlen(text));
}

static void holds(const struct scratch *s, const char *name, const char *wanted)
{
	size_t len;
	autofree char *text = scratch_load(s, name, &len);

	assert_string_equal(text, wanted);
}

static void a_missing_file_is_made_for_the_user_alone(void **state)
{
	const struct scratch *s = *state;
	struct stat st;

	assert_int_equal(changed(s, NULL, "Example.com", false), 1);
	holds(s, FILE_NAME,
	      "{\n  \"version\": 1,\n  \"capabilities\": {\n    \"network\": {\n"
	      "      \"allowed_domains\": [\n        \"example.com\"\n      ]\n    }\n  }\n}\n");
	assert_int_equal(fstatat(s->fd, FILE_NAME, &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(fstatat(s->fd, ".config", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
}

static void an_empty_file_is_filled(void **state)
{
	const struct scratch *s = *state;

	write_policy(s, "\n");
	assert_int_equal(changed(s, NULL, "*.a.example", false), 1);
	assert_int_equal(changed(s, NULL, "*.a.example", true), 1);
	holds(s, FILE_NAME,
	      "{\n  \"version\": 1,\n  \"capabilities\": {\n    \"network\": {\n"
	      "      \"allowed_domains\": [\n      ]\n    }\n  }\n}\n");
}

static void the_same_host_in_another_spelling_is_there_already(void **state)
{
	static const char text[] =
		"{\"capabilities\":{\"network\":{\"allowed_domains\":[\"PyPI.org.\"]}}}";
	const struct scratch *s = *state;

	write_policy(s, text);
	assert_int_equal(changed(s, NULL, "pypi.org", false), 0);
	holds(s, FILE_NAME, text);
	assert_int_equal(changed(s, NULL, "pypi.org:8443", false), 1);
	assert_int_equal(changed(s, NULL, "*.pypi.org", false), 1);
	assert_int_equal(changed(s, NULL, "pypi.org", true), 1);
	holds(s, FILE_NAME,
	      "{\"capabilities\":{\"network\":{\"allowed_domains\":[\"pypi.org:8443\", "
	      "\"*.pypi.org\"]}}}");
}

static void what_is_not_there_is_not_removed(void **state)
{
	const struct scratch *s = *state;

	write_policy(s, "{\"version\": 1} // mine");
	assert_int_equal(changed(s, NULL, "a.com", true), 0);
	holds(s, FILE_NAME, "{\"version\": 1} // mine");
}

static void a_directory_gets_an_entry_of_its_own(void **state)
{
	const struct scratch *s = *state;

	write_policy(s, "{\"version\": 1}");
	assert_int_equal(changed(s, "/srv/api", "a.com", false), 1);
	holds(s, FILE_NAME,
	      "{\"version\": 1, \"projects\": {\"/srv/api\": {\"capabilities\": {\"network\": "
	      "{\"allowed_domains\": [\"a.com\"]}}}}}");
}

static void the_spelling_of_a_directory_that_is_there_is_kept(void **state)
{
	const struct scratch *s = *state;
	char project[128];

	write_policy(s, "{\"projects\": {\"/srv\": {}, \"~/work/api/\": {}}}");
	(void)snprintf(project, sizeof(project), "%s/work/api", s->path);
	assert_int_equal(changed(s, project, "a.com", false), 1);
	holds(s, FILE_NAME,
	      "{\"projects\": {\"/srv\": {}, \"~/work/api/\": {\"capabilities\": {\"network\": "
	      "{\"allowed_domains\": [\"a.com\"]}}}}}");
}

static void a_symbolic_link_stays_one(void **state)
{
	const struct scratch *s = *state;
	struct stat st;

	make_config(s);
	scratch_store(s, "mine.json", "{}", 2);
	assert_int_equal(symlinkat("../../mine.json", s->fd, FILE_NAME), 0);
	assert_int_equal(changed(s, NULL, "a.com", false), 1);
	assert_int_equal(fstatat(s->fd, FILE_NAME, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISLNK(st.st_mode));
	holds(s, "mine.json",
	      "{\"capabilities\": {\"network\": {\"allowed_domains\": [\"a.com\"]}}}");
}

/* The file stays as it is, and why is said. */
static void refused(const struct scratch *s, const char *text, int code, const char *told)
{
	struct change c;

	write_policy(s, text);
	assert_int_equal(run(s, NULL, "a.com", false, &c), code);
	if (strstr(c.err.message, told) == NULL)
		fail_msg("%s", c.err.message);
	aw_policy_errors_fini(&c.errors);
	holds(s, FILE_NAME, text);
}

static void a_text_that_cannot_be_edited_is_left_alone(void **state)
{
	refused(*state, "{\"version\": 1,}", -EBADMSG, "line 1");
}

static void a_list_of_another_type_is_left_alone(void **state)
{
	refused(*state, "{\"capabilities\": {\"network\": 1}}", -ENOTDIR, "\"network\"");
}

static void a_policy_with_errors_is_left_alone_and_they_are_told(void **state)
{
	const struct scratch *s = *state;
	struct change c;

	write_policy(s, "{\"verzion\": 1}");
	assert_int_equal(run(s, NULL, "a.com", false, &c), -EACCES);
	assert_int_equal(aw_policy_errors_total(&c.errors), 1);
	assert_string_equal(c.errors.item[0].pointer, "/verzion");
	aw_policy_errors_fini(&c.errors);
	holds(s, FILE_NAME, "{\"verzion\": 1}");
}

static void nothing_is_left_beside_the_file(void **state)
{
	const struct scratch *s = *state;
	struct stat st;

	assert_int_equal(changed(s, NULL, "a.com", false), 1);
	assert_int_equal(changed(s, NULL, "b.com", false), 1);
	assert_int_equal(fstatat(s->fd, ".config/warden", &st, 0), 0);
	assert_int_equal(st.st_nlink, 2);
	assert_int_equal(unlinkat(s->fd, FILE_NAME, 0), 0);
	/* Only an empty directory can be removed. */
	assert_int_equal(unlinkat(s->fd, ".config/warden", AT_REMOVEDIR), 0);
}

static void a_home_of_another_user_is_not_written_to(void **state)
{
	const struct scratch *s = *state;
	struct scratch other = { .path = "/usr" }; /* root's, as seen by anyone else */
	struct change c;
	struct stat st;

	if (geteuid() == 0) {
		other = *s;
		assert_int_equal(fchown(s->fd, 1234, 1234), 0);
	}
	assert_int_equal(run(&other, NULL, "a.com", false, &c), -EPERM);
	assert_int_equal(fstatat(s->fd, ".config", &st, 0), -1);
	aw_policy_errors_fini(&c.errors);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SCRATCH(a_missing_file_is_made_for_the_user_alone),
		IN_SCRATCH(an_empty_file_is_filled),
		IN_SCRATCH(the_same_host_in_another_spelling_is_there_already),
		IN_SCRATCH(what_is_not_there_is_not_removed),
		IN_SCRATCH(a_directory_gets_an_entry_of_its_own),
		IN_SCRATCH(the_spelling_of_a_directory_that_is_there_is_kept),
		IN_SCRATCH(a_symbolic_link_stays_one),
		IN_SCRATCH(a_text_that_cannot_be_edited_is_left_alone),
		IN_SCRATCH(a_list_of_another_type_is_left_alone),
		IN_SCRATCH(a_policy_with_errors_is_left_alone_and_they_are_told),
		IN_SCRATCH(nothing_is_left_beside_the_file),
		IN_SCRATCH(a_home_of_another_user_is_not_written_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
