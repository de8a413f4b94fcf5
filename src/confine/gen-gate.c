/*
 * What the gate may ask the kernel for once it is set up: move bytes between sockets that it was
 * given or connects itself. It reads hostile HTTP, TLS and DNS, so the filter assumes that one day
 * somebody else decides what it calls.
 *
 * Three answers beside "allowed":
 *  - killed: a new program, process or namespace, executable memory, another process's memory. No
 *    library does that by itself; the gate was taken over, and a dead gate ends the session closed.
 *  - EACCES: paths. Libraries look for time zones, locales and /etc/hosts at odd moments; there is
 *    nothing to find in its empty root, and looking must not end a session.
 *  - ENOSYS for all the rest, the kill family among it, as for unknown calls.
 *
 * fcntl is a list because F_SETOWN with F_SETSIG sends signals; ioctl, which can do the same, is
 * not there. The gate never binds or listens: its listeners are handed to it, and c-ares leaves
 * source ports to the kernel.
 */
#include "confine/gen-seccomp-internal.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>

static const char *const allowed[] = {
	/* waiting */
	"clock_getres", "clock_gettime", "clock_nanosleep", "epoll_create1", "epoll_ctl",
	"epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd2", "gettimeofday", "nanosleep",
	"poll", "ppoll", "pselect6", "restart_syscall", "select", "time", "timerfd_create",
	"timerfd_gettime", "timerfd_settime",
	/* moving bytes */
	"accept", "accept4", "close", "close_range", "connect", "fstat", "getpeername",
	"getsockname", "getsockopt", "pipe2", "read", "readv", "recvfrom", "recvmsg", "sendmsg",
	"sendto", "shutdown", "splice", "write", "writev",
	/* living and dying */
	"brk", "exit", "exit_group", "futex", "getegid", "geteuid", "getgid", "getpid", "getrandom",
	"getrusage", "gettid", "getuid", "madvise", "mremap", "munmap", "rt_sigaction",
	"rt_sigpending", "rt_sigprocmask", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait",
	"sched_yield", "sigaltstack", "signalfd4", "sysinfo", NULL
};

static const char *const nowhere[] = { "access",     "creat", "faccessat", "faccessat2", "lstat",
				       "newfstatat", "open",  "openat",    "openat2",    "readlink",
				       "readlinkat", "stat",  "statx",     NULL };

static const char *const fatal[] = { "add_key",
				     "bpf",
				     "clone",
				     "clone3",
				     "execve",
				     "execveat",
				     "finit_module",
				     "fork",
				     "init_module",
				     "io_uring_enter",
				     "io_uring_register",
				     "io_uring_setup",
				     "kexec_load",
				     "keyctl",
				     "memfd_create",
				     "mount",
				     "open_by_handle_at",
				     "perf_event_open",
				     "pkey_mprotect",
				     "process_vm_readv",
				     "process_vm_writev",
				     "ptrace",
				     "request_key",
				     "setns",
				     "unshare",
				     "userfaultfd",
				     "vfork",
				     NULL };

static const struct gen_group groups[] = {
	{ GEN_ALLOW, allowed },
	{ GEN_EACCES, nowhere },
	{ GEN_KILL, fatal },
};

static const struct gen_rule executable[] = {
	GEN_RULE(GEN_KILL, GEN_HAS(2, PROT_EXEC)),
};

#define COMMAND(value) GEN_RULE(GEN_ALLOW, GEN_INT(1, value))
static const struct gen_rule descriptor_commands[] = {
	COMMAND(F_GETFD),         COMMAND(F_SETFD),      COMMAND(F_GETFL),      COMMAND(F_SETFL),
	COMMAND(F_DUPFD_CLOEXEC), COMMAND(F_GETPIPE_SZ), COMMAND(F_SETPIPE_SZ),
};

#define TYPE_MASK 0xf /* SOCK_TYPE_MASK, linux/net.h; above are SOCK_NONBLOCK and SOCK_CLOEXEC */
#define SOCKET(family, type, protocol) \
	GEN_RULE(GEN_ALLOW, GEN_INT(0, family), GEN_BITS(1, TYPE_MASK, type), GEN_INT(2, protocol))
static const struct gen_rule sockets[] = {
	SOCKET(AF_INET, SOCK_STREAM, 0),  SOCKET(AF_INET, SOCK_STREAM, IPPROTO_TCP),
	SOCKET(AF_INET, SOCK_DGRAM, 0),   SOCKET(AF_INET, SOCK_DGRAM, IPPROTO_UDP),
	SOCKET(AF_INET6, SOCK_STREAM, 0), SOCKET(AF_INET6, SOCK_STREAM, IPPROTO_TCP),
	SOCKET(AF_INET6, SOCK_DGRAM, 0),  SOCKET(AF_INET6, SOCK_DGRAM, IPPROTO_UDP),
};

/* Programs in the kernel, ports that others may join, and protocols on top of TCP. */
#define OPTION(level, name) GEN_RULE(GEN_EPERM, GEN_INT(1, level), GEN_INT(2, name))
static const struct gen_rule socket_options[] = {
	OPTION(SOL_SOCKET, SO_ATTACH_FILTER),
	OPTION(SOL_SOCKET, SO_ATTACH_BPF),
	OPTION(SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF),
	OPTION(SOL_SOCKET, SO_ATTACH_REUSEPORT_EBPF),
	OPTION(SOL_SOCKET, SO_REUSEPORT),
	OPTION(IPPROTO_TCP, TCP_ULP),
};

static const struct gen_check checks[] = {
	{ { "mmap", "mprotect" }, GEN_ALLOW, GEN_TABLE(executable) },
	{ { "fcntl" }, GEN_EPERM, GEN_TABLE(descriptor_commands) },
	{ { "socket" }, GEN_NO_FAMILY, GEN_TABLE(sockets) },
	{ { "setsockopt" }, GEN_ALLOW, GEN_TABLE(socket_options) },
};

const struct gen_filter gen_gate = {
	.groups = groups,
	.group_count = GEN_COUNT(groups),
	.checks = checks,
	.check_count = GEN_COUNT(checks),
};
