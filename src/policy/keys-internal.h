/*
 * keys - one table says what a document may hold; one walk holds the document to it.
 *
 * A row names a key by its path ("capabilities/network/offline", "*" stands for any name), its type
 * and bounds, who may write it, whether this version enforces it, and the function that stores it.
 * Rows stand in tree order: an object is followed by its members. The walk reports every unknown or
 * duplicate key, wrong type, value out of range and unenforced value, with its place, and stores the
 * rest; it fails only for want of memory.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/errors.h"
#include "policy/policy.h"
#include "policy/store-internal.h"

enum aw_key_type {
	AW_KEY_OBJECT = 1, /* members have rows of their own */
	AW_KEY_FREE,       /* an object whose members this version does not know */
	AW_KEY_OBJECTS, /* list of objects; members read into keys->element, then `set` per element */
	AW_KEY_BRANCH, /* an object that `set` reads by itself */
	AW_KEY_BOOL,
	AW_KEY_INT,     /* min..max */
	AW_KEY_NUMBER,  /* min..max, fractions too; handed over in thousandths */
	AW_KEY_STRING,  /* at most max bytes, not empty */
	AW_KEY_WORD,    /* one of `words` */
	AW_KEY_STRINGS, /* list of at most max strings; `set` per element */
	AW_KEY_WORDS,   /* list of `words` */
	AW_KEY_INTS,    /* list of whole numbers, min..max */
};

struct aw_keys;

/* One value that has the right type and lies within its bounds. */
struct aw_key_value {
	const json_t *json;
	uint32_t node;      /* its place; 0 when there is no text */
	const char *key;    /* the member's name */
	struct aw_str text; /* STRING, WORD, element of STRINGS or WORDS */
	int64_t number;     /* BOOL, INT, NUMBER, element of INTS; index of a WORD */
};

struct aw_key {
	const char *path;
	enum aw_key_type type;
	unsigned where; /* bits: which kinds of document may hold it */
	int64_t min, max;
	const char *const *words; /* NULL at the end */
	size_t offset;            /* in keys->target */
	/* 0, -ENOMEM; what it finds wrong it reports with aw_keys_error. NULL: checked, not stored. */
	int (*set)(struct aw_keys *keys, const struct aw_key *row,
		   const struct aw_key_value *value);
	bool (*needs)(const json_t *value); /* needs something this version has not; NULL: never */
	const char *instead;                /* then: what to do instead */
};

/* Rows of a table, by what they are: an object with rows of its own, a value that is stored, ... */
#define AW_ROW_OBJECT(path_, where_)                                      \
	{                                                                 \
		.path = (path_), .type = AW_KEY_OBJECT, .where = (where_) \
	}
#define AW_ROW(path_, type_, where_, min_, max_, offset_, set_)                                    \
	{                                                                                          \
		.path = (path_), .type = (type_), .where = (where_), .min = (min_), .max = (max_), \
		.offset = (offset_), .set = (set_)                                                 \
	}
#define AW_ROW_WORDS(path_, type_, where_, words_, offset_, set_)                       \
	{                                                                               \
		.path = (path_), .type = (type_), .where = (where_), .words = (words_), \
		.offset = (offset_), .set = (set_)                                      \
	}
/* Understood, checked, and refused when it needs what this version has not. */
#define AW_ROW_LATER(path_, type_, where_, min_, max_, words_, needs_, instead_)                   \
	{                                                                                          \
		.path = (path_), .type = (type_), .where = (where_), .min = (min_), .max = (max_), \
		.words = (words_), .needs = (needs_), .instead = (instead_)                        \
	}

/* One step of the way down from the root: a member, or an element of a list (then name is NULL). */
struct aw_key_step {
	const char *name;
	size_t index;
};

struct aw_keys {
	const struct aw_key *rows; /* the whole table */
	size_t row_count;
	void *target;
	unsigned where;
	const char *where_text; /* "a project's policy" */
	struct aw_store *store;
	struct aw_policy_source *source;
	struct aw_policy_errors *errors;
	const char *home;               /* for ~; may be NULL */
	struct aw_policy_entry element; /* of the AW_KEY_OBJECTS list that is being read */
	struct aw_key_step step[AW_JSON_DEPTH_MAX];
	unsigned depth;
};

/* Read @object (a JSON object at @node of the source's text) by all rows. */
int aw_keys_read(struct aw_keys *keys, const json_t *object, uint32_t node);

/* Report something about the value at @node, at the pointer where the walk stands. */
void aw_keys_error(struct aw_keys *keys, enum aw_policy_error_kind kind, uint32_t node,
		   const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Likewise at the key itself, its quote included. Always malformed. */
void aw_keys_error_at_key(struct aw_keys *keys, uint32_t node, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The members of one object in the table: rows [first, end) whose path is longer than @prefix. */
struct aw_key_range {
	const struct aw_key *first, *end;
	size_t prefix;
};

/* Whether @row is a member of the object whose path has @prefix bytes, not one further down. */
bool aw_key_is_direct(const struct aw_key *row, size_t prefix);

/* An unknown key with what may have been meant; a word that is none of the row's; a value refused. */
void aw_keys_unknown(struct aw_keys *keys, struct aw_key_range range, const char *key,
		     uint32_t node);
void aw_keys_report_word(struct aw_keys *keys, const struct aw_key *row, uint32_t node);
void aw_keys_report_unenforced(struct aw_keys *keys, const struct aw_key *row,
			       const struct aw_key_value *value);

struct aw_policy_origin aw_keys_origin(const struct aw_keys *keys, uint32_t node);

/* File, line and column of an origin, for an error that is found later. */
void aw_origin_head(const struct aw_policy_origin *origin, struct aw_policy_error *head);

/*
 * Parse @text into the source's JSON and report duplicates and faults. Returns 1 if there is an
 * object to read, 0 if not (reported), -ENOMEM.
 */
int aw_keys_open(struct aw_policy_source *source, struct aw_str text,
		 struct aw_policy_errors *errors);

/* Append to a list in the store; sets is_present. NULL when out of memory. */
struct aw_policy_entry *aw_list_append(struct aw_store *store, struct aw_policy_list *list,
				       const struct aw_policy_entry *entry);

/* The name nearest to @key among @count names (stride in bytes), NULL if none is near. */
const char *aw_nearest(const char *key, const char *const *names, size_t count);
