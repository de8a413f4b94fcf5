#include "monitor/environ.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "cell/git.h"
#include "cell/toolchain.h"
#include "cell/view.h"
#include "policy/paths.h"

#define ENV_FILE_MAX 65536
#define VARIABLES_MAX 1024
#define PROXY "http://127.0.0.1:3128"
#define NO_PROXY "localhost,127.0.0.1,::1"

/* Of the caller: nothing that could be a secret or name a socket, a file or a library of the host. */
static const char *const passed[] = { "TERM",    "COLORTERM", "LANG",         "LANGUAGE",
				      "TZ",      "NO_COLOR",  "FORCE_COLOR",  "CLICOLOR",
				      "COLUMNS", "LINES",     "TERM_PROGRAM", "CI" };

static const char passed_prefix[] = "LC_";

/* Set in every cell. */
static const struct {
	const char *name, *value;
} fixed[] = {
	{ "USER", AW_CELL_USER },
	{ "LOGNAME", AW_CELL_USER },
	{ "SHELL", "/bin/bash" },
	{ "WARDEN", "1" },
	{ "SANDBOX_RUNTIME", "1" },
	{ "WARDEN_NOTICE", "/etc/warden/notice" },
	{ "GIT_DISCOVERY_ACROSS_FILESYSTEM", "1" }, /* the project is a mount of its own */
};

/* Set where there is a gate. Both cases: curl reads only http_proxy, others only HTTP_PROXY. */
static const struct {
	const char *name, *value;
} network[] = {
	{ "HTTP_PROXY", PROXY },
	{ "http_proxy", PROXY },
	{ "HTTPS_PROXY", PROXY },
	{ "https_proxy", PROXY },
	{ "ALL_PROXY", PROXY },
	{ "all_proxy", PROXY },
	{ "NO_PROXY", NO_PROXY },
	{ "no_proxy", NO_PROXY },
	{ "NODE_USE_ENV_PROXY", "1" },
	{ "JAVA_TOOL_OPTIONS", "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 "
			       "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128 "
			       "-Dhttp.nonProxyHosts=localhost|127.*|[::1]" },
};

struct environment {
	char **vector;
	size_t count;
	struct aw_error *err;
};

const char *aw_environ_get(char *const *environment, const char *name)
{
	size_t n = strlen(name);

	for (; environment != NULL && *environment != NULL; environment++)
		if (strncmp(*environment, name, n) == 0 && (*environment)[n] == '=')
			return *environment + n + 1;
	return NULL;
}

static bool is_name(struct aw_str name)
{
	if (name.len == 0 || isdigit((unsigned char)name.ptr[0]))
		return false;
	for (size_t i = 0; i < name.len; i++)
		if (!isalnum((unsigned char)name.ptr[i]) && name.ptr[i] != '_')
			return false;
	return true;
}

/* The last one set counts, as with env(1). */
static int set(struct environment *e, struct aw_str name, struct aw_str value)
{
	autofree char *entry =
		aw_str_print("%.*s=%.*s", (int)name.len, name.ptr, (int)value.len, value.ptr);
	char **larger;

	if (entry == NULL)
		return aw_fail(e->err, ENOMEM, "set a variable");
	for (size_t i = 0; i < e->count; i++) {
		if (strncmp(e->vector[i], entry, name.len + 1) != 0)
			continue;
		free(e->vector[i]);
		e->vector[i] = AW_TAKE_PTR(entry);
		return 0;
	}
	if (e->count == VARIABLES_MAX)
		return aw_refuse(e->err, E2BIG, "more than %d environment variables",
				 VARIABLES_MAX);
	larger = reallocarray(e->vector, e->count + 2, sizeof(*larger));
	if (larger == NULL)
		return aw_fail(e->err, ENOMEM, "set a variable");
	e->vector = larger;
	e->vector[e->count++] = AW_TAKE_PTR(entry);
	e->vector[e->count] = NULL;
	return 0;
}

static int set_text(void *data, const char *name, const char *value)
{
	return set(data, aw_str_from(name), aw_str_from(value));
}

static int set_pair(void *data, struct aw_str name, struct aw_str value)
{
	return set(data, name, value);
}

static struct aw_str unquote(struct aw_str value)
{
	if (value.len >= 2 && (value.ptr[0] == '"' || value.ptr[0] == '\'') &&
	    value.ptr[value.len - 1] == value.ptr[0])
		return (struct aw_str){ value.ptr + 1, value.len - 2 };
	return value;
}

