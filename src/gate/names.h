/*
 * names - granted names and the synthetic addresses that stand for them inside the cell.
 *
 * A name that the DNS stub was asked for gets the next free address of 198.18.0.0/15 and keeps it.
 * When AW_NAMES_MAX names are known, the one that was given its address longest ago and that no
 * connection uses makes room. Nothing is decided here: the policy is asked again at every connection.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "policy/net.h"

#define AW_NAMES_MAX 16384
#define AW_NAMES_BUCKETS 4096
#define AW_NAMES_NONE UINT16_MAX

struct aw_name {
	char *text;      /* normalised; NULL: never used */
	uint32_t users;  /* connections that were opened to its address */
	uint16_t next;   /* in its bucket */
	uint16_t bucket; /* its own */
};

struct aw_names {
	struct aw_name *entry; /* grown by doubling up to AW_NAMES_MAX */
	size_t count, capacity;
	size_t oldest; /* where the search for room goes on */
	uint16_t bucket[AW_NAMES_BUCKETS];
};

void aw_names_init(struct aw_names *names);
void aw_names_fini(struct aw_names *names);

/*
 * The entry of @name, made if there is none. -ENOSPC when every one is in use, -ENOMEM. An entry
 * stays valid as a number as long as it has users.
 */
int aw_names_give(struct aw_names *names, struct aw_str name);

/* The entry that an address stands for, or -ENOENT. */
int aw_names_find(const struct aw_names *names, const uint8_t address[4]);

/* The address of an entry. */
void aw_names_address(int entry, uint8_t ret[4]);
