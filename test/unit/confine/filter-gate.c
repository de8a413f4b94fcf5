/* The gate's filter: it can do its work, and nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "confine/probe.h"

#define GATE (&aw_confine_filter_gate)
#define KILLED (PROBE_DIED - SIGSYS)

static void check(const struct probe_call *call, long result)
{
	probe_check(GATE, &(struct probe_row){ *call, result, false });
}

static void dies_of_what_only_a_hijacker_calls(void **state)
{
	static const struct probe_call calls[] = {
		CALL(execve, BAD, 0, 0),
		CALL(execveat, CWD, BAD, 0, 0, 0),
		CALL(ptrace, 1000, 0, 0, 0),
		CALL(process_vm_readv, 0, 0, 0, 0, 0, 1),
		CALL(process_vm_writev, 0, 0, 0, 0, 0, 1),
		CALL(clone, 0x10000 /* CLONE_THREAD */),
		NUMBER(clone3, 435, 0, 0),
		CALL(unshare, 1),
		CALL(setns, -1UL, 0),
		CALL(mount, BAD, BAD, BAD),
		CALL(bpf, 10000, 0, 0),
		NUMBER(io_uring_setup, 425, 1, 0),
		CALL(memfd_create, BAD, 0),
		CALL(mmap, 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1UL),
		CALL(mmap, 0, 4096, HIGH | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1UL),
		CALL(mprotect, 0, 0, PROT_EXEC),
		CALL(pkey_mprotect, 0, 0, PROT_EXEC, -1UL),
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(calls); i++)
		check(calls + i, KILLED);
}

static void finds_no_path_and_lives(void **state)
{
	unsigned long root = (unsigned long)"/";
	const struct probe_call calls[] = {
		CALL(openat, CWD, root, O_RDONLY, 0),  CALL(faccessat, CWD, root, 0, 0),
		CALL(statx, CWD, root, 0, 0, BAD),     CALL(readlinkat, CWD, root, BAD, 0),
		NUMBER(openat2, 437, CWD, root, 0, 0),
#ifdef __x86_64__
		CALL(open, root, O_RDONLY, 0),         CALL(stat, root, BAD),
#endif
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(calls); i++)
		check(calls + i, -EACCES);
}

static void has_no_other_call(void **state)
{
	static const struct probe_call calls[] = {
		CALL(kill, 0, 0),       CALL(tgkill, -1UL, -1UL, 0),  NUMBER(pidfd_open, 434, 1, 0),
		CALL(bind, -1UL, 0, 0), CALL(listen, -1UL, 0),        CALL(ioctl, -1UL, 0, 0),
		CALL(prctl, 3),         CALL(unlinkat, -1UL, BAD, 0), CALL(sendmmsg, -1UL, 0, 0, 0),
		CALL(dup, -1UL),
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(calls); i++)
		check(calls + i, -ENOSYS);
}

static void sends_no_signal_by_descriptor_ownership(void **state)
{
	(void)state;
	check(&(struct probe_call)CALL(fcntl, -1UL, F_SETOWN, 1), -EPERM);
	check(&(struct probe_call)CALL(fcntl, -1UL, HIGH | F_SETSIG, 9), -EPERM);
	check(&(struct probe_call)CALL(fcntl, -1UL, F_SETLEASE, 0), -EPERM);
	assert_int_equal(probe(GATE, &(struct probe_call)CALL(fcntl, -1UL, F_GETFL, 0)), -EBADF);
}

static void makes_internet_sockets_only(void **state)
{
	(void)state;
	check(&(struct probe_call)CALL(socket, AF_UNIX, SOCK_STREAM, 0), -EAFNOSUPPORT);
	check(&(struct probe_call)CALL(socket, AF_NETLINK, SOCK_RAW, 0), -EAFNOSUPPORT);
	check(&(struct probe_call)CALL(socket, HIGH | AF_UNIX, HIGH | SOCK_DGRAM, 0),
	      -EAFNOSUPPORT);
	assert_true(probe(GATE, &(struct probe_call)CALL(socket, AF_INET, SOCK_STREAM, 0)) >= 0);
	assert_true(probe(GATE, &(struct probe_call)CALL(socket, AF_INET,
							 SOCK_DGRAM | SOCK_NONBLOCK, 17)) >= 0);
}

