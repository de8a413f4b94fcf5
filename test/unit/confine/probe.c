#include "confine/probe.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__x86_64__)
const unsigned probe_arch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
const unsigned probe_arch = AUDIT_ARCH_AARCH64;
#endif

struct machine {
	const struct seccomp_data *call;
	unsigned accumulator;
};

static bool jumps(const struct sock_filter *code, unsigned accumulator)
{
	switch (BPF_OP(code->code)) {
	case BPF_JEQ:
		return accumulator == code->k;
	case BPF_JGT:
		return accumulator > code->k;
	case BPF_JGE:
		return accumulator >= code->k;
	case BPF_JSET:
		return (accumulator & code->k) != 0;
	default:
		assert(!"a jump that seccomp programs of ours do not have");
	}
}

/* Execute one instruction; returns how many to skip behind it. */
static unsigned step(struct machine *m, const struct sock_filter *code)
{
	switch (code->code) {
	case BPF_LD | BPF_W | BPF_ABS:
		assert(code->k + 4 <= sizeof(*m->call));
		memcpy(&m->accumulator, (const char *)m->call + code->k, 4);
		return 0;
	case BPF_ALU | BPF_AND | BPF_K:
		m->accumulator &= code->k;
		return 0;
	case BPF_JMP | BPF_JA:
		return code->k;
	default:
		assert(BPF_CLASS(code->code) == BPF_JMP);
		return jumps(code, m->accumulator) ? code->jt : code->jf;
	}
}

unsigned probe_verdict(const struct aw_filter *filter, const struct seccomp_data *call,
		       unsigned *ret_steps)
{
	const struct sock_filter *code = filter->code;
	struct machine m = { .call = call };
	unsigned steps = 1;
	size_t at = 0;

	for (; code[at].code != (BPF_RET | BPF_K); steps++) {
		at += 1 + step(&m, code + at);
		assert(at < filter->size / sizeof(*code));
	}
	if (ret_steps != NULL)
		*ret_steps = steps;
	return code[at].k;
}

unsigned probe_verdict_of(const struct aw_filter *filter, long number, const unsigned long args[6])
{
	struct seccomp_data call = { .nr = (int)number, .arch = probe_arch };

	for (size_t i = 0; i < 6; i++)
		call.args[i] = args[i];
	return probe_verdict(filter, &call, NULL);
}

long probe_syscall(long number, const unsigned long args[6])
{
	long r = syscall(number, args[0], args[1], args[2], args[3], args[4], args[5]);

	return r < 0 ? -errno : r;
}

static _Noreturn void run_child(int out, const struct aw_filter *filter, long (*body)(void *state),
				void *state)
{
	struct aw_error err = { 0 };
	long result;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    (filter != NULL && aw_seccomp_apply(filter->code, filter->size, &err) < 0))
		_exit(1);
	result = body(state);
	_exit(write(out, &result, sizeof(result)) == sizeof(result) ? 0 : 1);
}

long probe_body(const struct aw_filter *filter, long (*body)(void *state), void *state)
{
	int pipe_fd[2], status;
	long result = 0;
	ssize_t n;
	pid_t pid;

	assert(pipe2(pipe_fd, O_CLOEXEC) == 0);
	pid = fork();
	assert(pid >= 0);
	if (pid == 0)
		run_child(pipe_fd[1], filter, body, state);
	close(pipe_fd[1]);
	n = read(pipe_fd[0], &result, sizeof(result));
	close(pipe_fd[0]);
	assert(waitpid(pid, &status, 0) == pid);
	if (WIFSIGNALED(status))
		return PROBE_DIED - WTERMSIG(status);
	assert(n == sizeof(result) && status == 0);
	return result;
}

static long make_call(void *state)
{
	const struct probe_call *call = state;

	return probe_syscall(call->number, call->args);
}

long probe(const struct aw_filter *filter, const struct probe_call *call)
{
	struct probe_call copy = *call;

	return probe_body(filter, make_call, &copy);
}

void probe_check(const struct aw_filter *filter, const struct probe_row *row)
{
	unsigned verdict = probe_verdict_of(filter, row->call.number, row->call.args);
	unsigned expected = row->result == PROBE_DIED - SIGSYS ? SECCOMP_RET_KILL_PROCESS
							       : ANSWER((unsigned)-row->result);
	long r = probe(filter, &row->call);

	/* The verdict too, so that no errno of the kernel passes for the filter's. */
	if (verdict != expected || r != row->result)
		fail_msg("%s: %#x and %ld instead of %ld", row->call.name, verdict, r, row->result);
	if (row->needs_root && !probe_is_real_root())
		return;
	if (probe(NULL, &row->call) == row->result)
		fail_msg("%s: the control run has the same result", row->call.name);
}

bool probe_is_real_root(void)
{
	char map[64] = "";
	int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, map, sizeof(map) - 1);

	if (fd >= 0)
		close(fd);
	/* CAP_SYS_BOOT shows that this is no container with a handful of capabilities. */
	return n > 0 && strstr(map, "4294967295") != NULL && geteuid() == 0 &&
	       prctl(PR_CAPBSET_READ, 22) == 1;
}
