/*
 * gen-seccomp - the build-time program that turns the tables of gen-agent.c and gen-gate.c into
 * seccomp filters: C arrays that confine/seccomp.h declares. libseccomp is used here and nowhere
 * at run time.
 *
 * A table has groups (one answer for a system call, whatever its arguments) and checks (the answer
 * depends on arguments). What neither names is answered ENOSYS, as an older kernel would, so that
 * every libc falls back (never EPERM for the unknown: threads and getaddrinfo break).
 *
 * Comparisons are masked. The kernel cuts an `int` argument to 32 bits after seccomp saw all 64, so
 * a plain comparison lets `TIOCSTI | 1 << 32` through (CVE-2019-7303, CVE-2019-10063): GEN_INT.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum gen_action {
	GEN_ALLOW,
	GEN_WATCH,     /* allowed; told to the listener in the audited variant */
	GEN_PRETEND,   /* not done, answered 0 */
	GEN_EPERM,     /* a deliberate denial; told to the listener in the audited variant */
	GEN_EACCES,    /* "no such luck": what a library asks for without need */
	GEN_NO_FAMILY, /* EAFNOSUPPORT; a denial like EPERM */
	GEN_KILL,      /* no honest process does that */
	GEN_ACTIONS
};

/* True when (argument & mask) == value. A mask of 0 ends the list. */
struct gen_when {
	unsigned arg;
	uint64_t mask, value;
};

#define GEN_INT(arg, value) GEN_BITS(arg, 0xffffffffu, value)
#define GEN_HAS(arg, bit) GEN_BITS(arg, bit, bit)
#define GEN_BITS(arg, mask, value)                         \
	{                                                  \
		(arg), (uint32_t)(mask), (uint32_t)(value) \
	}
#define GEN_LONG(arg, value)               \
	{                                  \
		(arg), UINT64_MAX, (value) \
	}

#define GEN_WHEN_MAX 3

struct gen_rule {
	enum gen_action action;
	struct gen_when when[GEN_WHEN_MAX]; /* all of them */
};

/* A row of a rule table: the action and up to three conditions. */
#define GEN_RULE(action, ...)       \
	{                           \
		(action),           \
		{                   \
			__VA_ARGS__ \
		}                   \
	}

/*
 * The system calls of one check share argument positions. Where no rule matches: `otherwise`. Two
 * rules of a check that both match must have the same action.
 */
struct gen_check {
	const char *syscalls[4];
	enum gen_action otherwise;
	const struct gen_rule *rules;
	size_t rule_count;
};

struct gen_group {
	enum gen_action action;
	const char *const
		*syscalls; /* ends in NULL; names that this architecture lacks are skipped */
};

/* System calls that libseccomp 2.5.4 does not know, by number (the same on all architectures). */
struct gen_number {
	enum gen_action action;
	int number;
};

struct gen_filter {
	const struct gen_group *groups;
	size_t group_count;
	const struct gen_number *numbers;
	size_t number_count;
	const struct gen_check *checks;
	size_t check_count;
};

#define GEN_COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define GEN_TABLE(table) (table), GEN_COUNT(table)

extern const struct gen_filter gen_agent;
extern const struct gen_filter gen_gate;
