/*
 * tunnel - bytes between a client and the server it was granted.
 *
 * What the server says goes to the client at once, so that protocols in which it speaks first work on
 * any port. What the client says waits until peek.h has passed its first bytes; HTTP is handed to
 * exchange.h. No idle limit, no buffering, each direction ends by itself (half-close).
 */
#pragma once

#include "gate/conn.h"

/* The server is connected (conn->server.fd) and the client knows: begin. */
void aw_tunnel_begin(struct aw_conn *conn);

/* Go on without looking: for what a websocket upgrade turned into. */
void aw_tunnel_continue(struct aw_conn *conn);

void aw_tunnel_client_ready(struct aw_conn *conn, uint32_t events);
void aw_tunnel_server_ready(struct aw_conn *conn, uint32_t events);
