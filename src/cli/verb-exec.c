/*
 * exec: one more command in a running cell. Pid 1 of the cell forks it, so it is confined exactly as
 * the agent is. This process only lends its terminal or its descriptors.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/loop.h"
#include "base/own.h"
#include "cell/view.h"
#include "cli/cli.h"
#include "ipc/ipc.h"
#include "monitor/environ.h"
#include "monitor/relay.h"
#include "monitor/terminal.h"
#include "policy/paths.h"

struct exec {
	struct aw_loop loop;
	struct aw_watch link, signals;
	struct aw_terminal terminal;
	struct aw_relay relay;
	struct aw_ipc_message message;
	struct aw_error failure;
	int exit_code;
};

static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGCONT };

static void forward(struct exec *e, int sig)
{
	struct aw_ipc_cell_signal message = { .signal = sig };
	struct aw_error none;

	if (sig == SIGWINCH)
		aw_terminal_resized(&e->terminal);
	else if (sig == SIGCONT)
		aw_terminal_continued(&e->terminal);
	else
		(void)aw_ipc_send(e->link.fd, AW_IPC_ASK_SIGNAL, &message, sizeof(message), NULL, 0,
				  &none);
}

static int signals_ready(struct aw_watch *watch, uint32_t events)
{
	struct exec *e = AW_CONTAINER(watch, struct exec, signals);
	struct signalfd_siginfo info;

	(void)events;
	while (read(watch->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		forward(e, (int)info.ssi_signo);
	return 0;
}

static int on_message(struct exec *e)
{
	struct aw_ipc_message *m = &e->message;
	struct aw_ipc_cell_job job;

	if (m->type == AW_IPC_TELL_STARTED && m->fd_count > 0)
		return aw_terminal_attach(&e->terminal, AW_TAKE_FD(m->fds[0]), &e->loop,
					  &e->failure);
	if (m->type == AW_IPC_TELL_ENDED) {
		memcpy(&job, m->payload, sizeof(job));
		e->exit_code = job.status;
		if (job.exec_failed)
			(void)aw_fail(&e->failure, job.exec_errno,
				      "execute the command in the cell");
		aw_loop_stop(&e->loop, 0);
	}
	if (m->type == AW_IPC_TELL_REFUSED) {
		memcpy(&e->failure, m->payload, sizeof(e->failure));
		aw_loop_stop(&e->loop, 0);
	}
	return 0;
}

static int link_ready(struct aw_watch *watch, uint32_t events)
{
	struct exec *e = AW_CONTAINER(watch, struct exec, link);
	int r = aw_ipc_recv(watch->fd, AW_IPC_CLIENT, AW_IPC_MONITOR, &e->message, &e->failure);

	(void)events;
	if (r == 0) {
		(void)aw_refuse(&e->failure, EPIPE, "the session ended");
		aw_loop_stop(&e->loop, 0);
		return 0;
	}
	if (r > 0) {
		r = on_message(e);
		aw_ipc_message_fini(&e->message);
	}
	return r;
}

static int watch_signals(struct exec *e)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < AW_ARRAY_LEN(forwarded); i++)
		sigaddset(&set, forwarded[i]);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	e->signals = (struct aw_watch){ .ready = signals_ready };
	e->signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (e->signals.fd < 0)
		return aw_fail(&e->failure, errno, "signalfd");
	return aw_loop_watch(&e->loop, &e->signals, EPOLLIN, &e->failure);
}

/* The caller's directory if it lies in the project, else the project. */
static const char *working_dir(const char *project, char *here, size_t size)
{
	return getcwd(here, size) != NULL && aw_path_is_within(here, project) ? here : project;
}

