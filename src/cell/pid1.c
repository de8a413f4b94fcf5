/*
 * warden-cell - pid 1 of a cell. Started by the launcher inside fresh user, mount, pid, ipc, uts and
 * cgroup namespaces, with its rights there as ambient capabilities, and two descriptors: the link to
 * the monitor and a pidfd of the monitor. The plan comes over the link.
 *
 * It ends when the agent has ended or the monitor is gone, and with it, as pid 1, everything inside.
 * Three things tell it of the monitor's death: PDEATHSIG, the pidfd, the end of the link.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "cell/pid1-internal.h"

struct pid1 {
	const struct aw_plan_header *plan;
	struct aw_build build;
	struct aw_net_job net_job;
	struct aw_net_parts net;
	int user_ns, mount_ns, mountinfo, pty_master;
	char pty_name[32];
	struct aw_ipc_cell_ready ready;
	struct aw_jobs jobs;
	struct aw_freeze freeze;
};

static int map_plan(int take_fd, const struct aw_plan_header **ret, struct aw_error *err)
{
	autoclose int fd = take_fd;
	struct stat st;
	void *bytes;

	if (fstat(fd, &st) < 0)
		return aw_fail(err, errno, "read the plan");
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return aw_fail(err, errno, "map the plan");
	*ret = bytes;
	return aw_plan_check(bytes, (size_t)st.st_size, err);
}

static int expect(enum aw_ipc_type type, struct aw_ipc_message *message, struct aw_error *err)
{
	int r = aw_ipc_recv(AW_PID1_LINK, AW_IPC_CELL, AW_IPC_MONITOR, message, err);

	if (r < 0)
		return r;
	if (r == 0)
		return aw_refuse(err, EPIPE, "the monitor went away");
	if (message->type != type)
		return aw_refuse(err, EPROTO, "the monitor sent message %d too early",
				 message->type);
	return 0;
}

/* The ids are mapped now. A root launcher's groups would still count inside: they go first. */
static int become_agent(const struct aw_plan_header *plan, struct aw_error *err)
{
	uid_t uid = plan->inside_uid;
	gid_t gid = plan->inside_gid;

	if (plan->is_root_started && setgroups(0, NULL) < 0)
		return aw_fail(err, errno, "drop the supplementary groups");
	if (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return aw_fail(err, errno, "become uid %u of the cell", uid);
	return 0;
}

/* CELL_MAPPED: the ids are mapped; the first descriptor is the plan, the others are its trees. */
static int set_up_view(struct pid1 *p, struct aw_error *err)
{
	static struct aw_ipc_message message;
	int r;

	r = expect(AW_IPC_CELL_MAPPED, &message, err);
	if (r == 0)
		r = map_plan(AW_TAKE_FD(message.fds[0]), &p->plan, err);
	if (r == 0)
		r = aw_build_open(p->plan, &p->build, err);
	if (r == 0 && p->plan->is_memory_limited)
		aw_jobs_mark_victims(&p->jobs);
	if (r == 0)
		r = become_agent(p->plan, err);
	return r < 0 ? r : aw_build_root(&p->build, message.fds + 1, message.fd_count - 1, err);
}

/* The monitor keeps these to watch the mounts and, if one is lost, to put it back from outside. */
static int open_handles(struct pid1 *p, struct aw_error *err)
{
	p->user_ns = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
	p->mount_ns = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	p->mountinfo = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (p->user_ns < 0 || p->mount_ns < 0 || p->mountinfo < 0)
		return aw_fail(err, errno, "open the cell's namespaces");
	p->pty_master = -EBADF;
	if (!p->plan->wants_pty)
		return 0;
	p->pty_master =
		aw_pty_open(p->plan->rows, p->plan->columns, p->pty_name, sizeof(p->pty_name), err);
	return p->pty_master < 0 ? p->pty_master : 0;
}

/* Caps of what the cell shares with the user's uid outside: written while we still may. */
static int write_caps(const struct aw_plan_header *plan, struct aw_error *err)
{
	for (uint32_t i = 0; i < plan->op_count; i++) {
		const struct aw_plan_op *op = aw_plan_op_at(plan, i);
		char path[96], value[24];

		if (op->code != AW_PLAN_CAP)
			continue;
		if (aw_str_format(path, sizeof(path), "/proc/sys/user/%s",
				  aw_plan_text_at(plan, op->source)) < 0)
			return aw_refuse(err, ENAMETOOLONG, "the plan names an unknown limit");
		(void)aw_str_format(value, sizeof(value), "%llu", (unsigned long long)op->size);
		/* Older kernels lack some of them; what is there must take the value. */
		if (aw_write_file(AT_FDCWD, path, value, err) < 0 && err->code != ENOENT)
			return -err->code;
	}
	return 0;
}

/* Measured with the handles still open: what is open now and not of the list is somebody else's. */
static int measure_and_tell(struct pid1 *p, struct aw_error *err)
{
	int fds[AW_IPC_FDS_MAX + 6] = { p->mountinfo, p->user_ns, p->mount_ns };
	size_t count = 3, sent;
	int r;

	p->ready.has_pty = p->pty_master >= 0;
	if (p->ready.has_pty)
		fds[count++] = p->pty_master;
	p->ready.listener_count = p->net.count;
	memcpy(p->ready.listener, p->net.listener, sizeof(p->ready.listener));
	for (uint32_t i = 0; i < p->net.count; i++)
		fds[count++] = p->net.fd[i];
	sent = count;
	for (int fd = 0; fd <= AW_PID1_MONITOR; fd++)
		fds[count++] = fd;
	if (p->jobs.marks_victims)
		fds[count++] = p->jobs.oom_fd;
	r = aw_pid1_measure(p->plan, fds, count, &p->ready.checks_held, err);
	if (r == 0)
		r = aw_ipc_send(AW_PID1_LINK, AW_IPC_CELL_READY, &p->ready, sizeof(p->ready), fds,
				sent, err);
	for (size_t i = 0; i < sent; i++)
		(void)close(fds[i]);
	return r;
}

static int set_up(struct pid1 *p, struct aw_error *err)
{
	int r;

	r = aw_net_start(&p->net_job, err);
	if (r == 0)
		r = set_up_view(p, err);
	aw_build_fini(&p->build);
	if (r == 0 && sethostname(aw_plan_text_at(p->plan, p->plan->hostname),
				  strlen(aw_plan_text_at(p->plan, p->plan->hostname))) < 0)
		r = aw_fail(err, errno, "sethostname");
	if (r == 0)
		r = aw_net_join(&p->net_job, err);
	if (r == 0)
		r = aw_net_open(p->plan, &p->net, err);
	if (r == 0)
		r = write_caps(p->plan, err);
	if (r == 0)
		r = open_handles(p, err);
	if (r == 0)
		r = aw_pid1_confine(p->plan, &p->ready.landlock_abi, err);
	if (r == 0)
		r = measure_and_tell(p, err);
	return r;
}

static int start_agent(struct pid1 *p, struct aw_error *err)
{
	autofree char **argv = aw_plan_vector_at(p->plan, p->plan->argv);
	autofree char **env = aw_plan_vector_at(p->plan, p->plan->env);
	struct aw_job_start start = {
		.argv = argv,
		.env = env,
		.cwd = aw_plan_text_at(p->plan, p->plan->cwd),
		.pty_name = p->plan->wants_pty ? p->pty_name : NULL,
	};
	int r, null;

	if (argv == NULL || env == NULL)
		return aw_fail(err, ENOMEM, "start the agent");
	for (int i = 0; i < 3; i++)
		start.stdio[i] = p->plan->stdio_is_pty[i] ? -EBADF : i;
	r = aw_job_start(&p->jobs, &start, AW_PID1_LINK, -EBADF, err);
	environ = NULL;
	/* From here the ends of the caller's pipes belong to the agent alone: EOF and SIGPIPE work. */
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int i = 0; i < 3 && null >= 0; i++)
		(void)dup2(null, i);
	(void)aw_fd_close(null);
	return r;
}

