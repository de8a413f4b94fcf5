/*
 * decide - the one place where gate asks the policy.
 *
 * Every way in (CONNECT, absolute URL, SOCKS, synthetic address, DNS question, and once more when the
 * policy changes) ends here with the name's bytes and a port, so that no two ways can be of different
 * minds about one name.
 */
#pragma once

#include "policy/net.h"
#include "wire/hostport.h"

struct aw_decision {
	struct aw_net_verdict verdict;
	uint16_t port;
	/* Normalised where verdict.reason is not LITERAL or MALFORMED; else as asked, escaped. */
	char name[AW_NET_NAME_MAX + 1];
};

/* @raw as it came. @port 0 asks about the name alone. */
void aw_decide_name(const struct aw_net *net, struct aw_str raw, uint16_t port,
		    struct aw_decision *ret);

/* As aw_decide_name for what wire/hostport.h read: an address in any form is a LITERAL. */
void aw_decide_peer(const struct aw_net *net, const struct aw_hostport *peer,
		    struct aw_decision *ret);

bool aw_decision_is_granted(const struct aw_decision *decision);

/* True if @raw, brought into normal form, is @name. */
bool aw_decide_is_same_name(struct aw_str raw, const char *name);
