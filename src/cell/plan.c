/*
 * Layout: struct aw_plan_header | struct aw_plan_op[] | texts and blobs. Offsets count from the start
 * of the header; while a plan is built they count from the start of the text area, plus TEXT_BASE so
 * that 0 can mean "none", and are moved to their place when the plan is sealed.
 */
#include "cell/plan.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "base/own.h"

#define TEXT_BASE 16u

void aw_plan_begin(struct aw_plan_builder *b)
{
	*b = (struct aw_plan_builder){
		.ops = AW_BUF_INIT(AW_PLAN_OPS_MAX * sizeof(struct aw_plan_op)),
		.text = AW_BUF_INIT(AW_PLAN_SIZE_MAX / 2),
	};
}

void aw_plan_fini(struct aw_plan_builder *b)
{
	aw_buf_fini(&b->ops);
	aw_buf_fini(&b->text);
}

static void remember_failure(struct aw_plan_builder *b, int r, const char *at)
{
	if (b->failed != 0)
		return;
	b->failed = r;
	(void)aw_str_escape(aw_str_from(at), b->failed_at, sizeof(b->failed_at));
}

uint32_t aw_plan_blob(struct aw_plan_builder *b, const void *bytes, size_t len)
{
	static const char padding[8];
	size_t pad = (8 - b->text.len % 8) % 8;
	uint32_t offset;
	int r;

	r = aw_buf_append(&b->text, padding, pad);
	offset = TEXT_BASE + (uint32_t)b->text.len;
	if (r == 0)
		r = aw_buf_append(&b->text, bytes, len);
	if (r < 0)
		remember_failure(b, r, "");
	return offset;
}

uint32_t aw_plan_text(struct aw_plan_builder *b, const char *text)
{
	uint32_t offset = TEXT_BASE + (uint32_t)b->text.len;
	int r = aw_buf_append(&b->text, text, strlen(text) + 1);

	if (r < 0)
		remember_failure(b, r, text);
	return offset;
}

struct aw_plan_strings aw_plan_vector(struct aw_plan_builder *b, char *const *vector)
{
	struct aw_plan_strings strings = { .offset = TEXT_BASE + (uint32_t)b->text.len };

	for (; *vector != NULL; vector++) {
		(void)aw_plan_text(b, *vector);
		strings.count++;
	}
	if (strings.count > AW_PLAN_STRINGS_MAX)
		remember_failure(b, -E2BIG, "argument or environment list");
	return strings;
}

static void add(struct aw_plan_builder *b, struct aw_plan_op op, const char *at, const char *source)
{
	int r;

	op.at = at != NULL ? aw_plan_text(b, at) : 0;
	op.source = source != NULL ? aw_plan_text(b, source) : 0;
	r = aw_buf_append(&b->ops, &op, sizeof(op));
	if (r < 0)
		remember_failure(b, r, at != NULL ? at : source);
	b->op_count++;
}

void aw_plan_dir(struct aw_plan_builder *b, const char *at, uint32_t mode)
{
	add(b, (struct aw_plan_op){ .code = AW_PLAN_DIR, .mode = mode }, at, NULL);
}

void aw_plan_file(struct aw_plan_builder *b, const char *at, uint32_t mode, struct aw_str content)
{
	struct aw_plan_op op = { .code = AW_PLAN_FILE, .mode = mode };

	op.blob = aw_plan_blob(b, content.ptr, content.len);
	op.blob_len = (uint32_t)content.len;
	add(b, op, at, NULL);
}

void aw_plan_symlink(struct aw_plan_builder *b, const char *at, const char *target)
{
	add(b, (struct aw_plan_op){ .code = AW_PLAN_SYMLINK }, at, target);
}

void aw_plan_tmpfs(struct aw_plan_builder *b, const char *at, uint32_t mode, uint64_t size)
{
	add(b, (struct aw_plan_op){ .code = AW_PLAN_TMPFS, .mode = mode, .size = size }, at, NULL);
}

void aw_plan_proc(struct aw_plan_builder *b, const char *at)
{
	add(b, (struct aw_plan_op){ .code = AW_PLAN_PROC }, at, NULL);
}

void aw_plan_devpts(struct aw_plan_builder *b, const char *at)
{
	add(b, (struct aw_plan_op){ .code = AW_PLAN_DEVPTS }, at, NULL);
}

