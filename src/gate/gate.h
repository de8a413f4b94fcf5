/*
 * gate - the egress role: everything that leaves the cell leaves through here or not at all.
 *
 * Three ways in (listen.h), one decision (decide.h), one way out (dial.h); then bytes (tunnel.h,
 * exchange.h). One epoll loop, no threads, no files. This struct is all the state there is.
 *
 *	aw_gate_receive(link, &gate, err)    the set-up message: policy, listeners, resolvers
 *	aw_gate_start(gate, err)             everything opened that will be opened; before confinement
 *	aw_gate_serve(gate, err)             say ready, loop until the monitor goes
 */
#pragma once

#include "base/loop.h"
#include "gate/conn.h"
#include "gate/dns.h"
#include "gate/flow.h"
#include "gate/listen.h"
#include "gate/names.h"
#include "gate/report.h"
#include "gate/resolve.h"
#include "gate/timer.h"
#include "ipc/ipc.h"
#include "policy/net.h"

struct aw_gate {
	struct aw_loop loop;
	struct aw_watch link; /* to the monitor */
	struct aw_report report;
	const struct aw_net *net; /* mapped read-only, checked */
	size_t net_len;
	struct aw_timers timers;
	struct aw_names names;
	struct aw_resolver resolver;
	struct aw_flow_tools tools;
	struct aw_conns conns;
	struct aw_listeners listeners;
	struct aw_dns dns;
	struct aw_ipc_gate_setup setup;
	struct aw_ipc_message message; /* what is being received */
};

/* Wait for the set-up on @link, which stays the caller's until aw_gate_start. */
int aw_gate_receive(int link, struct aw_gate **ret, struct aw_error *err);
int aw_gate_start(struct aw_gate *gate, struct aw_error *err);
int aw_gate_serve(struct aw_gate *gate, struct aw_error *err);
