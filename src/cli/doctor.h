/*
 * doctor - what this host can enforce, measured: the checks of `warden doctor`.
 *
 * A check is a row of a table: it looks or, better, tries, and says what it found. None of them says
 * "ok" because of what a version should have; what cannot be tried from here is unknown. Nothing is
 * left behind but Warden's own empty directories: what is tried lives in a child that ends at once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "monitor/prepare.h"

enum aw_doctor_state {
	AW_DOCTOR_OK = 1,
	AW_DOCTOR_MISSING,
	AW_DOCTOR_DEGRADED,
	AW_DOCTOR_UNKNOWN,
};

/*
 * What a cell is made of, tried in that order in a child as `run` would: errno of each step, 0 when it
 * worked, AW_CHAIN_NOT_TRIED when one before it failed.
 */
enum aw_chain_step {
	AW_CHAIN_CLONE, /* new namespaces, all but the network's */
	AW_CHAIN_MAP,   /* uid_map and gid_map, from outside */
	AW_CHAIN_TMPFS,
	AW_CHAIN_TREE, /* open_tree and mount_setattr */
	AW_CHAIN_PROC, /* a new procfs */
	AW_CHAIN_NET,
	AW_CHAIN_LO,
	AW_CHAIN_STEPS
};

#define AW_CHAIN_NOT_TRIED (-1)

struct aw_doctor_chain {
	int code[AW_CHAIN_STEPS];
};

/* What a check may look at. */
struct aw_doctor {
	const struct aw_host *host;
	char *const *environment;
	struct aw_doctor_chain chain;
};

struct aw_doctor_finding {
	enum aw_doctor_state state;
	bool is_needed;   /* a session under `balanced` does not start or work without it */
	char value[320];  /* what was measured */
	char effect[256]; /* what it means, where the row does not say it exactly enough */
	char fix[640];    /* likewise what to do */
};

struct aw_doctor_check {
	const char *name;
	/* Fill in @ret; false: there is nothing to check on this host. */
	bool (*measure)(const struct aw_doctor *doctor, struct aw_doctor_finding *ret);
	bool is_needed;
	const char *effect, *fix; /* when it is not ok; NULL: the finding says it */
};

struct aw_doctor_table {
	const struct aw_doctor_check *check;
	size_t count;
};

/* doctor-kernel.c, doctor-cell.c, doctor-host.c */
struct aw_doctor_table aw_doctor_kernel(void);
struct aw_doctor_table aw_doctor_cell(void);
struct aw_doctor_table aw_doctor_host(void);

/* Called with a finding for each agent profile: the built-in ones, then the user's own. */
void aw_doctor_agents(const struct aw_doctor *doctor,
		      void (*tell)(void *data, const char *name,
				   const struct aw_doctor_finding *finding),
		      void *data);

/* Set state and value; control bytes become '?'. */
void aw_doctor_find(struct aw_doctor_finding *finding, enum aw_doctor_state state,
		    const char *format, ...) __attribute__((format(printf, 3, 4)));

/* doctor-chain.c */
void aw_doctor_try_chain(struct aw_doctor_chain *ret);
const char *aw_doctor_step_text(enum aw_chain_step step);

/* doctor-userns.c: why a chain broke. */
struct aw_userns_facts {
	struct aw_doctor_chain chain;
	bool is_root;
	/* -1: this kernel has no such switch */
	long max_user_namespaces, unprivileged_clone, apparmor_restricts;
	bool is_filtered; /* a seccomp filter is on this process: a container's */
};

enum aw_userns_cause {
	AW_USERNS_WORKS = 1,
	AW_USERNS_LIMIT_ZERO, /* user.max_user_namespaces is 0 */
	AW_USERNS_USED_UP,    /* as many as allowed, or nested too deep */
	AW_USERNS_SWITCHED_OFF,
	AW_USERNS_APPARMOR, /* Ubuntu 23.10 and later */
	AW_USERNS_FILTERED, /* by a container's seccomp profile */
	AW_USERNS_NOT_BUILT,
	AW_USERNS_OTHER,
};

/* Pure. */
enum aw_userns_cause aw_doctor_judge_userns(const struct aw_userns_facts *facts);
void aw_doctor_read_userns(const struct aw_doctor_chain *chain, struct aw_userns_facts *ret);
bool aw_doctor_measure_userns(const struct aw_doctor *doctor, struct aw_doctor_finding *ret);

/* doctor-limits.c */
bool aw_doctor_measure_limits(const struct aw_doctor *doctor, struct aw_doctor_finding *ret);

/* Where the shipped AppArmor profile lies (NULL: nowhere; the caller frees), and whether it is for us. */
char *aw_doctor_profile(const struct aw_host *host);
bool aw_doctor_profile_covers(const struct aw_host *host);

/* doctor-fix.c: install it, as root or through sudo; says each command first. Exit code. */
int aw_doctor_fix(const struct aw_host *host);

/* doctor-nested.c: in what container or on what other kernel we run; false: no mark of any. @root: of /. */
bool aw_doctor_find_nesting(int root_fd, char *out, size_t size);

/* doctor-inotify.c: what this user's processes hold, as far as /proc shows it. */
struct aw_doctor_inotify {
	unsigned instances, watches;
};

void aw_doctor_count_inotify(int proc_fd, unsigned uid, struct aw_doctor_inotify *ret);
