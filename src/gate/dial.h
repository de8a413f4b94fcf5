/*
 * dial - from a granted target to a connected socket.
 *
 * Addresses come vetted from resolve.h and are tried in their order, a new one every 250 ms or as soon
 * as one fails (RFC 8305); the first that answers wins. Ten seconds for everything.
 */
#pragma once

#include "gate/conn.h"

/*
 * Dial conn->target. The phase is DIAL until aw_conn_dialled (conn->server.fd is connected) or
 * aw_conn_refuse is called, which may be before this returns.
 */
void aw_dial_start(struct aw_conn *conn);
void aw_dial_drop(struct aw_dial **dial);
