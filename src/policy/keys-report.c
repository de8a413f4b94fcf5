/* Saying what the walk found, and where. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "policy/keys-internal.h"

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

/* RFC 6901: "~" and "/" of a name are written "~0" and "~1". Returns the new length. */
static size_t append_step(char *pointer, size_t size, size_t len, const struct aw_key_step *step)
{
	char digits[24];
	const char *name = step->name;

	(void)aw_str_format(digits, sizeof(digits), "%zu", step->index);
	if (name == NULL)
		name = digits;
	if (len + 1 < size)
		pointer[len++] = '/';
	for (; *name != '\0' && len + 2 < size; name++) {
		if (*name == '~' || *name == '/') {
			pointer[len++] = '~';
			pointer[len++] = *name == '~' ? '0' : '1';
		} else {
			pointer[len++] = *name;
		}
	}
	pointer[len] = '\0';
	return len;
}

static void report(struct aw_keys *keys, enum aw_policy_error_kind kind, size_t offset,
		   const char *format, va_list args) __attribute__((format(printf, 4, 0)));

static void report(struct aw_keys *keys, enum aw_policy_error_kind kind, size_t offset,
		   const char *format, va_list args)
{
	struct aw_policy_error head = { .kind = kind };
	char message[sizeof(head.message)], pointer[sizeof(head.pointer)] = "";
	size_t len = 0;

	head_at(keys->source, offset, &head);
	for (unsigned i = 0; i < keys->depth; i++)
		len = append_step(pointer, sizeof(pointer), len, &keys->step[i]);
	(void)aw_str_escape(aw_str_from(pointer), head.pointer, sizeof(head.pointer));
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

void aw_keys_error_at_key(struct aw_keys *keys, uint32_t node, const char *format, ...)
{
	const struct aw_json_node *place = &keys->source->json->nodes[node];
	va_list args;

	va_start(args, format);
	report(keys, AW_POLICY_MALFORMED, place->key > 0 ? place->key - 1 : place->value, format,
	       args);
	va_end(args);
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

static const char *elsewhere(const struct aw_keys *keys, const char *key)
{
	for (size_t i = 0; i < keys->row_count; i++)
		if (strcmp(last_part(keys->rows[i].path), key) == 0)
			return keys->rows[i].path;
	return NULL;
}

void aw_keys_unknown(struct aw_keys *keys, struct aw_key_range range, const char *key,
		     uint32_t node)
{
	const char *names[64], *near, *other;
	size_t count = 0;
	char shown[80];

	for (const struct aw_key *row = range.first; row < range.end; row++)
		if (aw_key_is_direct(row, range.prefix) && count < 64)
			names[count++] = row->path + range.prefix;
	(void)aw_str_escape(aw_str_from(key), shown, sizeof(shown));
	other = elsewhere(keys, key);
	near = aw_nearest(key, names, count);
	if (other != NULL)
		aw_keys_error_at_key(keys, node, "unknown key \"%s\" here; it belongs at /%s",
				     shown, other);
	else if (near != NULL)
		aw_keys_error_at_key(keys, node, "unknown key \"%s\"; did you mean \"%s\"?", shown,
				     near);
	else
		aw_keys_error_at_key(keys, node, "unknown key \"%s\"", shown);
}

void aw_keys_report_word(struct aw_keys *keys, const struct aw_key *row, uint32_t node)
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

/* "delete: false", "audit.level \"full\"", "budgets": as a person would name the row's key. */
void aw_keys_report_unenforced(struct aw_keys *keys, const struct aw_key *row,
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