/* Strings of CELL_EXEC: cwd, argc arguments, envc variables, each terminated inside the tail. */
static int split_tail(const struct aw_ipc_cell_exec *exec, char *tail, char **strings, size_t count)
{
	size_t left = exec->tail_len;

	for (size_t i = 0; i < count; i++) {
		char *end = left > 0 ? memchr(tail, '\0', left) : NULL;

		if (end == NULL)
			return -EBADMSG;
		strings[i] = tail;
		left -= (size_t)(end - tail) + 1;
		tail = end + 1;
	}
	return 0;
}

static int exec_job(struct pid1 *p, struct aw_ipc_message *message, struct aw_error *err)
{
	struct aw_ipc_cell_exec exec;
	autofree char **strings = NULL;
	struct aw_job_start start = { 0 };
	char pty_name[32];
	autoclose int master = -EBADF;
	size_t count;

	memcpy(&exec, message->payload, sizeof(exec));
	count = 1 + (size_t)exec.argc + exec.envc;
	/* [cwd] [argv...] NULL [env...] NULL */
	strings = calloc(count + 2, sizeof(*strings));
	if (strings == NULL)
		return aw_fail(err, ENOMEM, "exec");
	if (exec.argc == 0 || count > AW_PLAN_STRINGS_MAX ||
	    split_tail(&exec, (char *)message->payload + sizeof(exec), strings, count) < 0)
		return aw_refuse(err, EPROTO, "a malformed exec request");
	memmove(strings + 2 + exec.argc, strings + 1 + exec.argc, exec.envc * sizeof(*strings));
	strings[1 + exec.argc] = NULL;
	start = (struct aw_job_start){
		.job = exec.job,
		.cwd = strings[0],
		.argv = strings + 1,
		.env = strings + 2 + exec.argc,
	};
	for (int i = 0; i < 3; i++)
		start.stdio[i] = message->fds[i];
	if (exec.wants_pty) {
		master = aw_pty_open(exec.rows, exec.columns, pty_name, sizeof(pty_name), err);
		if (master < 0)
			return master;
		start.pty_name = pty_name;
		for (int i = 0; i < 3; i++)
			start.stdio[i] = -EBADF;
	}
	(void)aw_job_start(&p->jobs, &start, AW_PID1_LINK, master, err);
	environ = NULL;
	return err->code == EPIPE ? -EPIPE : 0;
}

