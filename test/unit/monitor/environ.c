#include "monitor/environ.h"

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
#include "support/place.h"
#include "support/torture.h"

static struct aw_error err;

/* A prepared session with a home, a configuration and a project of this place. */
struct setting {
	struct aw_prepared p;
	struct aw_policy policy;
	struct aw_policy_entry passed[2];
	struct aw_policy_entry keys[1];
	struct aw_agent agent;
	struct aw_agent_env agent_env[1];
};

static void set_up(struct setting *s, struct place *place)
{
	*s = (struct setting){
		.passed = { { .text = "PASSED" }, { .text = "ABSENT" } },
		.keys = { { .text = "AGENT_KEY" } },
		.agent_env = { { "AGENT_MODE", "quiet" } },
	};
	s->policy.env = (struct aw_policy_list){ .entry = s->passed, .count = 2 };
	s->policy.has_network = true;
	s->agent.key_env = (struct aw_policy_list){ .entry = s->keys, .count = 1 };
	s->agent.env = s->agent_env;
	s->agent.env_count = 1;
	s->p.policy = &s->policy;
	s->p.agent = &s->agent;
	s->p.host.home = (char *)(uintptr_t)place_dir(place, "home");
	s->p.host.config_dir = (char *)(uintptr_t)place_dir(place, "home/.config/warden");
	s->p.workspace.path = (char *)(uintptr_t)place_dir(place, "home/proj");
	s->p.workspace_at = s->p.workspace.path;
	s->p.home_at = "/home/ai_user";
}

/* Only what building made: the rest belongs to the place or to the setting. */
static void take_down(struct setting *s)
{
	for (size_t i = 0; s->p.env != NULL && s->p.env[i] != NULL; i++)
		free(s->p.env[i]);
	free(s->p.env);
	s->p.env = NULL;
	aw_texts_fini(&s->p.env_left_out);
	aw_grants_fini(&s->p.grants);
}

static int build(struct setting *s, char *const *caller, const char *env_file)
{
	return aw_environ_build(&s->p, caller, env_file, &err);
}

#define CALLER(...) ((char *const[]){ __VA_ARGS__, NULL })
#define V(text) ((char *)(uintptr_t)(text))

static void expect(const struct setting *s, const char *name, const char *value)
{
	const char *found = aw_environ_get(s->p.env, name);

	if (value == NULL) {
		if (found != NULL)
			fail_msg("%s is there: %s", name, found);
	} else if (found == NULL || strcmp(found, value) != 0) {
		fail_msg("%s is '%s' instead of '%s'", name, found != NULL ? found : "(none)",
			 value);
	}
}

static void get_finds_the_whole_name_and_the_first_value(void **state)
{
	char *const env[] = { V("AB=1"), V("A=2=3"), V("A=4"), V("EMPTY="), NULL };

	(void)state;
	assert_string_equal(aw_environ_get(env, "A"), "2=3");
	assert_string_equal(aw_environ_get(env, "EMPTY"), "");
	assert_null(aw_environ_get(env, "B"));
	assert_null(aw_environ_get(env, "EMPT"));
	assert_null(aw_environ_get(NULL, "A"));
}

static void only_what_is_named_passes(void **state)
{
	struct setting s;

	set_up(&s, *state);
	assert_int_equal(build(&s,
			       CALLER(V("TERM=xterm"), V("LC_TIME=C"), V("LANG=de_DE.UTF-8"),
				      V("PASSED=1"), V("AGENT_KEY=k"), V("SECRET=x"),
				      V("SSH_AUTH_SOCK=/run/x"), V("LD_PRELOAD=/x.so"), V("LCX=1"),
				      V("TERMINAL=1"), V("AWS_SECRET_ACCESS_KEY=x"),
				      V("DISPLAY=:0"), V("no equals sign"), V("A-B=1"), V("=1")),
			       NULL),
			 0);
	expect(&s, "TERM", "xterm");
	expect(&s, "LC_TIME", "C");
	expect(&s, "LANG", "de_DE.UTF-8");
	expect(&s, "PASSED", "1");
	expect(&s, "AGENT_KEY", "k");
	expect(&s, "ABSENT", NULL);
	for (size_t i = 0; s.p.env[i] != NULL; i++)
		assert_null(strstr(s.p.env[i], "x.so"));
	/* What stayed outside is known to the person by name: it is asked for so often. */
	assert_int_equal(s.p.env_left_out.count, 7);
	assert_true(aw_grants_has(&s.p.env_left_out, "SECRET"));
	assert_true(aw_grants_has(&s.p.env_left_out, "LD_PRELOAD"));
	assert_false(aw_grants_has(&s.p.env_left_out, "TERM"));
	take_down(&s);
}