void aw_plan_bind(struct aw_plan_builder *b, const char *source, const char *at, unsigned flags)
{
	if (flags & AW_PLAN_DEVICE)
		b->device_count++;
	add(b, (struct aw_plan_op){ .code = AW_PLAN_BIND, .flags = (uint16_t)flags }, at, source);
}

void aw_plan_bind_inode(struct aw_plan_builder *b, const char *source, const char *at,
			unsigned flags, uint64_t dev, uint64_t ino)
{
	struct aw_plan_op op = { .code = AW_PLAN_BIND, .flags = (uint16_t)flags };

	op.dev = dev;
	op.ino = ino;
	add(b, op, at, source);
}

void aw_plan_tree(struct aw_plan_builder *b, const char *at, unsigned flags)
{
	struct aw_plan_op op = { .code = AW_PLAN_TREE, .flags = (uint16_t)flags };

	op.mode = b->tree_count++;
	add(b, op, at, NULL);
}

void aw_plan_pin(struct aw_plan_builder *b, const char *at, unsigned flags)
{
	add(b, (struct aw_plan_op){ .code = AW_PLAN_PIN, .flags = (uint16_t)flags }, at, NULL);
}

void aw_plan_mask(struct aw_plan_builder *b, const char *at, unsigned flags)
{
	add(b, (struct aw_plan_op){ .code = AW_PLAN_MASK, .flags = (uint16_t)flags }, at, NULL);
}

void aw_plan_allow(struct aw_plan_builder *b, const char *at, enum aw_plan_access access)
{
	add(b, (struct aw_plan_op){ .code = AW_PLAN_LANDLOCK, .mode = (uint32_t)access }, at, NULL);
}

void aw_plan_cap(struct aw_plan_builder *b, const char *limit, uint64_t value)
{
	add(b, (struct aw_plan_op){ .code = AW_PLAN_CAP, .size = value }, NULL, limit);
}

static void move_to_place(uint32_t *offset, uint32_t text_start)
{
	if (*offset != 0)
		*offset += text_start - TEXT_BASE;
}

int aw_plan_seal(struct aw_plan_builder *b, struct aw_plan_header *header, struct aw_error *err)
{
	autodrop(aw_buf_fini) struct aw_buf bytes = AW_BUF_INIT(AW_PLAN_SIZE_MAX);
	uint32_t ops_len = b->op_count * (uint32_t)sizeof(struct aw_plan_op);
	uint32_t text_start = (uint32_t)sizeof(*header) + ops_len;
	struct aw_plan_op *ops = (struct aw_plan_op *)(void *)b->ops.data;
	uint32_t *header_offsets[] = { &header->filter, &header->hostname, &header->cwd,
				       &header->argv.offset, &header->env.offset };

	_Static_assert(sizeof(*header) % 8 == 0 && sizeof(struct aw_plan_op) % 8 == 0, "alignment");
	if (b->failed == -ENOMEM)
		return aw_fail(err, ENOMEM, "build the cell's plan");
	if (b->failed != 0)
		return aw_refuse(err, -b->failed, "the cell's plan grew too large at '%s'",
				 b->failed_at);
	for (uint32_t i = 0; i < b->op_count; i++) {
		move_to_place(&ops[i].at, text_start);
		move_to_place(&ops[i].source, text_start);
		move_to_place(&ops[i].blob, text_start);
	}
	for (size_t i = 0; i < AW_ARRAY_LEN(header_offsets); i++)
		move_to_place(header_offsets[i], text_start);
	header->magic = AW_PLAN_MAGIC;
	header->ops = (uint32_t)sizeof(*header);
	header->op_count = b->op_count;
	header->size = text_start + (uint32_t)b->text.len;
	header->allowed_dev_mounts = b->device_count;
	/* Both areas together are smaller than its maximum. */
	if (aw_buf_append(&bytes, header, sizeof(*header)) < 0 ||
	    aw_buf_append(&bytes, b->ops.data, ops_len) < 0 ||
	    aw_buf_append(&bytes, b->text.data, b->text.len) < 0)
		return aw_fail(err, ENOMEM, "seal the cell's plan");
	return aw_memfd_sealed("warden-plan", bytes.data, bytes.len, bytes.len, err);
}

/* Text that starts at @offset and ends in a NUL inside the plan. */
static bool is_text(const struct aw_plan_header *plan, uint32_t offset)
{
	return offset >= plan->ops && offset < plan->size &&
	       memchr((const char *)plan + offset, '\0', plan->size - offset) != NULL;
}

