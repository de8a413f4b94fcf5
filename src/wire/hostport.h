/*
 * hostport - "name", "name:port", "192.0.2.1:port", "[2001:db8::1]:port", read one way only.
 *
 * Every way into the gate (CONNECT, absolute URL, Host, SOCKS, SNI) names its peer with this one
 * reader, so that no two of them can understand different hosts. It answers what is written, not
 * whether it may be reached: that is policy. Pure; allocates nothing; results point into the input.
 *
 * A name is one or more labels of letters, digits, hyphen and underscore, 1 to 63 bytes each, at
 * most 253 in all (RFC 1035), one trailing dot allowed and kept. Upper case is kept. Everything else
 * (NUL, blank, percent escape, user@, backslash, raw UTF-8) is -EBADMSG.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

#define AW_HOST_NAME_MAX 253
#define AW_HOST_LABEL_MAX 63

enum aw_host_kind {
	AW_HOST_NAME = 1,
	AW_HOST_IPV4, /* four decimal numbers without leading zeros */
	AW_HOST_IPV6, /* in brackets; without a zone */
	/*
	 * What a lenient resolver would take for an IPv4 address: the last label is a decimal, octal
	 * or 0x number (127.1, 2130706433, 0x7f.1, 0177.0.0.1). Never interpreted.
	 */
	AW_HOST_ODD_NUMBER,
};

struct aw_host {
	struct aw_str text; /* as written, without brackets */
	enum aw_host_kind kind;
	uint8_t address[16]; /* network order: IPV4 in the first 4 bytes, IPV6 in all; else zero */
};

struct aw_hostport {
	struct aw_host host;
	uint16_t port; /* never 0 */
};

/* Parse a host without a port. 0, or -EBADMSG. */
int aw_host_parse(struct aw_str text, struct aw_host *ret);

/* Check a name alone: 0, or -EBADMSG. A number in any spelling passes; aw_host_parse tells. */
int aw_host_name_check(struct aw_str name);

/* Check one label of a name: 1 to 63 letters, digits, hyphens, underscores. 0, or -EBADMSG. */
int aw_host_label_check(struct aw_str label);

/* Compare names without regard to ASCII case. */
bool aw_host_is_same(struct aw_str a, struct aw_str b);

/*
 * Parse host and port. The port is 1 to 65535 in decimal without sign or leading zero; where none is
 * written @default_port is taken, and 0 there means that one must be written. 0, or -EBADMSG.
 */
int aw_hostport_parse(struct aw_str text, uint16_t default_port, struct aw_hostport *ret);

/* True for a dotted, bracketed or oddly spelled address: anything that is not a name. */
bool aw_host_is_literal(const struct aw_host *host);