/* What would not stop is said, not passed over: the monitor then ends the session. */
static int freeze(struct pid1 *p, struct aw_error *err)
{
	struct aw_ipc_frozen frozen = { .is_complete = aw_freeze_all(&p->freeze, err) == 0 };

	return aw_ipc_send(AW_PID1_LINK, AW_IPC_CELL_FROZEN, &frozen, sizeof(frozen), NULL, 0, err);
}

static int handle_message(struct pid1 *p, struct aw_error *err)
{
	static struct aw_ipc_message message;
	struct aw_ipc_cell_signal sig;
	int r = aw_ipc_recv(AW_PID1_LINK, AW_IPC_CELL, AW_IPC_MONITOR, &message, err);

	if (r <= 0)
		return r == 0 ? -EPIPE : r;
	r = 0;
	if (message.type == AW_IPC_CELL_EXEC) {
		r = exec_job(p, &message, err);
	} else if (message.type == AW_IPC_CELL_SIGNAL) {
		memcpy(&sig, message.payload, sizeof(sig));
		(void)aw_jobs_signal(&p->jobs, sig.job, sig.signal);
	} else if (message.type == AW_IPC_CELL_FREEZE) {
		r = freeze(p, err);
	} else if (message.type == AW_IPC_CELL_THAW) {
		aw_thaw_all(&p->freeze);
	}
	aw_ipc_message_fini(&message);
	return r;
}

static int serve(struct pid1 *p, int child_fd, struct aw_error *err)
{
	struct pollfd polls[] = {
		{ .fd = child_fd, .events = POLLIN },
		{ .fd = AW_PID1_LINK, .events = POLLIN },
		{ .fd = AW_PID1_MONITOR, .events = POLLIN },
	};

	while (!p->jobs.agent_ended) {
		struct signalfd_siginfo info;
		int r = 0;

		if (poll(polls, AW_ARRAY_LEN(polls), -1) < 0 && errno != EINTR)
			return aw_fail(err, errno, "poll");
		if (polls[2].revents != 0)
			return -EPIPE;
		if (polls[0].revents != 0) {
			(void)!read(child_fd, &info, sizeof(info));
			r = aw_jobs_reap(&p->jobs, AW_PID1_LINK, err);
		}
		if (r == 0 && polls[1].revents != 0)
			r = handle_message(p, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int watch_children(struct aw_error *err)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
		return aw_fail(err, errno, "sigprocmask");
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	return fd < 0 ? aw_fail(err, errno, "signalfd") : fd;
}

static int wait_for_go(struct aw_error *err)
{
	static struct aw_ipc_message message;

	return expect(AW_IPC_CELL_GO, &message, err);
}

/*
 * What a control group has counted is gone with its last process, which we are: the monitor reads it
 * and closes the link.
 */
static void wait_for_release(void)
{
	struct pollfd polls[] = { { .fd = AW_PID1_LINK },
				  { .fd = AW_PID1_MONITOR, .events = POLLIN } };

	while (poll(polls, AW_ARRAY_LEN(polls), -1) < 0 && errno == EINTR)
		;
}

int main(void)
{
	static struct pid1 p;
	struct aw_error err = { 0 };
	int child_fd, r;

	for (int fd = AW_PID1_LINK; fd <= AW_PID1_MONITOR; fd++)
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	r = set_up(&p, &err);
	if (r < 0) {
		(void)aw_ipc_send(AW_PID1_LINK, AW_IPC_CELL_FAILED, &err, sizeof(err), NULL, 0,
				  &(struct aw_error){ 0 });
		return 125;
	}
	child_fd = watch_children(&err);
	r = child_fd < 0 ? child_fd : wait_for_go(&err);
	if (r == 0)
		r = start_agent(&p, &err);
	if (r == 0 && p.jobs.slot[0].is_used)
		r = serve(&p, child_fd, &err);
	aw_jobs_end_all();
	(void)aw_ipc_send(AW_PID1_LINK, AW_IPC_CELL_EMPTY, NULL, 0, NULL, 0, &err);
	if (p.plan->is_memory_limited)
		wait_for_release();
	return r < 0 ? 125 : 0;
}
