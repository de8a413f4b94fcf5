/* A home of the place's own; what the host has in /etc/warden is not expected to matter here. */
#include "monitor/prepare.h"

#include <errno.h>
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
#include "cell/launch.h"
#include "monitor/environ.h"
#include "support/place.h"

#define V(text) ((char *)(uintptr_t)(text))

static struct aw_error err;

/* What a person types in a home of this place, and what comes of it. */
struct setting {
	struct place *place;
	struct aw_run_options options;
	char home[128], path[256];
	char *environment[8];
	char *command[8];
	struct aw_prepared p;
};

static void set_up(struct setting *s, struct place *place)
{
	*s = (struct setting){ .place = place };
	place_dir(place, "home/proj");
	place_dir(place, "home/bin");
	(void)snprintf(s->home, sizeof(s->home), "HOME=%s", place_at(place, "home"));
	(void)snprintf(s->path, sizeof(s->path), "PATH=%s:/usr/bin:/bin",
		       place_at(place, "home/bin"));
	s->environment[0] = s->home;
	s->environment[1] = s->path;
	s->command[0] = V("true");
	s->options = (struct aw_run_options){
		.dir = place_at(place, "home/proj"),
		.command = s->command,
		.environment = s->environment,
	};
}

static int prepare(struct setting *s)
{
	return aw_prepare(&s->options, &s->p, &err);
}

static void take_down(struct setting *s)
{
	aw_prepared_fini(&s->p);
}

/* Prepare, be refused with these words, and leave nothing behind. */
static void expect_refused(struct setting *s, int code, const char *words)
{
	int r = prepare(s);

	if (r != code || strstr(err.message, words) == NULL)
		fail_msg("%d: %s", r, err.message);
	take_down(s);
}

/* Where root owns the project some things are not to be had. */
static void give_away_project(struct setting *s)
{
	if (geteuid() == 0)
		assert_int_equal(chown(place_at(s->place, "home/proj"), 12345, 12346), 0);
}

static void user_policy(struct setting *s, const char *text)
{
	place_file(s->place, "home/.config/warden/policy.json", text);
	assert_int_equal(chmod(place_at(s->place, "home/.config/warden/policy.json"), 0600), 0);
}

/* A profile of the user's own for the agent "helper". */
static void make_agent(struct setting *s)
{
	place_file(s->place, "home/.config/warden/agents/helper.json",
		   "{\"name\": \"helper\", \"title\": \"Helper\", \"install\": \"get-helper now\", "
		   "\"binaries\": [\"helper-cli\"], \"args\": [\"--quiet\"], "
		   "\"key_env\": [\"HELPER_KEY\"], \"domains\": [\"api.helper.example\"]}");
}

static void a_command_is_prepared_and_nothing_is_made(void **state)
{
	struct setting s;

	set_up(&s, *state);
	s.command[1] = V("x y");
	assert_int_equal(prepare(&s), 0);
	assert_string_equal(s.p.argv[0], "true");
	assert_string_equal(s.p.argv[1], "x y");
	assert_null(s.p.argv[2]);
	assert_string_equal(s.p.agent_name, "true");
	assert_null(s.p.agent);
	assert_string_equal(s.p.workspace.path, place_at(s.place, "home/proj"));
	assert_string_equal(s.p.workspace_at, s.p.workspace.path);
	assert_string_equal(s.p.home_at, "/home/ai_user");
	assert_string_equal(aw_environ_get(s.p.env, "HOME"), "/home/ai_user");
	assert_int_not_equal(s.p.workspace_inode, 0);
	assert_false(place_has(s.place, "home/.local"));
	assert_false(place_has(s.place, "home/.config"));
	take_down(&s);
	take_down(&s); /* twice does no harm */
}

static void without_anything_it_is_a_shell(void **state)
{
	struct setting s;

	set_up(&s, *state);
	s.options.command = NULL;
	assert_int_equal(prepare(&s), 0);
	assert_string_equal(s.p.argv[0], "/bin/bash");
	assert_null(s.p.argv[1]);
	take_down(&s);
}

