/*
 * Bytes as a plan: what passes the check can be read in every part without a step beyond its end. Each
 * input is also tried with its magic, size and offset of operations put right, so that a search gets
 * to what lies behind them.
 */
#include "cell/plan.h"

#include <stdlib.h>

#include "base/own.h"
#include "fuzz.h"

/* A text that is wholly inside. */
static void hold_text(const struct aw_plan_header *plan, uint32_t offset)
{
	const char *text = aw_plan_text_at(plan, offset);

	assert(offset >= sizeof(*plan) && offset < plan->size);
	assert(offset + strlen(text) < plan->size);
}

static void hold_span(const struct aw_plan_header *plan, uint32_t offset, uint32_t len)
{
	const volatile char *bytes = aw_plan_blob_at(plan, offset);

	assert(len <= plan->size && offset <= plan->size - len);
	if (len > 0) {
		(void)bytes[0];
		(void)bytes[len - 1];
	}
}

static void hold_strings(const struct aw_plan_header *plan, struct aw_plan_strings strings)
{
	autofree char **vector = aw_plan_vector_at(plan, strings);

	if (vector == NULL)
		abort();
	for (uint32_t i = 0; i < strings.count; i++)
		hold_text(plan, (uint32_t)(vector[i] - (const char *)plan));
	assert(vector[strings.count] == NULL);
}

static void hold_op(const struct aw_plan_header *plan, const struct aw_plan_op *op)
{
	bool has_at = op->code != AW_PLAN_CAP;
	bool has_source =
		op->code == AW_PLAN_CAP || op->code == AW_PLAN_BIND || op->code == AW_PLAN_SYMLINK;

	assert(op->code > 0 && op->code < AW_PLAN_CODE_COUNT);
	if (has_at) {
		hold_text(plan, op->at);
		assert(aw_plan_text_at(plan, op->at)[0] == '/');
	}
	if (has_source)
		hold_text(plan, op->source);
	if (op->blob_len > 0)
		hold_span(plan, op->blob, op->blob_len);
}

static void hold_plan(const void *bytes, size_t len)
{
	const struct aw_plan_header *plan = bytes;
	struct aw_error err;
	int r = aw_plan_check(bytes, len, &err);

	if (r < 0) {
		assert(r == -EBADMSG && err.code == EBADMSG && err.message[0] != '\0');
		return;
	}
	assert(plan->size == len && plan->op_count <= AW_PLAN_OPS_MAX);
	assert(plan->port_count <= AW_PLAN_PORTS_MAX && plan->argv.count > 0);
	for (uint32_t i = 0; i < plan->op_count; i++)
		hold_op(plan, aw_plan_op_at(plan, i));
	hold_text(plan, plan->hostname);
	hold_text(plan, plan->cwd);
	hold_span(plan, plan->filter, plan->filter_len);
	hold_strings(plan, plan->argv);
	hold_strings(plan, plan->env);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct aw_plan_header *plan = calloc(1, size > 0 ? size : 1);

	if (plan == NULL)
		abort();
	if (size > 0)
		memcpy(plan, data, size);
	hold_plan(plan, size);
	if (size >= sizeof(*plan)) {
		plan->magic = AW_PLAN_MAGIC;
		plan->size = (uint32_t)size;
		plan->ops = (uint32_t)sizeof(*plan);
		hold_plan(plan, size);
	}
	free(plan);
	return 0;
}
