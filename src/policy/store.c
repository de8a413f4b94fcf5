#include "policy/store-internal.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

/* Tests make it small, so that every allocation is one that can fail. */
#ifndef AW_STORE_CHUNK
#define AW_STORE_CHUNK (size_t)(32 * 1024)
#endif

struct aw_store_chunk {
	struct aw_store_chunk *next;
	size_t used, size;
	alignas(max_align_t) char bytes[];
};

struct aw_store *aw_store_new(void)
{
	return calloc(1, sizeof(struct aw_store));
}

void aw_store_drop(struct aw_store **slot)
{
	struct aw_store *store = *slot;

	*slot = NULL;
	if (store == NULL)
		return;
	/* The sources themselves lie in the chunks. */
	for (struct aw_policy_source *s = store->sources; s != NULL; s = s->next)
		aw_json_drop(&s->json);
	while (store->chunks != NULL) {
		struct aw_store_chunk *chunk = store->chunks;

		store->chunks = chunk->next;
		free(chunk);
	}
	free(store);
}

static struct aw_store_chunk *add_chunk(struct aw_store *store, size_t need)
{
	size_t size = need > AW_STORE_CHUNK ? need : AW_STORE_CHUNK;
	struct aw_store_chunk *chunk = malloc(sizeof(*chunk) + size);

	if (chunk == NULL)
		return NULL;
	chunk->next = store->chunks;
	chunk->used = 0;
	chunk->size = size;
	store->chunks = chunk;
	return chunk;
}

void *aw_store_alloc(struct aw_store *store, size_t count, size_t size)
{
	struct aw_store_chunk *chunk = store->chunks;
	size_t bytes;
	void *p;

	if (__builtin_mul_overflow(count, size, &bytes) ||
	    __builtin_add_overflow(bytes, alignof(max_align_t), &bytes))
		return NULL;
	bytes &= ~(alignof(max_align_t) - 1);
	if (chunk == NULL || chunk->size - chunk->used < bytes)
		chunk = add_chunk(store, bytes);
	if (chunk == NULL)
		return NULL;
	p = chunk->bytes + chunk->used;
	chunk->used += bytes;
	memset(p, 0, bytes);
	return p;
}

char *aw_store_dup(struct aw_store *store, struct aw_str text)
{
	char *copy = aw_store_alloc(store, text.len + 1, 1);

	if (copy != NULL && text.len > 0)
		memcpy(copy, text.ptr, text.len);
	return copy;
}

struct aw_policy_source *aw_store_source(struct aw_store *store, enum aw_net_layer layer,
					 const char *name)
{
	struct aw_policy_source *source = aw_store_alloc(store, 1, sizeof(*source));

	if (source == NULL)
		return NULL;
	source->layer = layer;
	source->name = aw_store_dup(store, aw_str_from(name));
	if (source->name == NULL)
		return NULL;
	source->next = store->sources;
	store->sources = source;
	return source;
}
