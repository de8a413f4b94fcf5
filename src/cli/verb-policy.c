/* policy show and check. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/own.h"
#include "cli/cli.h"

#define POLICY_FILE_MAX (1024 * 1024)
#define SHOW_MAX (4 * 1024 * 1024)

static int show(char *const *args)
{
	struct aw_run_options options = { .environment = environ };
	autodrop(aw_buf_fini) struct aw_buf text = AW_BUF_INIT(SHOW_MAX);
	struct aw_prepared prepared;
	struct aw_error err = { 0 };
	bool has_origins = false;
	int code = AW_EXIT_OK, r;

	for (; *args != NULL; args++) {
		if (strcmp(*args, "--origins") == 0)
			has_origins = true;
		else if (strcmp(*args, "--effective") == 0)
			continue; /* it is what show shows */
		else if ((*args)[0] == '-' || options.dir != NULL)
			return aw_cli_usage("policy", "'%s' is not understood", *args);
		else
			options.dir = *args;
	}
	r = aw_prepare(&options, &prepared, &err);
	if (prepared.policy == NULL) {
		aw_cli_print_errors(&prepared.errors);
		code = aw_cli_fail(r == -EACCES ? AW_EXIT_REFUSED : AW_EXIT_USAGE, &err);
	} else if (aw_policy_show(prepared.policy, has_origins, &text) == 0) {
		(void)fwrite(text.data, 1, text.len, stdout);
	}
	aw_prepared_fini(&prepared);
	return code;
}

/* Which table a file is held to: a project's file may only narrow. */
static enum aw_net_layer layer_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (strcmp(path, AW_POLICY_SYSTEM_FILE) == 0)
		return AW_NET_LAYER_SYSTEM;
	return strcmp(slash != NULL ? slash + 1 : path, AW_POLICY_PROJECT_FILE) == 0
		       ? AW_NET_LAYER_PROJECT
		       : AW_NET_LAYER_USER;
}

static int check(char *const *args)
{
	struct aw_policy_errors errors = { 0 };
	autofree char *text = NULL, *own = NULL;
	struct aw_error err = { 0 };
	struct aw_host host;
	const char *path = args[0];
	ssize_t n;

	if (aw_host_find(environ, &host, &err) < 0)
		return aw_cli_fail(AW_EXIT_USAGE, &err);
	own = aw_str_print("%s/policy.json", host.config_dir);
	if (path == NULL)
		path = own;
	n = path == NULL ? -ENOMEM : aw_read_file(AT_FDCWD, path, POLICY_FILE_MAX, &text, &err);
	if (n >= 0)
		(void)aw_policy_check((struct aw_str){ text, (size_t)n }, layer_of(path), path,
				      host.home, &errors, &err);
	aw_host_fini(&host);
	if (n < 0)
		return aw_cli_fail(AW_EXIT_USAGE, &err);
	aw_cli_print_errors(&errors);
	n = (ssize_t)aw_policy_errors_total(&errors);
	aw_policy_errors_fini(&errors);
	if (n > 0)
		return AW_EXIT_NO;
	(void)printf("%s: no errors\n", path);
	return AW_EXIT_OK;
}

int aw_verb_policy(char *const *args)
{
	if (args[0] != NULL && strcmp(args[0], "show") == 0)
		return show(args + 1);
	if (args[0] != NULL && strcmp(args[0], "check") == 0)
		return check(args + 1);
	return aw_cli_usage("policy", "policy knows show and check in this version");
}
