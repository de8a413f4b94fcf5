#include "policy/json.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/own.h"

/* One open object or array while scanning. */
struct level {
	uint32_t node, last; /* last child, 0 = none yet */
	bool is_object, wants_key;
};

struct scan {
	struct aw_json *json;
	size_t at;
	struct level level[AW_JSON_DEPTH_MAX];
	unsigned depth;
	uint32_t key, key_len; /* waiting for its value */
	struct aw_json_fault *fault;
};

static int fault_at(struct aw_json_fault *fault, size_t offset, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int fault_at(struct aw_json_fault *fault, size_t offset, const char *format, ...)
{
	va_list args;

	fault->offset = offset;
	va_start(args, format);
	(void)vsnprintf(fault->message, sizeof(fault->message), format, args);
	va_end(args);
	return -EBADMSG;
}

static bool starts(const struct scan *s, const char *pair)
{
	return s->at + 1 < s->json->len && s->json->text[s->at] == pair[0] &&
	       s->json->text[s->at + 1] == pair[1];
}

static void blank(struct scan *s)
{
	char *c = &s->json->text[s->at++];

	if (*c != '\n' && *c != '\r')
		*c = ' ';
}

static int blank_comment(struct scan *s)
{
	size_t begin = s->at;
	bool is_block = starts(s, "/*");

	if (!is_block && !starts(s, "//"))
		return fault_at(s->fault, begin, "'/' outside a string starts no comment");
	blank(s);
	blank(s);
	while (s->at < s->json->len) {
		if (!is_block && s->json->text[s->at] == '\n')
			return 0;
		if (is_block && starts(s, "*/")) {
			blank(s);
			blank(s);
			return 0;
		}
		blank(s);
	}
	return is_block ? fault_at(s->fault, begin, "comment is not closed") : 0;
}

static int add_node(struct scan *s, uint32_t *ret)
{
	struct aw_json *json = s->json;
	struct level *parent = s->depth > 0 ? &s->level[s->depth - 1] : NULL;

	if (json->node_count == AW_JSON_VALUES_MAX)
		return fault_at(s->fault, s->at, "more than %d values", AW_JSON_VALUES_MAX);
	if (json->node_count == json->node_capacity) {
		size_t capacity = json->node_capacity == 0 ? 256 : json->node_capacity * 2;
		void *nodes = realloc(json->nodes, capacity * sizeof(*json->nodes));

		if (nodes == NULL)
			return -ENOMEM;
		json->nodes = nodes;
		json->node_capacity = capacity;
	}
	*ret = (uint32_t)json->node_count++;
	json->nodes[*ret] = (struct aw_json_node){ .key = s->key,
						   .key_len = s->key_len,
						   .value = (uint32_t)s->at };
	s->key = s->key_len = 0;
	if (parent == NULL)
		return 0;
	if (parent->last == 0)
		json->nodes[parent->node].child = *ret;
	else
		json->nodes[parent->last].next = *ret;
	parent->last = *ret;
	return 0;
}

static int open_level(struct scan *s)
{
	uint32_t node = 0;
	int r;

	if (s->depth == AW_JSON_DEPTH_MAX)
		return fault_at(s->fault, s->at, "nested deeper than %d", AW_JSON_DEPTH_MAX);
	r = add_node(s, &node);
	if (r < 0)
		return r;
	s->level[s->depth++] =
		(struct level){ node, 0, s->json->text[s->at] == '{', s->json->text[s->at] == '{' };
	s->at++;
	return 0;
}

/* The offset behind the string that begins at s->at. */
static size_t string_end(const struct scan *s)
{
	size_t at = s->at + 1;

	while (at < s->json->len && s->json->text[at] != '"' && s->json->text[at] != '\n')
		at += s->json->text[at] == '\\' ? 2 : 1;
	return at < s->json->len ? at + 1 : s->json->len;
}

static int take_string(struct scan *s)
{
	struct level *top = s->depth > 0 ? &s->level[s->depth - 1] : NULL;
	size_t end = string_end(s);
	uint32_t node;
	int r = 0;

	if (top != NULL && top->wants_key) {
		s->key = (uint32_t)s->at + 1;
		s->key_len = (uint32_t)(end > s->at + 2 ? end - s->at - 2 : 0);
		top->wants_key = false;
	} else {
		r = add_node(s, &node);
	}
	s->at = end;
	return r;
}

static int take_literal(struct scan *s)
{
	uint32_t node;
	int r = add_node(s, &node);

	while (s->at < s->json->len && strchr(" \t\r\n,:]}[{\"/", s->json->text[s->at]) == NULL)
		s->at++;
	return r;
}

/* Grammar is jansson's affair: this only follows structure, and what it gets wrong jansson refuses. */
static int scan_token(struct scan *s)
{
	struct level *top = s->depth > 0 ? &s->level[s->depth - 1] : NULL;

	switch (s->json->text[s->at]) {
	case ' ':
	case '\t':
	case '\r':
	case '\n':
	case ':':
		s->at++;
		return 0;
	case ',':
		if (top != NULL)
			top->wants_key = top->is_object;
		s->at++;
		return 0;
	case '/':
		return blank_comment(s);
	case '"':
		return take_string(s);
	case '{':
	case '[':
		return open_level(s);
	case '}':
	case ']':
		if (s->depth > 0)
			s->depth--;
		s->at++;
		return 0;
	case '\0':
		return fault_at(s->fault, s->at, "NUL byte");
	default:
		return take_literal(s);
	}
}

static int scan_text(struct aw_json *json, struct aw_json_fault *fault)
{
	struct scan s = { .json = json, .fault = fault };

	/* Some editors begin a file with a byte order mark. */
	if (json->len >= 3 && memcmp(json->text, "\xef\xbb\xbf", 3) == 0)
		while (s.at < 3)
			blank(&s);
	while (s.at < json->len) {
		int r = scan_token(&s);

		if (r < 0)
			return r;
	}
	return 0;
}

static struct aw_str raw_key(const struct aw_json *json, const struct aw_json_node *node)
{
	return (struct aw_str){ json->text + node->key, node->key_len };
}

/* Keys are compared as they are meant: "\u0061" is "a". */
static bool is_key(const struct aw_json *json, const struct aw_json_node *node, struct aw_str key)
{
	struct aw_str raw = raw_key(json, node);
	json_t *decoded;
	bool is_same;

	if (raw.len == 0 || memchr(raw.ptr, '\\', raw.len) == NULL)
		return aw_str_is_equal(raw, key);
	decoded = json_loadb(raw.ptr - 1, raw.len + 2, JSON_DECODE_ANY, NULL);
	is_same = decoded != NULL &&
		  aw_str_is_equal(key, (struct aw_str){ json_string_value(decoded),
							json_string_length(decoded) });
	json_decref(decoded);
	return is_same;
}

uint32_t aw_json_member(const struct aw_json *json, uint32_t node, const char *key,
			uint32_t *cursor)
{
	struct aw_str wanted = aw_str_from(key);
	uint32_t found = 0;
	uint32_t next;

	if (node >= json->node_count)
		return 0;
	next = *cursor != 0 ? json->nodes[*cursor].next : json->nodes[node].child;
	if (json->duplicate_count == 0 && next != 0 && is_key(json, &json->nodes[next], wanted)) {
		*cursor = next;
		return next;
	}
	for (uint32_t i = json->nodes[node].child; i != 0; i = json->nodes[i].next)
		if (is_key(json, &json->nodes[i], wanted))
			found = i;
	if (found != 0)
		*cursor = found;
	return found;
}

static bool has_earlier(const struct aw_json *json, uint32_t first, uint32_t node,
			struct aw_str key)
{
	for (uint32_t i = first; i != node; i = json->nodes[i].next)
		if (is_key(json, &json->nodes[i], key))
			return true;
	return false;
}

/* Only reached when jansson found one; the bound keeps a hostile file from costing its square. */
static void find_duplicates(struct aw_json *json)
{
	size_t compared = 0;

	for (uint32_t parent = 0; parent < json->node_count; parent++) {
		uint32_t first = json->nodes[parent].child, position = 0;

		for (uint32_t i = first; i != 0; i = json->nodes[i].next, position++) {
			const struct aw_json_node *node = &json->nodes[i];

			compared += position;
			if (compared > 4 * AW_JSON_VALUES_MAX ||
			    json->duplicate_count == AW_JSON_DUPLICATES_MAX)
				return;
			if (node->key != 0 && has_earlier(json, first, i, raw_key(json, node)))
				json->duplicates[json->duplicate_count++] = i;
		}
	}
}

static int fault_of_jansson(const json_error_t *error, size_t len, struct aw_json_fault *fault)
{
	char text[200];
	size_t at = error->position > 0 ? (size_t)error->position : 0;

	/* jansson blames an allocation that failed on the text, but the allocator left its errno. */
	if (errno == ENOMEM)
		return -ENOMEM;
	(void)aw_str_escape(aw_str_from(error->text), text, sizeof(text));
	return fault_at(fault, at < len ? at : len, "%s", text);
}

/* Otherwise jansson opens /dev/urandom for its hash seed. Only the first call in a process counts. */
static void seed_hashes(void)
{
	size_t seed;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) == (ssize_t)sizeof(seed))
		json_object_seed(seed);
}