static void keys_of_another_agent_stay_outside(void **state)
{
	struct setting s;

	set_up(&s, *state);
	s.p.agent = NULL;
	assert_int_equal(build(&s, CALLER(V("AGENT_KEY=k")), NULL), 0);
	expect(&s, "AGENT_KEY", NULL);
	expect(&s, "AGENT_MODE", NULL);
	take_down(&s);
}

static void what_the_cell_needs_is_set_whatever_the_caller_has(void **state)
{
	struct setting s;

	set_up(&s, *state);
	s.passed[0].text = "HOME"; /* not even so */
	assert_int_equal(build(&s,
			       CALLER(V("HOME=/root"), V("PWD=/x"), V("HTTP_PROXY=http://u:p@x"),
				      V("USER=me")),
			       NULL),
			 0);
	expect(&s, "HOME", "/home/ai_user");
	expect(&s, "PWD", s.p.workspace_at);
	expect(&s, "WARDEN_WORKSPACE", s.p.workspace_at);
	expect(&s, "USER", "ai_user");
	expect(&s, "WARDEN", "1");
	expect(&s, "HTTP_PROXY", "http://127.0.0.1:3128");
	expect(&s, "https_proxy", "http://127.0.0.1:3128");
	expect(&s, "NODE_USE_ENV_PROXY", "1");
	expect(&s, "AGENT_MODE", "quiet");
	take_down(&s);
}

static void without_a_network_there_is_no_proxy(void **state)
{
	struct setting s;

	set_up(&s, *state);
	s.policy.has_network = false;
	assert_int_equal(build(&s, CALLER(V("HTTPS_PROXY=x")), NULL), 0);
	expect(&s, "HTTP_PROXY", NULL);
	expect(&s, "HTTPS_PROXY", NULL);
	expect(&s, "JAVA_TOOL_OPTIONS", NULL);
	take_down(&s);
}

static void path_keeps_what_is_seen_inside(void **state)
{
	struct place *place = *state;
	struct setting s;
	char path[512], expected[512];

	set_up(&s, place);
	assert_int_equal(
		aw_grants_bind(&s.p.grants, "/x", place_at(place, "home/tools"), false, &err), 0);
	assert_int_equal(aw_grants_add(&s.p.grants.path, "/granted/bin", &err), 0);
	(void)snprintf(path, sizeof(path), "PATH=%s:/usr/bin:.::bin:%s:/opt/x/bin:/usr/bin:/sbin",
		       place_at(place, "home/proj/bin"), place_at(place, "home/tools/bin"));
	assert_int_equal(build(&s, CALLER(path), NULL), 0);
	(void)snprintf(expected, sizeof(expected),
		       "/usr/bin:%s:/sbin:/granted/bin:/usr/local/bin:/bin",
		       place_at(place, "home/tools/bin"));
	expect(&s, "PATH", expected);
	take_down(&s);
}

static void without_a_path_there_is_the_usual_one(void **state)
{
	struct setting s;

	set_up(&s, *state);
	assert_int_equal(build(&s, NULL, NULL), 0);
	expect(&s, "PATH", "/usr/local/bin:/usr/bin:/bin");
	take_down(&s);
}

static void the_persons_git_identity_is_given(void **state)
{
	struct setting s;

	set_up(&s, *state);
	place_file(*state, "home/.gitconfig", "[user]\nname = Jane\n[credential]\nhelper = !x\n");
	assert_int_equal(build(&s, NULL, NULL), 0);
	expect(&s, "GIT_AUTHOR_NAME", "Jane");
	expect(&s, "GIT_COMMITTER_NAME", "Jane");
	expect(&s, "GIT_AUTHOR_EMAIL", NULL);
	take_down(&s);
}

static void toolchains_are_named(void **state)
{
	struct setting s;

	set_up(&s, *state);
	place_dir(*state, "home/.rustup");
	assert_int_equal(build(&s, NULL, NULL), 0);
	expect(&s, "RUSTUP_HOME", place_at(*state, "home/.rustup"));
	take_down(&s);
}

static const char *make_env_file(struct place *place, const char *name, const char *text,
				 mode_t mode)
{
	const char *path = place_file(place, name, text);

	assert_int_equal(chmod(path, mode), 0);
	return path;
}

static void env_files_are_read_and_the_named_one_comes_last(void **state)
{
	struct setting s;

	set_up(&s, *state);
	make_env_file(*state, "home/.config/warden/env", "A=own\nB=own\nTERM=dumb\n", 0600);
	assert_int_equal(build(&s, CALLER(V("TERM=xterm")),
			       make_env_file(*state, "home/keys", "B=named\n", 0400)),
			 0);
	expect(&s, "A", "own");
	expect(&s, "B", "named");
	expect(&s, "TERM", "dumb");
	take_down(&s);
}

