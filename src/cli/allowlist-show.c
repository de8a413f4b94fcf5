/* What the effective policy of the current directory says about hosts. */
#include <errno.h>
#include <stdio.h>

#include "base/own.h"
#include "cli/allowlist.h"
#include "cli/effective.h"

static int load_here(const struct aw_host *host, struct aw_effective *ret)
{
	struct aw_error err = { 0 };
	int r = aw_effective_load(host, ".", NULL, NULL, ret, &err);

	if (r == 0)
		return 0;
	aw_cli_print_errors(&ret->errors);
	aw_effective_fini(ret);
	return aw_cli_fail(r == -EACCES ? AW_EXIT_REFUSED : AW_EXIT_USAGE, &err);
}

static void print_ports(const char *title, const uint16_t *ports, uint16_t count)
{
	if (count == 0)
		return;
	(void)fputs(title, stdout);
	for (uint16_t i = 0; i < count; i++)
		(void)printf("%s%u", i > 0 ? ", " : " ", ports[i]);
	(void)putchar('\n');
}

static void print_rule(const struct aw_policy *policy, uint32_t index)
{
	const struct aw_net_rule *rule = &policy->net->rules[index];
	char text[AW_DOMAIN_TEXT_MAX], origin[256];

	aw_net_rule_format(rule, text, sizeof(text));
	aw_policy_origin_format(&policy->rules.entry[index].from, origin, sizeof(origin));
	(void)printf("%-6s %-40s %s%s\n", rule->is_denied ? "deny" : "allow", text, origin,
		     rule->may_be_private ? " (private addresses too)" : "");
}

int aw_allowlist_list(const struct aw_host *host)
{
	struct aw_effective here;
	char project[512];
	int code = load_here(host, &here);

	if (code != 0)
		return code;
	(void)aw_str_escape(aw_str_from(here.project), project, sizeof(project));
	(void)printf("%s: policy %s%s%s\n", project, here.policy->preset,
		     here.agent != NULL ? ", agent " : "",
		     here.agent != NULL ? here.agent->name : "");
	if (!here.policy->has_network)
		(void)puts("offline: nothing is granted");
	print_ports("allowed ports", here.policy->net->ports, here.policy->net->port_count);
	print_ports("blocked ports", here.policy->net->blocked, here.policy->net->blocked_count);
	for (uint32_t i = 0; i < here.policy->net->rule_count; i++)
		print_rule(here.policy, i);
	aw_effective_fini(&here);
	return AW_EXIT_OK;
}

int aw_allowlist_test(const struct aw_host *host, const char *text)
{
	struct aw_effective here;
	struct aw_domain domain;
	struct aw_error err = { 0 };
	char why[512];
	bool is_granted;
	int code;

	if (aw_domain_parse(aw_str_from(text), AW_DOMAIN_DENY, &domain, &err) < 0) {
		(void)printf("refused  %s\n", err.message);
		return AW_EXIT_NO;
	}
	code = load_here(host, &here);
	if (code != 0)
		return code;
	is_granted = aw_effective_grants(here.policy, &domain, why, sizeof(why));
	(void)printf("%s  %s\n", is_granted ? "granted" : "refused", why);
	if (!is_granted)
		aw_effective_print_notes(here.policy);
	aw_effective_fini(&here);
	return is_granted ? AW_EXIT_OK : AW_EXIT_NO;
}
