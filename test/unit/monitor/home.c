#include "monitor/home.h"

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
#include "support/place.h"
#include "support/torture.h"

#define LARGE (1024 * 1024 + 1)

static struct aw_error err;

/* A project, an agent with two login files, and a state directory in the place. */
struct setting {
	struct aw_prepared p;
	struct aw_agent agent;
	struct aw_policy_entry auth[2], login[1];
	struct aw_state state;
};

static void set_up(struct setting *s, struct place *place)
{
	*s = (struct setting){
		.agent = { .name = "claude" },
		.auth = { { .text = ".claude/.credentials.json" }, { .text = ".claude.json" } },
		.login = { { .text = ".claude/account.json" } },
	};
	s->agent.auth_paths = (struct aw_policy_list){ .entry = s->auth, .count = 2 };
	s->agent.login_paths = (struct aw_policy_list){ .entry = s->login, .count = 1 };
	s->p.agent = &s->agent;
	s->p.workspace.path = (char *)(uintptr_t)place_dir(place, "work/api");
	(void)snprintf(s->state.path, sizeof(s->state.path), "%s", place_dir(place, "state"));
	s->state.state_fd = open(s->state.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(s->state.state_fd >= 0);
}

static void take_down(struct setting *s)
{
	(void)close(s->state.state_fd);
}

/* The name of a prepared home, relative to the place. */
static const char *prepare(struct setting *s, struct place *place)
{
	char *home = NULL;
	const char *name;

	if (aw_home_prepare(&s->p, &s->state, &home, &err) < 0)
		fail_msg("%s", err.message);
	assert_non_null(home);
	assert_memory_equal(home, place->path, strlen(place->path));
	name = place_at(place, home + strlen(place->path) + 1) + strlen(place->path) + 1;
	free(home);
	return name;
}

static const char *below(struct place *place, const char *home, const char *name)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/%s", home, name);
	return place_at(place, path) + strlen(place->path) + 1;
}

static void expect_text(struct place *place, const char *name, const char *text)
{
	const char *found = place_read(place, name);

	assert_string_equal(found != NULL ? found : "(none)", text);
}

static void a_home_is_private_readable_in_name_and_the_same_each_time(void **state)
{
	struct place *place = *state;
	struct setting s;
	const char *home;

	set_up(&s, place);
	home = prepare(&s, place);
	assert_memory_equal(home, "state/homes/api-", 16);
	assert_int_equal(strlen(home), 16 + 16);
	assert_int_equal(place_mode(place, home), S_IFDIR | 0700);
	assert_int_equal(place_mode(place, "state/homes"), S_IFDIR | 0700);
	assert_string_equal(prepare(&s, place), home);
	take_down(&s);
}

static void projects_of_one_name_have_homes_of_their_own(void **state)
{
	static const char *const projects[] = { "/a/api", "/b/api", "/a/api/", "/a/api2", "/" };
	struct place *place = *state;
	const char *homes[AW_ARRAY_LEN(projects)];
	struct setting s;

	set_up(&s, place);
	for (size_t i = 0; i < AW_ARRAY_LEN(projects); i++) {
		s.p.workspace.path = (char *)(uintptr_t)projects[i];
		homes[i] = prepare(&s, place);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(homes[i], homes[k]);
	}
	take_down(&s);
}

