/* allowlist: grant hosts or take them back, in the user's policy and in sessions that run. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/allowlist.h"
#include "cli/effective.h"
#include "cli/user-policy.h"

/* One add or remove. */
struct change {
	struct aw_allowlist_line line;
	bool is_removal;
	struct aw_domain domain;
	char text[AW_DOMAIN_TEXT_MAX]; /* the domain in its normal form */
	char here[PATH_MAX];
	const char *project; /* of the session here, else the current directory */
	char shown[512];     /* the same for a person */
	struct aw_cli_place place;
	struct aw_allowlist_sessions sessions;
	unsigned changed; /* files and sessions */
	int code;
};

/* Where anyone picks up what was left there, a grant lets everything out that the agent can read. */
static int check_relay(const struct change *c, struct aw_error *err)
{
	const char *kind;

	if (c->is_removal || c->line.is_forced ||
	    !aw_policy_is_relay(aw_str_from(c->domain.name), &kind))
		return 0;
	return aw_refuse(err, EACCES,
			 "%s is a public %s service: whatever the agent can read could leave "
			 "through it, to anyone; --force grants it all the same",
			 c->text, kind);
}

static int parse_domain(struct change *c, struct aw_error *err)
{
	struct aw_net_rule rule;
	int r = aw_domain_parse(aw_str_from(c->line.operand), AW_DOMAIN_GRANT, &c->domain, err);

	if (r < 0)
		return r;
	rule = aw_domain_rule(&c->domain, AW_DOMAIN_GRANT, AW_NET_LAYER_USER);
	aw_net_rule_format(&rule, c->text, sizeof(c->text));
	return check_relay(c, err);
}

static void say_failed(struct change *c, const char *where, const struct aw_error *err)
{
	(void)fflush(stdout);
	(void)fprintf(stderr, "warden: %s%s%s\n", where, *where != '\0' ? ": " : "", err->message);
	c->code = err->code == EACCES   ? AW_EXIT_REFUSED
		  : err->code == ENOENT ? AW_EXIT_NO
					: AW_EXIT_USAGE;
}

static void say_by_hand(const struct change *c, bool is_project)
{
	(void)fprintf(stderr,
		      "warden: nothing was written; by hand: \"%s\" in \"allowed_domains\" of "
		      "\"network\" in \"capabilities\"%s%s%s\n",
		      c->text, is_project ? " of the entry \"" : "", is_project ? c->shown : "",
		      is_project ? "\" in \"projects\"" : "");
}

static void write_file(struct change *c, bool is_project)
{
	const struct aw_host *host = &c->place.host;
	struct aw_user_policy_change change = {
		.config_dir = host->config_dir,
		.home = host->home,
		.project = is_project ? c->project : NULL,
		.domain = &c->domain,
		.is_removed = c->is_removal,
	};
	struct aw_policy_errors errors = { 0 };
	struct aw_error err = { 0 };
	int r = aw_user_policy_change(&change, &errors, &err);

	aw_cli_print_errors(&errors);
	aw_policy_errors_fini(&errors);
	if (r < 0) {
		say_failed(c, "", &err);
		say_by_hand(c, is_project);
		return;
	}
	if (r > 0 || !c->is_removal)
		(void)printf("%s %s %s %s/policy.json%s%s\n", c->text,
			     r == 0          ? "is in"
			     : c->is_removal ? "taken out of"
					     : "written to",
			     is_project ? "the projects of" : "allowed_domains of",
			     host->config_dir, is_project ? " for " : "",
			     is_project ? c->shown : "");
	c->changed += r > 0;
}

static void tell_session(struct change *c, const struct aw_session_meta *meta, bool is_meant)
{
	struct aw_error err = { 0 };
	char where[64];
	int r = aw_allowlist_tell(&c->place, meta, &c->domain, c->is_removal, &err);

	if (r == 0) {
		(void)printf("%s %s session %s (%s)%s\n", c->text,
			     c->is_removal ? "taken back in" : "granted in", meta->id, meta->agent,
			     is_meant ? ", until it ends" : "");
		c->changed++;
		return;
	}
	/* In the other scopes a session without that rule, or offline, has what it shall have. */
	(void)aw_str_format(where, sizeof(where), "session %s", meta->id);
	if (is_meant || (r != -ENOENT && r != -ENOTCONN))
		say_failed(c, where, &err);
}

