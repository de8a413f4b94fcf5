/*
 * caps - from some capabilities to none, in the order the kernel asks for.
 *
 *	aw_caps_lock(err);            securebits: uid 0 and set-id bits give nothing any more
 *	aw_caps_drop_bounding(err);   both need CAP_SETPCAP in our user namespace
 *	aw_caps_clear(err);           and now there is none
 *	aw_caps_no_new_privs(err);
 *
 * or all of that: aw_caps_drop_all. A helper that is executed inside a new user namespace and must
 * keep a few gets them as ambient ones (aw_caps_raise_ambient) instead.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define AW_CAP_BIT(capability) (UINT64_C(1) << (capability))

/*
 * Set and lock the securebits NOROOT, NO_SETUID_FIXUP, NO_CAP_AMBIENT_RAISE and not KEEP_CAPS.
 * -EPERM without CAP_SETPCAP, unless they are set already.
 */
int aw_caps_lock(struct aw_error *err);

/* Empty the bounding set. -EPERM without CAP_SETPCAP, unless it is empty already. */
int aw_caps_drop_bounding(struct aw_error *err);

/* Empty the ambient, inheritable, permitted and effective sets. */
int aw_caps_clear(struct aw_error *err);

/*
 * Make exactly @set (of AW_CAP_BIT) inheritable and ambient, so that execve keeps it. The permitted
 * and effective sets stay. -EPERM if one of @set is not permitted.
 */
int aw_caps_raise_ambient(uint64_t set, struct aw_error *err);

/* Whether all of @set (of AW_CAP_BIT) are in the effective set. */
bool aw_caps_are_effective(uint64_t set);

int aw_caps_no_new_privs(struct aw_error *err);

/*
 * All of it, in order. A process without CAP_SETPCAP skips the first two: it ends with empty sets
 * and no_new_privs, but with the bounding set that it was given.
 */
int aw_caps_drop_all(struct aw_error *err);
