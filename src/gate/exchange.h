/*
 * exchange - one HTTP/1.1 request to a server and its response back, and then the next.
 *
 * Both heads are parsed and written anew (wire/http-write.h: hop-by-hop fields go, Host is the granted
 * authority), bodies pass unchanged with their end in sight, so that the next request is read where it
 * begins and decided by itself. In a tunnel (conn->is_fixed) the server is given and each Host must
 * name it. A websocket upgrade that the server accepts becomes a tunnel.
 */
#pragma once

#include "gate/conn.h"

/* Enter from a tunnel whose first bytes are HTTP. */
void aw_exchange_begin_fixed(struct aw_conn *conn);

/* A request head was read and granted: send it if the server is there, else dial. */
void aw_exchange_request(struct aw_conn *conn, const struct aw_http_request *request);

/* The server that a request waits for is connected. */
void aw_exchange_dialled(struct aw_conn *conn);

void aw_exchange_client_ready(struct aw_conn *conn, uint32_t events);
void aw_exchange_server_ready(struct aw_conn *conn, uint32_t events);

/* In phase ASK: the kept server said something unasked or went away. */
void aw_exchange_idle_server_ready(struct aw_conn *conn, uint32_t events);
void aw_exchange_drop(struct aw_exchange **exchange);