/* What the agent has besides its keys: the cell knows no shell of its own to ask. */
static int add_environment(struct aw_buf *tail, uint32_t *count)
{
	static const char *const passed[] = { "TERM",   "COLORTERM", "LANG",
					      "LC_ALL", "TZ",        "NO_COLOR" };
	static const char *const fixed[] = {
		"HOME=" AW_CELL_HOME,
		"USER=" AW_CELL_USER,
		"LOGNAME=" AW_CELL_USER,
		"SHELL=/bin/bash",
		"PATH=/usr/local/bin:/usr/bin:/bin",
		"WARDEN=1",
		"SANDBOX_RUNTIME=1",
		"HTTP_PROXY=http://127.0.0.1:3128",
		"http_proxy=http://127.0.0.1:3128",
		"HTTPS_PROXY=http://127.0.0.1:3128",
		"https_proxy=http://127.0.0.1:3128",
		"NO_PROXY=localhost,127.0.0.1,::1",
		"no_proxy=localhost,127.0.0.1,::1",
		"NODE_USE_ENV_PROXY=1",
	};
	int r = 0;

	*count = 0;
	for (size_t i = 0; r == 0 && i < AW_ARRAY_LEN(fixed); i++, (*count)++)
		r = aw_buf_append(tail, fixed[i], strlen(fixed[i]) + 1);
	for (size_t i = 0; r == 0 && i < AW_ARRAY_LEN(passed); i++) {
		const char *value = aw_environ_get(environ, passed[i]);

		if (value == NULL)
			continue;
		r = aw_buf_printf(tail, "%s=%s", passed[i], value);
		if (r == 0)
			r = aw_buf_append(tail, "", 1);
		(*count)++;
	}
	return r;
}

static int send_request(struct exec *e, const char *project, char *const *command)
{
	autodrop(aw_buf_fini) struct aw_buf tail = AW_BUF_INIT(AW_IPC_PAYLOAD_MAX);
	struct aw_ipc_cell_exec exec = { .wants_pty = e->terminal.fd >= 0 };
	char here[PATH_MAX];
	const char *dir = working_dir(project, here, sizeof(here));
	int r;

	aw_terminal_size(&e->terminal, &exec.rows, &exec.columns);
	r = aw_buf_append(&tail, &exec, sizeof(exec));
	if (r == 0)
		r = aw_buf_append(&tail, dir, strlen(dir) + 1);
	for (; r == 0 && command[exec.argc] != NULL; exec.argc++)
		r = aw_buf_append(&tail, command[exec.argc], strlen(command[exec.argc]) + 1);
	if (r == 0)
		r = add_environment(&tail, &exec.envc);
	if (r < 0)
		return aw_refuse(&e->failure, E2BIG, "the command is longer than %d bytes",
				 AW_IPC_PAYLOAD_MAX);
	exec.tail_len = (uint32_t)(tail.len - sizeof(exec));
	memcpy(tail.data, &exec, sizeof(exec));
	return aw_ipc_send(e->link.fd, AW_IPC_ASK_EXEC, tail.data, tail.len, e->relay.stdio,
			   exec.wants_pty ? 0 : 3, &e->failure);
}

static int run(struct exec *e, const char *project, char *const *command)
{
	int r = aw_loop_init(&e->loop, &e->failure);

	if (r == 0)
		r = watch_signals(e);
	e->link.ready = link_ready;
	if (r == 0)
		r = aw_loop_watch(&e->loop, &e->link, EPOLLIN, &e->failure);
	if (r == 0)
		r = aw_relay_start(&e->relay, geteuid(), getegid(), &e->failure);
	if (r == 0)
		r = send_request(e, project, command);
	aw_relay_release(&e->relay);
	if (r == 0)
		r = aw_loop_run(&e->loop);
	aw_terminal_drain(&e->terminal);
	aw_relay_finish(&e->relay);
	aw_terminal_fini(&e->terminal);
	aw_loop_fini(&e->loop);
	return r;
}

int aw_verb_exec(char *const *args)
{
	static char *const shell[] = { (char *)(uintptr_t) "/bin/bash", NULL };
	autofree struct exec *e = calloc(1, sizeof(*e));
	const char *operand = NULL;
	struct aw_session_meta meta;
	struct aw_cli_place place;
	struct aw_error err = { 0 };
	autoclose int link = -EBADF;

	if (args[0] != NULL && strcmp(args[0], "--") != 0)
		operand = *args++;
	if (args[0] != NULL && strcmp(args[0], "--") != 0)
		return aw_cli_usage("exec", "a command goes behind --");
	if (e == NULL || aw_cli_open_place(&place, &err) < 0)
		return aw_cli_fail(AW_EXIT_USAGE, &err);
	link = aw_cli_connect(&place.state, operand, &meta, &err);
	aw_cli_close_place(&place);
	if (link < 0)
		return aw_cli_fail(AW_EXIT_USAGE, &err);
	aw_terminal_init(&e->terminal);
	e->relay = (struct aw_relay)AW_RELAY_INIT;
	e->link.fd = link;
	e->exit_code = AW_EXIT_USAGE;
	if (run(e, meta.project, args[0] != NULL && args[1] != NULL ? args + 1 : shell) < 0 ||
	    e->failure.code != 0)
		return aw_cli_fail(e->exit_code, &e->failure);
	return e->exit_code;
}
