/*
 * http - the heads of HTTP/1.0 and HTTP/1.1 messages (RFC 9110, RFC 9112), read strictly.
 *
 * For a forward proxy and for a look at the first bytes of a connection. The caller collects bytes
 * in a buffer and asks again whenever more have come:
 *
 *	struct aw_http_scan scan = { 0 };                  one per message
 *	n = aw_http_request_parse(&scan, bytes, &request, &flaw);
 *	n > 0            the head is these n bytes; what follows is body or the next message
 *	n == -EAGAIN     not complete: call again with the same bytes and more behind them
 *	n == -EBADMSG    malformed, flaw says how: answer aw_http_flaw_status(flaw) and close
 *
 * The scan makes the whole cost linear however the bytes are cut, and the answer does not depend on
 * how they were cut. Bytes may move between calls. Results point into the bytes of the last call.
 *
 * What another parser could read differently is refused, never repaired: bare CR or LF, NUL and other
 * controls, folded lines, blanks before a colon or in a target, an empty line in front, two Host, two
 * Content-Length, Content-Length with Transfer-Encoding, any coding but "chunked", signs, blanks,
 * leading zeros or overflow in a length, a Connection field that names Host or the framing.
 * No I/O, no policy, no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "wire/hostport.h"

#define AW_HTTP_HEAD_MAX (64 * 1024)
#define AW_HTTP_FIELDS_MAX 128
#define AW_HTTP_METHOD_MAX 15

enum aw_http_flaw {
	AW_HTTP_FLAW_NONE,
	AW_HTTP_FLAW_HEAD_SIZE,          /* over AW_HTTP_HEAD_MAX */
	AW_HTTP_FLAW_FIELD_COUNT,        /* over AW_HTTP_FIELDS_MAX */
	AW_HTTP_FLAW_LINE_END,           /* CR without LF or LF without CR */
	AW_HTTP_FLAW_CONTROL,            /* NUL or another control byte */
	AW_HTTP_FLAW_METHOD,             /* not a token of 1 to AW_HTTP_METHOD_MAX bytes */
	AW_HTTP_FLAW_TARGET,             /* bytes or form that no target may have */
	AW_HTTP_FLAW_SCHEME,             /* absolute URL of another scheme than http */
	AW_HTTP_FLAW_AUTHORITY,          /* host or port of the target malformed */
	AW_HTTP_FLAW_VERSION,            /* not HTTP/1.0 or HTTP/1.1 (HTTP/0.9 has none) */
	AW_HTTP_FLAW_STATUS_LINE,        /* response: not "HTTP/1.x NNN text" */
	AW_HTTP_FLAW_FOLDED,             /* a field line that begins with a blank (obs-fold) */
	AW_HTTP_FLAW_FIELD_NAME,         /* empty or not a token, or no colon */
	AW_HTTP_FLAW_SPACE_BEFORE_COLON, /* "Host : a" */
	AW_HTTP_FLAW_HOST_MISSING,       /* HTTP/1.1 without Host */
	AW_HTTP_FLAW_HOST_TWICE,
	AW_HTTP_FLAW_HOST,              /* not a host or host:port */
	AW_HTTP_FLAW_LENGTH_TWICE,      /* two Content-Length, also equal ones */
	AW_HTTP_FLAW_LENGTH,            /* not plain decimal digits, or beyond 2^63 - 1 */
	AW_HTTP_FLAW_LENGTH_AND_CODING, /* Content-Length with Transfer-Encoding */
	AW_HTTP_FLAW_CODING,       /* Transfer-Encoding other than one "chunked", or in HTTP/1.0 */
	AW_HTTP_FLAW_CONNECTION,   /* not a list of tokens, or names Host or the framing */
	AW_HTTP_FLAW_CONNECT_BODY, /* CONNECT with content */
	AW_HTTP_FLAW_CHUNK_SIZE,   /* no, too many or non-hexadecimal digits */
	AW_HTTP_FLAW_CHUNK_EXTENSION, /* malformed or too long */
	AW_HTTP_FLAW_CHUNK_END,       /* chunk data not followed by CR LF */
	AW_HTTP_FLAW_TRAILER,         /* malformed trailer line, or trailers too long */
	AW_HTTP_FLAW_COUNT,
};

