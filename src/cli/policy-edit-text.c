#include <string.h>

#include "cli/policy-edit-internal.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_space(char c)
{
	return is_blank(c) || c == '\r' || c == '\n';
}

static size_t string_end(const struct aw_json *json, size_t at)
{
	for (at++; at < json->len && json->text[at] != '"'; at++)
		at += json->text[at] == '\\';
	return at + 1;
}

size_t aw_edit_value_end(const struct aw_edit_text *t, size_t at)
{
	const struct aw_json *json = t->json;
	unsigned depth = 0;

	if (json->text[at] != '{' && json->text[at] != '[' && json->text[at] != '"') {
		while (at < json->len && strchr(" \t\r\n,]}", json->text[at]) == NULL)
			at++;
		return at;
	}
	while (at < json->len) {
		char c = json->text[at];

		at = c == '"' ? string_end(json, at) : at + 1;
		depth += c == '{' || c == '[';
		depth -= c == '}' || c == ']';
		if (depth == 0)
			break;
	}
	return at;
}

size_t aw_edit_line_start(const struct aw_edit_text *t, size_t at)
{
	while (at > 0 && t->original.ptr[at - 1] != '\n')
		at--;
	return at;
}

static struct aw_str indent_of(const struct aw_edit_text *t, size_t at)
{
	size_t start = aw_edit_line_start(t, at), end = start;

	while (end < at && is_blank(t->original.ptr[end]))
		end++;
	return (struct aw_str){ t->original.ptr + start, end - start };
}

bool aw_edit_begins_line(const struct aw_edit_text *t, size_t at)
{
	size_t start = aw_edit_line_start(t, at);

	return start > 0 && start + indent_of(t, at).len == at;
}

/* Where a member or element begins: with its key, if it has one. */
static size_t start_of(const struct aw_json_node *node)
{
	return node->key > 0 ? node->key - 1 : node->value;
}

void aw_edit_look(const struct aw_edit_text *t, uint32_t node, struct aw_edit_box *ret)
{
	const struct aw_json_node *nodes = t->json->nodes;
	uint32_t last = nodes[node].child;

	*ret = (struct aw_edit_box){ .open = nodes[node].value, .is_empty = last == 0 };
	ret->close = aw_edit_value_end(t, ret->open) - 1;
	ret->is_closing_alone = aw_edit_begins_line(t, ret->close);
	ret->close_indent = indent_of(t, ret->close);
	if (ret->is_empty)
		return;
	while (nodes[last].next != 0)
		last = nodes[last].next;
	ret->last = start_of(&nodes[last]);
	ret->last_end = aw_edit_value_end(t, nodes[last].value);
	ret->is_last_at_line = aw_edit_begins_line(t, ret->last);
	ret->last_indent = indent_of(t, ret->last);
}

struct aw_str aw_edit_unit(const struct aw_edit_text *t)
{
	uint32_t first = t->json->nodes[0].child;
	struct aw_str indent = { 0 };

	if (first != 0 && aw_edit_begins_line(t, start_of(&t->json->nodes[first])))
		indent = indent_of(t, start_of(&t->json->nodes[first]));
	return indent.len > 0 ? indent : AW_STR("  ");
}

const char *aw_edit_line_end(const struct aw_edit_text *t)
{
	const char *newline = memchr(t->original.ptr, '\n', t->original.len);

	return newline != NULL && newline > t->original.ptr && newline[-1] == '\r' ? "\r\n" : "\n";
}

/* The comma of the list behind or before an element; comments are blank in the scanned copy. */
static bool find_comma(const struct aw_edit_text *t, size_t start, size_t end, bool is_behind,
		       size_t *ret)
{
	const char *text = t->json->text;
	size_t at = is_behind ? end : start - 1;

	while (is_space(text[at]))
		at = is_behind ? at + 1 : at - 1;
	*ret = at;
	return text[at] == ',';
}

static bool is_all_space(const struct aw_edit_text *t, size_t from, size_t to)
{
	while (from < to && is_space(t->original.ptr[from]))
		from++;
	return from == to;
}

/* The offset behind the line end at @at; @at itself if there is none. */
static size_t skip_line_end(struct aw_str all, size_t at)
{
	size_t newline = at + (at < all.len && all.ptr[at] == '\r');

	return newline < all.len && all.ptr[newline] == '\n' ? newline + 1 : at;
}

/* What would be left of the line: nothing, then it goes as a whole; else no blanks for two. */
static void widen(const struct aw_edit_text *t, struct aw_edit_cut *cut)
{
	struct aw_str all = t->original;
	size_t next;

	while (cut->to < all.len && is_blank(all.ptr[cut->to]))
		cut->to++;
	next = skip_line_end(all, cut->to);
	if (next == cut->to || !aw_edit_begins_line(t, cut->from))
		return;
	cut->from = aw_edit_line_start(t, cut->from);
	cut->to = next;
}

void aw_edit_cuts(const struct aw_edit_text *t, size_t start, size_t end, struct aw_edit_cut ret[2])
{
	struct aw_edit_cut element = { start, end }, comma = { 0 };
	size_t at;

	if (find_comma(t, start, end, true, &at)) {
		if (is_all_space(t, end, at))
			element.to = at + 1;
		else
			comma = (struct aw_edit_cut){ at, at + 1 };
		widen(t, &element);
	} else if (find_comma(t, start, end, false, &at)) {
		if (is_all_space(t, at + 1, start)) {
			element.from = at;
		} else {
			comma = (struct aw_edit_cut){ at, at + 1 };
			widen(t, &element);
		}
	} else {
		widen(t, &element);
	}
	ret[0] = comma.from < element.from ? comma : element;
	ret[1] = comma.from < element.from ? element : comma;
}
