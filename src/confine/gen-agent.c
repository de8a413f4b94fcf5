/*
 * What an agent may ask the kernel for.
 *
 * Everything that ordinary programs use is allowed: the view of the world is made by namespaces,
 * mounts and Landlock, not here. Denied is what reaches around them (new namespaces and mounts, raw
 * and foreign sockets, keyrings, terminals that type by themselves), what widens the attack surface
 * of the kernel for nothing (bpf, userfaultfd, perf), what outlives the session (set-id files), and
 * what hides a process from attribution.
 *
 * Left out on purpose, so answered ENOSYS: io_uring_* (its operations pass neither this filter nor
 * the audit), clone3 and openat2 (what must be checked is behind a pointer; every libc falls back),
 * modify_ldt, and the long dead (uselib, ustat, sysfs, _sysctl, nfsservctl, lookup_dcookie, ...).
 *
 * seccomp() and prctl(PR_SET_SECCOMP) stay allowed, with a listener too: a filter that a program
 * adds for its own children can only narrow, and a second listener is refused by the kernel (EBUSY)
 * where the session has one.
 */
#include "confine/gen-seccomp-internal.h"

#include <fcntl.h>
#include <linux/ioprio.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

static const char *const allowed[] = {
	/* memory */
	"brk", "get_mempolicy", "madvise", "map_shadow_stack", "mbind", "membarrier",
	"memfd_create", "mincore", "mlock", "mlock2", "mlockall", "mmap", "mprotect", "mremap",
	"msync", "munlock", "munlockall", "munmap", "pkey_alloc", "pkey_free", "pkey_mprotect",
	"process_madvise", "process_mrelease", "remap_file_pages", "set_mempolicy",
	"set_mempolicy_home_node",
	/* files */
	"access", "cachestat", "chdir", "chown", "close", "close_range", "copy_file_range", "dup",
	"dup2", "dup3", "faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir", "fchown",
	"fchownat", "fdatasync", "fgetxattr", "flistxattr", "flock", "fremovexattr", "fsetxattr",
	"fstat", "fstatfs", "fsync", "ftruncate", "futimesat", "getcwd", "getdents", "getdents64",
	"getxattr", "lchown", "lgetxattr", "link", "linkat", "listxattr", "llistxattr",
	"lremovexattr", "lseek", "lsetxattr", "lstat", "mkdir", "mkdirat", "name_to_handle_at",
	"newfstatat", "pread64", "preadv", "preadv2", "pwrite64", "pwritev", "pwritev2", "read",
	"readahead", "readlink", "readlinkat", "readv", "removexattr", "sendfile", "setxattr",
	"splice", "stat", "statfs", "statx", "symlink", "symlinkat", "sync", "sync_file_range",
	"syncfs", "tee", "truncate", "umask", "utime", "utimensat", "utimes", "vmsplice", "write",
	"writev",
	/* waiting for files */
	"epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait",
	"eventfd", "eventfd2", "inotify_add_watch", "inotify_init", "inotify_init1",
	"inotify_rm_watch", "io_cancel", "io_destroy", "io_getevents", "io_pgetevents", "io_setup",
	"io_submit", "pipe", "pipe2", "poll", "ppoll", "pselect6", "select", "signalfd",
	"signalfd4",
	/* sockets; socket and socketpair are checks */
	"accept", "accept4", "getpeername", "getsockname", "getsockopt", "recvfrom", "recvmmsg",
	"recvmsg", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown",
	/* System V and POSIX communication: the cell has an ipc namespace of its own */
	"mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink",
	"msgctl", "msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop", "semtimedop", "shmat",
	"shmctl", "shmdt", "shmget",
	/* processes and threads; their reach ends at the pid namespace and the Landlock domain */
	"arch_prctl", "exit", "exit_group", "fork", "futex", "futex_requeue", "futex_wait",
	"futex_waitv", "futex_wake", "get_robust_list", "getcpu", "getpgid", "getpgrp", "getpid",
	"getppid", "getpriority", "getrlimit", "getrusage", "getsid", "gettid", "ioprio_get",
	"kill", "pause", "pidfd_getfd", "pidfd_open", "pidfd_send_signal", "process_vm_readv",
	"process_vm_writev", "restart_syscall", "rseq", "rt_sigaction", "rt_sigpending",
	"rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait",
	"rt_tgsigqueueinfo", "sched_get_priority_max", "sched_get_priority_min",
	"sched_getaffinity", "sched_getattr", "sched_getparam", "sched_getscheduler",
	"sched_rr_get_interval", "sched_yield", "set_robust_list", "set_tid_address", "setpgid",
	"setrlimit", "setsid", "sigaltstack", "tgkill", "tkill", "vfork", "wait4", "waitid",
	/* identity: without a capability these only narrow, or change nothing */
	"capget", "capset", "getegid", "geteuid", "getgid", "getgroups", "getresgid", "getresuid",
	"getuid", "landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self",
	"seccomp", "setfsgid", "setfsuid", "setgid", "setgroups", "setregid", "setresgid",
	"setresuid", "setreuid", "setuid",
	/* time and the machine */
	"alarm", "clock_getres", "clock_gettime", "clock_nanosleep", "getitimer", "getrandom",
	"gettimeofday", "nanosleep", "setitimer", "sysinfo", "time", "timer_create", "timer_delete",
	"timer_getoverrun", "timer_gettime", "timer_settime", "timerfd_create", "timerfd_gettime",
	"timerfd_settime", "times", "uname", NULL
};

