/*
 * proc - processes by pidfd: never by a number that may have been given to another.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

int aw_pidfd_open(pid_t pid, struct aw_error *err);

/* Send @sig; 0, -ESRCH when it is gone, -errno. */
int aw_pidfd_kill(int pidfd, int sig);

/*
 * Wait for a child. Returns its exit code, or 128 + N when signal N ended it. With @nohang: -EAGAIN
 * while it runs.
 */
int aw_pidfd_wait(int pidfd, bool nohang, struct aw_error *err);

/* CLOCK_MONOTONIC and CLOCK_REALTIME in nanoseconds. */
uint64_t aw_now_ns(void);
uint64_t aw_wall_ns(void);