static bool is_span(const struct aw_plan_header *plan, uint32_t offset, uint64_t len)
{
	return offset >= plan->ops && offset <= plan->size && len <= plan->size - offset;
}

static bool is_strings(const struct aw_plan_header *plan, struct aw_plan_strings strings)
{
	uint32_t offset = strings.offset;

	if (strings.count > AW_PLAN_STRINGS_MAX)
		return false;
	for (uint32_t i = 0; i < strings.count; i++) {
		if (!is_text(plan, offset))
			return false;
		offset += (uint32_t)strlen((const char *)plan + offset) + 1;
	}
	return true;
}

/* What each operation must carry. */
static const struct {
	bool at, source;
} op_needs[AW_PLAN_CODE_COUNT] = {
	[AW_PLAN_DIR] = { true, false },      [AW_PLAN_FILE] = { true, false },
	[AW_PLAN_SYMLINK] = { true, true },   [AW_PLAN_TMPFS] = { true, false },
	[AW_PLAN_PROC] = { true, false },     [AW_PLAN_DEVPTS] = { true, false },
	[AW_PLAN_BIND] = { true, true },      [AW_PLAN_TREE] = { true, false },
	[AW_PLAN_PIN] = { true, false },      [AW_PLAN_MASK] = { true, false },
	[AW_PLAN_LANDLOCK] = { true, false }, [AW_PLAN_CAP] = { false, true },
};

static bool is_op(const struct aw_plan_header *plan, const struct aw_plan_op *op)
{
	if (op->code == 0 || op->code >= AW_PLAN_CODE_COUNT)
		return false;
	if (op_needs[op->code].at &&
	    (!is_text(plan, op->at) || *aw_plan_text_at(plan, op->at) != '/'))
		return false;
	if (op_needs[op->code].source && !is_text(plan, op->source))
		return false;
	return op->blob_len == 0 || is_span(plan, op->blob, op->blob_len);
}

int aw_plan_check(const void *bytes, size_t len, struct aw_error *err)
{
	const struct aw_plan_header *plan = bytes;
	uint64_t ops_len;

	if (len < sizeof(*plan) || len > AW_PLAN_SIZE_MAX || plan->magic != AW_PLAN_MAGIC ||
	    plan->size != len)
		return aw_refuse(err, EBADMSG, "these bytes are not a plan of this version");
	ops_len = (uint64_t)plan->op_count * sizeof(struct aw_plan_op);
	if (plan->ops != sizeof(*plan) || plan->op_count > AW_PLAN_OPS_MAX ||
	    !is_span(plan, plan->ops, ops_len) || plan->port_count > AW_PLAN_PORTS_MAX)
		return aw_refuse(err, EBADMSG, "the plan's operations do not lie inside it");
	for (uint32_t i = 0; i < plan->op_count; i++)
		if (!is_op(plan, aw_plan_op_at(plan, i)))
			return aw_refuse(err, EBADMSG, "operation %u of the plan is malformed", i);
	if (!is_span(plan, plan->filter, plan->filter_len) || !is_text(plan, plan->hostname) ||
	    !is_text(plan, plan->cwd) || !is_strings(plan, plan->argv) || plan->argv.count == 0 ||
	    !is_strings(plan, plan->env))
		return aw_refuse(err, EBADMSG, "the plan's texts do not lie inside it");
	return 0;
}

const struct aw_plan_op *aw_plan_op_at(const struct aw_plan_header *plan, uint32_t index)
{
	const char *first = (const char *)plan + plan->ops;

	return (const struct aw_plan_op *)(const void *)first + index;
}

const char *aw_plan_text_at(const struct aw_plan_header *plan, uint32_t offset)
{
	return (const char *)plan + offset;
}

const void *aw_plan_blob_at(const struct aw_plan_header *plan, uint32_t offset)
{
	return (const char *)plan + offset;
}

char **aw_plan_vector_at(const struct aw_plan_header *plan, struct aw_plan_strings strings)
{
	char **vector = calloc((size_t)strings.count + 1, sizeof(*vector));
	char *text = (char *)(uintptr_t)plan + strings.offset;

	if (vector == NULL)
		return NULL;
	for (uint32_t i = 0; i < strings.count; i++) {
		vector[i] = text;
		text += strlen(text) + 1;
	}
	return vector;
}
