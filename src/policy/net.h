/*
 * net - the network part of an effective policy, decided and flat.
 *
 * policy/ parses and merges JSON into one struct aw_net; the monitor seals its bytes in a memfd and
 * gate maps them read-only: no JSON is parsed where hostile bytes are handled. The struct has no
 * pointers. A live change is a new memfd. aw_net_check must pass before anything else is asked of
 * bytes that were mapped.
 *
 * Matching is on whole labels of lower-case A-labels (RFC 1034, RFC 5890):
 *   "a.com" exact · "*.a.com" every name below a.com, not a.com · ".a.com" both.
 * Denied beats allowed; a blocked port beats every grant; a rule with a port of its own grants just
 * that port, one without grants the allowed_ports.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

#define AW_NET_NAME_MAX 253 /* RFC 1035: 255 octets on the wire */
#define AW_NET_RULES_MAX 2048
#define AW_NET_PORTS_MAX 64
#define AW_NET_MAGIC 0x61776e31u /* "awn1" */

enum aw_net_form {
	AW_NET_EXACT = 1,      /* a.com */
	AW_NET_BELOW,          /* *.a.com */
	AW_NET_APEX_AND_BELOW, /* .a.com */
};

/* Where a rule came from: printed with every verdict, so that a person knows the file to change. */
enum aw_net_layer {
	AW_NET_LAYER_PRESET = 1,
	AW_NET_LAYER_AGENT,
	AW_NET_LAYER_USER,
	AW_NET_LAYER_DIRECTORY, /* the user's entry for this directory */
	AW_NET_LAYER_COMMAND,   /* command line */
	AW_NET_LAYER_SESSION,   /* `allowlist add --session` while it runs */
	AW_NET_LAYER_SYSTEM,    /* /etc/warden: narrows */
	AW_NET_LAYER_PROJECT,   /* .warden.json: narrows */
};

struct aw_net_rule {
	char name[AW_NET_NAME_MAX + 1]; /* without the leading "*." or "." */
	uint8_t form;                   /* enum aw_net_form */
	uint8_t layer;                  /* enum aw_net_layer */
	uint8_t is_denied;
	uint8_t may_be_private; /* answers in private ranges are accepted for this name */
	uint16_t port;          /* 0: the allowed ports */
	uint16_t reserved;
};

struct aw_net {
	uint32_t magic;
	uint32_t size; /* sizeof(struct aw_net) of the writer: writer and reader are one build */
	uint16_t port_count, blocked_count;
	uint16_t ports[AW_NET_PORTS_MAX];   /* allowed_ports, ascending */
	uint16_t blocked[AW_NET_PORTS_MAX]; /* blocked_ports, ascending */
	uint32_t rule_count;
	struct aw_net_rule rules[AW_NET_RULES_MAX];
};

enum aw_net_reason {
	AW_NET_GRANTED = 1,
	AW_NET_NOT_GRANTED,      /* no rule names it */
	AW_NET_DENIED,           /* a denied_domains rule names it */
	AW_NET_PORT_BLOCKED,     /* blocked_ports */
	AW_NET_PORT_NOT_GRANTED, /* the name is granted, this port is not */
	AW_NET_LITERAL,          /* an address instead of a name */
	AW_NET_MALFORMED,        /* not a name at all */
};

struct aw_net_verdict {
	enum aw_net_reason reason;
	int rule; /* index of the deciding rule, -1 if none */
	bool may_be_private;
};

/*
 * Bring a name from outside into the form that rules are written in: lower case, one trailing dot
 * dropped. @out has AW_NET_NAME_MAX + 1 bytes. Returns its length; -EBADMSG for anything outside
 * letters, digits, hyphen and underscore, for empty or over-long labels and names; -EADDRNOTAVAIL
 * for what is an IPv4 or IPv6 literal in any spelling (dotted, decimal, octal, hex, bracketed).
 */
int aw_net_normalise(struct aw_str raw, char *out);

/* Decide (name, port). @name is normalised. @port 0 asks about the name alone (for DNS). */
void aw_net_decide(const struct aw_net *net, struct aw_str name, uint16_t port,
		   struct aw_net_verdict *ret);

/* The ports on which a transparent listener makes sense: allowed_ports and every rule's own, without the blocked. */
size_t aw_net_listen_ports(const struct aw_net *net, uint16_t *ret, size_t max);

/* Bytes in use: a memfd need not carry the rules that are not there. */
size_t aw_net_size(const struct aw_net *net);

/*
 * Add one rule (aw_domain_rule makes it from text). Returns 1, 0 if the same rule is there already
 * (the older one, with its layer, stays), -ENOSPC beyond AW_NET_RULES_MAX.
 */
int aw_net_add(struct aw_net *net, const struct aw_net_rule *rule);

/*
 * Bounds and invariants of mapped bytes; -EBADMSG. @len is the length of the mapping, at least
 * aw_net_size of the writer.
 */
int aw_net_check(const void *bytes, size_t len, struct aw_error *err);

const char *aw_net_reason_text(enum aw_net_reason reason); /* "not granted", ... for events */
const char *aw_net_layer_text(enum aw_net_layer layer);    /* "preset", "user policy", ... */

/* Write the rule as a person would ("*.a.com:22"); always NUL-terminated. */
void aw_net_rule_format(const struct aw_net_rule *rule, char *out, size_t size);
