#include "policy/keys-internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The members of one object in the table: rows [first, end) whose path is longer than @prefix. */
struct range {
	const struct aw_key *first, *end;
	size_t prefix;
};

static int read_object(struct aw_keys *keys, struct range range, const json_t *object,
		       uint32_t node);

struct aw_policy_origin aw_keys_origin(const struct aw_keys *keys, uint32_t node)
{
	const struct aw_json *json = keys->source->json;

	return (struct aw_policy_origin){ keys->source,
					  json != NULL ? json->nodes[node].value : 0 };
}

void aw_origin_head(const struct aw_policy_origin *origin, struct aw_policy_error *head)
{
	const struct aw_policy_source *source = origin->source;
	const struct aw_json *json = source != NULL ? source->json : NULL;

	(void)aw_str_escape(source != NULL ? aw_str_from(source->name) : AW_STR("built in"),
			    head->file, sizeof(head->file));
	if (json != NULL)
		aw_json_place((struct aw_str){ json->text, json->len }, origin->offset, &head->line,
			      &head->column);
}

static void head_at(const struct aw_policy_source *source, size_t offset,
		    struct aw_policy_error *head)
{
	aw_origin_head(&(struct aw_policy_origin){ source, (uint32_t)offset }, head);
}

static void report(struct aw_keys *keys, enum aw_policy_error_kind kind, size_t offset,
		   const char *format, va_list args)
{
	struct aw_policy_error head = { .kind = kind };
	char message[sizeof(head.message)];

	head_at(keys->source, offset, &head);
	(void)aw_str_escape(aw_str_from(keys->pointer), head.pointer, sizeof(head.pointer));
	(void)vsnprintf(message, sizeof(message), format, args);
	aw_policy_errors_add(keys->errors, &head, "%s", message);
}

void aw_keys_error(struct aw_keys *keys, enum aw_policy_error_kind kind, uint32_t node,
		   const char *format, ...)
{
	va_list args;

	va_start(args, format);
	report(keys, kind, aw_keys_origin(keys, node).offset, format, args);
	va_end(args);
}