enum aw_http_form {
	AW_HTTP_FORM_ORIGIN = 1, /* /path?query */
	AW_HTTP_FORM_ABSOLUTE,   /* http://host[:port]/path?query */
	AW_HTTP_FORM_AUTHORITY,  /* host:port, CONNECT only */
	AW_HTTP_FORM_ASTERISK,   /* *, OPTIONS only */
};

enum aw_http_body {
	AW_HTTP_BODY_NONE = 1,
	AW_HTTP_BODY_LENGTH,  /* content_length bytes, at least 1 */
	AW_HTTP_BODY_CHUNKED, /* see http-chunked.h */
	AW_HTTP_BODY_CLOSE,   /* response only: until the peer closes */
	AW_HTTP_BODY_TUNNEL,  /* response only: 101, or 2xx to CONNECT: another protocol follows */
};

/* Where the search for the end of a head stands; all zero at the start of each message. */
struct aw_http_scan {
	size_t offset;
	uint16_t lines; /* complete lines so far, the first line included */
	uint8_t state;
	uint8_t method_len;
};

struct aw_http_request {
	size_t len; /* of the head, the empty line included */
	struct aw_str method;
	struct aw_str target; /* as written */
	struct aw_str
		path; /* path and query of origin and absolute form; may be "" or begin with '?' */
	struct aw_str fields; /* for aw_http_field_next */
	struct aw_str host;   /* value of the Host field; empty if there is none (HTTP/1.0) */
	enum aw_http_form form;
	/*
	 * Whom the request is for: from the target in absolute and authority form (Host is then of no
	 * account, RFC 9112 3.2.2), else from Host with port 80 if none is written. All zero
	 * (authority.host.kind == 0) in HTTP/1.0 without either.
	 */
	struct aw_hostport authority;
	uint8_t minor; /* HTTP/1.minor: 0 or 1 */
	enum aw_http_body body;
	uint64_t content_length;
	bool is_kept;            /* the client wants the connection kept */
	bool is_websocket;       /* GET with Connection: upgrade and Upgrade: websocket */
	bool is_continue_wanted; /* Expect: 100-continue */
};

struct aw_http_response {
	size_t len;
	uint16_t status; /* 100 to 599 */
	struct aw_str reason;
	struct aw_str fields;
	uint8_t minor;
	enum aw_http_body body;
	uint64_t content_length;
	bool is_interim; /* 1xx but 101: another head follows on the same request */
	bool is_kept;    /* the server keeps the connection after this message */
};

int aw_http_request_parse(struct aw_http_scan *scan, struct aw_str bytes,
			  struct aw_http_request *ret, enum aw_http_flaw *ret_flaw);

/* @method of the request that is answered: HEAD has no body, CONNECT opens a tunnel. */
int aw_http_response_parse(struct aw_http_scan *scan, struct aw_str bytes, struct aw_str method,
			   struct aw_http_response *ret, enum aw_http_flaw *ret_flaw);

/*
 * Take the next field line off @rest, a copy of request.fields or response.fields. The value has no
 * blanks at its ends; the name is as written. False at the end.
 */
bool aw_http_field_next(struct aw_str *rest, struct aw_str *ret_name, struct aw_str *ret_value);

/* Compare a field name or another token without regard to ASCII case. */
bool aw_http_token_is(struct aw_str token, const char *text);

/* True if the comma-separated @list has the token @text, without regard to case. */
bool aw_http_list_has(struct aw_str list, const char *text);

const char *aw_http_flaw_text(enum aw_http_flaw flaw); /* for a 400 body and the journal */

/* The status with which a server answers a request that has this flaw: 400, 431, 501 or 505. */
unsigned aw_http_flaw_status(enum aw_http_flaw flaw);
