/* Changing what running sessions may reach: through the control socket of each. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/allowlist.h"
#include "cli/effective.h"
#include "ipc/ipc.h"
#include "policy/paths.h"

/* Put @meta in; those that are here before the others, each part in the order it came. */
static void put_in(struct aw_allowlist_sessions *s, const struct aw_session_meta *meta,
		   const char *here)
{
	size_t at = s->count;

	if (aw_path_is_within(here, meta->project)) {
		at = s->here++;
		memmove(&s->meta[at + 1], &s->meta[at], (s->count - at) * sizeof(*s->meta));
	}
	s->meta[at] = *meta;
	s->count++;
}

int aw_allowlist_find_sessions(const struct aw_state *state, const char *here,
			       struct aw_allowlist_sessions *ret, struct aw_error *err)
{
	struct aw_registry registry = { 0 };
	struct aw_session_meta meta;
	int r = aw_registry_list(state, AW_REGISTRY_ALIVE, &registry, err);

	*ret = (struct aw_allowlist_sessions){ 0 };
	if (r < 0)
		return r;
	ret->meta = calloc(registry.count + 1, sizeof(*ret->meta));
	if (ret->meta == NULL)
		r = aw_fail(err, ENOMEM, "list the sessions");
	for (size_t i = 0; r == 0 && i < registry.count; i++)
		if (aw_session_load(state, registry.entry[i].id, &meta, err) == 0)
			put_in(ret, &meta, here);
	aw_registry_fini(&registry);
	return r;
}

void aw_allowlist_drop_sessions(struct aw_allowlist_sessions *sessions)
{
	free(sessions->meta);
	*sessions = (struct aw_allowlist_sessions){ 0 };
}

/*
 * The monitor does what its own user asks. What narrows the user's policy (/etc, the project) is asked
 * here, as it would be for --allow at the start.
 */
static int check_grant(const struct aw_host *host, const struct aw_session_meta *meta,
		       const struct aw_domain *domain, const struct aw_net_rule *rule,
		       struct aw_error *err)
{
	struct aw_effective effective;
	char text[AW_DOMAIN_TEXT_MAX], why[512];
	int r;

	aw_net_rule_format(rule, text, sizeof(text));
	r = aw_effective_load(host, meta->project, meta->agent, text, &effective, err);
	/* Offline at its start or not is the session's to say. */
	if (r == 0 && effective.policy->has_network &&
	    !aw_effective_grants(effective.policy, domain, why, sizeof(why))) {
		aw_effective_print_notes(effective.policy);
		r = aw_refuse(err, EACCES, "it stays refused: %s", why);
	}
	aw_effective_fini(&effective);
	return r;
}

static int exchange(int link, const struct aw_ipc_rule *rule, struct aw_error *err)
{
	autofree struct aw_ipc_message *answer = calloc(1, sizeof(*answer));
	int r = answer == NULL
			? aw_fail(err, ENOMEM, "ask the session")
			: aw_ipc_send(link, AW_IPC_ASK_RULE, rule, sizeof(*rule), NULL, 0, err);

	if (r == 0)
		r = aw_ipc_recv(link, AW_IPC_CLIENT, AW_IPC_MONITOR, answer, err);
	if (r == 0)
		return aw_refuse(err, EPIPE, "the session ended meanwhile");
	if (r < 0)
		return r;
	if (answer->type == AW_IPC_TELL_REFUSED)
		memcpy(err, answer->payload, sizeof(*err));
	else
		err->code = 0;
	aw_ipc_message_fini(answer);
	return -err->code;
}

int aw_allowlist_tell(const struct aw_cli_place *place, const struct aw_session_meta *meta,
		      const struct aw_domain *domain, bool is_removal, struct aw_error *err)
{
	struct aw_ipc_rule rule = {
		.rule = aw_domain_rule(domain, AW_DOMAIN_GRANT, AW_NET_LAYER_SESSION),
		.is_removed = is_removal,
	};
	struct aw_session_meta found;
	autoclose int link = -EBADF;
	int r = is_removal ? 0 : check_grant(&place->host, meta, domain, &rule.rule, err);

	if (r < 0)
		return r;
	link = aw_cli_connect(&place->state, meta->id, &found, err);
	return link < 0 ? link : exchange(link, &rule, err);
}
