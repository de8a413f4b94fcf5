/*
 *	gen-seccomp agent|agent-audited|gate > FILTER.c
 *
 * libseccomp makes one program per filter with one default answer, and sorts the numbers into a
 * binary tree. Arguments that need an answer of their own where nothing matches ("ioctl: allowed,
 * but for these commands") do not fit into that. So each check becomes a small program with its own
 * default, and the programs are linked: in the main program a checked system call has the marker
 * SECCOMP_RET_TRACE + n as its answer, and every such `ret` instruction is replaced by a jump to
 * the start of program n. Classic BPF jumps only forward, and the checks stand behind.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "confine/gen-seccomp-internal.h"

struct program {
	struct sock_filter code[BPF_MAXINSNS];
	size_t count;
};

static const uint32_t plain_actions[GEN_ACTIONS] = {
	[GEN_ALLOW] = SCMP_ACT_ALLOW,          [GEN_WATCH] = SCMP_ACT_ALLOW,
	[GEN_PRETEND] = SCMP_ACT_ERRNO(0),     [GEN_EPERM] = SCMP_ACT_ERRNO(EPERM),
	[GEN_EACCES] = SCMP_ACT_ERRNO(EACCES), [GEN_NO_FAMILY] = SCMP_ACT_ERRNO(EAFNOSUPPORT),
	[GEN_KILL] = SCMP_ACT_KILL_PROCESS,
};

static const uint32_t audited_actions[GEN_ACTIONS] = {
	[GEN_ALLOW] = SCMP_ACT_ALLOW,          [GEN_WATCH] = SCMP_ACT_NOTIFY,
	[GEN_PRETEND] = SCMP_ACT_ERRNO(0),     [GEN_EPERM] = SCMP_ACT_NOTIFY,
	[GEN_EACCES] = SCMP_ACT_ERRNO(EACCES), [GEN_NO_FAMILY] = SCMP_ACT_NOTIFY,
	[GEN_KILL] = SCMP_ACT_KILL_PROCESS,
};

static const struct output {
	const char *argument, *symbol;
	const struct gen_filter *filter;
	const uint32_t *actions;
} outputs[] = {
	{ "agent", "aw_confine_filter_agent", &gen_agent, plain_actions },
	{ "agent-audited", "aw_confine_filter_agent_audited", &gen_agent, audited_actions },
	{ "gate", "aw_confine_filter_gate", &gen_gate, plain_actions },
};

static void check(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "gen-seccomp: %s: %s\n", what, strerror(-r));
	exit(1);
}

static scmp_filter_ctx begin(uint32_t otherwise)
{
	scmp_filter_ctx ctx = seccomp_init(otherwise);

	if (ctx == NULL)
		check(-ENOMEM, "seccomp_init");
	/* Foreign entries (int 0x80, x32) are calls that do not exist. */
	check(seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)), "badarch");
	check(seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2), "optimize");
	return ctx;
}

static void append(struct program *program, scmp_filter_ctx ctx)
{
	int fd = memfd_create("filter", MFD_CLOEXEC);
	size_t room = (BPF_MAXINSNS - program->count) * sizeof(program->code[0]);
	ssize_t n;

	check(fd < 0 ? -errno : 0, "memfd_create");
	check(seccomp_export_bpf(ctx, fd), "export");
	n = pread(fd, program->code + program->count, room, 0);
	check(n < 0 ? -errno : 0, "read");
	check(lseek(fd, 0, SEEK_END) != n ? -E2BIG : 0, "filter size");
	close(fd);
	program->count += (size_t)n / sizeof(program->code[0]);
	seccomp_release(ctx);
}

/* The number of @name here, or -1 where this architecture has no such call. */
static int number_of(const char *name)
{
	int number = seccomp_syscall_resolve_name(name);

	check(number == __NR_SCMP_ERROR ? -EINVAL : 0, name);
	return number >= 0 ? number : -1;
}

static void add(scmp_filter_ctx ctx, uint32_t action, int number, const char *what)
{
	if (number >= 0)
		check(seccomp_rule_add_exact(ctx, action, number, 0), what);
}

