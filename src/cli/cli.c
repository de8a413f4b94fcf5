#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"

#define ERRORS_TEXT_MAX (256 * 1024)

int aw_cli_fail(int code, const struct aw_error *err)
{
	(void)fprintf(stderr, "warden: %s\n", err->message);
	return code;
}

int aw_cli_usage(const char *verb, const char *format, ...)
{
	const struct aw_verb *verbs;
	va_list args;
	size_t count;

	(void)fputs("warden: ", stderr);
	va_start(args, format);
	(void)vfprintf(stderr, format, args);
	va_end(args);
	(void)fputc('\n', stderr);
	verbs = aw_verbs(&count);
	for (size_t i = 0; verb != NULL && i < count; i++)
		if (strcmp(verbs[i].name, verb) == 0)
			(void)fprintf(stderr, "usage: warden %s\n", verbs[i].usage);
	(void)fprintf(stderr, "more: warden help%s%s\n", verb != NULL ? " " : "",
		      verb != NULL ? verb : "");
	return AW_EXIT_USAGE;
}

int aw_cli_open_place(struct aw_cli_place *ret, struct aw_error *err)
{
	struct aw_state_env env = { .uid = geteuid() };
	int r = aw_host_find(environ, &ret->host, err);

	if (r < 0)
		return r;
	env.home = ret->host.home;
	env.xdg_state_home = ret->host.xdg_state_home;
	env.xdg_runtime_dir = ret->host.xdg_runtime_dir;
	r = aw_state_open(&env, &ret->state, err);
	if (r < 0)
		aw_host_fini(&ret->host);
	return r;
}

void aw_cli_close_place(struct aw_cli_place *place)
{
	aw_state_fini(&place->state);
	aw_host_fini(&place->host);
}

int aw_cli_connect(const struct aw_state *state, const char *operand, struct aw_session_meta *ret,
		   struct aw_error *err)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	autoclose int fd = -EBADF, dir = -EBADF;
	char path[PATH_MAX + 16];
	int r = aw_registry_find(state, AW_REGISTRY_ALIVE, operand, ret, err);

	if (r < 0)
		return r;
	(void)aw_str_format(path, sizeof(path), "%s/%s", ret->run_path, ret->id);
	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (dir < 0 || fd < 0)
		return aw_fail(err, errno, "reach session %s", ret->id);
	(void)aw_str_format(un.sun_path, sizeof(un.sun_path), "/proc/self/fd/%d/control", dir);
	if (connect(fd, (const struct sockaddr *)&un, sizeof(un)) < 0)
		return aw_fail(err, errno, "reach session %s", ret->id);
	return AW_TAKE_FD(fd);
}

bool aw_cli_is_agent(const char *config_dir, const char *name)
{
	struct aw_policy_errors errors = { 0 };
	struct aw_agent *agent = NULL;
	struct aw_error none;
	/* A profile that is malformed is one: what is wrong with it is said when it is used. */
	int r = aw_agent_load(config_dir, aw_str_from(name), &agent, &errors, &none);

	aw_agent_drop(&agent);
	aw_policy_errors_fini(&errors);
	return r == 0 || r == -EACCES;
}

void aw_cli_print_errors(const struct aw_policy_errors *errors)
{
	autodrop(aw_buf_fini) struct aw_buf text = AW_BUF_INIT(ERRORS_TEXT_MAX);

	if (aw_policy_errors_print(errors, &text) == 0 && text.len > 0)
		(void)fwrite(text.data, 1, text.len, stderr);
}