int aw_environ_parse_file(struct aw_str text,
			  int (*add)(void *data, struct aw_str name, struct aw_str value),
			  void *data, struct aw_error *err)
{
	struct aw_str line, name;
	int r;

	for (unsigned number = 1; aw_str_next(&text, '\n', &line); number++) {
		line = aw_str_trim(line);
		if (line.len > 0 && line.ptr[line.len - 1] == '\r')
			line.len--;
		if (line.len == 0 || line.ptr[0] == '#')
			continue;
		if (aw_str_starts(line, "export "))
			line = aw_str_trim((struct aw_str){ line.ptr + 7, line.len - 7 });
		if (!aw_str_next(&line, '=', &name) || line.ptr == NULL || !is_name(name))
			return aw_refuse(err, EBADMSG, "line %u is not NAME=VALUE", number);
		if (memchr(line.ptr, '\0', line.len) != NULL)
			return aw_refuse(err, EBADMSG, "line %u has a NUL byte", number);
		r = add(data, name, unquote(aw_str_trim(line)));
		if (r < 0)
			return r;
	}
	return 0;
}

static bool is_in_list(const struct aw_policy_list *list, struct aw_str name)
{
	for (size_t i = 0; i < list->count; i++)
		if (aw_str_is(name, list->entry[i].text))
			return true;
	return false;
}

static bool may_pass(const struct aw_prepared *p, struct aw_str name)
{
	for (size_t i = 0; i < AW_ARRAY_LEN(passed); i++)
		if (aw_str_is(name, passed[i]))
			return true;
	if (aw_str_starts(name, passed_prefix))
		return true;
	return is_in_list(&p->policy->env, name) ||
	       (p->agent != NULL && is_in_list(&p->agent->key_env, name));
}

static int add_left_out(struct aw_prepared *p, struct aw_str name, struct aw_error *err)
{
	autofree char *text = aw_str_dup(name);

	if (text == NULL)
		return aw_fail(err, ENOMEM, "note a variable");
	/* Their names are for the journal; more than it keeps are not worth a failure. */
	return p->env_left_out.count == AW_GRANTS_MAX ? 0
						      : aw_grants_add(&p->env_left_out, text, err);
}

static int add_caller(struct environment *e, struct aw_prepared *p, char *const *caller)
{
	for (; caller != NULL && *caller != NULL; caller++) {
		struct aw_str value = aw_str_from(*caller), name;

		if (!aw_str_next(&value, '=', &name) || value.ptr == NULL || !is_name(name))
			continue;
		if (may_pass(p, name)) {
			if (set(e, name, value) < 0)
				return -e->err->code;
			continue;
		}
		if (add_left_out(p, name, e->err) < 0)
			return -e->err->code;
	}
	return 0;
}

static int check_env_file(int fd, const char *path, struct aw_error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return aw_fail(err, errno, "'%s'", path);
	if (st.st_uid != geteuid() || (st.st_mode & 077) != 0)
		return aw_refuse(err, EACCES,
				 "'%s' holds keys and must be yours alone: chmod 600 '%s'", path,
				 path);
	return 0;
}