/* The person must not believe in a change that another layer of the policy undoes. */
static void check_effect(struct change *c)
{
	struct aw_effective effective;
	struct aw_error err = { 0 };
	const char *agent = c->sessions.here > 0 ? c->sessions.meta[0].agent : NULL;
	char why[512];
	int r = aw_effective_load(&c->place.host, c->project, agent, NULL, &effective, &err);

	if (r < 0) {
		aw_cli_print_errors(&effective.errors);
		say_failed(c, "", &err);
	} else if (aw_effective_grants(effective.policy, &c->domain, why, sizeof(why)) ==
		   c->is_removal) {
		aw_effective_print_notes(effective.policy);
		(void)fprintf(stderr, "warden: in %s, new sessions have it still %s: %s\n",
			      c->shown, c->is_removal ? "granted" : "refused", why);
		if (c->is_removal)
			(void)fprintf(stderr,
				      "warden: to refuse it: warden run --deny %s, or "
				      "\"denied_domains\" in your policy\n",
				      c->text);
		else
			c->code = AW_EXIT_NO;
	}
	aw_effective_fini(&effective);
}

static void conclude(struct change *c, bool is_session_only)
{
	if (is_session_only && !c->is_removal)
		(void)puts("for later sessions too: --user, or --project for this directory");
	else
		check_effect(c);
	if (c->is_removal && c->changed == 0) {
		(void)fprintf(stderr, "warden: %s was not granted there\n", c->text);
		c->code = AW_EXIT_NO;
	}
}

static int apply(struct change *c, struct aw_error *err)
{
	enum aw_allowlist_scope scope;
	size_t count;
	int r = aw_allowlist_settle(c->line.scope, c->sessions.count, c->sessions.here, &scope,
				    &count, err);

	if (r < 0)
		return r;
	c->project = c->sessions.here > 0 ? c->sessions.meta[0].project : c->here;
	(void)aw_str_escape(aw_str_from(c->project), c->shown, sizeof(c->shown));
	if (scope != AW_ALLOWLIST_SESSION)
		write_file(c, scope == AW_ALLOWLIST_PROJECT);
	if (c->code != 0)
		return 0; /* a session must not have what could not be written down */
	for (size_t i = 0; i < count; i++)
		tell_session(c, &c->sessions.meta[i], scope == AW_ALLOWLIST_SESSION);
	if (c->code == 0)
		conclude(c, scope == AW_ALLOWLIST_SESSION);
	return 0;
}

static int change_here(struct change *c)
{
	struct aw_error err = { 0 };
	int r;

	if (getcwd(c->here, sizeof(c->here)) == NULL)
		r = aw_fail(&err, errno, "find the current directory");
	else
		r = aw_allowlist_find_sessions(&c->place.state, c->here, &c->sessions, &err);
	if (r == 0)
		r = apply(c, &err);
	if (r < 0)
		say_failed(c, "", &err);
	aw_allowlist_drop_sessions(&c->sessions);
	return c->code;
}

static int change(const struct aw_allowlist_line *line, bool is_removal)
{
	struct change c = { .line = *line, .is_removal = is_removal };
	struct aw_error err = { 0 };
	int code;

	if (line->operand == NULL)
		return aw_cli_usage("allowlist", "which host?");
	if (parse_domain(&c, &err) < 0)
		return aw_cli_fail(err.code == EACCES ? AW_EXIT_REFUSED : AW_EXIT_USAGE, &err);
	if (aw_cli_open_place(&c.place, &err) < 0)
		return aw_cli_fail(AW_EXIT_USAGE, &err);
	code = change_here(&c);
	aw_cli_close_place(&c.place);
	return code;
}

static int show(const struct aw_allowlist_line *line, bool is_test)
{
	struct aw_error err = { 0 };
	struct aw_host host;
	int code;

	if (is_test != (line->operand != NULL))
		return aw_cli_usage("allowlist", is_test ? "which host?" : "list takes no host");
	if (aw_host_find(environ, &host, &err) < 0)
		return aw_cli_fail(AW_EXIT_USAGE, &err);
	code = is_test ? aw_allowlist_test(&host, line->operand) : aw_allowlist_list(&host);
	aw_host_fini(&host);
	return code;
}

int aw_verb_allowlist(char *const *args)
{
	static const struct {
		const char *name;
		int (*run)(const struct aw_allowlist_line *line, bool flag);
		bool flag;
	} verbs[] = {
		{ "add", change, false },
		{ "remove", change, true },
		{ "list", show, false },
		{ "test", show, true },
	};
	struct aw_allowlist_line line;
	struct aw_error err = { 0 };

	for (size_t i = 0; args[0] != NULL && i < AW_ARRAY_LEN(verbs); i++) {
		if (strcmp(args[0], verbs[i].name) != 0)
			continue;
		if (aw_allowlist_parse(args + 1, &line, &err) < 0)
			return aw_cli_usage("allowlist", "%s", err.message);
		return verbs[i].run(&line, verbs[i].flag);
	}
	return aw_cli_usage("allowlist", "allowlist knows add, remove, list and test");
}
