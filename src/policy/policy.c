#include "policy/policy.h"

#include <errno.h>
#include <stdlib.h>

#include "base/own.h"
#include "policy/layer-internal.h"
#include "policy/setters-internal.h"

static const char *const limit_keys[AW_LIMIT_COUNT] = {
	[AW_LIMIT_TIME_S] = "max_execution_time_s", [AW_LIMIT_MEMORY_MB] = "max_memory_mb",
	[AW_LIMIT_PROCESSES] = "max_processes",     [AW_LIMIT_CPU_MILLI] = "max_cpus",
	[AW_LIMIT_OPEN_FILES] = "max_open_files",   [AW_LIMIT_IO_MB_S] = "max_io_mb_s",
};

const char *aw_policy_limit_key(enum aw_policy_limit limit)
{
	return limit < AW_LIMIT_COUNT ? limit_keys[limit] : NULL;
}

static const char *word_at(const char *const *words, size_t index)
{
	for (size_t i = 0; words[i] != NULL; i++)
		if (i == index)
			return words[i];
	return NULL;
}

const char *aw_policy_protect_text(unsigned bit_index)
{
	return word_at(aw_protect_words, bit_index);
}

const char *aw_policy_degraded_text(unsigned bit_index)
{
	return word_at(aw_degraded_words, bit_index);
}

const char *aw_policy_preset_name(size_t index)
{
	return word_at(aw_preset_words, index);
}

void aw_policy_origin_format(const struct aw_policy_origin *origin, char *out, size_t size)
{
	struct aw_policy_error place = { .kind = AW_POLICY_MALFORMED };
	const char *layer = "";

	aw_origin_head(origin, &place);
	/* A preset, a profile and the command line are named by what they are; a file needs its layer. */
	if (origin->source != NULL && origin->source->name[0] == '/')
		layer = aw_net_layer_text(origin->source->layer);
	if (place.line > 0 && origin->offset > 0)
		(void)aw_str_format(out, size, "%s%s%s:%u", layer, layer[0] != '\0' ? " " : "",
				    place.file, place.line);
	else
		(void)aw_str_format(out, size, "%s%s%s", layer, layer[0] != '\0' ? " " : "",
				    place.file);
}

void aw_policy_drop(struct aw_policy **slot)
{
	struct aw_policy *policy = *slot;
	struct aw_store *store;

	*slot = NULL;
	if (policy == NULL)
		return;
	free(policy->net);
	/* The policy itself lies in its store. */
	store = policy->store;
	aw_store_drop(&store);
}

int aw_policy_check(struct aw_str text, enum aw_net_layer layer, const char *name, const char *home,
		    struct aw_policy_errors *errors, struct aw_error *err)
{
	autodrop(aw_store_drop) struct aw_store *store = aw_store_new();
	size_t before = aw_policy_errors_total(errors);
	struct aw_policy_source *source = NULL;
	struct aw_layer *parsed;
	int r = -ENOMEM;

	if (store != NULL)
		source = aw_store_source(store, layer, name);
	if (source != NULL)
		r = aw_layer_parse(store, source, text, home, &parsed, errors);
	if (r < 0)
		return aw_fail(err, -r, "check %s", name);
	before = aw_policy_errors_total(errors) - before;
	return before == 0 ? 0
			   : aw_refuse(err, EACCES, "%s: %zu %s", name, before,
				       before == 1 ? "error" : "errors");
}