/* What an audit wants to hear of; never what cannot wait (close, fork, wait, read, write). */
static const char *const watched[] = { "bind",   "connect",  "execve",   "execveat",  "listen",
				       "ptrace", "rename",   "renameat", "renameat2", "rmdir",
				       "unlink", "unlinkat", NULL };

static const char *const denied[] = {
	/* the shape of the cell */
	"chroot", "fsconfig", "fsmount", "fsopen", "fspick", "mount", "mount_setattr", "move_mount",
	"open_tree", "pivot_root", "setns", "umount2",
	/* files by handle, for all of a file system, or hidden from those who look */
	"fanotify_init", "fanotify_mark", "memfd_secret", "open_by_handle_at",
	/* attack surface that an agent has no use for */
	"add_key", "bpf", "kcmp", "keyctl", "migrate_pages", "move_pages", "perf_event_open",
	"request_key", "userfaultfd",
	/* the machine is not the agent's */
	"acct", "adjtimex", "clock_adjtime", "clock_settime", "delete_module", "finit_module",
	"init_module", "ioperm", "iopl", "kexec_file_load", "kexec_load", "quotactl", "quotactl_fd",
	"reboot", "setdomainname", "sethostname", "settimeofday", "swapoff", "swapon", "syslog",
	"vhangup", NULL
};

static const struct gen_group groups[] = {
	{ GEN_ALLOW, allowed },
	{ GEN_WATCH, watched },
	{ GEN_EPERM, denied },
};

static const struct gen_number numbers[] = {
#ifdef __x86_64__
	/* Trampolines of probes that the host put into a program; good for nothing else. */
	{ GEN_ALLOW, 335 }, /* uretprobe, 6.11 */
	{ GEN_ALLOW, 336 }, /* uprobe, 6.18 */
#endif
	{ GEN_ALLOW, 457 }, /* statmount, 6.8: the mounts of its own namespace */
	{ GEN_ALLOW, 458 }, /* listmount, 6.8 */
	{ GEN_ALLOW, 459 }, /* lsm_get_self_attr, 6.8 */
	{ GEN_EPERM, 460 }, /* lsm_set_self_attr, 6.8 */
	{ GEN_ALLOW, 461 }, /* lsm_list_modules, 6.8 */
	{ GEN_ALLOW, 462 }, /* mseal, 6.10 */
	{ GEN_ALLOW, 463 }, /* setxattrat, 6.13 */
	{ GEN_ALLOW, 464 }, /* getxattrat, 6.13 */
	{ GEN_ALLOW, 465 }, /* listxattrat, 6.13 */
	{ GEN_ALLOW, 466 }, /* removexattrat, 6.13 */
	{ GEN_EPERM, 467 }, /* open_tree_attr, 6.15 */
	{ GEN_ALLOW, 468 }, /* file_getattr, 6.17 */
	{ GEN_ALLOW, 469 }, /* file_setattr, 6.17 */
};

