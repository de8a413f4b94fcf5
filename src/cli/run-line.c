#include "cli/run-line.h"

#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"

enum option_id {
	OPT_POLICY,
	OPT_PROFILE,
	OPT_NO_PROFILE,
	OPT_ALLOW,
	OPT_DENY,
	OPT_OFFLINE,
	OPT_RO,
	OPT_RW,
	OPT_ENV,
	OPT_ENV_FILE,
	OPT_MEMORY,
	OPT_TIMEOUT,
	OPT_PROCESSES,
	OPT_CPUS,
	OPT_EPHEMERAL,
	OPT_ALLOW_SECRETS,
	OPT_STATUS_FD,
	OPT_DRY_RUN,
	OPT_JSON,
	OPT_QUIET,
	OPT_VERBOSE,
	OPT_RUNTIME,
	OPT_LATER,
};

static const struct option {
	enum option_id id;
	char short_name;          /* 0: none */
	const char *name, *value; /* `value`: what it takes, NULL: nothing */
	const char *help;
} options[] = {
	{ OPT_POLICY, 's', "policy", "FILE", "use this policy instead of the user's own" },
	{ OPT_PROFILE, 'p', "profile", "NAME", "treat the command as this agent" },
	{ OPT_NO_PROFILE, 0, "no-profile", NULL,
	  "no agent profile, whatever the command is called" },
	{ OPT_ALLOW, 0, "allow", "DOMAIN[:PORT]", "grant a host for this session (repeatable)" },
	{ OPT_DENY, 0, "deny", "DOMAIN", "deny a host for this session (repeatable)" },
	{ OPT_OFFLINE, 0, "offline", NULL, "no network at all" },
	{ OPT_RO, 0, "ro", "DIR", "show a directory of the host, read-only (repeatable)" },
	{ OPT_RW, 0, "rw", "DIR", "show a directory of the host, writable (repeatable)" },
	{ OPT_ENV, 0, "env", "NAME", "pass this variable of the environment (repeatable)" },
	{ OPT_ENV_FILE, 0, "env-file", "FILE", "set variables from a file outside the project" },
	{ OPT_MEMORY, 'm', "memory", "SIZE", "limit memory, as 512m or 4g" },
	{ OPT_TIMEOUT, 't', "timeout", "TIME",
	  "end the command after 90, 5m or 2h (exit code 124)" },
	{ OPT_PROCESSES, 0, "max-processes", "N", "limit processes and threads" },
	{ OPT_CPUS, 0, "cpus", "N", "limit CPU time, as 1.5" },
	{ OPT_EPHEMERAL, 0, "ephemeral", NULL, "a home that is gone after the session" },
	{ OPT_ALLOW_SECRETS, 0, "allow-secrets", NULL,
	  "accept a project with .ssh, .aws, ... in it" },
	{ OPT_STATUS_FD, 0, "status-fd", "N", "write the session's start and end there as JSON" },
	{ OPT_DRY_RUN, 0, "dry-run", NULL, "say what would be done, start nothing" },
	{ OPT_JSON, 0, "json", NULL, "with --dry-run: as JSON" },
	{ OPT_QUIET, 'q', "quiet", NULL, "print nothing but errors" },
	{ OPT_VERBOSE, 'v', "verbose", NULL, "print more" },
	{ OPT_RUNTIME, 0, "runtime", "NAME", "native is the one of this version" },
	{ OPT_LATER, 0, "publish", "PORT", NULL },
	{ OPT_LATER, 0, "host-port", "PORT", NULL },
	{ OPT_LATER, 0, "cow", NULL, NULL },
	{ OPT_LATER, 0, "rootfs", "DIR", NULL },
	{ OPT_LATER, 0, "model", "MANIFEST", NULL },
};

/* Where we are in the words. */
struct reader {
	char *const *args;
	const struct aw_run_probe *probe;
	struct aw_run_line *line;
	struct aw_error *err;
};

static int scaled(const char *text, const char *units, const uint64_t *factors, uint64_t *ret)
{
	struct aw_str digits = aw_str_from(text);
	uint64_t factor = factors[0], value;
	const char *unit = digits.len > 1 ? strchr(units, text[digits.len - 1]) : NULL;

	if (unit != NULL) {
		factor = factors[unit - units];
		digits.len--;
	}
	if (aw_str_to_u64(digits, UINT64_MAX / factor, &value) < 0 || value == 0)
		return -EINVAL;
	*ret = value * factor;
	return 0;
}

int aw_run_line_size(const char *text, uint64_t *ret_mib)
{
	static const uint64_t factors[] = { 1, 1024, 1, 1024 };

	return scaled(text, "mgMG", factors, ret_mib);
}

int aw_run_line_duration(const char *text, uint64_t *ret_s)
{
	static const uint64_t factors[] = { 1, 60, 3600 };

	return scaled(text, "smh", factors, ret_s);
}

