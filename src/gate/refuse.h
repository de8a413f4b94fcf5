/*
 * refuse - no: told to the monitor, and to the client in the language it speaks.
 *
 * The explicit proxy answers with a page for a person: what was refused, which rule or layer decided,
 * and the line that would change it. SOCKS gets its code, a transparent connection a reset.
 */
#pragma once

#include "gate/address.h"
#include "gate/conn.h"

struct aw_refusal {
	enum aw_ipc_outcome outcome;
	unsigned status;             /* HTTP; 0: the outcome's own */
	const char *seen;            /* other name or what was wrong; NULL */
	const char *problem;         /* FAILED_*: static text or errno's words */
	struct aw_ipc_addr addr;     /* REFUSED_ADDRESS, FAILED_CONNECT */
	enum aw_address_class class; /* REFUSED_ADDRESS */
};

/* Report and answer; the connection lingers or is closed. conn->target says what was asked for. */
void aw_conn_refuse(struct aw_conn *conn, const struct aw_refusal *refusal);

/* As aw_conn_refuse where the connection is in the middle of bytes: report and reset. */
void aw_conn_cut(struct aw_conn *conn, const struct aw_refusal *refusal);

/*
 * The last answer is written: nothing more is taken as a request, but the socket stays until the client
 * has read (a close with unread bytes would be a reset and could take the answer with it).
 */
void aw_conn_linger(struct aw_conn *conn);

/* Report that the target was connected to; once for each connection out or, with HTTP, request. */
void aw_conn_report_allowed(struct aw_conn *conn);

/* Pure: the status and the text for a person. Appends to @out. */
unsigned aw_refusal_explain(const struct aw_net *net, const struct aw_decision *asked,
			    const struct aw_refusal *refusal, struct aw_buf *out);
