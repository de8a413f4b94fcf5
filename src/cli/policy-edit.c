#include "cli/policy-edit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "cli/policy-edit-internal.h"

/* A text that was read, and how far the way to the list leads in it. */
struct edit {
	struct aw_json *json;
	struct aw_edit_text t;
	uint32_t node;              /* the last thing on the way that is there */
	json_t *value;              /* the same in the tree */
	const char *const *missing; /* the keys that are not there; empty: `value` is the list */
};

/* What is put in, and where. */
struct insertion {
	size_t at;
	size_t comma; /* where a comma is missing, if not at `at`; 0: none is */
	const char *before;
	bool is_multi_line;
	bool is_line; /* what is put in is a line of its own */
	struct aw_str indent, unit;
	unsigned depth; /* in units beyond `indent` */
	const char *line_end;
};

static void drop_json(json_t **slot)
{
	json_decref(*slot);
	*slot = NULL;
}

static int no_memory(struct aw_error *err)
{
	return aw_fail(err, ENOMEM, "edit the policy");
}

static void edit_fini(struct edit *e)
{
	aw_json_drop(&e->json);
}

static int refuse_at(struct aw_str text, size_t offset, const char *why, struct aw_error *err)
{
	unsigned line, column;

	aw_json_place(text, offset, &line, &column);
	return aw_refuse(err, EBADMSG, "line %u, column %u: %s", line, column, why);
}

static int walk(const struct aw_edit *edit, struct edit *e, struct aw_error *err)
{
	const char *const *key = edit->keys;
	bool is_list;

	e->value = e->json->root;
	for (; *key != NULL && json_is_object(e->value); key++) {
		uint32_t cursor = 0, member = aw_json_member(e->json, e->node, *key, &cursor);

		if (member == 0)
			break;
		e->node = member;
		e->value = json_object_get(e->value, *key);
	}
	e->missing = key;
	is_list = *key == NULL;
	if (is_list ? json_is_array(e->value) : json_is_object(e->value))
		return 0;
	return aw_refuse(err, ENOTDIR, "\"%s\" is %s", key == edit->keys ? "the policy" : key[-1],
			 is_list ? "no list" : "no object");
}

static int open_edit(const struct aw_edit *edit, struct edit *ret, struct aw_error *err)
{
	struct aw_json_fault fault;
	int r = aw_json_parse(edit->text.ptr, edit->text.len, &ret->json, &fault);

	if (r == -ENOMEM)
		return no_memory(err);
	if (r < 0)
		return refuse_at(edit->text, fault.offset, fault.message, err);
	if (ret->json->duplicate_count > 0)
		return refuse_at(edit->text, ret->json->nodes[ret->json->duplicates[0]].value,
				 "its key stands there twice", err);
	ret->t = (struct aw_edit_text){ edit->text, ret->json };
	return walk(edit, ret, err);
}

/* The index of the first element that is meant, -1 if there is none. */
static long find_meant(const struct aw_edit *edit, const struct edit *e)
{
	if (*e->missing != NULL)
		return -1;
	for (size_t i = 0; i < json_array_size(e->value); i++) {
		const char *text = json_string_value(json_array_get(e->value, i));

		if (text != NULL && edit->is_meant(edit->data, text))
			return (long)i;
	}
	return -1;
}

/* The new text must mean @expected. */
static int verify(const json_t *expected, const struct aw_buf *text, struct aw_error *err)
{
	autodrop(aw_json_drop) struct aw_json *json = NULL;
	struct aw_json_fault fault;
	int r;

	if (expected == NULL)
		return no_memory(err);
	r = aw_json_parse(text->data, text->len, &json, &fault);
	if (r == -ENOMEM)
		return no_memory(err);
	if (r < 0 || !json_equal(json->root, expected))
		return aw_refuse(err, EBADMSG, "its form does not allow a change at this place");
	return 0;
}

