/*
 * scope - a control group for an ordinary user, asked of the user's systemd.
 *
 * A login session's group belongs to root, and so does its common ancestor with whatever the user may
 * write to: only systemd can move a process out of there. One call of about 400 bytes over the user's
 * bus asks for a transient scope, without a D-Bus library (doc/spikes/cgroup-v2.md has the figures):
 *
 *	aw_scope_connect(&scope, err);			before the process is there
 *	aw_scope_start(&scope, "warden-1.scope", pid, properties, count, err);
 *	...						10 to 20 ms in which other things can be done
 *	aw_scope_wait(&scope, timeout_ms, err);		now the process is in the scope
 *	aw_scope_fini(&scope);				closes the connection; the scope stays
 *
 * Only the process named is moved, so it must not fork before. Every file of the scope belongs to the
 * user. The scope ends with its last process, and systemd removes it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

#define AW_SCOPE_NAME_MAX 128

enum aw_scope_type {
	AW_SCOPE_FLAG,   /* `number` is 0 or 1 */
	AW_SCOPE_NUMBER, /* `number` */
	AW_SCOPE_TEXT,   /* `text` */
	AW_SCOPE_PID,    /* `number` is the one process */
	AW_SCOPE_RATE,   /* `number` bytes per second for the device at the path `text` */
};

/* A property of the unit, as systemd.resource-control(5) names it but for its D-Bus form. */
struct aw_scope_property {
	const char *name;
	enum aw_scope_type type;
	uint64_t number;
	const char *text;
};

struct aw_scope {
	int fd;       /* -EBADF: not connected */
	bool is_bus;  /* else systemd's own socket */
	bool is_open; /* the server has accepted us */
	struct aw_buf in;
	char unit[AW_SCOPE_NAME_MAX];
};

#define AW_SCOPE_INIT                     \
	{                                 \
		.fd = -EBADF, .in = { 0 } \
	}

/*
 * Connect to the systemd manager of the effective user. -ENOTSUP with the reason: there is none, or
 * it lives in another pid namespace, where our process numbers mean others.
 */
int aw_scope_connect(struct aw_scope *ret, struct aw_error *err);

/* Ask for the scope @unit with @pid in it, removed also when it fails. Does not wait. */
int aw_scope_start(struct aw_scope *scope, const char *unit, pid_t pid,
		   const struct aw_scope_property *properties, size_t count, struct aw_error *err);

/* Wait until it is done. -ENOTSUP: systemd refused, in its own words; -ETIMEDOUT. */
int aw_scope_wait(struct aw_scope *scope, unsigned timeout_ms, struct aw_error *err);

/*
 * Stop a scope, over a connection of its own. For one whose process died before it was moved: nothing
 * ever leaves it, so it would stay.
 */
int aw_scope_stop(const char *unit, unsigned timeout_ms, struct aw_error *err);

void aw_scope_fini(struct aw_scope *scope);
