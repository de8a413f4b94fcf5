/*
 * policy-edit-internal - where things stand in a policy text: offsets and lines, no meaning.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "policy/json.h"

/* The text as the person wrote it beside the same with its comments blanked: offsets are alike. */
struct aw_edit_text {
	struct aw_str original;
	const struct aw_json *json;
};

/* An object or a list, and what its last line looks like. */
struct aw_edit_box {
	size_t open, close;    /* of its brackets */
	bool is_empty;         /* no member or element */
	size_t last, last_end; /* the last one: its first byte (that of its key), and behind it */
	bool is_closing_alone; /* the closing bracket begins its line */
	bool is_last_at_line;  /* the last one begins its line */
	struct aw_str last_indent, close_indent;
};

/* The offset behind the value that begins at @at. */
size_t aw_edit_value_end(const struct aw_edit_text *t, size_t at);
void aw_edit_look(const struct aw_edit_text *t, uint32_t node, struct aw_edit_box *ret);

/* The first byte of the line that @at is in; what stands there before the first visible byte. */
size_t aw_edit_line_start(const struct aw_edit_text *t, size_t at);
bool aw_edit_begins_line(const struct aw_edit_text *t, size_t at);

/* By how much the person indents, and how lines end. */
struct aw_str aw_edit_unit(const struct aw_edit_text *t);
const char *aw_edit_line_end(const struct aw_edit_text *t);

/* The bytes to cut so that the element from @start to @end and one comma of the list go. */
struct aw_edit_cut {
	size_t from, to; /* empty when alike */
};

void aw_edit_cuts(const struct aw_edit_text *t, size_t start, size_t end,
		  struct aw_edit_cut ret[2]);