static void malformed_at_key(struct aw_keys *keys, uint32_t node, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The key's own place, with the quote before it. */
static void malformed_at_key(struct aw_keys *keys, uint32_t node, const char *format, ...)
{
	const struct aw_json_node *place = &keys->source->json->nodes[node];
	va_list args;

	va_start(args, format);
	report(keys, AW_POLICY_MALFORMED, place->key > 0 ? place->key - 1 : place->value, format,
	       args);
	va_end(args);
}

/* RFC 6901: "~" and "/" of a name are written "~0" and "~1". Returns what to pop back to. */
static size_t push(struct aw_keys *keys, const char *name)
{
	size_t mark = keys->pointer_len, at = mark;

	if (at + 1 < sizeof(keys->pointer))
		keys->pointer[at++] = '/';
	for (; *name != '\0' && at + 2 < sizeof(keys->pointer); name++) {
		if (*name == '~' || *name == '/') {
			keys->pointer[at++] = '~';
			keys->pointer[at++] = *name == '~' ? '0' : '1';
		} else {
			keys->pointer[at++] = *name;
		}
	}
	keys->pointer[at] = '\0';
	keys->pointer_len = at;
	return mark;
}

static size_t push_index(struct aw_keys *keys, size_t index)
{
	char text[24];

	(void)aw_str_format(text, sizeof(text), "%zu", index);
	return push(keys, text);
}

static void pop(struct aw_keys *keys, size_t mark)
{
	keys->pointer_len = mark;
	keys->pointer[mark] = '\0';
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

static bool is_direct(const struct aw_key *row, size_t prefix)
{
	return strchr(row->path + prefix, '/') == NULL;
}

static struct range members_of(const struct aw_keys *keys, const struct aw_key *row)
{
	size_t prefix = strlen(row->path);
	const struct aw_key *end = row + 1, *table_end = keys->rows + keys->row_count;

	while (end < table_end && strncmp(end->path, row->path, prefix) == 0 &&
	       end->path[prefix] == '/')
		end++;
	return (struct range){ row + 1, end, prefix + 1 };
}

static const struct aw_key *find_row(struct range range, const char *key)
{
	for (const struct aw_key *row = range.first; row < range.end; row++) {
		const char *name = row->path + range.prefix;

		if (strcmp(name, key) == 0 || strcmp(name, "*") == 0)
			return row;
	}
	return NULL;
}

static const char *elsewhere(const struct aw_keys *keys, const char *key)
{
	for (size_t i = 0; i < keys->row_count; i++)
		if (strcmp(last_part(keys->rows[i].path), key) == 0)
			return keys->rows[i].path;
	return NULL;
}

static void unknown_key(struct aw_keys *keys, struct range range, const char *key, uint32_t node)
{
	const char *names[64], *near, *other;
	size_t count = 0;
	char shown[80];

	for (const struct aw_key *row = range.first; row < range.end; row++)
		if (is_direct(row, range.prefix) && count < 64)
			names[count++] = row->path + range.prefix;
	(void)aw_str_escape(aw_str_from(key), shown, sizeof(shown));
	other = elsewhere(keys, key);
	near = aw_nearest(key, names, count);
	if (other != NULL)
		malformed_at_key(keys, node, "unknown key \"%s\" here; it belongs at /%s", shown,
				 other);
	else if (near != NULL)
		malformed_at_key(keys, node, "unknown key \"%s\"; did you mean \"%s\"?", shown,
				 near);
	else
		malformed_at_key(keys, node, "unknown key \"%s\"", shown);
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

static void report_word(struct aw_keys *keys, const struct aw_key *row, uint32_t node)
{
	char list[200] = "";
	size_t len = 0;

	for (size_t i = 0; row->words[i] != NULL && len < sizeof(list); i++) {
		int n = snprintf(list + len, sizeof(list) - len, "%s\"%s\"", i > 0 ? ", " : "",
				 row->words[i]);

		len += n > 0 ? (size_t)n : 0;
	}
	aw_keys_error(keys, AW_POLICY_MALFORMED, node, "must be one of %s", list);
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
	report_word(keys, row, value->node);
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
		size_t mark = push_index(keys, i);
		int r = read_element(keys, row, &element);

		pop(keys, mark);
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

/* "delete: false", "audit.level \"full\"", "budgets": as a person would name the row's key. */
static void report_unenforced(struct aw_keys *keys, const struct aw_key *row,
			      const struct aw_key_value *value)
{
	const char *path = row->path;
	char name[80];
	size_t len;

	if (strncmp(path, "capabilities/", 13) == 0)
		path = last_part(path)[0] == '*' ? strchr(path + 13, '/') + 1 : last_part(path);
	len = strlen(path) - (aw_str_ends(aw_str_from(path), "/*") ? 2 : 0);
	(void)aw_str_format(name, sizeof(name), "%.*s", (int)len, path);
	for (char *c = name; *c != '\0'; c++)
		if (*c == '/')
			*c = '.';
	if (row->type == AW_KEY_WORD)
		aw_keys_error(keys, AW_POLICY_UNENFORCED, value->node,
			      "%s \"%s\" is not enforced by this version: %s", name,
			      value->text.ptr, row->instead);
	else
		aw_keys_error(keys, AW_POLICY_UNENFORCED, value->node,
			      "%s%s is not enforced by this version: %s", name,
			      json_is_false(value->json)  ? ": false"
			      : json_is_true(value->json) ? ": true"
							  : "",
			      row->instead);
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
		malformed_at_key(keys, value->node, "is not a key of %s", keys->where_text);
		return 0;
	}
	r = readers[row->type](keys, row, value);
	if (r < 0 || aw_policy_errors_total(keys->errors) > before)
		return r;
	if (row->needs != NULL && row->needs(value->json))
		report_unenforced(keys, row, value);
	return 0;
}

static int read_object(struct aw_keys *keys, struct range range, const json_t *object,
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
		size_t mark = push(keys, name);
		int r = 0;

		if (place == 0)
			r = -ENOMEM; /* a key that the text has not: see is_as_written */
		else if (row != NULL)
			r = read_value(keys, row, &value);
		else
			unknown_key(keys, range, name, place);
		pop(keys, mark);
		if (r < 0)
			return r;
	}
	return 0;
}

int aw_keys_read(struct aw_keys *keys, const json_t *object, uint32_t node)
{
	return read_object(keys, (struct range){ keys->rows, keys->rows + keys->row_count, 0 },
			   object, node);
}

static void report_duplicates(const struct aw_policy_source *source,
			      struct aw_policy_errors *errors)
{
	const struct aw_json *json = source->json;

	for (size_t i = 0; i < json->duplicate_count; i++) {
		const struct aw_json_node *node = &json->nodes[json->duplicates[i]];
		struct aw_policy_error head = { .kind = AW_POLICY_MALFORMED };
		char shown[80];

		head_at(source, node->key - 1, &head);
		(void)aw_str_escape((struct aw_str){ json->text + node->key, node->key_len }, shown,
				    sizeof(shown));
		aw_policy_errors_add(errors, &head, "duplicate key \"%s\"", shown);
	}
}

int aw_keys_open(struct aw_policy_source *source, struct aw_str text,
		 struct aw_policy_errors *errors)
{
	struct aw_policy_error head = { .kind = AW_POLICY_MALFORMED };
	struct aw_json_fault fault;
	int r;

	r = aw_json_parse(text.ptr, text.len, &source->json, &fault);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		head_at(source, 0, &head);
		aw_json_place(text, fault.offset, &head.line, &head.column);
		aw_policy_errors_add(errors, &head, "%s", fault.message);
		return 0;
	}
	report_duplicates(source, errors);
	if (json_is_object(source->json->root))
		return 1;
	head_at(source, source->json->nodes[0].value, &head);
	aw_policy_errors_add(errors, &head, "must be an object: { ... }");
	return 0;
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
