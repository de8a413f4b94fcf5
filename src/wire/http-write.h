/*
 * http-write - heads that the gate sends: a request for the origin server, a response for the
 * client, a plain answer of its own.
 *
 * A forwarded head keeps its fields byte for byte and in order, but loses what was meant for one hop
 * alone (RFC 9110 7.6.1): Connection and what it names, Keep-Alive, Proxy-Connection, TE,
 * Upgrade (unless a websocket upgrade), HTTP2-Settings, and, in requests, Proxy-Authorization and
 * Host. The framing fields stay, because the body is forwarded as it is, in their plainest spelling.
 *
 * All append to @out; -ENOBUFS beyond its maximum and -ENOMEM, and then @out is as before.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "wire/http.h"

/* What a CONNECT is answered with before the tunnel begins. */
#define AW_HTTP_ESTABLISHED "HTTP/1.1 200 Connection established\r\n\r\n"

/*
 * Write an origin- or absolute-form (or asterisk) request for the origin server: target in origin
 * form, Host from request->authority (which must be there), the client's version, and Connection:
 * keep-alive if @is_kept, else close; a websocket upgrade is passed on as one whatever @is_kept says.
 * -EINVAL for CONNECT or without an authority.
 */
int aw_http_request_write(const struct aw_http_request *request, bool is_kept, struct aw_buf *out);

/*
 * Write a response head for the client. 101 keeps Upgrade; other responses get a Connection field as
 * @is_kept says, interim ones (1xx) none. Transfer-Encoding is dropped where there is no body (304,
 * HEAD).
 */
int aw_http_response_write(const struct aw_http_response *response, bool is_kept,
			   struct aw_buf *out);

/*
 * Write a whole answer: text/plain, UTF-8, Connection: close. @reason must be a plain phrase.
 * @body is sent as it is.
 */
int aw_http_answer_write(unsigned status, const char *reason, struct aw_str body,
			 struct aw_buf *out);

/* The phrase of the statuses that aw_http_flaw_status and a gate use ("Bad Request"); never NULL. */
const char *aw_http_status_text(unsigned status);
