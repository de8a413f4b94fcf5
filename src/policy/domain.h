/*
 * domain - one entry of allowed_domains, denied_domains or `allowlist add`, from text to a rule.
 *
 *	a.com      that name               a.com:8443    that name on that port alone
 *	*.a.com    every name below it     .a.com        the name and every name below it
 *
 * What would grant more than a person sees in it is refused with its reason: "*", a wildcard over a
 * public suffix or over a suffix below which anyone can get a name, an address, a URL.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"
#include "policy/net.h"

#define AW_DOMAIN_TEXT_MAX (AW_NET_NAME_MAX + sizeof("*.:65535"))

enum aw_domain_use {
	AW_DOMAIN_GRANT = 1,
	AW_DOMAIN_DENY, /* a wildcard over a public suffix is fine here */
};

struct aw_domain {
	char name[AW_NET_NAME_MAX + 1]; /* normalised, without the leading "*." or "." */
	uint8_t form;                   /* enum aw_net_form */
	uint16_t port;                  /* 0: none was written */
};

/* -EBADMSG with a sentence that says what is wrong and what to write instead. */
int aw_domain_parse(struct aw_str text, enum aw_domain_use use, struct aw_domain *ret,
		    struct aw_error *err);

/* The rule that grants (or denies) what @domain names. */
struct aw_net_rule aw_domain_rule(const struct aw_domain *domain, enum aw_domain_use use,
				  enum aw_net_layer layer);

/*
 * Whether @name (normalised, or an entry's name part) is or lies below a public relay, paste, tunnel,
 * file-drop or webhook service: a place where anyone picks up what an agent leaves. *@ret_kind says
 * which kind ("tunnel", ...); may be NULL.
 */
bool aw_policy_is_relay(struct aw_str name, const char **ret_kind);

/* Whether anyone can get a name directly below @suffix ("com", "co.uk", "github.io"). */
bool aw_domain_is_public_suffix(struct aw_str suffix);
