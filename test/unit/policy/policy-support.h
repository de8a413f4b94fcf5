/*
 * policy-support - policies from texts, without files: what load.c does after reading.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "policy/assemble-internal.h"

/* The linker's name for the allocator that support/torture.h does not stand before. */
void *__real_malloc(size_t size);

/* jansson aborts on, or overlooks, failed allocations of its own: torture is for our code. */
static inline void spare_jansson(void)
{
	json_set_alloc_funcs(__real_malloc, free);
}

struct texts {
	const char *system, *user, *project;
	struct aw_policy_sources sources; /* home and workspace_fd are filled in */
};

static inline int parse_one(struct aw_store *store, enum aw_net_layer kind, const char *name,
			    const char *text, struct aw_layer **ret,
			    struct aw_policy_errors *errors)
{
	struct aw_policy_source *source;

	if (text == NULL)
		return 0;
	source = aw_store_source(store, kind, name);
	if (source == NULL)
		return -ENOMEM;
	return aw_layer_parse(store, source, aw_str_from(text), "/home/u", ret, errors);
}

static inline int parse_texts(const struct texts *texts, struct aw_policy *policy,
			      struct aw_policy_errors *errors, struct aw_error *err)
{
	struct aw_policy_sources sources = texts->sources;
	struct aw_layers layers = { 0 };
	struct aw_store *store = policy->store;
	int r = parse_one(store, AW_NET_LAYER_SYSTEM, "/etc/warden/policy.json", texts->system,
			  &layers.system, errors);

	if (r == 0)
		r = parse_one(store, AW_NET_LAYER_USER, "/home/u/policy.json", texts->user,
			      &layers.user, errors);
	if (r == 0)
		r = parse_one(store, AW_NET_LAYER_PROJECT, ".warden.json", texts->project,
			      &layers.project, errors);
	if (r == 0)
		r = aw_layer_from_command(store, &sources.command, "/home/u", &layers.command,
					  errors);
	if (r == 0 && sources.agent != NULL)
		r = aw_layer_from_agent(store, sources.agent, &layers.agent);
	sources.home = "/home/u";
	if (r == 0)
		r = aw_policy_assemble(&sources, &layers, policy, errors, err);
	return r;
}

/* 0 with *ret (also when @errors grew), -ENOMEM. */
static inline int policy_of(const struct texts *texts, struct aw_policy **ret,
			    struct aw_policy_errors *errors)
{
	struct aw_store *store = aw_store_new();
	struct aw_policy *policy = store != NULL ? aw_store_alloc(store, 1, sizeof(*policy)) : NULL;
	struct aw_error err;
	int r;

	if (policy == NULL) {
		aw_store_drop(&store);
		return -ENOMEM;
	}
	policy->store = store;
	r = parse_texts(texts, policy, errors, &err);
	if (r < 0)
		aw_policy_drop(&policy);
	else
		*ret = policy;
	return r;
}

/* A policy that must be without an error. */
static inline struct aw_policy *policy_good(const struct texts *texts)
{
	struct aw_policy_errors errors = { 0 };
	struct aw_policy *policy = NULL;

	assert_int_equal(policy_of(texts, &policy, &errors), 0);
	if (errors.count > 0)
		fail_msg("%s: %s", errors.item[0].pointer, errors.item[0].message);
	return policy;
}

/* The error at @pointer, NULL if there is none. */
static inline const struct aw_policy_error *error_at(const struct aw_policy_errors *errors,
						     const char *pointer)
{
	for (size_t i = 0; i < errors->count; i++)
		if (strcmp(errors->item[i].pointer, pointer) == 0)
			return &errors->item[i];
	return NULL;
}

static inline bool has_text(const struct aw_policy_list *list, const char *text)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->entry[i].text, text) == 0)
			return true;
	return false;
}

/* The command that grants what a project asked for with @wish in the text; "" if there is none. */
static inline const char *ask_for(const struct aw_policy *policy, const char *wish)
{
	for (size_t i = 0; i < policy->asks.count; i++)
		if (strstr(policy->asks.item[i].text, wish) != NULL)
			return policy->asks.item[i].command != NULL ? policy->asks.item[i].command
								    : "";
	return NULL;
}
