/*
 * plan - what a cell shall be, decided by the monitor, as flat bytes in a sealed memfd.
 *
 * warden-cell maps the bytes read-only, checks their bounds once (aw_plan_check) and executes them:
 * it knows neither JSON nor policy. A plan is a header and a list of operations in order; texts and
 * blobs lie behind and are named by offsets. Everything is relative to the start of the bytes.
 *
 *	struct aw_plan_builder b; aw_plan_begin(&b);
 *	aw_plan_bind(&b, "/usr", "/usr", AW_PLAN_READ_ONLY);
 *	...
 *	fd = aw_plan_seal(&b, &header, err);		the memfd for warden-cell
 *
 * A builder remembers its first failure; aw_plan_seal reports it, so callers need not check each step.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define AW_PLAN_MAGIC 0x61777032u /* "awp2" */
#define AW_PLAN_OPS_MAX 1024
#define AW_PLAN_SIZE_MAX (2 * 1024 * 1024)
#define AW_PLAN_STRINGS_MAX 4096
#define AW_PLAN_PORTS_MAX 64

enum aw_plan_code {
	AW_PLAN_DIR = 1, /* make `at` with `mode`; parents 0755 */
	AW_PLAN_FILE,    /* make `at` with `mode` and the blob as content */
	AW_PLAN_SYMLINK, /* make `at` pointing to `source` */
	AW_PLAN_TMPFS,   /* mount a tmpfs at `at`: `mode`, `size` bytes (0: half of memory) */
	AW_PLAN_PROC,    /* mount a proc of the cell's pid namespace at `at` */
	AW_PLAN_DEVPTS,  /* mount a new devpts instance at `at` */
	AW_PLAN_BIND,    /* bind the host's `source` at `at`, with its submounts */
	AW_PLAN_TREE, /* as BIND, the source is the `mode`-th tree fd that came with CELL_MAPPED */
	AW_PLAN_PIN, /* bind `at` of the new root over itself: pinned, and read-only if it says so */
	AW_PLAN_MASK,     /* put an empty, unreadable file or directory over `at` */
	AW_PLAN_LANDLOCK, /* allow `mode` (enum aw_plan_access) below `at` */
	AW_PLAN_CAP,      /* write `size` to the kernel limit `source` below /proc/sys/user */
	AW_PLAN_CODE_COUNT
};

enum aw_plan_flag {
	AW_PLAN_READ_ONLY = 1 << 0,
	AW_PLAN_NOEXEC = 1 << 1,
	AW_PLAN_DEVICE = 1 << 2,   /* a device node: the one kind of mount without nodev */
	AW_PLAN_OPTIONAL = 1 << 3, /* skip it when the source or target is not there */
	AW_PLAN_SINGLE = 1 << 4,   /* without submounts */
};

enum aw_plan_access {
	AW_PLAN_ACCESS_READ = 1, /* read and execute */
	AW_PLAN_ACCESS_WRITE,    /* everything but devices */
	AW_PLAN_ACCESS_DEVICE,   /* read, write and ioctl on a device node */
};

struct aw_plan_op {
	uint16_t code, flags;
	uint32_t mode;
	uint32_t at, source; /* offsets of NUL-terminated text; 0 = none */
	uint32_t blob, blob_len;
	uint64_t size;
	uint64_t dev, ino; /* BIND: what `source` must be; ino 0: whatever it is */
};

/* `count` NUL-terminated texts one behind the other at `offset`. */
struct aw_plan_strings {
	uint32_t offset, count;
};

