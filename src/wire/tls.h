/*
 * tls - what a ClientHello says before anything is encrypted (RFC 8446, RFC 6066, RFC 7301).
 *
 * The caller shows the first bytes of a connection and asks again when more have come:
 *
 *	n > 0                   the hello is in the first n bytes (whole records)
 *	n == -EAGAIN            not complete yet
 *	n == -EPROTONOSUPPORT   these bytes are not a TLS handshake record (plain text, SSLv2, ...)
 *	n == -EBADMSG           TLS, but malformed or outside our limits; flaw says how
 *
 * Nothing is terminated or decrypted; the bytes are forwarded as they are. The answer does not depend
 * on how the bytes were cut. A hello may be spread over several records; names are copied out, so
 * that *ret does not point into the bytes. No I/O, no policy, no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"
#include "wire/hostport.h"

#define AW_TLS_HELLO_MAX (64 * 1024) /* all records of the hello, headers included */
#define AW_TLS_RECORDS_MAX 16
#define AW_TLS_EXTENSIONS_MAX 64
#define AW_TLS_ALPN_MAX 255 /* bytes of the protocol list */

enum aw_tls_flaw {
	AW_TLS_FLAW_NONE,
	AW_TLS_FLAW_NOT_TLS,
	AW_TLS_FLAW_RECORD,     /* empty or over-long record, or another type among the fragments */
	AW_TLS_FLAW_SIZE,       /* over AW_TLS_HELLO_MAX or AW_TLS_RECORDS_MAX */
	AW_TLS_FLAW_HANDSHAKE,  /* another message than ClientHello, or bytes behind it */
	AW_TLS_FLAW_BODY,       /* a length inside points outside, or an impossible one */
	AW_TLS_FLAW_EXTENSIONS, /* one twice, too many, or not filling their list exactly */
	AW_TLS_FLAW_SERVER_NAME, /* not exactly one well-formed host name */
	AW_TLS_FLAW_ALPN,        /* malformed or over AW_TLS_ALPN_MAX */
	AW_TLS_FLAW_VERSIONS,    /* malformed supported_versions */
	AW_TLS_FLAW_COUNT,
};

struct aw_tls_hello {
	size_t len;              /* bytes of the records that carry it */
	uint16_t legacy_version; /* 0x0303 in TLS 1.2 and 1.3 */
	uint16_t max_version; /* highest of supported_versions that is one, else legacy_version */
	bool has_server_name;
	bool has_ech; /* encrypted_client_hello (0xfe0d): server_name may be a cover name */
	uint8_t server_name_len;
	uint8_t alpn_len;
	char server_name[AW_HOST_NAME_MAX + 1]; /* NUL-terminated, case as sent, no trailing dot */
	char alpn[AW_TLS_ALPN_MAX];             /* for aw_tls_alpn_next */
};

ssize_t aw_tls_hello_parse(struct aw_str bytes, struct aw_tls_hello *ret,
			   enum aw_tls_flaw *ret_flaw);

/* Walk the offered protocols: *offset is 0 at first. False at the end. */
bool aw_tls_alpn_next(const struct aw_tls_hello *hello, size_t *offset,
		      struct aw_str *ret_protocol);

const char *aw_tls_flaw_text(enum aw_tls_flaw flaw);