/* A mode with a set-id bit, in every call that can make such a file (mkdir strips them itself). */
#define KERNEL_O_TMPFILE 020000000 /* asm-generic/fcntl.h: without the O_DIRECTORY that libc adds */
static const struct gen_rule mode_is_arg1[] = {
	GEN_RULE(GEN_EPERM, GEN_HAS(1, S_ISUID)),
	GEN_RULE(GEN_EPERM, GEN_HAS(1, S_ISGID)),
};
static const struct gen_rule mode_is_arg2[] = {
	GEN_RULE(GEN_EPERM, GEN_HAS(2, S_ISUID)),
	GEN_RULE(GEN_EPERM, GEN_HAS(2, S_ISGID)),
};

/* Without O_CREAT and O_TMPFILE the mode is not read, and may be whatever was in the register. */
static const struct gen_rule flags_are_arg1[] = {
	GEN_RULE(GEN_EPERM, GEN_HAS(1, O_CREAT), GEN_HAS(2, S_ISUID)),
	GEN_RULE(GEN_EPERM, GEN_HAS(1, O_CREAT), GEN_HAS(2, S_ISGID)),
	GEN_RULE(GEN_EPERM, GEN_HAS(1, KERNEL_O_TMPFILE), GEN_HAS(2, S_ISUID)),
	GEN_RULE(GEN_EPERM, GEN_HAS(1, KERNEL_O_TMPFILE), GEN_HAS(2, S_ISGID)),
};
static const struct gen_rule flags_are_arg2[] = {
	GEN_RULE(GEN_EPERM, GEN_HAS(2, O_CREAT), GEN_HAS(3, S_ISUID)),
	GEN_RULE(GEN_EPERM, GEN_HAS(2, O_CREAT), GEN_HAS(3, S_ISGID)),
	GEN_RULE(GEN_EPERM, GEN_HAS(2, KERNEL_O_TMPFILE), GEN_HAS(3, S_ISUID)),
	GEN_RULE(GEN_EPERM, GEN_HAS(2, KERNEL_O_TMPFILE), GEN_HAS(3, S_ISGID)),
};

/* Device nodes: neither those that need a capability nor the (0, 0) whiteouts that do not. */
#define NODE(arg, type) GEN_RULE(GEN_ALLOW, GEN_BITS(arg, S_IFMT | S_ISUID | S_ISGID, type))
static const struct gen_rule node_mode_is_arg1[] = {
	NODE(1, 0),
	NODE(1, S_IFREG),
	NODE(1, S_IFIFO),
	NODE(1, S_IFSOCK),
};
static const struct gen_rule node_mode_is_arg2[] = {
	NODE(2, 0),
	NODE(2, S_IFREG),
	NODE(2, S_IFIFO),
	NODE(2, S_IFSOCK),
};

#define NAMESPACES                                                                     \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
	 CLONE_NEWPID | CLONE_NEWNET)
#define NEW_TIME 0x80 /* CLONE_NEWTIME, 5.6; in clone() these bits are the exit signal */
static const struct gen_rule no_namespace[] = {
	GEN_RULE(GEN_ALLOW, GEN_BITS(0, NAMESPACES, 0)),
};
static const struct gen_rule no_namespace_or_time[] = {
	GEN_RULE(GEN_ALLOW, GEN_BITS(0, NAMESPACES | NEW_TIME, 0)),
};

