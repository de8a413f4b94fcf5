#include "store/segment-internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "base/own.h"
#include "base/str.h"
#include "store/dir-internal.h"

#define PREFIX "journal-"
#define PREFIX_LEN 8
#define DIGITS 6

void aw_segment_name(uint32_t number, char out[AW_SEGMENT_NAME_LEN + 1])
{
	int n;

	assert(number >= 1 && number <= AW_SEGMENT_MAX);
	n = snprintf(out, AW_SEGMENT_NAME_LEN + 1, PREFIX "%06u.ndjson", number);
	assert(n == AW_SEGMENT_NAME_LEN);
}

/* 0 when @name is not the name of a segment. */
static uint32_t number_of(const char *name)
{
	struct aw_str s = aw_str_from(name);
	uint32_t number = 0;

	if (s.len != AW_SEGMENT_NAME_LEN || !aw_str_starts(s, PREFIX) || !aw_str_ends(s, ".ndjson"))
		return 0;
	for (size_t i = PREFIX_LEN; i < PREFIX_LEN + DIGITS; i++) {
		if (name[i] < '0' || name[i] > '9')
			return 0;
		number = number * 10 + (uint32_t)(name[i] - '0');
	}
	return number;
}

int aw_segment_next(int dir_fd, uint32_t after, uint32_t *ret, struct aw_error *err)
{
	autodrop(aw_dir_close) DIR *dir = aw_dir_open(dir_fd, ".", err);
	uint32_t best = 0;
	const char *name;

	if (dir == NULL)
		return aw_while(err, "list the journal");
	while ((name = aw_dir_next(dir)) != NULL) {
		uint32_t number = number_of(name);

		if (number > after && (best == 0 || number < best))
			best = number;
	}
	if (errno != 0)
		return aw_fail(err, errno, "list the journal");
	if (best == 0)
		return 0;
	*ret = best;
	return 1;
}