static void directories_come_from_the_environment(void **state)
{
	char *const plain[] = { V("HOME=/tmp/."), NULL };
	char *const xdg[] = { V("HOME=/tmp"), V("XDG_CONFIG_HOME=/c"), V("XDG_STATE_HOME=/s"),
			      V("XDG_RUNTIME_DIR=/r"), NULL };
	char *const relative[] = { V("HOME=/tmp"), V("XDG_CONFIG_HOME=c"), V("XDG_STATE_HOME="),
				   NULL };
	char *const none[] = { V("HOME=tmp"), NULL };
	struct aw_host host;

	(void)state;
	assert_int_equal(aw_host_find(plain, &host, &err), 0);
	assert_string_equal(host.home, "/tmp");
	assert_string_equal(host.config_dir, "/tmp/.config/warden");
	assert_string_equal(host.state_dir, "/tmp/.local/state/warden");
	aw_host_fini(&host);
	assert_int_equal(aw_host_find(xdg, &host, &err), 0);
	assert_string_equal(host.config_dir, "/c/warden");
	assert_string_equal(host.state_dir, "/s/warden");
	assert_string_equal(host.xdg_runtime_dir, "/r");
	aw_host_fini(&host);
	assert_int_equal(aw_host_find(relative, &host, &err), 0);
	assert_string_equal(host.config_dir, "/tmp/.config/warden");
	assert_string_equal(host.state_dir, "/tmp/.local/state/warden");
	aw_host_fini(&host);
	assert_int_equal(aw_host_find(none, &host, &err), -ENOENT);
	assert_int_equal(aw_host_find(none + 1, &host, &err), -ENOENT);
}

static void places_that_are_no_projects_are_refused(void **state)
{
	struct setting s;

	set_up(&s, *state);
	s.options.dir = place_at(s.place, "home");
	expect_refused(&s, -EACCES, "home directory");
	assert_int_equal(aw_policy_errors_total(&s.p.errors), 0);
	s.options.dir = "/usr";
	expect_refused(&s, -EACCES, "belongs to the system");
	s.options.dir = place_dir(s.place, "home/.config/warden/agents");
	expect_refused(&s, -EACCES, "Warden's own");
	s.options.dir = place_at(s.place, "home/none");
	expect_refused(&s, -EINVAL, "home/none");
}

static bool say_yes(const char *question)
{
	return strstr(question, ".ssh") != NULL;
}

static bool say_no(const char *question)
{
	return question == NULL;
}

static void keys_in_a_project_are_asked_about(void **state)
{
	struct setting s;

	set_up(&s, *state);
	place_dir(s.place, "home/proj/.ssh");
	expect_refused(&s, -EACCES, "--allow-secrets");
	s.options.confirm = say_no;
	expect_refused(&s, -EACCES, "--allow-secrets");
	s.options.confirm = say_yes;
	assert_int_equal(prepare(&s), 0);
	take_down(&s);
	s.options.confirm = NULL;
	s.options.allow_secrets = true;
	assert_int_equal(prepare(&s), 0);
	take_down(&s);
}

static void mistakes_in_a_policy_refuse_with_all_of_them(void **state)
{
	struct setting s;

	set_up(&s, *state);
	user_policy(&s, "{\"version\": 1, \"nonsense\": 1, \"more\": 2}");
	assert_int_equal(prepare(&s), -EACCES);
	assert_int_equal(aw_policy_errors_total(&s.p.errors), 2);
	take_down(&s);
}

static void an_agent_that_is_not_installed_says_how_to_get_it(void **state)
{
	struct setting s;

	set_up(&s, *state);
	make_agent(&s);
	s.options.agent = "helper";
	s.options.command = NULL;
	expect_refused(&s, -ENOENT, "get-helper now");
	s.options.agent = "nobody";
	expect_refused(&s, -ENOENT, "no agent profile 'nobody'");
}