static void decide_place(const struct edit *e, struct insertion *ret)
{
	struct aw_edit_box box;

	aw_edit_look(&e->t, e->node, &box);
	*ret = (struct insertion){
		.at = box.open + 1,
		.before = "",
		.indent = box.close_indent,
		.unit = aw_edit_unit(&e->t),
		.depth = 1,
		.line_end = aw_edit_line_end(&e->t),
	};
	if (!box.is_empty && box.is_last_at_line) {
		ret->indent = box.last_indent;
		ret->depth = 0;
	}
	if (box.is_closing_alone) {
		ret->is_multi_line = ret->is_line = true;
		ret->at = aw_edit_line_start(&e->t, box.close);
		ret->comma = box.is_empty ? 0 : box.last_end;
	} else if (!box.is_empty) {
		ret->is_multi_line = box.is_last_at_line;
		ret->at = box.last_end;
		ret->before = box.is_last_at_line ? "," : ", ";
	}
}

static int put_indent(struct aw_buf *out, const struct insertion *in, unsigned depth)
{
	int r = aw_buf_append(out, in->indent.ptr, in->indent.len);

	for (depth += in->depth; r == 0 && depth > 0; depth--)
		r = aw_buf_append(out, in->unit.ptr, in->unit.len);
	return r;
}

static int put_break(struct aw_buf *out, const struct insertion *in, unsigned depth)
{
	int r;

	if (!in->is_multi_line)
		return 0;
	r = aw_buf_append_str(out, in->line_end);
	return r < 0 ? r : put_indent(out, in, depth);
}

static int put_quoted(struct aw_buf *out, const char *text)
{
	autodrop(drop_json) json_t *string = json_string(text);
	autofree char *quoted = string == NULL ? NULL : json_dumps(string, JSON_ENCODE_ANY);

	return quoted == NULL ? -ENOMEM : aw_buf_append_str(out, quoted);
}

/* The value, in the objects and the list that are missing around it. */
static int put_new(struct aw_buf *out, const struct insertion *in, const char *const *keys,
		   const char *value)
{
	unsigned depth = 0, levels;
	int r = 0;

	for (; r == 0 && keys[depth] != NULL; depth++) {
		r = put_quoted(out, keys[depth]);
		if (r == 0)
			r = aw_buf_append_str(out, keys[depth + 1] == NULL ? ": [" : ": {");
		if (r == 0)
			r = put_break(out, in, depth + 1);
	}
	levels = depth;
	if (r == 0)
		r = put_quoted(out, value);
	for (; r == 0 && depth > 0; depth--) {
		r = put_break(out, in, depth - 1);
		if (r == 0)
			r = aw_buf_append_str(out, depth == levels ? "]" : "}");
	}
	return r;
}

static int put_text(struct aw_buf *out, struct aw_str text, const struct insertion *in)
{
	int r = aw_buf_append(out, text.ptr, in->comma);

	if (r == 0 && in->comma > 0)
		r = aw_buf_append_str(out, ",");
	if (r == 0)
		r = aw_buf_append(out, text.ptr + in->comma, in->at - in->comma);
	if (r == 0)
		r = aw_buf_append_str(out, in->before);
	if (r == 0 && in->is_line)
		return put_indent(out, in, 0);
	return r == 0 && *in->before != '\0' ? put_break(out, in, 0) : r;
}

static int insert(const struct edit *e, const char *value, struct aw_buf *out)
{
	struct aw_str text = e->t.original;
	struct insertion in;
	int r;

	decide_place(e, &in);
	r = put_text(out, text, &in);
	if (r == 0)
		r = put_new(out, &in, e->missing, value);
	if (r == 0 && in.is_line)
		r = aw_buf_append_str(out, in.line_end);
	return r == 0 ? aw_buf_append(out, text.ptr + in.at, text.len - in.at) : r;
}

/* The old tree and the new element; NULL when out of memory. */
static json_t *expect_added(const struct aw_edit *edit, const struct edit *e, const char *value)
{
	json_t *root = json_deep_copy(e->json->root), *at = root;
	bool is_made = root != NULL;

	for (const char *const *key = edit->keys; is_made && *key != NULL; key++) {
		json_t *next = json_object_get(at, *key);

		if (next == NULL) {
			next = key[1] == NULL ? json_array() : json_object();
			is_made = json_object_set_new(at, *key, next) == 0;
		}
		at = next;
	}
	if (is_made && json_array_append_new(at, json_string(value)) == 0)
		return root;
	json_decref(root);
	return NULL;
}