static void expect_refused(struct place *place, const char *env_file, int code, const char *words)
{
	struct setting s;

	set_up(&s, place);
	assert_int_equal(build(&s, NULL, env_file), code);
	if (strstr(err.message, words) == NULL)
		fail_msg("%s", err.message);
	take_down(&s);
}

static void a_file_that_others_may_read_is_refused(void **state)
{
	struct place *place = *state;

	for (mode_t bit = 01; bit < 0100; bit <<= 1)
		expect_refused(place, make_env_file(place, "home/keys", "A=b\n", 0600 | bit),
			       -EACCES, "chmod 600");
	make_env_file(place, "home/.config/warden/env", "A=b\n", 0640);
	expect_refused(place, NULL, -EACCES, "chmod 600");
}

static void anothers_file_is_refused(void **state)
{
	struct place *place = *state;

	if (geteuid() == 0) {
		const char *path = make_env_file(place, "home/keys", "A=b\n", 0600);

		assert_int_equal(chown(path, 12345, 12345), 0);
		expect_refused(place, path, -EACCES, "yours alone");
		return;
	}
	expect_refused(place, "/etc/passwd", -EACCES, "yours alone");
}

static void a_file_of_the_project_is_refused_by_whatever_name(void **state)
{
	struct place *place = *state;

	place_dir(place, "home/proj");
	expect_refused(place, make_env_file(place, "home/proj/.env", "A=b\n", 0600), -EACCES,
		       "lies in the project");
	expect_refused(place, place_link(place, "home/link", "proj/.env"), -EACCES,
		       "lies in the project");
	/* The person's own file, replaced by a link into the project. */
	place_link(place, "home/.config/warden/env", "../../proj/.env");
	expect_refused(place, NULL, -EACCES, "lies in the project");
}

static void a_named_file_must_be_there_and_be_one(void **state)
{
	struct place *place = *state;

	expect_refused(place, place_at(place, "home/none"), -EINVAL, "home/none");
	expect_refused(place, place_dir(place, "home/dir"), -EACCES, "home/dir");
	assert_int_equal(chmod(place_at(place, "home/dir"), 0700), 0);
	expect_refused(place, place_at(place, "home/dir"), -EBADMSG, "regular file");
	place_fifo(place, "home/fifo");
	assert_int_equal(chmod(place_at(place, "home/fifo"), 0600), 0);
	expect_refused(place, place_at(place, "home/fifo"), -EBADMSG, "regular file");
}

static void a_large_file_is_refused(void **state)
{
	static char text[65536 + 2];

	memset(text, 'x', sizeof(text) - 1);
	memcpy(text, "A=", 2);
	expect_refused(*state, make_env_file(*state, "home/keys", text, 0600), -EFBIG, "larger");
}

static void a_mistake_names_the_file_and_the_line(void **state)
{
	expect_refused(*state, make_env_file(*state, "home/keys", "A=1\n\n# x\noops\n", 0600),
		       -EBADMSG, "line 4");
	assert_non_null(strstr(err.message, "home/keys"));
}

static void there_are_so_many_variables_and_no_more(void **state)
{
	struct setting s;
	char text[16384] = "";
	size_t n = 0;

	for (unsigned i = 0; i < 1100; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "V%u=1\n", i);
	set_up(&s, *state);
	assert_int_equal(build(&s, NULL, make_env_file(*state, "home/keys", text, 0600)), -E2BIG);
	assert_non_null(strstr(err.message, "more than 1024"));
	take_down(&s);
}

struct pairs {
	char text[512];
	int answer;
};

static int note(void *data, struct aw_str name, struct aw_str value)
{
	struct pairs *pairs = data;
	size_t n = strlen(pairs->text);

	(void)snprintf(pairs->text + n, sizeof(pairs->text) - n, "%.*s=%.*s|", (int)name.len,
		       name.ptr, (int)value.len, value.ptr);
	return pairs->answer;
}

