/*
 * hardlink - held files that have another name.
 *
 * Read-only is the name of a file, not the file: whoever has a hard link to it, made before it was held,
 * writes it by that. So files with more than one name are remembered and noted at the start, and at the
 * end those that changed are reported. The kernel makes no new ones: the held name is a mount of its own.
 */
#pragma once

#include "base/error.h"
#include "cell/grants.h"
#include "cell/protect.h"

#define AW_HARDLINK_DEPTH_MAX 4
#define AW_HARDLINK_NAMES_MAX 1024 /* in one held directory */

/* Add the files with more than one name at or below @path to the `linked` of @g, with a note. */
int aw_hardlink_find(const struct aw_protect_place *place, const char *path, struct aw_grants *g,
		     struct aw_error *err);