static void an_agent_is_found_granted_and_given_its_arguments(void **state)
{
	struct setting s;

	set_up(&s, *state);
	make_agent(&s);
	place_program(s.place, "home/.nvm/versions/node/v22/lib/node_modules/h/cli.js",
		      "#!/usr/bin/env node\n");
	place_link(s.place, "home/bin/helper-cli",
		   "../.nvm/versions/node/v22/lib/node_modules/h/cli.js");
	place_program(s.place, "home/.nvm/versions/node/v22/bin/node", "");
	place_link(s.place, "home/bin/node", "../.nvm/versions/node/v22/bin/node");
	s.environment[2] = V("HELPER_KEY=k");
	s.options.agent = "helper";
	s.command[0] = V("--print");
	assert_int_equal(prepare(&s), 0);
	assert_string_equal(
		s.p.argv[0],
		place_at(s.place, "home/.nvm/versions/node/v22/lib/node_modules/h/cli.js"));
	assert_string_equal(s.p.argv[1], "--quiet");
	assert_string_equal(s.p.argv[2], "--print");
	assert_null(s.p.argv[3]);
	assert_string_equal(s.p.agent_name, "helper");
	assert_string_equal(aw_environ_get(s.p.env, "HELPER_KEY"), "k");
	assert_non_null(strstr(aw_environ_get(s.p.env, "PATH"),
			       place_at(s.place, "home/.nvm/versions/node/v22/bin")));
	assert_true(s.p.grants.bind_count >= 2);
	take_down(&s);
	s.options.is_login = true;
	assert_int_equal(prepare(&s), 0);
	assert_string_equal(s.p.argv[1], "--print");
	take_down(&s);
}

static void a_command_named_like_an_agent_has_its_profile_only_from_outside(void **state)
{
	struct setting s;

	set_up(&s, *state);
	make_agent(&s);
	s.command[0] = V("helper");
	place_program(s.place, "home/proj/bin/helper", "");
	(void)snprintf(s.path, sizeof(s.path), "PATH=%s", place_at(s.place, "home/proj/bin"));
	s.environment[2] = V("HELPER_KEY=k");
	assert_int_equal(prepare(&s), 0);
	assert_null(s.p.agent);
	assert_null(aw_environ_get(s.p.env, "HELPER_KEY"));
	take_down(&s);
	s.command[0] = V(place_at(s.place, "home/proj/bin/helper"));
	assert_int_equal(prepare(&s), 0);
	assert_null(s.p.agent);
	take_down(&s);
	s.command[0] = V("helper");
	place_program(s.place, "home/bin/helper", "");
	(void)snprintf(s.path, sizeof(s.path), "PATH=%s", place_at(s.place, "home/bin"));
	assert_int_equal(prepare(&s), 0);
	assert_non_null(s.p.agent);
	assert_string_equal(aw_environ_get(s.p.env, "HELPER_KEY"), "k");
	take_down(&s);
	s.options.no_profile = true;
	assert_int_equal(prepare(&s), 0);
	assert_null(s.p.agent);
	take_down(&s);
}

static void a_granted_path_that_a_link_leads_out_is_refused(void **state)
{
	struct setting s;

	set_up(&s, *state);
	user_policy(&s, "{\"version\": 1, \"capabilities\": {\"file_system\": "
			"{\"write_paths\": [\"/workspace/out\"]}}}");
	give_away_project(&s);
	place_dir(s.place, "home/keys");
	place_link(s.place, "home/proj/out", "../keys");
	expect_refused(&s, -EACCES, "leads out of the project");
	assert_int_equal(unlink(place_at(s.place, "home/proj/out")), 0);
	place_dir(s.place, "home/proj/real");
	place_link(s.place, "home/proj/out", "real");
	assert_int_equal(prepare(&s), 0);
	assert_string_equal(s.p.grants.binds[0].source, place_at(s.place, "home/proj/real"));
	assert_string_equal(s.p.grants.binds[0].at, place_at(s.place, "home/proj/out"));
	assert_true(s.p.grants.binds[0].is_writable);
	take_down(&s);
}

