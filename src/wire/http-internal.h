/* http-internal - what the http-*.c files share: the search for the end, and what the fields say. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"
#include "wire/http.h"

bool aw_http_is_token_byte(unsigned char c); /* RFC 9110 5.6.2 tchar */
bool aw_http_is_control(unsigned char c);    /* CTL but HTAB: never inside a line */
bool aw_http_is_token(struct aw_str s);      /* at least one byte, all of them tchar */

/*
 * Look for the end of the head, byte by byte and each byte once. Returns its length, -EAGAIN, or
 * -EBADMSG. Afterwards every line ends in CR LF, no other control byte but HTAB is in the head, no
 * line but the last is empty, and none is folded.
 */
ssize_t aw_http_scan_head(struct aw_http_scan *scan, struct aw_str bytes, bool is_response,
			  enum aw_http_flaw *ret_flaw);

/* Take one line off @rest, without its CR LF. False at the end. */
bool aw_http_line_next(struct aw_str *rest, struct aw_str *ret_line);

/* What the fields mean for the message itself. */
struct aw_http_facts {
	bool is_response; /* set by the caller */
	bool has_host;
	bool has_length;
	bool has_coding; /* it is "chunked" */
	bool is_close;
	bool is_keep_alive;
	bool is_upgrade; /* Connection names it */
	bool is_websocket;
	bool is_continue_wanted;
	bool has_upgrade;
	uint32_t options; /* of all Connection fields */
	struct aw_str host;
	uint64_t content_length;
};

/* Check every field line and gather the facts. Returns AW_HTTP_FLAW_NONE or the first flaw. */
enum aw_http_flaw aw_http_facts_read(struct aw_str fields, struct aw_http_facts *facts);

/* Does the sender of this message keep the connection? RFC 9112 9.3. */
bool aw_http_facts_keep(const struct aw_http_facts *facts, uint8_t minor);

/* "HTTP/1.0" or "HTTP/1.1". */
bool aw_http_version_parse(struct aw_str text, uint8_t *ret_minor);
