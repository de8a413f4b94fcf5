/*
 * probe - one system call in a child of its own, with or without a filter; and what a filter says
 * to a call that is not made.
 */
#pragma once

#include <linux/seccomp.h>
#include <stdbool.h>

#include "confine/seccomp.h"

struct probe_call {
	const char *name;
	long number;
	unsigned long args[6];
};

#define CALL(name, ...) NUMBER(name, SYS_##name, __VA_ARGS__)
/* For calls that are newer than the headers. */
#define NUMBER(name_, number_, ...)                                          \
	{                                                                    \
		.name = #name_, .number = (number_), .args = { __VA_ARGS__ } \
	}

#define HIGH (1UL << 32) /* what the kernel cuts off an int */
#define BAD 1UL          /* no address: what gets past every earlier check is EFAULT */
#define CWD ((unsigned long)AT_FDCWD)

/*
 * Make the call in a child with no_new_privs that has put on @filter (NULL: the control run).
 * Returns its result, or -errno; a child that dies of a signal returns PROBE_DIED - signal.
 */
#define PROBE_DIED (-100000)
long probe(const struct aw_filter *filter, const struct probe_call *call);

/* A call with what @filter makes of it. */
struct probe_row {
	struct probe_call call;
	long result;     /* with the filter, as probe() has it */
	bool needs_root; /* for others the kernel's own answer is the same */
};

/* Fail the test unless that is the result, and a control run without the filter has another. */
void probe_check(const struct aw_filter *filter, const struct probe_row *row);

/* As probe, with @body instead of a call. */
long probe_body(const struct aw_filter *filter, long (*body)(void *state), void *state);

/* Inside a child: the call itself. Returns its result or -errno. */
long probe_syscall(long number, const unsigned long args[6]);

/* Interpret @filter: its SECCOMP_RET_ value for @call; @ret_steps (or NULL) counts instructions. */
unsigned probe_verdict(const struct aw_filter *filter, const struct seccomp_data *call,
		       unsigned *ret_steps);

/* As probe_verdict for a native call. */
unsigned probe_verdict_of(const struct aw_filter *filter, long number, const unsigned long args[6]);
#define ANSWER(code) (SECCOMP_RET_ERRNO | (code))

/* The architecture that a native call has. */
extern const unsigned probe_arch;

/* Root in the first user namespace: only then does the kernel look beyond its capability check. */
bool probe_is_real_root(void);

/* Skip the running test, or fail it where everything must work (AW_MUST_WORK=1). */
#define probe_skip(reason)                             \
	do {                                           \
		print_message("# skip: %s\n", reason); \
		if (getenv("AW_MUST_WORK") != NULL)    \
			fail_msg("%s", reason);        \
		skip();                                \
	} while (0)