static void a_granted_path_that_is_not_there_is_noted(void **state)
{
	struct setting s;

	set_up(&s, *state);
	user_policy(&s, "{\"version\": 1, \"capabilities\": {\"file_system\": "
			"{\"read_paths\": [\"/workspace/input/*\"], \"write_paths\": []}}}");
	give_away_project(&s);
	assert_int_equal(prepare(&s), 0);
	assert_int_equal(s.p.grants.bind_count, 0);
	assert_true(s.p.grants.notes.count >= 1);
	assert_non_null(strstr(s.p.grants.notes.text[0], "/workspace/input"));
	take_down(&s);
}

/* By the policy where the name says it, by what it leads to otherwise. */
static void expect_no_mount(struct setting *s)
{
	assert_int_equal(prepare(s), -EACCES);
	if (s->p.errors.count == 1)
		assert_non_null(strstr(s->p.errors.item[0].message, "Warden's own"));
	else
		assert_non_null(strstr(err.message, "Warden's own"));
	take_down(s);
}

static void wardens_own_places_are_never_mounted(void **state)
{
	static const char *const names[] = { "home/.config/warden", "home/.config",
					     "home/.local/state/warden/homes", "home/link" };
	const char *mounts[2] = { NULL, NULL };
	struct setting s;

	set_up(&s, *state);
	place_dir(s.place, "home/.config/warden");
	place_dir(s.place, "home/.local/state/warden/homes");
	place_link(s.place, "home/link", ".config");
	for (size_t i = 0; i < AW_ARRAY_LEN(names); i++) {
		mounts[0] = place_at(s.place, names[i]);
		s.options.policy.mount_ro = mounts;
		s.options.policy.mount_rw = NULL;
		expect_no_mount(&s);
		s.options.policy.mount_ro = NULL;
		s.options.policy.mount_rw = mounts;
		expect_no_mount(&s);
	}
	mounts[0] = place_dir(s.place, "home/data");
	assert_int_equal(prepare(&s), 0);
	assert_string_equal(s.p.grants.binds[0].source, mounts[0]);
	assert_true(s.p.grants.binds[0].is_writable);
	take_down(&s);
}

static void a_grant_does_not_cover_the_project(void **state)
{
	const char *mounts[2] = { NULL, NULL };
	struct setting s;

	set_up(&s, *state);
	place_dir(s.place, "home/work/api");
	s.options.dir = place_at(s.place, "home/work/api");
	mounts[0] = place_at(s.place, "home/work");
	s.options.policy.mount_ro = mounts;
	assert_int_equal(prepare(&s), 0);
	for (size_t i = 0; i < s.p.grants.bind_count; i++)
		assert_string_not_equal(s.p.grants.binds[i].at, mounts[0]);
	take_down(&s);
}

static void a_proxy_of_the_host_is_not_gone_around(void **state)
{
	struct setting s;

	set_up(&s, *state);
	s.environment[2] = V("https_proxy=http://proxy:8080");
	expect_refused(&s, -ENOTSUP, "https_proxy");
	s.options.policy.is_offline = true;
	assert_int_equal(prepare(&s), 0);
	take_down(&s);
	s.options.policy.is_offline = false;
	s.environment[2] = V("https_proxy=");
	assert_int_equal(prepare(&s), 0);
	take_down(&s);
}

static void a_strict_session_shows_the_project_at_workspace(void **state)
{
	struct setting s;

	set_up(&s, *state);
	place_file(s.place, "home/proj/.git/HEAD", "");
	place_file(s.place, "home/proj/.git/config", "");
	s.options.policy.preset = "strict";
	assert_int_equal(prepare(&s), 0);
	assert_string_equal(s.p.workspace_at, "/workspace");
	assert_string_equal(aw_environ_get(s.p.env, "PWD"), "/workspace");
	assert_true(aw_grants_has(&s.p.grants.protects, "/workspace/.git/config"));
	take_down(&s);
}

