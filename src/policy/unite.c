#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "policy/merge-internal.h"
#include "policy/paths.h"

static bool is_same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

bool aw_entry_is_same(const struct aw_policy_entry *a, const struct aw_policy_entry *b)
{
	return a->port == b->port && a->form == b->form && a->is_writable == b->is_writable &&
	       a->is_denied == b->is_denied && is_same_text(a->text, b->text) &&
	       is_same_text(a->host, b->host);
}

static bool has(const struct aw_policy_list *list, const struct aw_policy_entry *entry)
{
	for (size_t i = 0; i < list->count; i++)
		if (aw_entry_is_same(&list->entry[i], entry))
			return true;
	return false;
}

int aw_list_add(struct aw_store *store, struct aw_policy_list *list,
		const struct aw_policy_entry *entry)
{
	if (has(list, entry))
		return 0;
	return aw_list_append(store, list, entry) != NULL ? 0 : -ENOMEM;
}

const struct aw_policy_list *aw_layer_list(const struct aw_layer *layer, size_t offset)
{
	return (const void *)((const char *)layer + offset);
}

int aw_unite(struct aw_store *store, const struct aw_claim *claim, size_t offset,
	     struct aw_policy_list *ret)
{
	*ret = (struct aw_policy_list){ 0 };
	for (size_t i = 0; i < claim->count; i++) {
		const struct aw_policy_list *list = aw_layer_list(claim->layer[i], offset);

		ret->is_present |= list->is_present;
		for (size_t j = 0; j < list->count; j++)
			if (aw_list_add(store, ret, &list->entry[j]) < 0)
				return -ENOMEM;
	}
	return 0;
}

int aw_narrow(struct aw_store *store, struct aw_policy_list *list,
	      const struct aw_policy_list *claim, aw_meet *meet, const void *context)
{
	struct aw_policy_list result = { .is_present = true };
	struct aw_policy_entry common;

	if (!claim->is_present)
		return 0;
	for (size_t i = 0; i < list->count; i++)
		for (size_t j = 0; j < claim->count; j++) {
			if (meet(&list->entry[i], &claim->entry[j], context, &common) &&
			    aw_list_add(store, &result, &common) < 0)
				return -ENOMEM;
		}
	*list = result;
	return 0;
}

bool aw_meet_path(const struct aw_policy_entry *a, const struct aw_policy_entry *b,
		  const void *context, struct aw_policy_entry *ret)
{
	(void)context;
	if (aw_path_is_within(a->text, b->text))
		*ret = *a;
	else if (aw_path_is_within(b->text, a->text))
		*ret = *b;
	else
		return false;
	return true;
}

bool aw_meet_text(const struct aw_policy_entry *a, const struct aw_policy_entry *b,
		  const void *context, struct aw_policy_entry *ret)
{
	(void)context;
	*ret = *a;
	return strcmp(a->text, b->text) == 0;
}

/* Where it lies in the cell is the granting side's choice; the narrowing side names the host's part. */
bool aw_meet_mount(const struct aw_policy_entry *a, const struct aw_policy_entry *b,
		   const void *context, struct aw_policy_entry *ret)
{
	(void)context;
	*ret = *a;
	ret->is_writable = a->is_writable && b->is_writable;
	return aw_path_is_within(a->host, b->host);
}

bool aw_meet_port(const struct aw_policy_entry *a, const struct aw_policy_entry *b,
		  const void *context, struct aw_policy_entry *ret)
{
	(void)context;
	*ret = *a;
	return a->port == b->port;
}

int aw_remark(struct aw_store *store, struct aw_policy_remarks *remarks, const char *command,
	      const char *format, ...)
{
	struct aw_policy_remark remark = { NULL, NULL };
	char text[640];
	va_list args;

	if (remarks->count == remarks->capacity) {
		size_t capacity = remarks->capacity == 0 ? 8 : remarks->capacity * 2;
		struct aw_policy_remark *larger = aw_store_alloc(store, capacity, sizeof(*larger));

		if (larger == NULL)
			return -ENOMEM;
		if (remarks->count > 0)
			memcpy(larger, remarks->item, remarks->count * sizeof(*larger));
		remarks->item = larger;
		remarks->capacity = capacity;
	}
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	remark.text = aw_store_dup(store, aw_str_from(text));
	if (command != NULL)
		remark.command = aw_store_dup(store, aw_str_from(command));
	if (remark.text == NULL || (command != NULL && remark.command == NULL))
		return -ENOMEM;
	remarks->item[remarks->count++] = remark;
	return 0;
}

void aw_merge_error(struct aw_merge *merge, const struct aw_policy_origin *origin,
		    const char *pointer, const char *format, ...)
{
	struct aw_policy_error head = { .kind = AW_POLICY_MALFORMED };
	char message[sizeof(head.message)];
	va_list args;

	aw_origin_head(origin, &head);
	(void)aw_str_format(head.pointer, sizeof(head.pointer), "%s", pointer);
	va_start(args, format);
	(void)vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	aw_policy_errors_add(merge->errors, &head, "%s", message);
}
