#include "policy/keys-internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

static int read_object(struct aw_keys *keys, struct aw_key_range range, const json_t *object,
		       uint32_t node);

bool aw_key_is_direct(const struct aw_key *row, size_t prefix)
{
	return strchr(row->path + prefix, '/') == NULL;
}

static struct aw_key_range members_of(const struct aw_keys *keys, const struct aw_key *row)
{
	size_t prefix = strlen(row->path);
	const struct aw_key *end = row + 1, *table_end = keys->rows + keys->row_count;

	while (end < table_end && strncmp(end->path, row->path, prefix) == 0 &&
	       end->path[prefix] == '/')
		end++;
	return (struct aw_key_range){ row + 1, end, prefix + 1 };
}

static const struct aw_key *find_row(struct aw_key_range range, const char *key)
{
	for (const struct aw_key *row = range.first; row < range.end; row++) {
		const char *name = row->path + range.prefix;

		/* A key with a slash in it is no path. */
		if (aw_key_is_direct(row, range.prefix) &&
		    (strcmp(name, key) == 0 || strcmp(name, "*") == 0))
			return row;
	}
	return NULL;
}

/* The text is no deeper than the steps: aw_json_parse saw to that. */
static void push(struct aw_keys *keys, const char *name, size_t index)
{
	assert(keys->depth < AW_JSON_DEPTH_MAX);
	keys->step[keys->depth++] = (struct aw_key_step){ name, index };
}

static int store_value(struct aw_keys *keys, const struct aw_key *row,
		       const struct aw_key_value *value)
{
	return row->set != NULL ? row->set(keys, row, value) : 0;
}

static int read_number(struct aw_keys *keys, const struct aw_key *row, struct aw_key_value *value)
{
	bool takes_fraction = row->type == AW_KEY_NUMBER;
	double real = json_number_value(value->json);

	if (!(takes_fraction ? json_is_number(value->json) : json_is_integer(value->json))) {
		aw_keys_error(keys, AW_POLICY_MALFORMED, value->node,
			      "must be a %s from %" PRId64 " to %" PRId64,
			      takes_fraction ? "number" : "whole number", row->min, row->max);
		return 0;
	}
	/* Compared before any conversion: a double may hold what no integer can. */
	if (!(real >= (double)row->min && real <= (double)row->max)) {
		aw_keys_error(keys, AW_POLICY_MALFORMED, value->node,
			      "is out of range: %" PRId64 " to %" PRId64, row->min, row->max);
		return 0;
	}
	value->number = takes_fraction ? (int64_t)(real * 1000 + 0.5)
				       : (int64_t)json_integer_value(value->json);
	return store_value(keys, row, value);
}

static int read_bool(struct aw_keys *keys, const struct aw_key *row, struct aw_key_value *value)
{
	if (!json_is_boolean(value->json)) {
		aw_keys_error(keys, AW_POLICY_MALFORMED, value->node, "must be true or false");
		return 0;
	}
	value->number = json_is_true(value->json);
	return store_value(keys, row, value);
}

/*
 * jansson's lexer goes on when it cannot grow its buffer, and bytes are missing from what it read.
 * What the text at @node says is the truth; an escaped string cannot be compared and is believed.
 */
static bool is_as_written(const struct aw_keys *keys, uint32_t node, struct aw_str text)
{
	const struct aw_json *json = keys->source->json;
	const char *raw = json->text + json->nodes[node].value + 1;
	size_t left = json->len - json->nodes[node].value - 1;
	const char *end = memchr(raw, '"', left);

	if (end == NULL)
		return false;
	if (memchr(raw, '\\', (size_t)(end - raw)) != NULL)
		return true;
	return aw_str_is_equal(text, (struct aw_str){ raw, (size_t)(end - raw) });
}

static int read_string(struct aw_keys *keys, const struct aw_key *row, struct aw_key_value *value)
{
	value->text =
		(struct aw_str){ json_string_value(value->json), json_string_length(value->json) };
	if (json_is_string(value->json) && !is_as_written(keys, value->node, value->text))
		return -ENOMEM;
	if (!json_is_string(value->json) || value->text.len == 0)
		aw_keys_error(keys, AW_POLICY_MALFORMED, value->node,
			      "must be a text that is not empty");
	else if (row->type == AW_KEY_STRING && value->text.len > (size_t)row->max)
		aw_keys_error(keys, AW_POLICY_MALFORMED, value->node,
			      "is longer than %" PRId64 " bytes", row->max);
	else
		return store_value(keys, row, value);
	return 0;
}

static int read_word(struct aw_keys *keys, const struct aw_key *row, struct aw_key_value *value)
{
	value->text =
		(struct aw_str){ json_string_value(value->json), json_string_length(value->json) };
	for (size_t i = 0; json_is_string(value->json) && row->words[i] != NULL; i++) {
		if (!aw_str_is(value->text, row->words[i]))
			continue;
		value->number = (int64_t)i;
		return store_value(keys, row, value);
	}
	aw_keys_report_word(keys, row, value->node);
	return 0;
}

static int read_element_object(struct aw_keys *keys, const struct aw_key *row,
			       struct aw_key_value *value)
{
	void *target = keys->target;
	int r;

