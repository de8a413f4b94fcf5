/*
 * ask - what a client of the explicit proxy wants: the first bytes of each of its requests.
 *
 * A first byte of 5 is SOCKS5, everything else is HTTP/1: CONNECT opens a tunnel, an absolute URL is
 * forwarded. Parsing is wire's, deciding is decide.h's; this only leads from one to the other.
 */
#pragma once

#include "gate/conn.h"

/* The client can be read in phase ASK. */
void aw_ask_ready(struct aw_conn *conn);

/* Go on with what is in conn->in already. */
void aw_ask_next(struct aw_conn *conn);