struct aw_plan_header {
	uint32_t magic, size;
	uint32_t op_count, ops; /* offset of the first struct aw_plan_op */
	uint32_t inside_uid, inside_gid;
	uint8_t is_root_started; /* drop supplementary groups, then become inside_uid */
	uint8_t has_network;     /* the three ways to gate; else only an idle lo */
	uint8_t wants_pty;
	uint8_t wants_freeze_watch;
	uint16_t rows, columns;    /* of the pty */
	uint8_t stdio_is_pty[3];   /* which of 0, 1, 2 of the agent are the pty */
	uint8_t landlock_required; /* refuse to start without it */
	uint8_t is_memory_limited; /* the kernel may kill for memory: the agent before pid 1 */
	uint32_t port_count;
	uint16_t port[AW_PLAN_PORTS_MAX];           /* transparent listeners */
	uint64_t limit_open_files, limit_processes; /* 0 = as it is */
	uint32_t filter, filter_len;                /* seccomp program: struct sock_filter[] */
	uint32_t hostname, cwd;                     /* offsets of text */
	struct aw_plan_strings argv, env;
	uint32_t
		allowed_dev_mounts; /* how many AW_PLAN_DEVICE binds there are, for the self-check */
};

struct aw_plan_builder {
	struct aw_buf ops, text;
	uint32_t op_count, device_count, tree_count;
	int failed; /* first -errno */
	char failed_at[256];
};

void aw_plan_begin(struct aw_plan_builder *b);
void aw_plan_fini(struct aw_plan_builder *b);

void aw_plan_dir(struct aw_plan_builder *b, const char *at, uint32_t mode);
void aw_plan_file(struct aw_plan_builder *b, const char *at, uint32_t mode, struct aw_str content);
void aw_plan_symlink(struct aw_plan_builder *b, const char *at, const char *target);
void aw_plan_tmpfs(struct aw_plan_builder *b, const char *at, uint32_t mode, uint64_t size);
void aw_plan_proc(struct aw_plan_builder *b, const char *at);
void aw_plan_devpts(struct aw_plan_builder *b, const char *at);
void aw_plan_bind(struct aw_plan_builder *b, const char *source, const char *at, unsigned flags);
/* As aw_plan_bind, and the cell is refused if @source is not this inode (@ino 0: any). */
void aw_plan_bind_inode(struct aw_plan_builder *b, const char *source, const char *at,
			unsigned flags, uint64_t dev, uint64_t ino);
void aw_plan_tree(struct aw_plan_builder *b, const char *at, unsigned flags); /* next tree fd */
void aw_plan_pin(struct aw_plan_builder *b, const char *at, unsigned flags);
void aw_plan_mask(struct aw_plan_builder *b, const char *at, unsigned flags);
void aw_plan_allow(struct aw_plan_builder *b, const char *at, enum aw_plan_access access);
void aw_plan_cap(struct aw_plan_builder *b, const char *limit, uint64_t value);

/* Put text, strings (a NULL-terminated vector) or bytes behind the operations; returns the offset for the header. */
uint32_t aw_plan_text(struct aw_plan_builder *b, const char *text);
struct aw_plan_strings aw_plan_vector(struct aw_plan_builder *b, char *const *vector);
uint32_t aw_plan_blob(struct aw_plan_builder *b, const void *bytes, size_t len);

/* Complete @header (magic, size, operations) and seal all of it in a memfd. */
int aw_plan_seal(struct aw_plan_builder *b, struct aw_plan_header *header, struct aw_error *err);

/*
 * Check that @bytes are a plan: every offset inside, every text terminated, every code and count
 * known. Pure. -EBADMSG.
 */
int aw_plan_check(const void *bytes, size_t len, struct aw_error *err);

/* Readers of a checked plan. */
const struct aw_plan_op *aw_plan_op_at(const struct aw_plan_header *plan, uint32_t index);
const char *aw_plan_text_at(const struct aw_plan_header *plan, uint32_t offset);
const void *aw_plan_blob_at(const struct aw_plan_header *plan, uint32_t offset);

/* A NULL-terminated vector of pointers into the plan; the caller frees the vector. NULL: out of memory. */
char **aw_plan_vector_at(const struct aw_plan_header *plan, struct aw_plan_strings strings);
