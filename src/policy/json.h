/*
 * json - policy text to a tree, with the place of everything in it.
 *
 * Policies are JSON with comments; jansson knows neither comments nor where a value stood. So one
 * scan over a copy of the text blanks the comments byte for byte (every offset and line stays what the
 * person sees in the editor), bounds size, depth and number of values, and notes where each key and
 * value begins; then jansson parses the blanked copy.
 *
 *	r = aw_json_parse(text, len, &json, &fault);
 *	aw_json_node(json, 0) is the place of json->root; aw_json_member and aw_json_element step down
 *	aw_json_drop(&json);
 *
 * Duplicate keys are errors of the text, not of its syntax: they are listed in json->duplicates and
 * the tree holds the last one, so that the caller can report everything else as well.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define AW_JSON_SIZE_MAX (1024 * 1024)
#define AW_JSON_DEPTH_MAX 16
#define AW_JSON_VALUES_MAX 32768
#define AW_JSON_DUPLICATES_MAX 16

struct aw_json_node {
	uint32_t key, key_len; /* raw bytes between the quotes; 0, 0 in arrays and for the root */
	uint32_t value;        /* offset of the first byte */
	uint32_t child;        /* index of the first child, 0 = none */
	uint32_t next;         /* index of the next sibling, 0 = none */
};

struct aw_json {
	json_t *root;
	char *text; /* comments blanked */
	size_t len;
	struct aw_json_node *nodes; /* [0] is the root */
	size_t node_count, node_capacity;
	uint32_t duplicates[AW_JSON_DUPLICATES_MAX]; /* nodes whose key stood before them */
	size_t duplicate_count;
};

/* What is wrong with the text as such, and where (an offset in it). */
struct aw_json_fault {
	size_t offset;
	char message[240];
};

/* 0; -EBADMSG with *ret_fault filled; -ENOMEM. @text is not kept. */
int aw_json_parse(const char *text, size_t len, struct aw_json **ret,
		  struct aw_json_fault *ret_fault);
void aw_json_drop(struct aw_json **slot);

/*
 * The node of the member @key of the object at @node; with duplicate keys the last, as in the tree.
 * *@cursor makes walking an object in its order linear: start with 0 per object. 0 if there is none
 * (the root is nobody's member).
 */
uint32_t aw_json_member(const struct aw_json *json, uint32_t node, const char *key,
			uint32_t *cursor);

/* Line and column (both from 1; a column is a byte) of an offset. */
void aw_json_place(struct aw_str text, size_t offset, unsigned *ret_line, unsigned *ret_column);
