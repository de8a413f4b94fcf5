/*
 * segment - the files of one journal: journal-000001.ndjson, journal-000002.ndjson, ...
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define AW_SEGMENT_MAX 999999
#define AW_SEGMENT_NAME_LEN 21

/* The name of segment @number (1 to AW_SEGMENT_MAX). */
void aw_segment_name(uint32_t number, char out[AW_SEGMENT_NAME_LEN + 1]);

/*
 * The smallest number of a segment in @dir_fd that is larger than @after. Returns 1 and the
 * number, 0 if there is none, or -errno.
 */
int aw_segment_next(int dir_fd, uint32_t after, uint32_t *ret, struct aw_error *err);
