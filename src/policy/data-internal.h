/*
 * data - the presets and agent profiles of data/, compiled in by embed.py: sorted by name.
 */
#pragma once

#include <stddef.h>

#include "base/str.h"

struct aw_data {
	const char *name; /* of the file, without ".json" */
	const char *text;
	size_t len;
};

extern const struct aw_data aw_data_presets[], aw_data_agents[];
extern const size_t aw_data_preset_count, aw_data_agent_count;

/* The element of that name, NULL if there is none. */
const struct aw_data *aw_data_find(const struct aw_data *table, size_t count, struct aw_str name);
