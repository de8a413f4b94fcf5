#include "gate/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"

#define PIPES_AT_START 8
#define FDS_PER_CONN 3   /* client, server, and on average less than one more in a race */
#define FDS_RESERVED 128 /* listeners, pipes, resolver, DNS streams, link */

/* The policy is decided elsewhere and sealed; here it is bytes that are checked and then asked. */
static int map_policy(struct aw_gate *gate, int fd, struct aw_error *err)
{
	struct stat st;
	void *map;
	int r;

	/* libc's fstat is newfstatat, which gate's filter answers like every call with a path. */
	if (syscall(SYS_fstat, fd, &st) < 0)
		return aw_fail(err, errno, "fstat of the policy");
	if (st.st_size != sizeof(struct aw_net))
		return aw_refuse(err, EBADMSG, "policy of %lld bytes", (long long)st.st_size);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return aw_fail(err, errno, "map the policy");
	r = aw_net_check(map, (size_t)st.st_size, err);
	if (r < 0) {
		(void)munmap(map, (size_t)st.st_size);
		return r;
	}
	if (gate->net != NULL)
		(void)munmap((void *)gate->net, gate->net_len);
	gate->net = map;
	gate->net_len = (size_t)st.st_size;
	return 0;
}

int aw_gate_receive(int link, struct aw_gate **ret, struct aw_error *err)
{
	struct aw_gate *gate = calloc(1, sizeof(*gate));
	struct aw_ipc_message *message;
	int r;

	if (gate == NULL)
		return aw_fail(err, ENOMEM, "start gate");
	*ret = gate;
	message = &gate->message;
	gate->link.fd = link;
	r = aw_ipc_recv(link, AW_IPC_GATE, AW_IPC_MONITOR, message, err);
	if (r < 0)
		return r;
	if (r == 0 || message->type != AW_IPC_GATE_SETUP)
		return aw_refuse(err, EPROTO, "no set-up from the monitor");
	memcpy(&gate->setup, message->payload, sizeof(gate->setup));
	r = map_policy(gate, message->fds[0], err);
	if (r == 0)
		r = aw_listeners_init(gate, message, err);
	aw_ipc_message_fini(message);
	return r;
}

static int take_policy(struct aw_gate *gate, struct aw_ipc_message *message, struct aw_error *err)
{
	int r = map_policy(gate, message->fds[0], err);

	if (r == 0)
		aw_conns_apply_policy(gate);
	return r;
}

static int take_resolvers(struct aw_gate *gate, struct aw_ipc_message *message,
			  struct aw_error *err)
{
	struct aw_ipc_resolvers resolvers;

	memcpy(&resolvers, message->payload, sizeof(resolvers));
	return aw_resolver_set_servers(&gate->resolver, &resolvers, err);
}

/* One message from the monitor. Returns as aw_ipc_recv. */
static int take_message(struct aw_gate *gate, struct aw_error *err)
{
	struct aw_ipc_message *message = &gate->message;
	int r = aw_ipc_recv(gate->link.fd, AW_IPC_GATE, AW_IPC_MONITOR, message, err), done;

	if (r <= 0)
		return r;
	if (message->type == AW_IPC_GATE_POLICY)
		done = take_policy(gate, message, err);
	else if (message->type == AW_IPC_GATE_RESOLVERS)
		done = take_resolvers(gate, message, err);
	else
		done = aw_refuse(err, EPROTO, "a second set-up");
	aw_ipc_message_fini(message);
	return done < 0 ? done : r;
}

/* Without its monitor, or with one that makes no sense, gate ends and the session with it: closed. */
static int link_ready(struct aw_watch *watch, uint32_t events)
{
	struct aw_gate *gate = AW_CONTAINER(watch, struct aw_gate, link);
	struct aw_error err;
	int r = 1;

	aw_conns_reap(gate);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		r = take_message(gate, &err);
	if (r == 0)
		aw_loop_stop(&gate->loop, 0);
	else if (r < 0 && r != -EAGAIN)
		return r;
	if (events & EPOLLOUT)
		aw_report_flush(&gate->report);
	return 0;
}

static void caught_up(struct aw_report *report)
{
	struct aw_gate *gate = AW_CONTAINER(report, struct aw_gate, report);
	struct aw_error err;

	if (aw_listeners_update(gate, &err) < 0) {
		aw_loop_stop(&gate->loop, 1);
		return;
	}
	aw_conns_unpark(gate);
	aw_dns_unpark(gate);
}

/* As many connections as there are descriptors for; the hard limit is ours to use. */
static size_t count_conns(void)
{
	struct rlimit limit;
	size_t fds;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 1;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0 && getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 1;
	fds = limit.rlim_cur > 1u << 20 ? 1u << 20 : (size_t)limit.rlim_cur;
	if (fds < FDS_RESERVED + FDS_PER_CONN)
		return 1;
	fds = (fds - FDS_RESERVED) / FDS_PER_CONN;
	return fds < AW_CONNS_MAX ? fds : AW_CONNS_MAX;
}

int aw_gate_start(struct aw_gate *gate, struct aw_error *err)
{
	int r = aw_loop_init(&gate->loop, err);

	if (r < 0)
		return r;
	gate->link.ready = link_ready;
	if (fcntl(gate->link.fd, F_SETFL, O_NONBLOCK) < 0)
		return aw_fail(err, errno, "make the link non-blocking");
	aw_report_init(&gate->report, &gate->loop, &gate->link);
	gate->report.on_caught_up = caught_up;
	gate->conns.max = count_conns();
	aw_names_init(&gate->names);
	aw_pipes_init(&gate->tools.pipes, PIPES_AT_START);
	aw_dns_init(gate);
	r = aw_timers_init(&gate->timers, &gate->loop, err);
	if (r < 0)
		return r;
	return aw_resolver_init(&gate->resolver, &gate->loop, &gate->timers, &gate->setup, err);
}

int aw_gate_serve(struct aw_gate *gate, struct aw_error *err)
{
	int r = aw_loop_watch(&gate->loop, &gate->link, EPOLLIN, err);

	if (r == 0)
		r = aw_listeners_update(gate, err);
	if (r == 0)
		r = aw_ipc_send(gate->link.fd, AW_IPC_GATE_READY, NULL, 0, NULL, 0, err);
	if (r < 0)
		return r;
	r = aw_loop_run(&gate->loop);
	return r < 0 ? aw_fail(err, -r, "serve") : r;
}
