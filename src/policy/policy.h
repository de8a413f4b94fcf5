/*
 * policy - what one session may do, decided: JSON texts in, one immutable struct out.
 *
 * effective = (preset + agent profile + user + the user's entry for this directory + command line),
 * narrowed by /etc/warden/policy.json and by the project's .warden.json. Denials unite, the smallest
 * limit wins (a preset's or profile's limit is only the default for where nobody wrote one). What a
 * project asks for beyond that is listed in `asks` with what would grant it, and not granted.
 *
 *	struct aw_policy_errors errors = { 0 };
 *	r = aw_policy_load(&sources, &policy, &errors, err);
 *	-EACCES: print errors (aw_policy_errors_print) and leave with 78
 *
 * Everything in struct aw_policy belongs to it and lives until aw_policy_drop.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "policy/agent.h"
#include "policy/errors.h"
#include "policy/net.h"

#define AW_POLICY_SYSTEM_FILE "/etc/warden/policy.json"
#define AW_POLICY_PROJECT_FILE ".warden.json"
#define AW_POLICY_DIGEST_HEX 65 /* SHA-256 in hex and a NUL */

enum aw_policy_limit {
	AW_LIMIT_TIME_S, /* of the command given to run or exec */
	AW_LIMIT_MEMORY_MB,
	AW_LIMIT_PROCESSES,
	AW_LIMIT_CPU_MILLI, /* 1500 = one and a half CPUs */
	AW_LIMIT_OPEN_FILES,
	AW_LIMIT_IO_MB_S,
	AW_LIMIT_COUNT
};

/* Classes of files that run code on the host later. */
enum aw_policy_protect {
	AW_PROTECT_GIT = 1 << 0,
	AW_PROTECT_EDITOR = 1 << 1,
	AW_PROTECT_AGENT = 1 << 2,
	AW_PROTECT_CI = 1 << 3,
	AW_PROTECT_SHELL = 1 << 4,
	AW_PROTECT_ALL = (1 << 5) - 1
};

/* What may be missing on the host without the session being refused. */
enum aw_policy_degraded {
	AW_DEGRADED_LIMITS = 1 << 0,
	AW_DEGRADED_LANDLOCK = 1 << 1,
	AW_DEGRADED_PROTECT = 1 << 2,
	AW_DEGRADED_AUDIT = 1 << 3,
	AW_DEGRADED_CANARY_HOME = 1 << 4,
	AW_DEGRADED_CANARY_WORKSPACE = 1 << 5,
};

/* A request of the project's policy that was not granted, or something a person should know. */
struct aw_policy_remark {
	const char *text;    /* one printable sentence, without a full stop */
	const char *command; /* asks: what would grant it; NULL: nothing here can */
};

struct aw_policy_remarks {
	struct aw_policy_remark *item;
	size_t count, capacity;
};

struct aw_policy {
	const char *preset;           /* "balanced" */
	const char *default_agent;    /* NULL: a shell */
	const struct aw_agent *agent; /* as given in the sources; NULL */

	/* Cell paths, normalised (paths.h). Not present: the whole workspace. Write is part of read. */
	struct aw_policy_list read, write;
	struct aw_policy_list deny;
	struct aw_policy_list mounts; /* text: place in the cell; host: directory on the host */

	unsigned protect;               /* enum aw_policy_protect */
	unsigned degraded;              /* enum aw_policy_degraded */
	uint64_t limit[AW_LIMIT_COUNT]; /* 0: none */
	struct aw_policy_origin limit_from[AW_LIMIT_COUNT];

	bool has_network;            /* false: no gate at all */
	struct aw_net *net;          /* full size: a copy of it takes session rules */
	struct aw_policy_list rules; /* entry i is what net->rules[i] was made from */

	struct aw_policy_list env; /* variables of the host that are passed if they are set */

	struct aw_policy_remarks asks, notes;
	uint8_t digest[32]; /* SHA-256 of what aw_policy_show prints without origins */
	char digest_hex[AW_POLICY_DIGEST_HEX];
	struct aw_store *store;
};

/* What the command line adds. Lists end in NULL or are NULL themselves. */
struct aw_policy_command {
	const char *preset;             /* overrides every "extends"; NULL */
	bool is_offline;                /* --offline */
	const char *const *allow;       /* --allow D[:PORT] */
	const char *const *deny;        /* --deny D */
	const char *const *mount_ro;    /* --ro DIR, at the same place inside */
	const char *const *mount_rw;    /* --rw DIR */
	const char *const *env;         /* --env NAME */
	uint64_t limit[AW_LIMIT_COUNT]; /* 0: not given */
};

struct aw_policy_sources {
	const char *system_file;      /* NULL: AW_POLICY_SYSTEM_FILE */
	const char *home;             /* of the user, absolute */
	const char *config_dir;       /* ~/.config/warden, absolute; NULL: no user policy */
	const char *policy_file;      /* -s FILE: in place of config_dir/policy.json; NULL */
	const char *workspace;        /* real path on the host; NULL: none */
	int workspace_fd;             /* the project's policy is opened beneath it; -EBADF: none */
	const struct aw_agent *agent; /* must outlive the policy; NULL */
	struct aw_policy_command command;
};

/*
 * Read every file there is, parse, merge. A missing file is no error. -EACCES when @errors is not
 * empty afterwards (err then tells how many), -ENOMEM.
 */
int aw_policy_load(const struct aw_policy_sources *sources, struct aw_policy **ret,
		   struct aw_policy_errors *errors, struct aw_error *err);
void aw_policy_drop(struct aw_policy **slot);

/*
 * Hold one text to the table of keys, for `policy check FILE`: @layer says what kind of file it is
 * (USER, SYSTEM or PROJECT). 0, -EACCES when @errors grew, -ENOMEM. Pure.
 */
int aw_policy_check(struct aw_str text, enum aw_net_layer layer, const char *name, const char *home,
		    struct aw_policy_errors *errors, struct aw_error *err);

/*
 * The effective policy as JSON in a fixed order: what is enforced, and what the digest is of.
 * @with_origins adds a comment with file and line to each value (then it is still a policy text).
 */
int aw_policy_show(const struct aw_policy *policy, bool with_origins, struct aw_buf *out);

/* "user policy /home/u/.config/warden/policy.json:12"; always NUL-terminated. */
void aw_policy_origin_format(const struct aw_policy_origin *origin, char *out, size_t size);

/* "memory", "limits", ...: NULL beyond the last. */
const char *aw_policy_limit_key(enum aw_policy_limit limit); /* "max_memory_mb" */
const char *aw_policy_protect_text(unsigned bit_index);
const char *aw_policy_degraded_text(unsigned bit_index);
const char *aw_policy_preset_name(size_t index);
