#include "gate/resolve.h"

#include <errno.h>
#include <string.h>
#include <sys/time.h>

#include "gate/lookup-internal.h"

#define TIMEOUT_MS 2000
#define TRIES 2
#define EDNS_SIZE 1232 /* never fragments: DNS flag day 2020 */

static int socket_ready(struct aw_watch *watch, uint32_t events)
{
	struct aw_resolver_socket *s = AW_CONTAINER(watch, struct aw_resolver_socket, watch);
	struct aw_resolver *resolver = s->resolver;
	ares_socket_t fd = watch->fd;
	bool is_readable = events & (EPOLLIN | EPOLLHUP | EPOLLERR);

	ares_process_fd(resolver->channel, is_readable ? fd : ARES_SOCKET_BAD,
			events & EPOLLOUT ? fd : ARES_SOCKET_BAD);
	aw_resolver_rearm(resolver);
	return 0;
}

static struct aw_resolver_socket *find_socket(struct aw_resolver *resolver, int fd)
{
	for (size_t i = 0; i < AW_RESOLVER_SOCKETS; i++)
		if (resolver->socket[i].watch.fd == fd)
			return &resolver->socket[i];
	return NULL;
}

/* c-ares opened, closed or waits otherwise for a socket of its own. */
static void socket_state(void *data, ares_socket_t fd, int is_readable, int is_writable)
{
	struct aw_resolver *resolver = data;
	struct aw_resolver_socket *s = find_socket(resolver, fd);
	uint32_t events = (is_readable ? EPOLLIN : 0u) | (is_writable ? EPOLLOUT : 0u);
	struct aw_error err;

	if (s == NULL && events != 0)
		s = find_socket(resolver, -EBADF);
	if (s == NULL)
		return; /* unwatched, the question times out */
	s->watch.fd = fd;
	if (aw_loop_watch(resolver->loop, &s->watch, events, &err) < 0 || events == 0)
		s->watch.fd = -EBADF;
}

static void timer_fired(struct aw_timer *timer)
{
	struct aw_resolver *resolver = AW_CONTAINER(timer, struct aw_resolver, timer);

	ares_process_fd(resolver->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	aw_resolver_rearm(resolver);
}

void aw_resolver_rearm(struct aw_resolver *resolver)
{
	struct timeval tv, *wait = ares_timeout(resolver->channel, NULL, &tv);

	if (wait == NULL) {
		aw_timer_stop(&resolver->timer);
		return;
	}
	aw_timer_start_resolver(resolver->timers, &resolver->timer,
				(uint64_t)wait->tv_sec * 1000000000u +
					(uint64_t)wait->tv_usec * 1000u);
}

/* Every value that c-ares would otherwise take from resolv.conf is given, so that it need not look. */
static int open_channel(struct aw_resolver *resolver, ares_channel *ret, struct aw_error *err)
{
	static char lookups[] = "b";
	struct ares_options options = {
		.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES | ARES_FLAG_EDNS,
		.timeout = TIMEOUT_MS,
		.tries = TRIES,
		.ndots = 1,
		.lookups = lookups,
		.sock_state_cb = socket_state,
		.sock_state_cb_data = resolver,
		.ednspsz = EDNS_SIZE,
	};
	int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS |
		   ARES_OPT_SERVERS | ARES_OPT_DOMAINS | ARES_OPT_LOOKUPS | ARES_OPT_SORTLIST |
		   ARES_OPT_SOCK_STATE_CB | ARES_OPT_EDNSPSZ | ARES_OPT_NOROTATE;
	int status = ares_init_options(ret, &options, mask);

	if (status != ARES_SUCCESS)
		return aw_refuse(err, EIO, "start the resolver: %s", ares_strerror(status));
	return 0;
}

static int fill_servers(ares_channel channel, const struct aw_ipc_resolvers *servers,
			struct aw_error *err)
{
	struct ares_addr_port_node node[AW_IPC_SERVERS_MAX] = { 0 };
	int status;

	for (uint32_t i = 0; i < servers->count; i++) {
		const struct aw_ipc_addr *addr = &servers->server[i];

		node[i].family = addr->family;
		node[i].udp_port = node[i].tcp_port = addr->port; /* 0: 53 */
		memcpy(&node[i].addr, addr->bytes, addr->family == AF_INET ? 4 : 16);
		node[i].next = i + 1 < servers->count ? &node[i + 1] : NULL;
	}
	if (servers->count == 0)
		return 0;
	status = ares_set_servers_ports(channel, node);
	if (status != ARES_SUCCESS)
		return aw_refuse(err, EIO, "set the name servers: %s", ares_strerror(status));
	return 0;
}

int aw_resolver_set_servers(struct aw_resolver *resolver, const struct aw_ipc_resolvers *servers,
			    struct aw_error *err)
{
	ares_channel old = resolver->channel, fresh;
	int r = open_channel(resolver, &fresh, err);

	if (r < 0)
		return r;
	r = fill_servers(fresh, servers, err);
	if (r < 0) {
		ares_destroy(fresh);
		return r;
	}
	resolver->channel = fresh;
	/* Questions under way are called back with EDESTRUCTION and go to the new channel. */
	if (old != NULL)
		ares_destroy(old);
	aw_resolver_rearm(resolver);
	return 0;
}

int aw_resolver_init(struct aw_resolver *resolver, struct aw_loop *loop, struct aw_timers *timers,
		     const struct aw_ipc_gate_setup *setup, struct aw_error *err)
{
	int status = ares_library_init(ARES_LIB_INIT_ALL);

	if (status != ARES_SUCCESS)
		return aw_refuse(err, EIO, "start the resolver: %s", ares_strerror(status));
	*resolver = (struct aw_resolver){ .loop = loop,
					  .timers = timers,
					  .setup = setup,
					  .timer = { .fire = timer_fired },
					  .last_family = AF_INET6 };
	for (size_t i = 0; i < AW_RESOLVER_SOCKETS; i++)
		resolver->socket[i] = (struct aw_resolver_socket){
			.watch = { .fd = -EBADF, .ready = socket_ready }, .resolver = resolver
		};
	return aw_resolver_set_servers(resolver, &setup->resolvers, err);
}
