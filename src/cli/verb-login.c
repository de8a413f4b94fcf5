/*
 * login: log an agent in, once for all projects.
 *
 * The agent's own login runs in a cell, in an empty project that goes with it; what its profile names
 * as login is then kept in STATE/logins/AGENT and copied to every session of that agent. A key is
 * given to it over stdin: never as an argument, which others can read, and never as a file.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "cli/cli.h"
#include "cli/login.h"
#include "monitor/environ.h"
#include "monitor/home.h"
#include "monitor/live.h"

struct login {
	struct aw_login_line line;
	struct aw_cli_place place;
	struct aw_agent *agent;
	char project[PATH_MAX];
};

static int code_of(int error)
{
	if (error == -ENOENT)
		return AW_EXIT_NOT_FOUND;
	return error == -EACCES || error == -EPERM || error == -ENOTSUP ? AW_EXIT_REFUSED
									: AW_EXIT_USAGE;
}

/* An agent without the way that was asked for wants its key in the environment instead. */
static int check_ways(const struct login *l, struct aw_error *err)
{
	const struct aw_agent *agent = l->agent;
	const char *key = agent->key_env.count > 0 ? agent->key_env.entry[0].text : NULL;
	const char *why = NULL;

	if (agent->auth_paths.count + agent->login_paths.count == 0)
		why = "keeps no login";
	else if (l->line.is_by_key && agent->login_key_args.count == 0)
		why = "has no login by key";
	if (why == NULL)
		return 0;
	if (key == NULL)
		return aw_refuse(err, EINVAL, "%s %s", agent->title, why);
	return aw_refuse(err, EINVAL,
			 "%s %s: set %s before `warden run`, or write it to %s/env (mode 600)",
			 agent->title, why, key, l->place.host.config_dir);
}

