/*
 * seccomp - the filters of the agent and of the gate, and how a process puts one on.
 *
 * The filters are bytes that were made at build time (gen-agent.c and gen-gate.c say what is in
 * them and why): unknown calls and foreign entries (int 0x80, x32) are ENOSYS, deliberate denials
 * EPERM, sockets of other families EAFNOSUPPORT. They can be copied into a plan and put on
 * elsewhere. A filter is for good, and for every process that is forked or executed afterwards.
 *
 *	aw_caps_no_new_privs(err);
 *	aw_seccomp_apply(aw_confine_filter_agent.code, aw_confine_filter_agent.size, err);
 *
 * What a filter cannot do: look behind a pointer (paths, attribute names, addresses). That is the
 * work of mounts, Landlock and the network namespace.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct aw_filter {
	const void *code; /* struct sock_filter[] */
	size_t size;      /* bytes */
};

extern const struct aw_filter aw_confine_filter_agent;

/*
 * As aw_confine_filter_agent, but calls worth an audit record and all denials go to the listener.
 * It lets the first kind go on (SECCOMP_USER_NOTIF_FLAG_CONTINUE) and must answer the second with
 * the errno that aw_confine_filter_agent has for the same number and arguments: what it lets go on
 * is done. When the listener is closed, all of them fail with ENOSYS.
 */
extern const struct aw_filter aw_confine_filter_agent_audited;

/* Put on by the gate after its set-up. Ends the process on what only a hijacked gate would try. */
extern const struct aw_filter aw_confine_filter_gate;

/*
 * Put a filter on the calling process, which has one thread and no_new_privs. @size in bytes.
 * -EBADMSG if it cannot be a program, -EACCES without no_new_privs, -EINVAL if it is no valid one.
 */
int aw_seccomp_apply(const void *code, size_t size, struct aw_error *err);

/*
 * As aw_seccomp_apply; returns the fd on which its notifications arrive, close-on-exec.
 * @ret_killable tells whether a task whose notification was received can only be interrupted by a
 * fatal signal (Linux 5.19): before that a signal can repeat the call. -EBUSY if there is a
 * listener already.
 */
int aw_seccomp_listen(const void *code, size_t size, bool *ret_killable, struct aw_error *err);