	if (!json_is_object(value->json)) {
		aw_keys_error(keys, AW_POLICY_MALFORMED, value->node, "must be an object");
		return 0;
	}
	keys->element = (struct aw_policy_entry){ 0 };
	keys->target = &keys->element;
	r = read_object(keys, members_of(keys, row), value->json, value->node);
	keys->target = target;
	return r < 0 ? r : store_value(keys, row, value);
}

static int read_element(struct aw_keys *keys, const struct aw_key *row, struct aw_key_value *value)
{
	switch ((int)row->type) {
	case AW_KEY_STRINGS:
		return read_string(keys, row, value);
	case AW_KEY_WORDS:
		return read_word(keys, row, value);
	case AW_KEY_INTS:
		return read_number(keys, row, value);
	default:
		return read_element_object(keys, row, value);
	}
}

static int read_list(struct aw_keys *keys, const struct aw_key *row, struct aw_key_value *value)
{
	const struct aw_json *json = keys->source->json;
	uint32_t node = json->nodes[value->node].child;
	size_t max = row->type == AW_KEY_STRINGS ? (size_t)row->max : AW_POLICY_LIST_MAX;
	size_t count = json_array_size(value->json);

	if (!json_is_array(value->json) || count > max) {
		aw_keys_error(keys, AW_POLICY_MALFORMED, value->node,
			      "must be a list of at most %zu elements", max);
		return 0;
	}
	if (row->set != NULL)
		((struct aw_policy_list *)(void *)((char *)keys->target + row->offset))
			->is_present = true;
	for (size_t i = 0; i < count; i++) {
		struct aw_key_value element = {
			json_array_get(value->json, i), node, value->key, { NULL, 0 }, 0
		};
		int r;

		push(keys, NULL, i);
		r = read_element(keys, row, &element);
		keys->depth--;
		if (r < 0)
			return r;
		node = json->nodes[node].next;
	}
	return 0;
}

static int read_members(struct aw_keys *keys, const struct aw_key *row, struct aw_key_value *value)
{
	if (!json_is_object(value->json)) {
		aw_keys_error(keys, AW_POLICY_MALFORMED, value->node, "must be an object");
		return 0;
	}
	if (row->type == AW_KEY_OBJECT)
		return read_object(keys, members_of(keys, row), value->json, value->node);
	return store_value(keys, row, value);
}

static int read_value(struct aw_keys *keys, const struct aw_key *row, struct aw_key_value *value)
{
	static int (*const readers[])(struct aw_keys *, const struct aw_key *,
				      struct aw_key_value *) = {
		[AW_KEY_OBJECT] = read_members, [AW_KEY_FREE] = read_members,
		[AW_KEY_OBJECTS] = read_list,   [AW_KEY_BRANCH] = read_members,
		[AW_KEY_BOOL] = read_bool,      [AW_KEY_INT] = read_number,
		[AW_KEY_NUMBER] = read_number,  [AW_KEY_STRING] = read_string,
		[AW_KEY_WORD] = read_word,      [AW_KEY_STRINGS] = read_list,
		[AW_KEY_WORDS] = read_list,     [AW_KEY_INTS] = read_list,
	};
	size_t before = aw_policy_errors_total(keys->errors);
	int r;

	if ((row->where & keys->where) == 0) {
		aw_keys_error_at_key(keys, value->node, "is not a key of %s", keys->where_text);
		return 0;
	}
	r = readers[row->type](keys, row, value);
	if (r < 0 || aw_policy_errors_total(keys->errors) > before)
		return r;
	if (row->needs != NULL && row->needs(value->json))
		aw_keys_report_unenforced(keys, row, value);
	return 0;
}

static int read_object(struct aw_keys *keys, struct aw_key_range range, const json_t *object,
		       uint32_t node)
{
	uint32_t cursor = 0;
	const char *name;
	json_t *member;

	json_object_foreach((json_t *)(uintptr_t)object, name, member)
	{
		uint32_t place = aw_json_member(keys->source->json, node, name, &cursor);
		struct aw_key_value value = { member, place, name, { NULL, 0 }, 0 };
		const struct aw_key *row = find_row(range, name);
		int r = 0;

		push(keys, name, 0);
		if (place == 0)
			r = -ENOMEM; /* a key that the text has not: see is_as_written */
		else if (row != NULL)
			r = read_value(keys, row, &value);
		else
			aw_keys_unknown(keys, range, name, place);
		keys->depth--;
		if (r < 0)
			return r;
	}
	return 0;
}

int aw_keys_read(struct aw_keys *keys, const json_t *object, uint32_t node)
{
	return read_object(keys,
			   (struct aw_key_range){ keys->rows, keys->rows + keys->row_count, 0 },
			   object, node);
}

struct aw_policy_entry *aw_list_append(struct aw_store *store, struct aw_policy_list *list,
				       const struct aw_policy_entry *entry)
{
	if (list->count == list->capacity) {
		size_t capacity = list->capacity == 0 ? 8 : list->capacity * 2;
		struct aw_policy_entry *larger = aw_store_alloc(store, capacity, sizeof(*larger));

		if (larger == NULL)
			return NULL;
		if (list->count > 0)
			memcpy(larger, list->entry, list->count * sizeof(*larger));
		list->entry = larger;
		list->capacity = capacity;
	}
	list->is_present = true;
	list->entry[list->count] = *entry;
	return &list->entry[list->count++];
}