static const struct gen_rule terminal_commands[] = {
	GEN_RULE(GEN_EPERM, GEN_INT(1, TIOCSTI)),   /* types into the terminal */
	GEN_RULE(GEN_EPERM, GEN_INT(1, TIOCLINUX)), /* pastes into a console */
	GEN_RULE(GEN_EPERM, GEN_INT(1, TIOCCONS)),  /* takes the console's output */
	GEN_RULE(GEN_EPERM, GEN_INT(1, TIOCSETD)),  /* loads line disciplines */
};

/* A lease on a project file holds up whoever opens it outside, for 45 s. */
/*
 * Pid 1 of the cell has the agent's uid: limits and priorities of it would be the agent's to set, and a
 * pid 1 that cannot open a file or does not run cannot stop the others. By uid it is always among them.
 */
static const struct gen_rule not_of_pid1[] = {
	GEN_RULE(GEN_EPERM, GEN_INT(0, 1)),
};
static const struct gen_rule priorities[] = {
	GEN_RULE(GEN_EPERM, GEN_INT(0, PRIO_PROCESS), GEN_INT(1, 1)),
	GEN_RULE(GEN_EPERM, GEN_INT(0, PRIO_PGRP), GEN_INT(1, 1)),
	GEN_RULE(GEN_EPERM, GEN_INT(0, PRIO_USER)),
};
static const struct gen_rule io_priorities[] = {
	GEN_RULE(GEN_EPERM, GEN_INT(0, IOPRIO_WHO_PROCESS), GEN_INT(1, 1)),
	GEN_RULE(GEN_EPERM, GEN_INT(0, IOPRIO_WHO_PGRP), GEN_INT(1, 1)),
	GEN_RULE(GEN_EPERM, GEN_INT(0, IOPRIO_WHO_USER)),
};
static const struct gen_rule leases[] = {
	GEN_RULE(GEN_EPERM, GEN_INT(1, F_SETLEASE)),
};

/* As little as debuggers and sanitizers need; never READ_IMPLIES_EXEC or another system's ABI. */
#define PERSONALITY(value) GEN_RULE(GEN_ALLOW, GEN_INT(0, value))
static const struct gen_rule personalities[] = {
	PERSONALITY(0xffffffffu), /* only asks */
	PERSONALITY(PER_LINUX),
	PERSONALITY(PER_LINUX | UNAME26),
	PERSONALITY(PER_LINUX | ADDR_NO_RANDOMIZE),
	PERSONALITY(PER_LINUX32),
	PERSONALITY(PER_LINUX32 | UNAME26),
};

/*
 * A process that is not dumpable cannot be attributed from outside: say yes and do nothing. The
 * kernel takes the value as a long. PR_SET_MM lets a process rewrite what /proc says about it.
 */
static const struct gen_rule process_options[] = {
	GEN_RULE(GEN_PRETEND, GEN_INT(0, PR_SET_DUMPABLE), GEN_LONG(1, 0)),
	GEN_RULE(GEN_EPERM, GEN_INT(0, PR_SET_MM)),
};

/*
 * Sockets by family, type and protocol: the network namespace has no way out, this keeps the rest
 * of the kernel's protocols (and modules) out of reach. AF_INET with SOCK_PACKET is AF_PACKET.
 */
#define TYPE_MASK 0xf /* SOCK_TYPE_MASK, linux/net.h; above are SOCK_NONBLOCK and SOCK_CLOEXEC */
#define SOCKET(action, family, type) \
	GEN_RULE(action, GEN_INT(0, family), GEN_BITS(1, TYPE_MASK, type))
#define PROTOCOL(family, type, protocol) \
	GEN_RULE(GEN_ALLOW, GEN_INT(0, family), GEN_BITS(1, TYPE_MASK, type), GEN_INT(2, protocol))
