/*
 * time - wall time as RFC 3339 in UTC with nanoseconds: "2026-03-01T12:00:00.123456789Z".
 *
 * Not gmtime_r: the C library reads the time zone file of the host on its first use.
 */
#pragma once

#include <stdint.h>

#include "base/str.h"

#define AW_TIME_LEN 30

/* Format @wall_ns (since 1970; up to the year 2554) as AW_TIME_LEN characters and a NUL. */
void aw_time_format(uint64_t wall_ns, char out[AW_TIME_LEN + 1]);

/* The inverse, exactly that form only. Returns 0 or -EBADMSG. Leap seconds do not occur. */
int aw_time_parse(struct aw_str text, uint64_t *ret_ns);