/* Keys that the person wrote down: the user's own file, or the one named; never the project's .env. */
static int add_file(struct environment *e, const struct aw_prepared *p, const char *path,
		    bool is_named)
{
	autofree char *text = NULL, *real = realpath(path, NULL);
	autoclose int fd =
		real == NULL ? -1 : open(real, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n;

	if (fd < 0)
		return !is_named && (errno == ENOENT || errno == EACCES)
			       ? 0
			       : aw_refuse(e->err, EINVAL, "env file '%s': %s", path,
					   strerror(errno));
	if (aw_path_is_within(real, p->workspace.path))
		return aw_refuse(
			e->err, EACCES,
			"env file '%s' lies in the project, where the agent reads and writes it: "
			"move it out",
			path);
	if (check_env_file(fd, path, e->err) < 0)
		return -e->err->code;
	n = aw_read_text(fd, ENV_FILE_MAX, &text, e->err);
	if (n >= 0)
		n = aw_environ_parse_file((struct aw_str){ text, (size_t)n }, set_pair, e, e->err);
	return n < 0 ? aw_while(e->err, "env file '%s'", path) : 0;
}

static int add_identity(struct environment *e, const struct aw_prepared *p)
{
	autofree char *name = NULL, *email = NULL;

	aw_git_identity(p->host.home, &name, &email);
	if (name != NULL && (set_text(e, "GIT_AUTHOR_NAME", name) < 0 ||
			     set_text(e, "GIT_COMMITTER_NAME", name) < 0))
		return -e->err->code;
	if (email != NULL && (set_text(e, "GIT_AUTHOR_EMAIL", email) < 0 ||
			      set_text(e, "GIT_COMMITTER_EMAIL", email) < 0))
		return -e->err->code;
	return 0;
}

static bool is_visible(const struct aw_prepared *p, const char *dir)
{
	static const char *const system_bins[] = { "/usr", "/bin", "/sbin", "/nix/store",
						   "/gnu/store" };

	for (size_t i = 0; i < AW_ARRAY_LEN(system_bins); i++)
		if (aw_path_is_within(dir, system_bins[i]))
			return true;
	for (size_t i = 0; i < p->grants.bind_count; i++)
		if (aw_path_is_within(dir, p->grants.binds[i].at))
			return true;
	return false;
}

/* The caller's PATH without what is not there inside, then the toolchains', then the usual. */
static int add_path(struct environment *e, const struct aw_prepared *p, const char *caller)
{
	struct aw_texts dirs = { 0 };
	struct aw_str rest = aw_str_from(caller), part;
	autodrop(aw_buf_fini) struct aw_buf text = AW_BUF_INIT(65536);
	static const char *const usual[] = { "/usr/local/bin", "/usr/bin", "/bin" };
	int r = 0;

	while (r == 0 && aw_str_next(&rest, ':', &part)) {
		autofree char *dir = aw_str_dup(part);

		if (dir == NULL)
			r = -ENOMEM;
		else if (dir[0] == '/' && is_visible(p, dir))
			r = aw_grants_add(&dirs, dir, e->err);
	}
	for (size_t i = 0; r == 0 && i < p->grants.path.count; i++)
		r = aw_grants_add(&dirs, p->grants.path.text[i], e->err);
	for (size_t i = 0; r == 0 && i < AW_ARRAY_LEN(usual); i++)
		r = aw_grants_add(&dirs, usual[i], e->err);
	for (size_t i = 0; r == 0 && i < dirs.count; i++)
		r = aw_buf_printf(&text, "%s%s", i > 0 ? ":" : "", dirs.text[i]);
	aw_texts_fini(&dirs);
	if (r < 0 || aw_buf_text(&text) == NULL)
		return aw_fail(e->err, r < 0 ? -r : ENOMEM, "build PATH");
	return set_text(e, "PATH", text.data);
}

static int add_own(struct environment *e, const struct aw_prepared *p)
{
	for (size_t i = 0; i < AW_ARRAY_LEN(fixed); i++)
		if (set_text(e, fixed[i].name, fixed[i].value) < 0)
			return -e->err->code;
	for (size_t i = 0; p->policy->has_network && i < AW_ARRAY_LEN(network); i++)
		if (set_text(e, network[i].name, network[i].value) < 0)
			return -e->err->code;
	if (set_text(e, "HOME", p->home_at) < 0 || set_text(e, "PWD", p->workspace_at) < 0 ||
	    set_text(e, "WARDEN_WORKSPACE", p->workspace_at) < 0)
		return -e->err->code;
	for (size_t i = 0; p->agent != NULL && i < p->agent->env_count; i++)
		if (set_text(e, p->agent->env[i].name, p->agent->env[i].value) < 0)
			return -e->err->code;
	return aw_toolchain_variables(p->host.home, set_text, e);
}

int aw_environ_build(struct aw_prepared *prepared, char *const *caller, const char *env_file,
		     struct aw_error *err)
{
	struct environment e = { .err = err };
	autofree char *own_file = aw_str_print("%s/env", prepared->host.config_dir);
	int r = own_file == NULL ? aw_fail(err, ENOMEM, "build the environment") : 0;

	if (r == 0)
		r = add_caller(&e, prepared, caller);
	if (r == 0)
		r = add_file(&e, prepared, own_file, false);
	if (r == 0 && env_file != NULL)
		r = add_file(&e, prepared, env_file, true);
	if (r == 0)
		r = add_identity(&e, prepared);
	if (r == 0)
		r = add_path(&e, prepared, aw_environ_get(caller, "PATH"));
	if (r == 0)
		r = add_own(&e, prepared);
	prepared->env = e.vector; /* also when it failed: aw_prepared_fini frees it */
	return r;
}