static void what_is_not_to_be_protected_is_not(void **state)
{
	struct setting s;

	set_up(&s, *state);
	place_file(s.place, "home/proj/.git/HEAD", "");
	place_file(s.place, "home/proj/.git/config", "");
	place_file(s.place, "home/proj/.envrc", "");
	assert_int_equal(prepare(&s), 0);
	assert_int_equal(s.p.grants.protects.count, 2);
	assert_true(aw_grants_has(&s.p.grants.pins, place_at(s.place, "home/proj/.git")));
	take_down(&s);
	user_policy(&s, "{\"version\": 1, \"capabilities\": {\"file_system\": "
			"{\"protect\": [\"shell\"]}}}");
	assert_int_equal(prepare(&s), 0);
	assert_int_equal(s.p.grants.pins.count, 0);
	assert_int_equal(s.p.grants.protects.count, 1);
	assert_true(aw_grants_has(&s.p.grants.protects, place_at(s.place, "home/proj/.envrc")));
	take_down(&s);
}

static void denied_paths_are_masked_where_they_are_seen(void **state)
{
	struct setting s;

	set_up(&s, *state);
	user_policy(&s, "{\"version\": 1, \"capabilities\": {\"file_system\": "
			"{\"deny_paths\": [\"/workspace/.env\", \"/usr/bin/ssh\"]}}}");
	assert_int_equal(prepare(&s), 0);
	assert_true(aw_grants_has(&s.p.grants.masks, place_at(s.place, "home/proj/.env")));
	assert_true(aw_grants_has(&s.p.grants.masks, "/usr/bin/ssh"));
	take_down(&s);
}

static void the_agent_is_never_root(void **state)
{
	struct setting s;

	set_up(&s, *state);
	assert_int_equal(prepare(&s), 0);
	if (geteuid() != 0) {
		assert_int_equal(s.p.outside_uid, geteuid());
		assert_int_equal(s.p.outside_gid, getegid());
		assert_false(s.p.is_root_started || s.p.needs_idmap);
		take_down(&s);
		return;
	}
	assert_int_equal(s.p.outside_uid, AW_UNPRIVILEGED_AGENT);
	assert_true(s.p.is_root_started && s.p.needs_idmap);
	take_down(&s);
	give_away_project(&s);
	assert_int_equal(prepare(&s), 0);
	assert_int_equal(s.p.outside_uid, 12345);
	assert_int_equal(s.p.outside_gid, 12346);
	assert_true(s.p.is_root_started && !s.p.needs_idmap);
	take_down(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(a_command_is_prepared_and_nothing_is_made),
		IN_PLACE(without_anything_it_is_a_shell),
		cmocka_unit_test(directories_come_from_the_environment),
		IN_PLACE(places_that_are_no_projects_are_refused),
		IN_PLACE(keys_in_a_project_are_asked_about),
		IN_PLACE(mistakes_in_a_policy_refuse_with_all_of_them),
		IN_PLACE(an_agent_that_is_not_installed_says_how_to_get_it),
		IN_PLACE(an_agent_is_found_granted_and_given_its_arguments),
		IN_PLACE(a_command_named_like_an_agent_has_its_profile_only_from_outside),
		IN_PLACE(a_granted_path_that_a_link_leads_out_is_refused),
		IN_PLACE(a_granted_path_that_is_not_there_is_noted),
		IN_PLACE(wardens_own_places_are_never_mounted),
		IN_PLACE(a_grant_does_not_cover_the_project),
		IN_PLACE(a_proxy_of_the_host_is_not_gone_around),
		IN_PLACE(a_strict_session_shows_the_project_at_workspace),
		IN_PLACE(what_is_not_to_be_protected_is_not),
		IN_PLACE(denied_paths_are_masked_where_they_are_seen),
		IN_PLACE(the_agent_is_never_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
