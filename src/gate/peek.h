/*
 * peek - what the first bytes of a tunnel are, before any of them goes on.
 *
 * TLS (first byte 0x16, on any port) must begin with a whole ClientHello whose server name is the
 * granted name: no domain fronting, no nameless TLS. Port 443 must be TLS, port 80 TLS or HTTP. What
 * reads like an HTTP request goes to gate's HTTP relay on every port, which holds each Host to the
 * granted name. Anything else on another port passes as it is. Pure.
 */
#pragma once

#include "base/str.h"
#include "ipc/ipc.h"

enum aw_peek {
	AW_PEEK_MORE = 1, /* cannot tell yet: ask again with more behind these bytes */
	AW_PEEK_PASS,     /* may go on, and everything that follows */
	AW_PEEK_HTTP,     /* for the HTTP relay */
	AW_PEEK_REFUSE,
};

struct aw_peek_refusal {
	enum aw_ipc_outcome outcome;    /* REFUSED_SNI or REFUSED_PROTOCOL */
	char seen[AW_NET_NAME_MAX + 1]; /* the other server name, or what was wrong; escaped */
};

/* @bytes is not empty. @ret is written on AW_PEEK_REFUSE. */
enum aw_peek aw_peek_look(struct aw_str bytes, uint16_t port, const char *granted_name,
			  struct aw_peek_refusal *ret);
