/*
 * resolve - from a granted name to addresses that gate may connect to.
 *
 * Only names that the policy grants come here. A and AAAA are asked in parallel, for every connection
 * anew; each address of the answers is vetted (gate/address.h), and one that may not be connected to
 * refuses the whole name, so that no answer can pair a good address with a bad one. c-ares opens no
 * file: it is told everything (files.c holds it to that), and names of the host's /etc/hosts come
 * with the set-up.
 */
#pragma once

#include <ares.h>

#include "gate/address.h"
#include "gate/timer.h"

#define AW_LOOKUP_FAMILY_MAX 8 /* addresses kept of each family; all are vetted */
#define AW_LOOKUP_MAX (2 * AW_LOOKUP_FAMILY_MAX)
#define AW_RESOLVER_SOCKETS (4 * AW_IPC_SERVERS_MAX)

struct aw_resolver;
struct aw_lookup;

struct aw_resolver_socket {
	struct aw_watch watch; /* fd < 0: free */
	struct aw_resolver *resolver;
};

struct aw_resolver {
	struct aw_loop *loop;
	struct aw_timers *timers;
	const struct aw_ipc_gate_setup *setup; /* hosts and own addresses */
	ares_channel channel;
	struct aw_timer timer;
	struct aw_resolver_socket socket[AW_RESOLVER_SOCKETS];
	int last_family; /* that a connection succeeded with: tried first (RFC 8305 8) */
};

struct aw_lookup_result {
	size_t count;                           /* 0: see problem */
	struct aw_ipc_addr addr[AW_LOOKUP_MAX]; /* in the order to be tried, with the port */
	struct aw_ipc_addr forbidden;           /* family 0, or what refused the name */
	enum aw_address_class class;            /* of forbidden */
	const char *problem;                    /* static text */
};

struct aw_lookup_request {
	const char *name; /* normalised, granted */
	uint16_t port;
	bool may_be_private;
	void (*done)(void *owner, const struct aw_lookup_result *result);
	void *owner;
};

int aw_resolver_init(struct aw_resolver *resolver, struct aw_loop *loop, struct aw_timers *timers,
		     const struct aw_ipc_gate_setup *setup, struct aw_error *err);

/* Ask other servers from now on; what is under way is asked again there. */
int aw_resolver_set_servers(struct aw_resolver *resolver, const struct aw_ipc_resolvers *servers,
			    struct aw_error *err);

/*
 * Ask. *slot is set while it takes and cleared before `done` is called, once; that may be before this
 * returns. -ENOMEM: `done` is not called.
 */
int aw_lookup_start(struct aw_resolver *resolver, const struct aw_lookup_request *request,
		    struct aw_lookup **slot);

/* Forget: `done` will not be called. NULL is left alone. */
void aw_lookup_cancel(struct aw_lookup **slot);
