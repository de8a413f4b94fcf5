/*
 * http-chunked - follow a chunked body (RFC 9112 section 7.1) without changing or keeping a byte.
 *
 * The caller forwards bytes as they are and needs to know just where the body ends:
 *
 *	struct aw_http_chunked chunked = { 0 };
 *	n = aw_http_chunked_feed(&chunked, bytes, &flaw);
 *	forward n bytes; if aw_http_chunked_is_done(&chunked) the message is over
 *
 * Without is_done all bytes are taken. Behind the end nothing is taken: it is the next message.
 * Strict as http.h: one to 16 hexadecimal digits, lines end in CR LF, extensions and trailers are
 * bounded and have no control bytes, total content at most 2^63 - 1.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"
#include "wire/http.h"

#define AW_HTTP_CHUNK_LINE_MAX 1024 /* size and extensions of one chunk, without CR LF */
#define AW_HTTP_TRAILERS_MAX 8192   /* all trailer lines together */

struct aw_http_chunked {
	uint64_t left;    /* data bytes still to come of this chunk; its size while that is read */
	uint64_t content; /* content bytes announced so far, without chunk lines and trailers */
	uint32_t line;    /* bytes of the current chunk line or of all trailers */
	uint8_t state;
	uint8_t flaw; /* what ended it, enum aw_http_flaw */
};

/* Bytes taken (0 to bytes.len), or -EBADMSG; after that every call fails alike. */
ssize_t aw_http_chunked_feed(struct aw_http_chunked *chunked, struct aw_str bytes,
			     enum aw_http_flaw *ret_flaw);

bool aw_http_chunked_is_done(const struct aw_http_chunked *chunked);
