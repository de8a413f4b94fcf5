#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/cli.h"
#include "cli/run-line.h"

static bool is_agent(void *data, const char *name)
{
	const struct aw_host *host = data;

	return aw_cli_is_agent(host->config_dir, name);
}

static bool is_dir(void *data, const char *name)
{
	struct stat st;

	(void)data;
	return stat(name, &st) == 0 && S_ISDIR(st.st_mode);
}

static void print_remarks(const struct aw_prepared *p)
{
	const struct aw_policy_remarks *lists[] = { &p->policy->notes, &p->policy->asks };

	for (size_t i = 0; i < p->grants.notes.count; i++)
		(void)fprintf(stderr, "warden: %s\n", p->grants.notes.text[i]);
	for (size_t l = 0; l < AW_ARRAY_LEN(lists); l++) {
		for (size_t i = 0; i < lists[l]->count; i++) {
			const struct aw_policy_remark *remark = &lists[l]->item[i];

			(void)fprintf(stderr, "warden: %s%s%s\n", remark->text,
				      remark->command != NULL ? "; to grant it: " : "",
				      remark->command != NULL ? remark->command : "");
		}
	}
}

/* One line: who runs where, under what, with what left out. */
static void print_start(const struct aw_run_line *line, const struct aw_prepared *p)
{
	char project[512];

	if (line->live.is_quiet)
		return;
	(void)aw_str_escape(aw_str_from(p->workspace.path), project, sizeof(project));
	(void)fprintf(stderr, "warden: %s in %s%s · policy %s · ", p->agent_name, project,
		      line->run.dir == NULL ? " (the current directory)" : "", p->policy->preset);
	if (p->policy->has_network)
		(void)fprintf(stderr, "%u host%s", p->policy->net->rule_count,
			      p->policy->net->rule_count == 1 ? "" : "s");
	else
		(void)fputs("offline", stderr);
	(void)fprintf(stderr, " · %zu paths read-only · %zu variables left out\n",
		      p->grants.protects.count, p->env_left_out.count);
	print_remarks(p);
}

static void print_words(const char *title, char *const *words)
{
	(void)printf("%s", title);
	for (; words != NULL && *words != NULL; words++) {
		char word[4096];

		(void)aw_str_escape(aw_str_from(*words), word, sizeof(word));
		(void)printf(" %s", word);
	}
	(void)putchar('\n');
}

static int print_plan(const struct aw_run_line *line, const struct aw_prepared *p)
{
	autodrop(aw_buf_fini) struct aw_buf policy = AW_BUF_INIT(4 * 1024 * 1024);

	if (aw_policy_show(p->policy, false, &policy) < 0)
		return AW_EXIT_USAGE;
	if (line->wants_json) {
		(void)fwrite(policy.data, 1, policy.len, stdout);
		return AW_EXIT_OK;
	}
	(void)printf("project %s\nin the cell %s\n", p->workspace.path, p->workspace_at);
	print_words("command", p->argv);
	for (size_t i = 0; i < p->grants.bind_count; i++)
		(void)printf("%s %s\n", p->grants.binds[i].is_writable ? "writable" : "read-only",
			     p->grants.binds[i].at);
	for (size_t i = 0; i < p->grants.protects.count; i++)
		(void)printf("protected %s\n", p->grants.protects.text[i]);
	for (size_t i = 0; i < p->grants.masks.count; i++)
		(void)printf("denied %s\n", p->grants.masks.text[i]);
	for (char **one = p->env; one != NULL && *one != NULL; one++)
		(void)printf("variable %.*s\n", (int)strcspn(*one, "="), *one);
	(void)fwrite(policy.data, 1, policy.len, stdout);
	return AW_EXIT_OK;
}

/* What a refusal before the start means as an exit code. */
static int refusal_code(int error)
{
	switch (error) {
	case -EACCES:
	case -EPERM:
	case -ENOTSUP:
		return AW_EXIT_REFUSED;
	case -ENOENT:
		return AW_EXIT_NOT_FOUND;
	default:
		return AW_EXIT_USAGE;
	}
}

static int run_session(const struct aw_run_line *line, const struct aw_prepared *p)
{
	struct aw_live_outcome outcome = { 0 };
	struct aw_error err = { 0 };

	print_start(line, p);
	if (aw_live_run(p, &line->live, &outcome, &err) < 0)
		return aw_cli_fail(AW_EXIT_USAGE, &err);
	return outcome.exit_code;
}

/* A session that was asked for and did not start: --status-fd tells it apart from a child's own 78. */
static void tell_refused(const struct aw_run_line *line, int code)
{
	if (line->live.status_fd >= 0)
		(void)dprintf(
			line->live.status_fd,
			"{\"event\":\"ended\",\"session\":\"\",\"reason\":\"refused\",\"exit_code\":%d}\n",
			code);
}

static bool confirm(const char *question)
{
	char answer[8];

	(void)fprintf(stderr, "warden: %s. Go on? [y/N] ", question);
	return fgets(answer, sizeof(answer), stdin) != NULL &&
	       (answer[0] == 'y' || answer[0] == 'Y');
}

static int run_line(struct aw_run_line *line)
{
	struct aw_prepared prepared;
	struct aw_error err = { 0 };
	int r, code;

	if (line->unenforced != NULL) {
		(void)aw_refuse(&err, ENOTSUP, "--%s is not in this version; nothing was started",
				line->unenforced);
		tell_refused(line, AW_EXIT_REFUSED);
		return aw_cli_fail(AW_EXIT_REFUSED, &err);
	}
	line->run.environment = environ;
	line->run.confirm = isatty(0) == 1 && isatty(2) == 1 ? confirm : NULL;
	r = aw_prepare(&line->run, &prepared, &err);
	if (r < 0) {
		aw_cli_print_errors(&prepared.errors);
		code = aw_cli_fail(refusal_code(r), &err);
		tell_refused(line, code);
	} else if (line->is_dry) {
		code = print_plan(line, &prepared);
	} else {
		code = run_session(line, &prepared);
	}
	aw_prepared_fini(&prepared);
	return code;
}

static int parse_and_run(char *const *args, bool is_short)
{
	autofree struct aw_run_line *line = calloc(1, sizeof(*line));
	struct aw_host host;
	struct aw_run_probe probe = { .is_agent = is_agent, .is_dir = is_dir, .data = &host };
	struct aw_error err = { 0 };
	int r;

	if (line == NULL || aw_host_find(environ, &host, &err) < 0)
		return aw_cli_fail(AW_EXIT_USAGE, &err);
	r = aw_run_line_parse(args, is_short, &probe, line, &err);
	aw_host_fini(&host);
	return r < 0 ? aw_cli_usage("run", "%s", err.message) : run_line(line);
}

int aw_verb_run(char *const *args)
{
	return parse_and_run(args, false);
}

int aw_verb_run_short(char *const *args)
{
	struct aw_host host;
	struct aw_error err = { 0 };
	bool is_ours = args[0][0] == '-';

	/* A word that is neither verb, option nor agent is a typing error, not a directory. */
	if (!is_ours && aw_host_find(environ, &host, &err) == 0) {
		is_ours = aw_cli_is_agent(host.config_dir, args[0]);
		aw_host_fini(&host);
	}
	if (!is_ours)
		return aw_cli_usage(NULL, "'%s' is neither a verb nor an agent", args[0]);
	return parse_and_run(args, true);
}
