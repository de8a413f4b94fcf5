#include "policy/data-internal.h"

const struct aw_data *aw_data_find(const struct aw_data *table, size_t count, struct aw_str name)
{
	for (size_t i = 0; i < count; i++)
		if (aw_str_is(name, table[i].name))
			return &table[i];
	return NULL;
}