int aw_run_line_cpus(const char *text, uint64_t *ret_milli)
{
	struct aw_str rest = aw_str_from(text), whole;
	uint64_t cpus, thousandths = 0;
	char digits[4] = "000";

	if (!aw_str_next(&rest, '.', &whole) || aw_str_to_u64(whole, 4096, &cpus) < 0)
		return -EINVAL;
	if (rest.ptr != NULL) {
		if (rest.len == 0 || rest.len > 3)
			return -EINVAL;
		memcpy(digits, rest.ptr, rest.len);
		for (size_t i = 0; i < 3; i++) {
			if (digits[i] < '0' || digits[i] > '9')
				return -EINVAL;
			thousandths = thousandths * 10 + (uint64_t)(digits[i] - '0');
		}
	}
	if (cpus == 0 && thousandths == 0)
		return -EINVAL;
	*ret_milli = cpus * 1000 + thousandths;
	return 0;
}

static int add(const char **list, const char *value, struct aw_error *err)
{
	size_t n = 0;

	while (list[n] != NULL)
		n++;
	if (n == AW_RUN_LIST_MAX)
		return aw_refuse(err, EINVAL, "more than %d times the same option",
				 AW_RUN_LIST_MAX);
	list[n] = value;
	return 0;
}

static int number(const struct option *o, const char *value, uint64_t max, uint64_t *ret,
		  struct aw_error *err)
{
	int r = aw_str_to_u64(aw_str_from(value), max, ret);

	return r < 0 ? aw_refuse(err, EINVAL, "--%s takes a whole number up to %llu, not '%s'",
				 o->name, (unsigned long long)max, value)
		     : 0;
}

static int measured(const struct option *o, int (*parse)(const char *, uint64_t *),
		    const char *value, uint64_t *ret, struct aw_error *err)
{
	return parse(value, ret) < 0 ? aw_refuse(err, EINVAL, "--%s takes %s (%s), not '%s'",
						 o->name, o->value, o->help, value)
				     : 0;
}

static int apply_flag(struct aw_run_line *line, const struct option *o)
{
	bool *flags[] = {
		[OPT_NO_PROFILE] = &line->run.no_profile,
		[OPT_OFFLINE] = &line->run.policy.is_offline,
		[OPT_EPHEMERAL] = &line->run.is_ephemeral,
		[OPT_ALLOW_SECRETS] = &line->run.allow_secrets,
		[OPT_DRY_RUN] = &line->is_dry,
		[OPT_JSON] = &line->wants_json,
		[OPT_QUIET] = &line->live.is_quiet,
		[OPT_VERBOSE] = &line->live.is_verbose,
	};

	if (o->id == OPT_LATER)
		line->unenforced = o->name;
	else
		*flags[o->id] = true;
	return 0;
}

static int apply_value(struct reader *r, const struct option *o, const char *value)
{
	struct aw_run_line *line = r->line;
	uint64_t *limit = line->run.policy.limit, fd;

	switch (o->id) {
	case OPT_POLICY:
		line->run.policy_file = value;
		return 0;
	case OPT_PROFILE:
		line->run.profile = value;
		return 0;
	case OPT_ENV_FILE:
		line->run.env_file = value;
		return 0;
	case OPT_ALLOW:
		return add(line->allow, value, r->err);
	case OPT_DENY:
		return add(line->deny, value, r->err);
	case OPT_RO:
		return add(line->ro, value, r->err);
	case OPT_RW:
		return add(line->rw, value, r->err);
	case OPT_ENV:
		return add(line->env, value, r->err);
	case OPT_MEMORY:
		return measured(o, aw_run_line_size, value, &limit[AW_LIMIT_MEMORY_MB], r->err);
	case OPT_TIMEOUT:
		return measured(o, aw_run_line_duration, value, &limit[AW_LIMIT_TIME_S], r->err);
	case OPT_CPUS:
		return measured(o, aw_run_line_cpus, value, &limit[AW_LIMIT_CPU_MILLI], r->err);
	case OPT_PROCESSES:
		return number(o, value, 4194304, &limit[AW_LIMIT_PROCESSES], r->err);
	case OPT_STATUS_FD:
		if (number(o, value, 1048576, &fd, r->err) < 0)
			return -EINVAL;
		line->live.status_fd = (int)fd;
		return 0;
	case OPT_RUNTIME:
		if (strcmp(value, "native") != 0)
			line->unenforced = o->name;
		return 0;
	case OPT_LATER:
		line->unenforced = o->name;
		return 0;
	case OPT_NO_PROFILE:
	case OPT_OFFLINE:
	case OPT_EPHEMERAL:
	case OPT_ALLOW_SECRETS:
	case OPT_DRY_RUN:
	case OPT_JSON:
	case OPT_QUIET:
	case OPT_VERBOSE:
		break;
	}
	return -EINVAL;
}

static const struct option *find_option(const char *word, const char **ret_value)
{
	bool is_long = word[1] == '-';
	const char *name = word + 1 + is_long;
	size_t len = is_long ? strcspn(name, "=") : 1;

	*ret_value = NULL;
	for (size_t i = 0; i < AW_ARRAY_LEN(options); i++) {
		const struct option *o = &options[i];

		if (is_long ? (strlen(o->name) != len || strncmp(o->name, name, len) != 0)
			    : (o->short_name == 0 || o->short_name != name[0]))
			continue;
		if (is_long && name[len] == '=')
			*ret_value = name + len + 1;
		else if (!is_long && name[1] != '\0')
			*ret_value = name + 1;
		return o;
	}
	return NULL;
}