static void add_rule(scmp_filter_ctx ctx, const struct gen_rule *rule, uint32_t action, int number)
{
	struct scmp_arg_cmp compare[GEN_WHEN_MAX];
	unsigned count = 0;

	for (; count < GEN_WHEN_MAX && rule->when[count].mask != 0; count++)
		compare[count] = (struct scmp_arg_cmp){
			.arg = rule->when[count].arg,
			.op = SCMP_CMP_MASKED_EQ,
			.datum_a = rule->when[count].mask,
			.datum_b = rule->when[count].value,
		};
	check(seccomp_rule_add_exact_array(ctx, action, number, count, compare), "add a rule");
}

static void append_check(struct program *program, const struct gen_check *c,
			 const uint32_t *actions)
{
	uint32_t otherwise = actions[c->otherwise];
	scmp_filter_ctx ctx = begin(otherwise);

	for (size_t i = 0; i < GEN_COUNT(c->syscalls) && c->syscalls[i] != NULL; i++) {
		int number = number_of(c->syscalls[i]);

		for (size_t k = 0; number >= 0 && k < c->rule_count; k++) {
			uint32_t action = actions[c->rules[k].action];

			/* libseccomp refuses a rule that says what the default says. */
			if (action != otherwise)
				add_rule(ctx, c->rules + k, action, number);
		}
	}
	append(program, ctx);
}

static void append_main(struct program *program, const struct gen_filter *f,
			const uint32_t *actions)
{
	scmp_filter_ctx ctx = begin(SCMP_ACT_ERRNO(ENOSYS));

	for (size_t i = 0; i < f->group_count; i++)
		for (const char *const *name = f->groups[i].syscalls; *name != NULL; name++)
			add(ctx, actions[f->groups[i].action], number_of(*name), *name);
	for (size_t i = 0; i < f->number_count; i++)
		add(ctx, actions[f->numbers[i].action], f->numbers[i].number, "a call by number");
	for (size_t i = 0; i < f->check_count; i++) {
		const char *const *name = f->checks[i].syscalls;

		for (size_t k = 0; k < GEN_COUNT(f->checks[i].syscalls) && name[k] != NULL; k++)
			add(ctx, SCMP_ACT_TRACE(i), number_of(name[k]), name[k]);
	}
	append(program, ctx);
}

static void build(struct program *program, const struct gen_filter *f, const uint32_t *actions)
{
	size_t *start = calloc(f->check_count, sizeof(*start));
	size_t main_count;

	if (start == NULL)
		check(-ENOMEM, "build");
	append_main(program, f, actions);
	main_count = program->count;
	for (size_t i = 0; i < f->check_count; i++) {
		start[i] = program->count;
		append_check(program, f->checks + i, actions);
	}
	for (size_t i = 0; i < main_count; i++) {
		struct sock_filter *code = program->code + i;

		if (code->code != (BPF_RET | BPF_K) ||
		    (code->k & SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_TRACE)
			continue;
		*code = (struct sock_filter)BPF_STMT(
			BPF_JMP | BPF_JA, (uint32_t)(start[code->k & SECCOMP_RET_DATA] - (i + 1)));
	}
	free(start);
}

static void print(const struct output *out, const struct program *program)
{
	printf("/* Made by gen-seccomp: %s, %zu instructions. */\n"
	       "#include <linux/filter.h>\n\n#include \"confine/seccomp.h\"\n\n"
	       "static const struct sock_filter code[] = {\n",
	       out->argument, program->count);
	for (size_t i = 0; i < program->count; i++) {
		const struct sock_filter *c = program->code + i;

		printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", c->code, c->jt, c->jf, c->k);
	}
	printf("};\n\nconst struct aw_filter %s = { code, sizeof(code) };\n", out->symbol);
}

int main(int argc, char **argv)
{
	static struct program program;

	for (size_t i = 0; argc == 2 && i < GEN_COUNT(outputs); i++) {
		if (strcmp(argv[1], outputs[i].argument) != 0)
			continue;
		build(&program, outputs[i].filter, outputs[i].actions);
		print(outputs + i, &program);
		return fflush(stdout) == 0 ? 0 : 1;
	}
	fprintf(stderr, "usage: gen-seccomp agent|agent-audited|gate\n");
	return 2;
}