static int load_tree(struct aw_json *json, struct aw_json_fault *fault)
{
	json_error_t error = { .line = 0 };

	seed_hashes();
	errno = 0;
	json->root = json_loadb(json->text, json->len, JSON_REJECT_DUPLICATES, &error);
	if (json->root != NULL)
		return 0;
	if (json_error_code(&error) != json_error_duplicate_key)
		return fault_of_jansson(&error, json->len, fault);
	json->root = json_loadb(json->text, json->len, 0, &error);
	if (json->root == NULL)
		return fault_of_jansson(&error, json->len, fault);
	find_duplicates(json);
	if (json->duplicate_count == 0)
		return fault_at(fault, (size_t)error.position, "duplicate key");
	return 0;
}

int aw_json_parse(const char *text, size_t len, struct aw_json **ret,
		  struct aw_json_fault *ret_fault)
{
	autodrop(aw_json_drop) struct aw_json *json = NULL;
	int r;

	*ret_fault = (struct aw_json_fault){ 0 };
	if (len > AW_JSON_SIZE_MAX)
		return fault_at(ret_fault, 0, "larger than %d bytes", AW_JSON_SIZE_MAX);
	json = calloc(1, sizeof(*json));
	if (json == NULL)
		return -ENOMEM;
	json->text = aw_str_dup((struct aw_str){ text, len });
	json->len = len;
	if (json->text == NULL)
		return -ENOMEM;
	r = scan_text(json, ret_fault);
	if (r == 0)
		r = load_tree(json, ret_fault);
	if (r < 0)
		return r;
	*ret = AW_TAKE_PTR(json);
	return 0;
}

void aw_json_drop(struct aw_json **slot)
{
	struct aw_json *json = *slot;

	*slot = NULL;
	if (json == NULL)
		return;
	json_decref(json->root);
	free(json->text);
	free(json->nodes);
	free(json);
}

void aw_json_place(struct aw_str text, size_t offset, unsigned *ret_line, unsigned *ret_column)
{
	size_t begin = 0;
	unsigned line = 1;

	for (size_t i = 0; i < offset && i < text.len; i++)
		if (text.ptr[i] == '\n') {
			line++;
			begin = i + 1;
		}
	*ret_line = line;
	*ret_column = (unsigned)(offset - begin) + 1;
}
