/*
 * socks - the server's side of a SOCKS5 handshake (RFC 1928): no authentication, CONNECT only.
 *
 *	n = aw_socks_greeting_parse(bytes, &is_open);    answer aw_socks_method_write(is_open, out)
 *	n = aw_socks_request_parse(bytes, &request, &reply);
 *	connect, then answer aw_socks_reply_write(reply, out)
 *
 * Both parsers: n > 0 bytes taken, -EAGAIN not complete, -EPROTONOSUPPORT another version,
 * -EBADMSG malformed. No I/O, no policy, no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"
#include "wire/hostport.h"

#define AW_SOCKS_VERSION 5
#define AW_SOCKS_GREETING_MAX 257
#define AW_SOCKS_REQUEST_MAX 262
#define AW_SOCKS_METHOD_LEN 2
#define AW_SOCKS_REPLY_LEN 10

enum aw_socks_reply {
	AW_SOCKS_OK = 0,
	AW_SOCKS_FAILED = 1,
	AW_SOCKS_NOT_ALLOWED = 2,
	AW_SOCKS_NET_UNREACHABLE = 3,
	AW_SOCKS_HOST_UNREACHABLE = 4,
	AW_SOCKS_REFUSED = 5,
	AW_SOCKS_TTL_EXPIRED = 6,
	AW_SOCKS_COMMAND = 7,      /* command not supported */
	AW_SOCKS_ADDRESS_TYPE = 8, /* address type not supported */
};

/* *ret_is_open: the client offers "no authentication". */
ssize_t aw_socks_greeting_parse(struct aw_str bytes, bool *ret_is_open);

/*
 * The peer wanted: a name, IPv4 or IPv6. A name that was sent as text and is written like a number
 * has kind IPV4 or ODD_NUMBER. host.text points into @bytes for names and is empty for addresses.
 * On -EBADMSG *ret_reply is what to answer.
 */
ssize_t aw_socks_request_parse(struct aw_str bytes, struct aw_hostport *ret,
			       enum aw_socks_reply *ret_reply);

void aw_socks_method_write(bool is_open, uint8_t out[AW_SOCKS_METHOD_LEN]);
void aw_socks_reply_write(enum aw_socks_reply reply, uint8_t out[AW_SOCKS_REPLY_LEN]);
