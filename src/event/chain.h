/*
 * chain - the hash that ties each line of a journal to the line before it: SHA-256 (FIPS 180-4).
 */
#pragma once

#include <stdint.h>

#include "base/str.h"

#define AW_CHAIN_SIZE 32
#define AW_CHAIN_HEX_LEN 64

struct aw_chain {
	uint8_t hash[AW_CHAIN_SIZE];
};

/* The hash of @line, which does not include its newline. */
void aw_chain_hash(struct aw_str line, struct aw_chain *ret);

/* Lower-case hex, AW_CHAIN_HEX_LEN digits and a NUL. */
void aw_chain_to_hex(const struct aw_chain *chain, char out[AW_CHAIN_HEX_LEN + 1]);

/* The inverse, exactly that form only. Returns 0 or -EBADMSG. */
int aw_chain_from_hex(struct aw_str hex, struct aw_chain *ret);

bool aw_chain_is_equal(const struct aw_chain *a, const struct aw_chain *b);