static int read_option(struct reader *r)
{
	const char *word = *r->args++, *value;
	const struct option *o = find_option(word, &value);

	if (o == NULL)
		return aw_refuse(r->err, EINVAL,
				 "unknown option '%s'; options of an agent go behind its "
				 "name, those of a command behind --",
				 word);
	if (o->value == NULL)
		return value == NULL ? apply_flag(r->line, o)
				     : aw_refuse(r->err, EINVAL, "--%s takes no value", o->name);
	if (value == NULL)
		value = *r->args != NULL ? *r->args++ : NULL;
	if (value == NULL || *value == '\0')
		return aw_refuse(r->err, EINVAL, "--%s needs %s", o->name, o->value);
	return apply_value(r, o, value);
}

static bool is_path_like(const char *word)
{
	return strchr(word, '/') != NULL || strcmp(word, ".") == 0 || strcmp(word, "..") == 0;
}

/* The rest is the agent's own words; one `--` directly behind its name is ours and dropped. */
static int take_agent(struct reader *r)
{
	r->line->run.agent = *r->args++;
	if (*r->args != NULL && strcmp(*r->args, "--") == 0)
		r->args++;
	r->line->run.command = r->args;
	return 0;
}

static int take_operand(struct reader *r)
{
	const char *word = *r->args;
	bool has_dir = r->line->run.dir != NULL;
	bool is_agent, is_dir;

	if (!has_dir && is_path_like(word)) {
		r->line->run.dir = *r->args++;
		return 0;
	}
	is_agent = r->probe->is_agent(r->probe->data, word);
	is_dir = !has_dir && r->probe->is_dir(r->probe->data, word);
	if (is_agent && is_dir)
		return aw_refuse(
			r->err, EINVAL,
			"'%s' is an agent and also a directory here: say ./%s for the directory, "
			"or . %s for the agent in the current one",
			word, word, word);
	if (is_agent)
		return take_agent(r);
	if (!is_dir)
		return aw_refuse(
			r->err, EINVAL,
			has_dir ? "'%s' is no agent; a command goes behind --"
				: "'%s' is neither a directory nor an agent; a command goes behind --",
			word);
	r->line->run.dir = *r->args++;
	return 0;
}

static int take_command(struct reader *r)
{
	r->args++;
	if (*r->args == NULL)
		return aw_refuse(r->err, EINVAL, "-- needs a command behind it");
	r->line->run.command = r->args;
	return 0;
}

static int take_shell_line(struct reader *r)
{
	static char shell[] = "/bin/bash", dash_c[] = "-c";
	char **command = r->line->shell;

	if (r->args[1] == NULL || r->args[2] != NULL)
		return aw_refuse(r->err, EINVAL, "-c takes one string");
	command[0] = shell;
	command[1] = dash_c;
	command[2] = (char *)(uintptr_t)r->args[1];
	command[3] = NULL;
	r->line->run.command = command;
	return 0;
}

static bool is_done(const struct reader *r)
{
	return r->line->run.agent != NULL || r->line->run.command != NULL || *r->args == NULL;
}

static void start(struct aw_run_line *line)
{
	memset(line, 0, sizeof(*line));
	line->live.status_fd = -EBADF;
	line->run.policy.allow = line->allow;
	line->run.policy.deny = line->deny;
	line->run.policy.mount_ro = line->ro;
	line->run.policy.mount_rw = line->rw;
	line->run.policy.env = line->env;
}

int aw_run_line_parse(char *const *args, bool is_short, const struct aw_run_probe *probe,
		      struct aw_run_line *ret, struct aw_error *err)
{
	struct reader r = { .args = args, .probe = probe, .line = ret, .err = err };
	int result = 0;

	start(ret);
	while (result == 0 && !is_done(&r)) {
		const char *word = *r.args;

		if (strcmp(word, "--") == 0)
			result = take_command(&r);
		else if (is_short && strcmp(word, "-c") == 0)
			result = take_shell_line(&r);
		else if (word[0] == '-' && word[1] != '\0')
			result = read_option(&r);
		else
			result = take_operand(&r);
	}
	return result;
}

bool aw_run_line_help(size_t index, char *out, size_t size)
{
	size_t shown = 0;

	for (size_t i = 0; i < AW_ARRAY_LEN(options); i++) {
		char left[48], dash[8] = "    ";

		if (options[i].help == NULL || shown++ != index)
			continue;
		if (options[i].short_name != 0)
			(void)aw_str_format(dash, sizeof(dash), "-%c, ", options[i].short_name);
		(void)aw_str_format(left, sizeof(left), "%s--%s%s%s", dash, options[i].name,
				    options[i].value != NULL ? " " : "",
				    options[i].value != NULL ? options[i].value : "");
		(void)aw_str_format(out, size, "  %-30s %s", left, options[i].help);
		return true;
	}
	return false;
}