static void parses_what_people_write(void **state)
{
	static const struct {
		struct aw_str text;
		const char *pairs;
	} rows[] = {
		{ AW_STR("A=1"), "A=1|" },
		{ AW_STR("A=1\nB=2\n"), "A=1|B=2|" },
		{ AW_STR("A=1\r\nB=2\r\n"), "A=1|B=2|" },
		{ AW_STR("  A=1  \n\t# c\n\n#B=2\n"), "A=1|" },
		{ AW_STR("export A=1\nexport   B=2\n"), "A=1|B=2|" },
		{ AW_STR("A=\"x y\"\nB='x y'\nC=\"x'\n"), "A=x y|B=x y|C=\"x'|" },
		{ AW_STR("A=\nB=\"\"\nC=\"\n"), "A=|B=|C=\"|" },
		{ AW_STR("A=b=c\nA= # no comment\n"), "A=b=c|A=# no comment|" },
		{ AW_STR("_a1=x\n"), "_a1=x|" },
		{ AW_STR(""), "" },
		{ AW_STR("\n\n"), "" },
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(rows); i++) {
		struct pairs pairs = { .answer = 0 };

		assert_int_equal(aw_environ_parse_file(rows[i].text, note, &pairs, &err), 0);
		assert_string_equal(pairs.text, rows[i].pairs);
	}
}

static void refuses_what_is_no_assignment_with_its_line(void **state)
{
	static const struct {
		struct aw_str text;
		const char *line;
	} rows[] = {
		{ AW_STR("oops"), "line 1 " },      { AW_STR("A=1\nB\n"), "line 2 " },
		{ AW_STR("A=1\n=x\n"), "line 2 " }, { AW_STR("\n\n1A=x"), "line 3 " },
		{ AW_STR("A B=x"), "line 1 " },     { AW_STR("A =x"), "line 1 " },
		{ AW_STR("export"), "line 1 " },    { AW_STR("export =x"), "line 1 " },
		{ AW_STR("A-B=x"), "line 1 " },     { AW_STR("A=1\nB=x\0y\n"), "line 2 " },
		{ AW_STR("A\0=x"), "line 1 " },     { AW_STR("\303\204=x"), "line 1 " },
		{ AW_STR("A=1\n\0"), "line 2 " },
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(rows); i++) {
		struct pairs pairs = { .answer = 0 };

		assert_int_equal(aw_environ_parse_file(rows[i].text, note, &pairs, &err), -EBADMSG);
		assert_non_null(strstr(err.message, rows[i].line));
	}
}

static void what_the_receiver_answers_ends_the_parse(void **state)
{
	struct pairs pairs = { .answer = -E2BIG };

	(void)state;
	assert_int_equal(aw_environ_parse_file(AW_STR("A=1\nB=2\n"), note, &pairs, &err), -E2BIG);
	assert_string_equal(pairs.text, "A=1|");
}

struct attempt {
	struct setting *s;
	const char *env_file;
};

static int attempt(void *state)
{
	char *const caller[] = { V("PATH=/usr/bin:/opt/x"), V("TERM=xterm"), V("SECRET=x"), NULL };
	const struct attempt *a = state;
	int r = build(a->s, caller, a->env_file);

	/* What it may do without, an identity, it does without. */
	if (r == 0 && (aw_environ_get(a->s->p.env, "GIT_AUTHOR_NAME") == NULL ||
		       aw_environ_get(a->s->p.env, "GIT_AUTHOR_EMAIL") == NULL))
		r = -ENOMEM;
	take_down(a->s);
	return r;
}

static void survives_a_lack_of_memory(void **state)
{
	struct setting s;
	struct attempt a = { &s, make_env_file(*state, "home/keys", "A=b\n", 0600) };

	set_up(&s, *state);
	place_file(*state, "home/.config/git/config", "[user]\nname = Me\n");
	place_file(*state, "home/.gitconfig", "[user]\nemail = me@example.org\n");
	assert_true(aw_torture(attempt, &a) >= 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(get_finds_the_whole_name_and_the_first_value),
		IN_PLACE(only_what_is_named_passes),
		IN_PLACE(keys_of_another_agent_stay_outside),
		IN_PLACE(what_the_cell_needs_is_set_whatever_the_caller_has),
		IN_PLACE(without_a_network_there_is_no_proxy),
		IN_PLACE(path_keeps_what_is_seen_inside),
		IN_PLACE(without_a_path_there_is_the_usual_one),
		IN_PLACE(the_persons_git_identity_is_given),
		IN_PLACE(toolchains_are_named),
		IN_PLACE(env_files_are_read_and_the_named_one_comes_last),
		IN_PLACE(a_file_that_others_may_read_is_refused),
		IN_PLACE(anothers_file_is_refused),
		IN_PLACE(a_file_of_the_project_is_refused_by_whatever_name),
		IN_PLACE(a_named_file_must_be_there_and_be_one),
		IN_PLACE(a_large_file_is_refused),
		IN_PLACE(a_mistake_names_the_file_and_the_line),
		IN_PLACE(there_are_so_many_variables_and_no_more),
		cmocka_unit_test(parses_what_people_write),
		cmocka_unit_test(refuses_what_is_no_assignment_with_its_line),
		cmocka_unit_test(what_the_receiver_answers_ends_the_parse),
		IN_PLACE(survives_a_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