static void a_name_that_is_no_file_name_becomes_one(void **state)
{
	struct place *place = *state;
	struct setting s;
	char project[300] = "/w/a b\n\033:\"\344;..";
	const char *home;

	set_up(&s, place);
	s.p.workspace.path = project;
	home = prepare(&s, place);
	assert_memory_equal(home, "state/homes/a_b____________-", 20);
	assert_int_equal(strspn(home, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_-/"),
			 strlen(home));
	memset(project + 3, 'x', 250);
	home = prepare(&s, place);
	assert_true(strlen(home) < 80);
	take_down(&s);
}

static void an_ephemeral_session_has_none(void **state)
{
	struct setting s;
	char *home = (char *)(uintptr_t) "untouched";

	set_up(&s, *state);
	s.p.is_ephemeral = true;
	assert_int_equal(aw_home_prepare(&s.p, &s.state, &home, &err), 0);
	assert_null(home);
	assert_false(place_has(*state, "state/homes"));
	take_down(&s);
}

static void a_link_in_the_state_is_not_followed(void **state)
{
	struct place *place = *state;
	struct setting s;
	char *home;

	set_up(&s, place);
	place_dir(place, "elsewhere");
	place_link(place, "state/homes", "../elsewhere");
	assert_true(aw_home_prepare(&s.p, &s.state, &home, &err) < 0);
	assert_null(home);
	take_down(&s);
}

static void the_login_is_put_into_each_home(void **state)
{
	struct place *place = *state;
	struct setting s;
	const char *home;

	set_up(&s, place);
	place_file(place, "state/logins/claude/.claude/.credentials.json", "token");
	place_file(place, "state/logins/claude/unrelated", "x");
	home = prepare(&s, place);
	expect_text(place, below(place, home, ".claude/.credentials.json"), "token");
	assert_int_equal(place_mode(place, below(place, home, ".claude/.credentials.json")),
			 S_IFREG | 0600);
	assert_int_equal(place_mode(place, below(place, home, ".claude")), S_IFDIR | 0700);
	assert_false(place_has(place, below(place, home, ".claude.json")));
	assert_false(place_has(place, below(place, home, "unrelated")));
	place_file(place, "state/logins/claude/.claude/.credentials.json", "renewed");
	(void)prepare(&s, place);
	expect_text(place, below(place, home, ".claude/.credentials.json"), "renewed");
	take_down(&s);
}

static void without_an_agent_there_is_no_login(void **state)
{
	struct place *place = *state;
	struct setting s;

	set_up(&s, place);
	s.p.agent = NULL;
	(void)prepare(&s, place);
	assert_int_equal(aw_home_take_login(&s.p, &s.state, place_at(place, "work"), &err), 0);
	assert_false(place_has(place, "state/logins"));
	take_down(&s);
}

static void a_renewed_login_is_taken_back_and_counted(void **state)
{
	struct place *place = *state;
	struct setting s;
	const char *home;

	set_up(&s, place);
	home = prepare(&s, place);
	place_file(place, below(place, home, ".claude/.credentials.json"), "new");
	place_file(place, below(place, home, ".claude/settings.json"), "not asked for");
	assert_int_equal(aw_home_take_login(&s.p, &s.state, place_at(place, home), &err), 1);
	expect_text(place, "state/logins/claude/.claude/.credentials.json", "new");
	assert_int_equal(place_mode(place, "state/logins/claude/.claude/.credentials.json"),
			 S_IFREG | 0600);
	assert_false(place_has(place, "state/logins/claude/.claude/settings.json"));
	/* What did not change is not written. */
	assert_int_equal(aw_home_take_login(&s.p, &s.state, place_at(place, home), &err), 0);
	assert_int_equal(aw_home_take_login(&s.p, &s.state, NULL, &err), 0);
	take_down(&s);
}

static void what_holds_more_than_a_login_comes_back_from_a_login_alone(void **state)
{
	struct place *place = *state;
	struct setting s;
	const char *home;

	set_up(&s, place);
	home = prepare(&s, place);
	place_file(place, below(place, home, ".claude/account.json"), "{\"hooks\": 1}");
	assert_int_equal(aw_home_take_login(&s.p, &s.state, place_at(place, home), &err), 0);
	assert_false(place_has(place, "state/logins/claude/.claude/account.json"));
	s.p.is_login = true;
	assert_int_equal(aw_home_take_login(&s.p, &s.state, place_at(place, home), &err), 1);
	expect_text(place, "state/logins/claude/.claude/account.json", "{\"hooks\": 1}");
	/* What a project made of it since stays with the project. */
	place_file(place, below(place, home, ".claude/account.json"), "of the project");
	(void)prepare(&s, place);
	expect_text(place, below(place, home, ".claude/account.json"), "of the project");
	s.p.workspace.path = (char *)(uintptr_t)place_dir(place, "work/other");
	expect_text(place, below(place, prepare(&s, place), ".claude/account.json"),
		    "{\"hooks\": 1}");
	take_down(&s);
}

/* What an agent left at a login file's place, and whether something comes back. */
static void expect_nothing_comes_back(struct setting *s, struct place *place, const char *home)
{
	assert_int_equal(aw_home_take_login(&s->p, &s->state, place_at(place, home), &err), 0);
	expect_text(place, "state/logins/claude/.claude.json", "good");
}

static void what_an_agent_left_that_is_no_plain_file_stays_there(void **state)
{
	static char large[LARGE + 1];
	struct place *place = *state;
	struct setting s;
	const char *home, *file;

	set_up(&s, place);
	place_file(place, "state/logins/claude/.claude.json", "good");
	place_file(place, "secret", "of the host");
	home = prepare(&s, place);
	file = below(place, home, ".claude.json");
	assert_int_equal(unlinkat(place->fd, file, 0), 0);
	expect_nothing_comes_back(&s, place, home);
	place_link(place, file, "../../../secret");
	expect_nothing_comes_back(&s, place, home);
	assert_int_equal(unlinkat(place->fd, file, 0), 0);
	place_link(place, file, place_at(place, "secret"));
	expect_nothing_comes_back(&s, place, home);
	assert_int_equal(unlinkat(place->fd, file, 0), 0);
	/* Nor a link to what is its own. */
	place_file(place, below(place, home, "inner"), "its own");
	place_link(place, file, "inner");
	expect_nothing_comes_back(&s, place, home);
	assert_int_equal(unlinkat(place->fd, file, 0), 0);
	place_fifo(place, file);
	expect_nothing_comes_back(&s, place, home);
	assert_int_equal(unlinkat(place->fd, file, 0), 0);
	place_dir(place, file);
	expect_nothing_comes_back(&s, place, home);
	assert_int_equal(unlinkat(place->fd, file, AT_REMOVEDIR), 0);
	memset(large, 'x', LARGE);
	place_file(place, file, large);
	expect_nothing_comes_back(&s, place, home);
	take_down(&s);
}

static void a_directory_that_became_a_link_does_not_lead_out(void **state)
{
	struct place *place = *state;
	struct setting s;
	const char *home;

	set_up(&s, place);
	place_file(place, "host/.credentials.json", "of the host");
	home = prepare(&s, place);
	place_link(place, below(place, home, ".claude"), "../../../host");
	assert_int_equal(aw_home_take_login(&s.p, &s.state, place_at(place, home), &err), 0);
	assert_false(place_has(place, "state/logins/claude/.claude/.credentials.json"));
	/* Nor is the login written through it when the next session begins. */
	place_file(place, "state/logins/claude/.claude/.credentials.json", "token");
	{
		char *again = NULL;

		assert_true(aw_home_prepare(&s.p, &s.state, &again, &err) < 0);
		assert_null(again);
	}
	expect_text(place, "host/.credentials.json", "of the host");
	take_down(&s);
}

static void a_home_that_became_a_link_is_not_opened(void **state)
{
	struct place *place = *state;
	struct setting s;

	set_up(&s, place);
	place_file(place, "host/.claude.json", "of the host");
	assert_true(aw_home_take_login(&s.p, &s.state, place_link(place, "link", "host"), &err) <
		    0);
	assert_false(place_has(place, "state/logins/claude/.claude.json"));
	take_down(&s);
}

static void a_login_of_the_host_is_imported_file_by_file(void **state)
{
	struct place *place = *state;
	struct setting s;

	set_up(&s, place);
	place_file(place, "me/.claude/.credentials.json", "token");
	place_file(place, "me/.claude.json", "{}");
	place_file(place, "me/.claude/hooks", "never");
	assert_int_equal(aw_home_import_login(&s.agent, place_at(place, "me"), &s.state, &err), 2);
	expect_text(place, "state/logins/claude/.claude/.credentials.json", "token");
	expect_text(place, "state/logins/claude/.claude.json", "{}");
	assert_false(place_has(place, "state/logins/claude/.claude/hooks"));
	assert_int_equal(aw_home_import_login(&s.agent, place_at(place, "none"), &s.state, &err),
			 -ENOENT);
	take_down(&s);
}

static void started_by_root_the_home_is_the_agents(void **state)
{
	struct place *place = *state;
	struct setting s;
	struct stat st;
	const char *home;

	set_up(&s, place);
	s.p.is_root_started = geteuid() == 0;
	s.p.outside_uid = geteuid() == 0 ? 12345 : geteuid();
	s.p.outside_gid = geteuid() == 0 ? 12346 : getegid();
	place_file(place, "state/logins/claude/.claude/.credentials.json", "token");
	home = prepare(&s, place);
	for (size_t i = 0; i < 3; i++) {
		static const char *const names[] = { "", ".claude", ".claude/.credentials.json" };

		assert_int_equal(stat(place_at(place, below(place, home, names[i])), &st), 0);
		assert_int_equal(st.st_uid, s.p.outside_uid);
		assert_int_equal(st.st_gid, s.p.outside_gid);
	}
	/* Where they are kept, they are the person's. */
	place_file(place, below(place, home, ".claude.json"), "{}");
	assert_int_equal(chown(place_at(place, below(place, home, ".claude.json")), s.p.outside_uid,
			       s.p.outside_gid),
			 0);
	assert_int_equal(aw_home_take_login(&s.p, &s.state, place_at(place, home), &err), 1);
	assert_int_equal(stat(place_at(place, "state/logins/claude/.claude.json"), &st), 0);
	assert_int_equal(st.st_uid, geteuid());
	take_down(&s);
}

static void no_half_written_copy_is_left(void **state)
{
	struct place *place = *state;
	struct setting s;
	const char *home, *file;
	char *again = NULL;
	char temporary[64];

	set_up(&s, place);
	place_file(place, "state/logins/claude/.claude.json", "good");
	home = prepare(&s, place);
	file = below(place, home, ".claude.json");
	assert_int_equal(unlinkat(place->fd, file, 0), 0);
	place_dir(place, file); /* a name that cannot be replaced by a file */
	assert_int_equal(aw_home_prepare(&s.p, &s.state, &again, &err), -EISDIR);
	(void)snprintf(temporary, sizeof(temporary), ".warden-copy-%d", (int)getpid());
	assert_false(place_has(place, below(place, home, temporary)));
	take_down(&s);
}

static int attempt(void *state)
{
	struct setting *s = state;
	char *home = NULL;
	int r = aw_home_prepare(&s->p, &s->state, &home, &err);

	free(home);
	return r;
}

static void survives_a_lack_of_memory(void **state)
{
	struct setting s;

	set_up(&s, *state);
	assert_true(aw_torture(attempt, &s) >= 1);
	take_down(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(a_home_is_private_readable_in_name_and_the_same_each_time),
		IN_PLACE(projects_of_one_name_have_homes_of_their_own),
		IN_PLACE(a_name_that_is_no_file_name_becomes_one),
		IN_PLACE(an_ephemeral_session_has_none),
		IN_PLACE(a_link_in_the_state_is_not_followed),
		IN_PLACE(the_login_is_put_into_each_home),
		IN_PLACE(without_an_agent_there_is_no_login),
		IN_PLACE(a_renewed_login_is_taken_back_and_counted),
		IN_PLACE(what_holds_more_than_a_login_comes_back_from_a_login_alone),
		IN_PLACE(what_an_agent_left_that_is_no_plain_file_stays_there),
		IN_PLACE(a_directory_that_became_a_link_does_not_lead_out),
		IN_PLACE(a_home_that_became_a_link_is_not_opened),
		IN_PLACE(a_login_of_the_host_is_imported_file_by_file),
		IN_PLACE(started_by_root_the_home_is_the_agents),
		IN_PLACE(no_half_written_copy_is_left),
		IN_PLACE(survives_a_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