static bool is_kept(const struct login *l, const char *path)
{
	char name[PATH_MAX];

	return aw_str_format(name, sizeof(name), "logins/%s/%s", l->agent->name, path) >= 0 &&
	       faccessat(l->place.state.state_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int say_kept(const struct login *l)
{
	const struct aw_policy_list *const lists[] = { &l->agent->auth_paths,
						       &l->agent->login_paths };
	size_t count = 0;

	for (size_t n = 0; n < AW_ARRAY_LEN(lists); n++)
		for (size_t i = 0; i < lists[n]->count; i++)
			count += is_kept(l, lists[n]->entry[i].text);
	if (count == 0) {
		(void)fprintf(stderr, "warden: %s left no login behind: nothing is kept\n",
			      l->agent->title);
		return AW_EXIT_NO;
	}
	(void)fprintf(stderr, "warden: the login of %s is kept in %s/logins/%s, for all projects:",
		      l->agent->title, l->place.state.path, l->agent->name);
	for (size_t n = 0; n < AW_ARRAY_LEN(lists); n++)
		for (size_t i = 0; i < lists[n]->count; i++)
			if (is_kept(l, lists[n]->entry[i].text))
				(void)fprintf(stderr, " %s", lists[n]->entry[i].text);
	(void)fputc('\n', stderr);
	return AW_EXIT_OK;
}

static bool ask(const char *question)
{
	char answer[16] = "";

	(void)fprintf(stderr, "%s [y/N] ", question);
	return fgets(answer, sizeof(answer), stdin) != NULL &&
	       (strcmp(answer, "y\n") == 0 || strcmp(answer, "yes\n") == 0);
}

static unsigned list_importable_of(const struct login *l, const struct aw_policy_list *paths,
				   unsigned count)
{
	for (size_t i = 0; i < paths->count; i++) {
		const char *path = paths->entry[i].text;
		char name[PATH_MAX];

		if (aw_str_format(name, sizeof(name), "%s/%s", l->place.host.home, path) < 0 ||
		    access(name, R_OK) < 0)
			continue;
		if (count++ == 0)
			(void)fprintf(stderr, "warden: the login of %s on this host:\n",
				      l->agent->title);
		(void)fprintf(stderr, "  %s\n", name);
	}
	return count;
}

static unsigned list_importable(const struct login *l)
{
	unsigned count = list_importable_of(l, &l->agent->auth_paths, 0);

	return list_importable_of(l, &l->agent->login_paths, count);
}

static int import_login(const struct login *l, struct aw_error *err)
{
	int r;

	if (list_importable(l) == 0)
		return aw_refuse(err, EINVAL, "%s has no login in %s: warden login %s",
				 l->agent->title, l->place.host.home, l->agent->name);
	if (!l->line.is_agreed && (!isatty(0) || !isatty(2)))
		return aw_refuse(err, EACCES,
				 "there is no terminal to ask whether its sessions may have "
				 "this: say --yes");
	if (!l->line.is_agreed && !ask("copy it, for every session of this agent?"))
		return aw_refuse(err, EACCES, "nothing was copied");
	r = aw_home_import_login(l->agent, l->place.host.home, &l->place.state, err);
	return r < 0 ? r : say_kept(l);
}

static int give_key(const struct login *l, struct aw_error *err)
{
	struct aw_login_key key = { 0 };
	int r = aw_login_read_key(aw_environ_get(environ, l->agent->login_key_env),
				  l->agent->login_key_env, &key, err);

	if (r == 0)
		r = aw_login_put_key(&key, err);
	explicit_bzero(&key, sizeof(key));
	return r;
}

/* As an argument vector; the texts are the profile's. */
static char **words_of(const struct aw_policy_list *list)
{
	char **words = calloc(list->count + 1, sizeof(*words));

	for (size_t i = 0; words != NULL && i < list->count; i++)
		words[i] = (char *)(uintptr_t)list->entry[i].text;
	return words;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* Nothing runs in it any more, and no link is followed. */
static void remove_tree(const char *path)
{
	if (nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) < 0 && errno != ENOENT)
		(void)fprintf(stderr, "warden: '%s' could not be removed: %s\n", path,
			      strerror(errno));
}

/* The project's private home would never be used again: its project is gone. */
static void remove_home(const struct login *l, const struct aw_prepared *prepared)
{
	autofree char *home = NULL;
	struct aw_error err = { 0 };

	if (aw_home_prepare(prepared, &l->place.state, &home, &err) == 0 && home != NULL)
		remove_tree(home);
}

static int run_session(const struct login *l, const struct aw_prepared *prepared)
{
	const struct aw_live_options options = { .status_fd = -EBADF };
	struct aw_live_outcome outcome = { 0 };
	struct aw_error err = { 0 };
	int r = aw_live_run(prepared, &options, &outcome, &err);

	remove_home(l, prepared);
	if (r < 0)
		return aw_cli_fail(AW_EXIT_USAGE, &err);
	return outcome.exit_code == 0 ? say_kept(l) : outcome.exit_code;
}

static int log_in(const struct login *l)
{
	const struct aw_agent *agent = l->agent;
	autofree char **words =
		words_of(l->line.is_by_key ? &agent->login_key_args : &agent->login_args);
	struct aw_run_options options = {
		.dir = l->project,
		.agent = agent->name,
		.command = words,
		.is_login = true,
		.environment = environ,
	};
	struct aw_prepared prepared;
	struct aw_error err = { 0 };
	int r, code;

	if (words == NULL)
		return AW_EXIT_USAGE;
	r = aw_prepare(&options, &prepared, &err);
	if (r == 0 && l->line.is_by_key)
		r = give_key(l, &err);
	if (r == 0) {
		code = run_session(l, &prepared);
	} else {
		aw_cli_print_errors(&prepared.errors);
		code = aw_cli_fail(code_of(r), &err);
	}
	aw_prepared_fini(&prepared);
	return code;
}

/* Not below /run, where the user's own place would be: no project may lie there. */
static int log_in_somewhere(struct login *l, struct aw_error *err)
{
	const char *tmp = aw_environ_get(environ, "TMPDIR");
	int code;

	if (aw_str_format(l->project, sizeof(l->project), "%s/warden-login-XXXXXX",
			  tmp != NULL && tmp[0] == '/' ? tmp : "/tmp") < 0 ||
	    mkdtemp(l->project) == NULL)
		return aw_fail(err, errno, "make an empty project");
	code = log_in(l);
	remove_tree(l->project);
	return code;
}

static int load_agent(struct login *l, struct aw_error *err)
{
	struct aw_policy_errors errors = { 0 };
	int r = aw_agent_load(l->place.host.config_dir, aw_str_from(l->line.agent), &l->agent,
			      &errors, err);

	aw_cli_print_errors(&errors);
	aw_policy_errors_fini(&errors);
	return r;
}

int aw_verb_login(char *const *args)
{
	struct aw_error err = { 0 };
	struct login l = { 0 };
	int r;

	if (aw_login_parse(args, &l.line, &err) < 0)
		return aw_cli_usage("login", "%s", err.message);
	if (aw_cli_open_place(&l.place, &err) < 0)
		return aw_cli_fail(AW_EXIT_USAGE, &err);
	r = load_agent(&l, &err);
	if (r == 0)
		r = check_ways(&l, &err);
	if (r == 0)
		r = l.line.is_import ? import_login(&l, &err) : log_in_somewhere(&l, &err);
	aw_agent_drop(&l.agent);
	aw_cli_close_place(&l.place);
	return r < 0 ? aw_cli_fail(code_of(r), &err) : r;
}