static bool is_utf8(struct aw_str s)
{
	while (s.len > 0) {
		size_t n = aw_str_utf8_len(s);

		if (n == 0)
			return false;
		s.ptr += n;
		s.len -= n;
	}
	return true;
}

static int check_utf8(const struct aw_edit *edit, const char *value, struct aw_error *err)
{
	bool is_good = is_utf8(aw_str_from(value));

	for (const char *const *key = edit->keys; *key != NULL; key++)
		is_good &= is_utf8(aw_str_from(*key));
	return is_good ? 0 : aw_refuse(err, EBADMSG, "a name that is not UTF-8 has no JSON form");
}

static int add(const struct aw_edit *edit, struct edit *e, const char *value, struct aw_buf *ret,
	       struct aw_error *err)
{
	autodrop(drop_json) json_t *expected = NULL;
	int r = open_edit(edit, e, err);

	if (r < 0 || find_meant(edit, e) >= 0)
		return r;
	r = insert(e, value, ret);
	if (r < 0)
		return aw_fail(err, -r, "edit the policy");
	expected = expect_added(edit, e, value);
	r = verify(expected, ret, err);
	return r < 0 ? r : 1;
}

int aw_edit_add(const struct aw_edit *edit, const char *value, struct aw_buf *ret,
		struct aw_error *err)
{
	autodrop(edit_fini) struct edit e = { 0 };
	int r = check_utf8(edit, value, err);

	return r < 0 ? r : add(edit, &e, value, ret, err);
}

static int cut(const struct edit *e, size_t index, struct aw_buf *out)
{
	const struct aw_json_node *nodes = e->json->nodes;
	uint32_t element = nodes[e->node].child;
	struct aw_str text = e->t.original;
	struct aw_edit_cut cuts[2];
	size_t at = 0;
	int r = 0;

	for (; index > 0; index--)
		element = nodes[element].next;
	aw_edit_cuts(&e->t, nodes[element].value, aw_edit_value_end(&e->t, nodes[element].value),
		     cuts);
	for (size_t i = 0; r == 0 && i < AW_ARRAY_LEN(cuts); i++) {
		r = aw_buf_append(out, text.ptr + at, cuts[i].from - at);
		at = cuts[i].to;
	}
	return r == 0 ? aw_buf_append(out, text.ptr + at, text.len - at) : r;
}

static int remove_first(const struct aw_edit *edit, struct aw_buf *ret, struct aw_error *err)
{
	autodrop(edit_fini) struct edit e = { 0 };
	long index;
	int r = open_edit(edit, &e, err);

	if (r < 0)
		return r;
	index = find_meant(edit, &e);
	if (index < 0)
		return 0;
	r = cut(&e, (size_t)index, ret);
	if (r < 0)
		return aw_fail(err, -r, "edit the policy");
	(void)json_array_remove(e.value, (size_t)index); /* what is left of the tree is expected */
	r = verify(e.json->root, ret, err);
	return r < 0 ? r : 1;
}

int aw_edit_remove(const struct aw_edit *edit, struct aw_buf *ret, struct aw_error *err)
{
	autodrop(aw_buf_fini) struct aw_buf old = AW_BUF_INIT(ret->max);
	struct aw_edit step = *edit;
	int count = 0, r;

	while ((r = remove_first(&step, ret, err)) > 0) {
		aw_buf_fini(&old);
		old = *ret;
		*ret = (struct aw_buf)AW_BUF_INIT(old.max);
		step.text = aw_buf_str(&old);
		count++;
	}
	if (r < 0)
		return r;
	aw_buf_fini(ret);
	*ret = old;
	old = (struct aw_buf)AW_BUF_INIT(ret->max);
	return count;
}
