/* What resolve.c (c-ares, sockets) and lookup.c (questions, answers, vetting) share. */
#pragma once

#include "gate/resolve.h"

/* Arm the timer for the earliest deadline that c-ares has. */
void aw_resolver_rearm(struct aw_resolver *resolver);
