/* Entry i is 198.18.0.0 + FIRST + i: .0.0 is the network, .0.1 is what `lo` itself has. */
#include "gate/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"

#define RANGE_BASE 0xc6120000u /* 198.18.0.0 */
#define FIRST 2u

void aw_names_init(struct aw_names *names)
{
	*names = (struct aw_names){ 0 };
	for (size_t i = 0; i < AW_NAMES_BUCKETS; i++)
		names->bucket[i] = AW_NAMES_NONE;
}

void aw_names_fini(struct aw_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->entry[i].text);
	free(names->entry);
	aw_names_init(names);
}

/* FNV-1a. A chain of all names at once costs less than one look-up in the real DNS. */
static uint16_t bucket_of(struct aw_str name)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < name.len; i++)
		hash = (hash ^ (uint8_t)name.ptr[i]) * 16777619u;
	return (uint16_t)(hash % AW_NAMES_BUCKETS);
}

static uint16_t find_name(const struct aw_names *names, struct aw_str name, uint16_t bucket)
{
	uint16_t i = names->bucket[bucket];

	while (i != AW_NAMES_NONE && !aw_str_is(name, names->entry[i].text))
		i = names->entry[i].next;
	return i;
}

static int grow(struct aw_names *names)
{
	size_t capacity = names->capacity == 0 ? 64 : names->capacity * 2;
	struct aw_name *entry;

	if (names->count < names->capacity)
		return 0;
	entry = reallocarray(names->entry, capacity, sizeof(*entry));
	if (entry == NULL)
		return -ENOMEM;
	names->entry = entry;
	names->capacity = capacity;
	return 0;
}

static void unchain(struct aw_names *names, uint16_t victim)
{
	struct aw_name *entry = &names->entry[victim];
	uint16_t *link = &names->bucket[entry->bucket];

	while (*link != victim)
		link = &names->entry[*link].next;
	*link = entry->next;
}

/* The entry that was filled longest ago and is not in use. */
static int make_room(struct aw_names *names)
{
	for (size_t i = 0; i < AW_NAMES_MAX; i++) {
		size_t victim = names->oldest;

		names->oldest = (names->oldest + 1) % AW_NAMES_MAX;
		if (names->entry[victim].users > 0)
			continue;
		unchain(names, (uint16_t)victim);
		free(names->entry[victim].text);
		names->entry[victim].text = NULL;
		return (int)victim;
	}
	return -ENOSPC;
}

int aw_names_give(struct aw_names *names, struct aw_str name)
{
	uint16_t bucket = bucket_of(name), known = find_name(names, name, bucket);
	autofree char *text = NULL;
	int slot;

	if (known != AW_NAMES_NONE)
		return known;
	text = aw_str_dup(name);
	if (text == NULL)
		return -ENOMEM;
	if (names->count < AW_NAMES_MAX) {
		slot = grow(names);
		if (slot == 0)
			slot = (int)names->count++;
	} else {
		slot = make_room(names);
	}
	if (slot < 0)
		return slot;
	names->entry[slot] = (struct aw_name){ .text = AW_TAKE_PTR(text),
					       .next = names->bucket[bucket],
					       .bucket = bucket };
	names->bucket[bucket] = (uint16_t)slot;
	return slot;
}

int aw_names_find(const struct aw_names *names, const uint8_t address[4])
{
	uint32_t host = (uint32_t)address[0] << 24 | (uint32_t)address[1] << 16 |
			(uint32_t)address[2] << 8 | address[3];

	if (host < RANGE_BASE + FIRST || host - RANGE_BASE - FIRST >= names->count)
		return -ENOENT;
	return (int)(host - RANGE_BASE - FIRST);
}

void aw_names_address(int entry, uint8_t ret[4])
{
	uint32_t host = RANGE_BASE + FIRST + (uint32_t)entry;

	ret[0] = (uint8_t)(host >> 24);
	ret[1] = (uint8_t)(host >> 16);
	ret[2] = (uint8_t)(host >> 8);
	ret[3] = (uint8_t)host;
}
