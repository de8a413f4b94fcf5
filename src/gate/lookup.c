#include <arpa/nameser.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "gate/lookup-internal.h"

/* One of the two questions, and what came back. */
struct question {
	struct aw_lookup *lookup;
	int type;   /* of RFC 1035 and RFC 3596 */
	int status; /* of c-ares */
	struct aw_ipc_addr addr[AW_LOOKUP_FAMILY_MAX];
	size_t count;
};

struct aw_lookup {
	struct aw_resolver *resolver;
	struct aw_lookup_request request; /* its name is ours */
	struct aw_lookup **slot;          /* NULL: nobody waits any more */
	unsigned pending;
	struct question v4, v6;
	struct aw_ipc_addr forbidden;
	enum aw_address_class class;
	char name[AW_NET_NAME_MAX + 1];
};

/* Vets every address, keeps the first few. */
static void add(struct aw_lookup *lookup, const struct aw_ipc_addr *raw)
{
	const struct aw_ipc_gate_setup *setup = lookup->resolver->setup;
	struct aw_ipc_addr addr = aw_address_unwrap(raw);
	struct question *family = addr.family == AF_INET ? &lookup->v4 : &lookup->v6;
	enum aw_address_class class;

	if (!aw_address_may_connect(&addr, setup->own, setup->own_count,
				    lookup->request.may_be_private, &class)) {
		lookup->forbidden = addr;
		lookup->class = class;
	} else if (family->count < AW_LOOKUP_FAMILY_MAX) {
		addr.port = lookup->request.port;
		family->addr[family->count++] = addr;
	}
}

static const char *problem_text(const struct aw_lookup *lookup)
{
	int status = lookup->v4.status;

	/* The more telling of the two: what is no answer before what is an answer without addresses. */
	if (status == ARES_SUCCESS || status == ARES_ENODATA)
		status = lookup->v6.status;
	return ares_strerror(status == ARES_SUCCESS ? ARES_ENODATA : status);
}

/* By turns, beginning with the family that worked last (RFC 8305 4). */
static void interleave(const struct aw_lookup *lookup, struct aw_lookup_result *result)
{
	bool is_v6_first = lookup->resolver->last_family == AF_INET6;
	const struct question *first = is_v6_first ? &lookup->v6 : &lookup->v4;
	const struct question *second = is_v6_first ? &lookup->v4 : &lookup->v6;

	for (size_t i = 0; i < AW_LOOKUP_FAMILY_MAX; i++) {
		if (i < first->count)
			result->addr[result->count++] = first->addr[i];
		if (i < second->count)
			result->addr[result->count++] = second->addr[i];
	}
}

/* One of the things that the lookup waits for came; the last one ends it. */
static void arrive(struct aw_lookup *lookup)
{
	struct aw_lookup_result result = { 0 };

	if (--lookup->pending > 0)
		return;
	if (lookup->slot != NULL) {
		*lookup->slot = NULL;
		result.forbidden = lookup->forbidden;
		result.class = lookup->class;
		if (result.forbidden.family == 0)
			interleave(lookup, &result);
		result.problem = problem_text(lookup);
		lookup->request.done(lookup->request.owner, &result);
	}
	free(lookup);
}

static void add_host(struct aw_lookup *lookup, const struct hostent *host)
{
	for (char **p = host->h_addr_list; *p != NULL; p++) {
		struct aw_ipc_addr addr = { .family = (uint8_t)host->h_addrtype };

		memcpy(addr.bytes, *p, host->h_addrtype == AF_INET ? 4 : 16);
		add(lookup, &addr);
	}
}

static int parse(int type, const unsigned char *bytes, int len, struct hostent **ret)
{
	if (type == ns_t_a)
		return ares_parse_a_reply(bytes, len, ret, NULL, NULL);
	return ares_parse_aaaa_reply(bytes, len, ret, NULL, NULL);
}

static void answered(void *data, int status, int timeouts, unsigned char *bytes, int len);

static void ask(struct aw_lookup *lookup, struct question *question, int type)
{
	question->lookup = lookup;
	question->type = type;
	ares_query(lookup->resolver->channel, lookup->name, ns_c_in, type, answered, question);
}

static void answered(void *data, int status, int timeouts, unsigned char *bytes, int len)
{
	struct question *question = data;
	struct hostent *host = NULL;

	(void)timeouts;
	if (status == ARES_EDESTRUCTION) {
		ask(question->lookup, question, question->type);
		return;
	}
	if (status == ARES_SUCCESS)
		status = parse(question->type, bytes, len, &host);
	question->status = status;
	if (status == ARES_SUCCESS)
		add_host(question->lookup, host);
	if (host != NULL)
		ares_free_hostent(host);
	arrive(question->lookup);
}

/* What the host's /etc/hosts says is not asked for, as everywhere. */
static bool answer_from_hosts(struct aw_lookup *lookup)
{
	const struct aw_ipc_gate_setup *setup = lookup->resolver->setup;
	bool is_found = false;

	for (uint32_t i = 0; i < setup->host_count; i++) {
		if (strcmp(setup->host[i].name, lookup->name) != 0)
			continue;
		add(lookup, &setup->host[i].addr);
		is_found = true;
	}
	return is_found;
}

int aw_lookup_start(struct aw_resolver *resolver, const struct aw_lookup_request *request,
		    struct aw_lookup **slot)
{
	struct aw_lookup *lookup = calloc(1, sizeof(*lookup));

	if (lookup == NULL)
		return -ENOMEM;
	lookup->resolver = resolver;
	lookup->request = *request;
	(void)aw_str_format(lookup->name, sizeof(lookup->name), "%s", request->name);
	lookup->request.name = lookup->name;
	lookup->slot = slot;
	*slot = lookup;
	/* Answers may come while we still ask: the third is for having asked. */
	lookup->pending = 3;
	if (answer_from_hosts(lookup)) {
		lookup->pending = 1;
	} else {
		ask(lookup, &lookup->v4, ns_t_a);
		ask(lookup, &lookup->v6, ns_t_aaaa);
		aw_resolver_rearm(resolver);
	}
	arrive(lookup);
	return 0;
}

void aw_lookup_cancel(struct aw_lookup **slot)
{
	if (*slot == NULL)
		return;
	(*slot)->slot = NULL;
	*slot = NULL;
}