static void sets_no_option_that_runs_code_or_shares_a_port(void **state)
{
	static const struct {
		unsigned long level, name;
	} rows[] = {
		{ SOL_SOCKET, SO_ATTACH_FILTER },
		{ SOL_SOCKET, SO_ATTACH_BPF },
		{ SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF },
		{ SOL_SOCKET, SO_ATTACH_REUSEPORT_EBPF },
		{ SOL_SOCKET, SO_REUSEPORT },
		{ IPPROTO_TCP, TCP_ULP },
		{ HIGH | SOL_SOCKET, HIGH | SO_REUSEPORT },
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(rows); i++)
		check(&(struct probe_call)CALL(setsockopt, -1UL, rows[i].level, rows[i].name, 0, 0),
		      -EPERM);
	assert_int_equal(probe(GATE, &(struct probe_call)CALL(setsockopt, -1UL, IPPROTO_TCP,
							      TCP_NODELAY, 0, 0)),
			 -EBADF);
}

struct relay {
	int listener;
	struct sockaddr_in address;
};

/* What the gate does all day: connect, accept, send, splice through a pipe, receive, close. */
static long relay_bytes(void *state)
{
	const struct relay *relay = state;
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), server, pipes[2], on = 1;
	char got[8] = "";

	if (connect(client, (const struct sockaddr *)&relay->address, sizeof(relay->address)) < 0)
		return -errno;
	server = accept4(relay->listener, NULL, NULL, SOCK_CLOEXEC);
	if (server < 0 || pipe2(pipes, O_CLOEXEC) < 0 ||
	    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
		return -errno;
	if (send(client, "hello", 5, MSG_NOSIGNAL) != 5 ||
	    splice(server, NULL, pipes[1], NULL, 5, SPLICE_F_MOVE) != 5 ||
	    splice(pipes[0], NULL, server, NULL, 5, SPLICE_F_MOVE) != 5 ||
	    recv(client, got, sizeof(got), 0) != 5)
		return -errno;
	free(malloc(1 << 20));
	return close(client) == 0 && shutdown(server, SHUT_WR) <= 0 && memcmp(got, "hello", 5) == 0;
}

static void relays_bytes(void **state)
{
	struct relay relay = { .address = { .sin_family = AF_INET,
					    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(relay.address);

	(void)state;
	relay.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(relay.listener, (struct sockaddr *)&relay.address, len), 0);
	assert_int_equal(listen(relay.listener, 4), 0);
	assert_int_equal(getsockname(relay.listener, (struct sockaddr *)&relay.address, &len), 0);
	assert_int_equal(probe_body(GATE, relay_bytes, &relay), 1);
	close(relay.listener);
}

static void its_own_calls_take_few_instructions(void **state)
{
	static const long numbers[] = { SYS_epoll_pwait, SYS_splice, SYS_read,    SYS_write,
					SYS_recvmsg,     SYS_sendto, SYS_accept4, SYS_socket,
					SYS_close,       SYS_mmap };

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(numbers); i++) {
		struct seccomp_data call = { .nr = (int)numbers[i],
					     .arch = probe_arch,
					     .args = { AF_INET6, SOCK_DGRAM, 17 } };
		unsigned steps;

		(void)probe_verdict(GATE, &call, &steps);
		if (steps >= 60)
			fail_msg("call %ld takes %u instructions", numbers[i], steps);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dies_of_what_only_a_hijacker_calls),
		cmocka_unit_test(finds_no_path_and_lives),
		cmocka_unit_test(has_no_other_call),
		cmocka_unit_test(sends_no_signal_by_descriptor_ownership),
		cmocka_unit_test(makes_internet_sockets_only),
		cmocka_unit_test(sets_no_option_that_runs_code_or_shares_a_port),
		cmocka_unit_test(relays_bytes),
		cmocka_unit_test(its_own_calls_take_few_instructions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
