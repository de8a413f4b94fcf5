#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/cli.h"

#define LATER(verb_name, verb_summary)                   \
	{                                                \
		verb_name, NULL, verb_name, verb_summary \
	}

static const struct aw_verb verbs[] = {
	{ "run", aw_verb_run, "run [OPT] [DIR] [AGENT [ARG...]] | run [OPT] [DIR] -- CMD [ARG...]",
	  "run an agent or a command in a cell" },
	{ "exec", aw_verb_exec, "exec [SESSION] [-- CMD [ARG...]]",
	  "one more command in a running cell" },
	{ "ps", aw_verb_ps, "ps [--json]", "list running sessions" },
	{ "status", aw_verb_status, "status [--json] [--last] [SESSION]",
	  "tell how a session is, or ended" },
	{ "stop", aw_verb_stop, "stop [--force] [SESSION]", "end a session" },
	{ "down", aw_verb_down, "down [--force]", "end every session" },
	{ "logs", aw_verb_logs, "logs [proxy|audit] [-f] [SESSION]", "print what happened" },
	{ "login", aw_verb_login, "login [--import-login] [--with-api-key] [--yes] AGENT",
	  "log an agent in, once for all projects" },
	{ "allowlist", aw_verb_allowlist,
	  "allowlist add|remove|list|test [DOMAIN[:PORT]] [--session|--project|--user] [--force]",
	  "grant hosts, also while a session runs" },
	{ "policy", aw_verb_policy, "policy show [--effective] [--origins] [DIR] | check [FILE]",
	  "print or check the policy" },
	{ "doctor", aw_verb_doctor, "doctor [--json] [--fix]",
	  "what this host can enforce, and how to mend it" },
	{ "audit", aw_verb_audit, "audit verify [SESSION]", "check the journal's chain" },
	{ "version", aw_verb_version, "version", "print the version" },
	{ "help", aw_verb_help, "help [VERB]", "print this" },
	{ "build", aw_verb_build, "build", "there is nothing to build" },
	{ "up", aw_verb_up, "up", "there is nothing to start" },
	LATER("learn", "a policy from what a session did"),
	LATER("verify", "attack a real cell on this host"),
	LATER("demo", "sixty seconds that show it"),
	LATER("baseline", "what is normal for an agent"),
	LATER("incidents", "what tripped the wire"),
	LATER("diff", "changes of a copy-on-write session"),
	LATER("apply", "take those changes over"),
	LATER("discard", "throw them away"),
	LATER("scan", "look for secrets"),
	LATER("guard", "check a tool call"),
	LATER("why", "which rule decided"),
	LATER("report", "a session as a page"),
	LATER("ui", "the dashboard"),
	LATER("ignores", "ignore files for agents"),
	LATER("completions", "completions for a shell"),
};

const struct aw_verb *aw_verbs(size_t *ret_count)
{
	*ret_count = AW_ARRAY_LEN(verbs);
	return verbs;
}

/*
 * 0, 1 and 2 may be closed: then a file opened later would become our output. And they go to the
 * agent: a directory or a device as one of them would be a door out of the cell.
 */
static int check_stdio(struct aw_error *err)
{
	for (int fd = 0; fd < 3; fd++) {
		struct stat st;

		if (fstat(fd, &st) < 0) {
			/* The agent's standard streams are to stay open. NOLINTNEXTLINE(android-cloexec-open) */
			if (open("/dev/null", O_RDWR) != fd)
				return aw_fail(err, errno, "open /dev/null");
			continue;
		}
		if (S_ISDIR(st.st_mode) || S_ISBLK(st.st_mode) || (fcntl(fd, F_GETFL) & O_PATH))
			return aw_refuse(
				err, EACCES,
				"descriptor %d is a directory or a disk: the agent would get it",
				fd);
	}
	return 0;
}

static const struct aw_verb *find_verb(const char *name)
{
	for (size_t i = 0; i < AW_ARRAY_LEN(verbs); i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

static bool asks_for_help(const char *word)
{
	return word != NULL && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0);
}

int main(int argc, char **argv)
{
	struct aw_error err = { 0 };
	const struct aw_verb *verb;

	if (check_stdio(&err) < 0)
		return aw_cli_fail(AW_EXIT_USAGE, &err);
	if (argc < 2)
		return aw_verb_help(NULL);
	if (asks_for_help(argv[1]))
		return aw_verb_help(argv + 2);
	if (strcmp(argv[1], "--version") == 0)
		return aw_verb_version(NULL);
	verb = find_verb(argv[1]);
	if (verb == NULL)
		return aw_verb_run_short(argv + 1);
	if (asks_for_help(argv[2]))
		return aw_verb_help((char *const[]){ argv[1], NULL });
	if (verb->run == NULL)
		return aw_cli_usage(NULL, "'%s' is not in this version", verb->name);
	return verb->run(argv + 2);
}
