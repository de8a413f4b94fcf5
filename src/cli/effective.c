#include "cli/effective.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"

static int load_policy(const struct aw_host *host, const char *allow, struct aw_effective *e,
		       struct aw_error *err)
{
	const char *const allowed[] = { allow, NULL };
	struct aw_policy_sources sources = {
		.home = host->home,
		.config_dir = host->config_dir,
		.workspace = e->project,
		.workspace_fd = e->project_fd,
		.agent = e->agent,
		.command = { .allow = allowed },
	};

	aw_policy_drop(&e->policy);
	return aw_policy_load(&sources, &e->policy, &e->errors, err);
}

static int load_agent(const struct aw_host *host, const char *name, struct aw_effective *e,
		      struct aw_error *err)
{
	int r = aw_agent_load(host->config_dir, aw_str_from(name), &e->agent, &e->errors, err);

	return r == -ENOENT ? 0 : r;
}

int aw_effective_load(const struct aw_host *host, const char *dir, const char *agent,
		      const char *allow, struct aw_effective *ret, struct aw_error *err)
{
	struct aw_effective *e = ret;
	int r = 0;

	*e = (struct aw_effective){ .project = realpath(dir, NULL), .project_fd = -EBADF };
	if (e->project != NULL)
		e->project_fd = open(e->project, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (e->project_fd < 0)
		return aw_fail(err, errno, "directory '%s'", dir);
	if (agent != NULL)
		r = load_agent(host, agent, e, err);
	if (r == 0)
		r = load_policy(host, allow, e, err);
	if (r < 0 || agent != NULL || e->policy->default_agent == NULL)
		return r;
	r = load_agent(host, e->policy->default_agent, e, err);
	return r < 0 || e->agent == NULL ? r : load_policy(host, allow, e, err);
}

void aw_effective_fini(struct aw_effective *effective)
{
	aw_policy_drop(&effective->policy);
	aw_agent_drop(&effective->agent);
	aw_policy_errors_fini(&effective->errors);
	effective->project_fd = aw_fd_close(effective->project_fd);
	free(effective->project);
	effective->project = NULL;
}

void aw_effective_print_notes(const struct aw_policy *policy)
{
	(void)fflush(stdout); /* in the order it was said, also where both are one file */
	for (size_t i = 0; i < policy->notes.count; i++)
		(void)fprintf(stderr, "warden: %s\n", policy->notes.item[i].text);
}

uint16_t aw_effective_port(const struct aw_net *net)
{
	for (uint16_t i = 0; i < net->port_count; i++)
		if (net->ports[i] == 443)
			return 443;
	return net->port_count > 0 ? net->ports[0] : 443;
}

/* @shown: the name as the person wrote it. */
static void describe(const struct aw_policy *policy, const struct aw_net_verdict *verdict,
		     const char *shown, char *out, size_t size)
{
	bool is_granted = verdict->reason == AW_NET_GRANTED;
	const char *reason = is_granted ? "" : aw_net_reason_text(verdict->reason);
	char rule[AW_DOMAIN_TEXT_MAX], origin[256];

	if (verdict->rule < 0) {
		(void)aw_str_format(out, size, "%s: %s", shown, reason);
		return;
	}
	aw_net_rule_format(&policy->net->rules[verdict->rule], rule, sizeof(rule));
	aw_policy_origin_format(&policy->rules.entry[verdict->rule].from, origin, sizeof(origin));
	(void)aw_str_format(out, size, "%s%s%s, by \"%s\" of %s", shown, is_granted ? "" : ": ",
			    reason, rule, origin);
}

bool aw_effective_grants(const struct aw_policy *policy, const struct aw_domain *domain, char *out,
			 size_t size)
{
	/* A name that no rule but a pattern would know stands for all names below. */
	static const char *const labels[] = {
		[AW_NET_EXACT] = "",
		[AW_NET_BELOW] = "any--name.",
		[AW_NET_APEX_AND_BELOW] = "any--name.",
	};
	char name[AW_NET_NAME_MAX + 16], shown[AW_DOMAIN_TEXT_MAX];
	struct aw_net_rule rule = aw_domain_rule(domain, AW_DOMAIN_GRANT, AW_NET_LAYER_COMMAND);
	struct aw_net_verdict verdict;

	if (rule.port == 0)
		rule.port = aw_effective_port(policy->net);
	aw_net_rule_format(&rule, shown, sizeof(shown));
	if (!policy->has_network) {
		(void)aw_str_format(out, size, "%s: the policy is offline", shown);
		return false;
	}
	(void)aw_str_format(name, sizeof(name), "%s%s", labels[domain->form], domain->name);
	aw_net_decide(policy->net, aw_str_from(name), rule.port, &verdict);
	if (verdict.reason == AW_NET_GRANTED && domain->form == AW_NET_APEX_AND_BELOW)
		aw_net_decide(policy->net, aw_str_from(domain->name), rule.port, &verdict);
	describe(policy, &verdict, shown, out, size);
	return verdict.reason == AW_NET_GRANTED;
}
