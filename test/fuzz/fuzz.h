/* fuzz - the one function that each fuzzer defines, and bytes as text. */
#pragma once

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline struct aw_str fuzz_str(const uint8_t *data, size_t size)
{
	return (struct aw_str){ (const char *)data, size };
}

/* True if @part lies inside @whole. */
static inline bool fuzz_is_inside(struct aw_str part, struct aw_str whole)
{
	return part.len == 0 ||
	       (part.ptr >= whole.ptr && part.ptr + part.len <= whole.ptr + whole.len);
}

/* How many bytes to add for the next piece: every cut for short inputs, some for long ones. */
static inline size_t fuzz_step(size_t size)
{
	return size <= 512 ? 1 : 1 + size / 256;
}