static const struct gen_rule sockets[] = {
	SOCKET(GEN_ALLOW, AF_UNIX, SOCK_STREAM),
	SOCKET(GEN_ALLOW, AF_UNIX, SOCK_DGRAM),
	SOCKET(GEN_ALLOW, AF_UNIX, SOCK_SEQPACKET),
	PROTOCOL(AF_INET, SOCK_STREAM, 0),
	PROTOCOL(AF_INET, SOCK_STREAM, IPPROTO_TCP),
	PROTOCOL(AF_INET, SOCK_DGRAM, 0),
	PROTOCOL(AF_INET, SOCK_DGRAM, IPPROTO_UDP),
	PROTOCOL(AF_INET6, SOCK_STREAM, 0),
	PROTOCOL(AF_INET6, SOCK_STREAM, IPPROTO_TCP),
	PROTOCOL(AF_INET6, SOCK_DGRAM, 0),
	PROTOCOL(AF_INET6, SOCK_DGRAM, IPPROTO_UDP),
	PROTOCOL(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE),
	PROTOCOL(AF_NETLINK, SOCK_DGRAM, NETLINK_ROUTE),
	SOCKET(GEN_EPERM, AF_UNIX, SOCK_RAW),
	SOCKET(GEN_EPERM, AF_INET, SOCK_RAW),
	SOCKET(GEN_EPERM, AF_INET, SOCK_PACKET),
	SOCKET(GEN_EPERM, AF_INET6, SOCK_RAW),
	SOCKET(GEN_EPERM, AF_INET6, SOCK_PACKET),
};
static const struct gen_rule socket_pairs[] = {
	GEN_RULE(GEN_ALLOW, GEN_INT(0, AF_UNIX)),
};

static const struct gen_check checks[] = {
	{ { "ioctl" }, GEN_ALLOW, GEN_TABLE(terminal_commands) },
	{ { "openat" }, GEN_ALLOW, GEN_TABLE(flags_are_arg2) },
	{ { "open" }, GEN_ALLOW, GEN_TABLE(flags_are_arg1) },
	{ { "creat", "chmod", "fchmod" }, GEN_ALLOW, GEN_TABLE(mode_is_arg1) },
	{ { "fchmodat", "fchmodat2" }, GEN_ALLOW, GEN_TABLE(mode_is_arg2) },
	{ { "mknod" }, GEN_EPERM, GEN_TABLE(node_mode_is_arg1) },
	{ { "mknodat" }, GEN_EPERM, GEN_TABLE(node_mode_is_arg2) },
	{ { "clone" }, GEN_EPERM, GEN_TABLE(no_namespace) },
	{ { "unshare" }, GEN_EPERM, GEN_TABLE(no_namespace_or_time) },
	{ { "fcntl" }, GEN_ALLOW, GEN_TABLE(leases) },
	{ { "prlimit64", "sched_setaffinity", "sched_setattr" },
	  GEN_ALLOW,
	  GEN_TABLE(not_of_pid1) },
	{ { "sched_setparam", "sched_setscheduler" }, GEN_ALLOW, GEN_TABLE(not_of_pid1) },
	{ { "setpriority" }, GEN_ALLOW, GEN_TABLE(priorities) },
	{ { "ioprio_set" }, GEN_ALLOW, GEN_TABLE(io_priorities) },
	{ { "personality" }, GEN_EPERM, GEN_TABLE(personalities) },
	{ { "prctl" }, GEN_ALLOW, GEN_TABLE(process_options) },
	{ { "socket" }, GEN_NO_FAMILY, GEN_TABLE(sockets) },
	{ { "socketpair" }, GEN_NO_FAMILY, GEN_TABLE(socket_pairs) },
};

const struct gen_filter gen_agent = {
	.groups = groups,
	.group_count = GEN_COUNT(groups),
	.numbers = numbers,
	.number_count = GEN_COUNT(numbers),
	.checks = checks,
	.check_count = GEN_COUNT(checks),
};
