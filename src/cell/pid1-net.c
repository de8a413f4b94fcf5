/*
 * The cell's network: a namespace with nothing but lo, on which
 *	127.0.0.1:3128	the explicit proxy,
 *	127.0.0.1:53	the DNS stub, UDP and TCP,
 *	198.18.0.0/15	a synthetic range, all of it local, with a listener on every granted port.
 * Making a network namespace costs as much as all the mounts together, so a helper process makes it,
 * and the ipc namespace, meanwhile. The helper shares our descriptor table: what it opens is ours, it
 * only tells the numbers. It unshares by itself, since clone would make us wait for it.
 *
 * The range needs an address on lo rather than a local route: resolvers with AI_ADDRCONFIG answer
 * nothing while 127.0.0.1 is the only address there is.
 */
#include "cell/pid1-internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"

#define PROXY_PORT 3128
#define DNS_PORT 53
#define SYNTHETIC_ADDRESS "198.18.0.1"
#define SYNTHETIC_MASK "255.254.0.0"
#define BACKLOG 512

static const struct {
	const char *path;
	int type;
} made_beside[AW_NET_NAMESPACES] = {
	{ "/proc/thread-self/ns/net", CLONE_NEWNET },
	{ "/proc/thread-self/ns/ipc", CLONE_NEWIPC },
};

/* What the helper writes into its pipe: the descriptors in the shared table, or why there are none. */
struct net_answer {
	int fd[AW_NET_NAMESPACES];
	struct aw_error err;
};

static int set_address(int fd, unsigned long request, struct ifreq *ifr, const char *address)
{
	struct sockaddr_in in = { .sin_family = AF_INET };

	(void)inet_pton(AF_INET, address, &in.sin_addr);
	memcpy(&ifr->ifr_addr, &in, sizeof(in));
	return ioctl(fd, request, ifr);
}

static int bring_up_lo(bool has_synthetic, struct aw_error *err)
{
	autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };

	if (fd < 0)
		return aw_fail(err, errno, "socket");
	if (ioctl(fd, SIOCSIFFLAGS, &ifr) < 0)
		return aw_fail(err, errno, "bring up lo");
	if (!has_synthetic)
		return 0;
	(void)aw_str_format(ifr.ifr_name, sizeof(ifr.ifr_name), "lo:1");
	if (set_address(fd, SIOCSIFADDR, &ifr, SYNTHETIC_ADDRESS) < 0 ||
	    set_address(fd, SIOCSIFNETMASK, &ifr, SYNTHETIC_MASK) < 0)
		return aw_fail(err, errno, "give lo the synthetic range");
	return 0;
}

/*
 * Neither SO_REUSEPORT, which would let the agent join a listener, nor SO_REUSEADDR, which on UDP
 * would let it take our datagrams.
 */
static int listen_on(struct aw_net_parts *parts, enum aw_ipc_listener_kind kind, uint16_t port,
		     struct aw_error *err)
{
	bool is_udp = kind == AW_IPC_LISTEN_DNS_UDP, is_any = kind == AW_IPC_LISTEN_TRANSPARENT;
	struct sockaddr_in in = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(is_any ? INADDR_ANY : INADDR_LOOPBACK),
	};
	autoclose int fd = socket(
		AF_INET, (is_udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return aw_fail(err, errno, "socket for port %u", port);
	if (bind(fd, (const struct sockaddr *)&in, sizeof(in)) < 0)
		return aw_fail(err, errno, "bind port %u in the cell", port);
	if (!is_udp && listen(fd, BACKLOG) < 0)
		return aw_fail(err, errno, "listen on port %u in the cell", port);
	parts->listener[parts->count] = (struct aw_ipc_listener){ (uint8_t)kind, port };
	parts->fd[parts->count++] = AW_TAKE_FD(fd);
	return 0;
}

static int make_namespaces(struct net_answer *answer)
{
	struct aw_error *err = &answer->err;

	if (unshare(CLONE_NEWNET | CLONE_NEWIPC) < 0)
		return aw_fail(err, errno, "make the cell's network and ipc namespaces");
	for (size_t i = 0; i < AW_NET_NAMESPACES; i++) {
		answer->fd[i] = open(made_beside[i].path, O_RDONLY | O_CLOEXEC);
		if (answer->fd[i] < 0)
			return aw_fail(err, errno, "open '%s'", made_beside[i].path);
	}
	return 0;
}

static _Noreturn void helper(int out)
{
	struct net_answer answer = { 0 };

	/* On failure the descriptors stay in the table that we share: the cell is about to end. */
	(void)make_namespaces(&answer);
	_exit(aw_write_all(out, &answer, sizeof(answer)) < 0);
}

int aw_net_start(struct aw_net_job *ret, struct aw_error *err)
{
	struct clone_args args = { .flags = CLONE_FILES, .exit_signal = SIGCHLD };
	int ends[2];
	long pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return aw_fail(err, errno, "pipe");
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0) {
		int code = errno;

		(void)close(ends[0]);
		(void)close(ends[1]);
		return aw_fail(err, code, "start the network helper");
	}
	if (pid == 0)
		helper(ends[1]);
	*ret = (struct aw_net_job){ .pid = (pid_t)pid, .pipe = { ends[0], ends[1] } };
	return 0;
}

int aw_net_join(struct aw_net_job *job, struct aw_error *err)
{
	struct net_answer answer;
	autoclose int in = AW_TAKE_FD(job->pipe[0]), out = AW_TAKE_FD(job->pipe[1]);

	/* The table is shared, so the pipe's end cannot tell of a helper's death: its exit can. */
	while (waitpid(job->pid, NULL, 0) < 0)
		if (errno != EINTR)
			return aw_fail(err, errno, "wait for the network helper");
	(void)fcntl(in, F_SETFL, O_NONBLOCK);
	if (read(in, &answer, sizeof(answer)) != (ssize_t)sizeof(answer))
		return aw_refuse(err, EPROTO, "the network helper ended without an answer");
	if (answer.err.code != 0) {
		*err = answer.err;
		return -err->code;
	}
	for (size_t i = 0; i < AW_NET_NAMESPACES; i++) {
		autoclose int fd = answer.fd[i];

		if (setns(fd, made_beside[i].type) < 0)
			return aw_fail(err, errno, "enter '%s'", made_beside[i].path);
	}
	return 0;
}

int aw_net_open(const struct aw_plan_header *plan, struct aw_net_parts *ret, struct aw_error *err)
{
	static const struct {
		enum aw_ipc_listener_kind kind;
		uint16_t port;
	} fixed[] = {
		{ AW_IPC_LISTEN_PROXY, PROXY_PORT },
		{ AW_IPC_LISTEN_DNS_UDP, DNS_PORT },
		{ AW_IPC_LISTEN_DNS_TCP, DNS_PORT },
	};
	int r = bring_up_lo(plan->has_network, err);

	for (size_t i = 0; r == 0 && plan->has_network && i < AW_ARRAY_LEN(fixed); i++)
		r = listen_on(ret, fixed[i].kind, fixed[i].port, err);
	for (uint32_t i = 0; r == 0 && plan->has_network && i < plan->port_count; i++)
		r = listen_on(ret, AW_IPC_LISTEN_TRANSPARENT, plan->port[i], err);
	return r;
}
