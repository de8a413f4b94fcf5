#include "monitor/prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "cell/launch.h"
#include "cell/program.h"
#include "cell/view.h"
#include "confine/caps.h"
#include "monitor/environ.h"
#include "monitor/prepare-internal.h"
#include "policy/paths.h"

#define UID_MAP_MAX 65536

/* Without these root is a user like any other whose id happens to be 0 (a container without rights). */
#define ROOT_CAPS                                                                  \
	(AW_CAP_BIT(CAP_SETUID) | AW_CAP_BIT(CAP_SETGID) | AW_CAP_BIT(CAP_CHOWN) | \
	 AW_CAP_BIT(CAP_SYS_ADMIN))

static char *xdg_dir(const char *base, const char *home, const char *fallback)
{
	/* XDG: a relative path in the variable counts as unset. */
	if (base != NULL && base[0] == '/')
		return aw_str_print("%s/warden", base);
	return aw_str_print("%s/%s/warden", home, fallback);
}

int aw_host_find(char *const *environment, struct aw_host *ret, struct aw_error *err)
{
	const char *home = aw_environ_get(environment, "HOME");
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	*ret = (struct aw_host){ 0 };
	if (home == NULL || home[0] != '/')
		return aw_refuse(err, ENOENT, "HOME is not set to an absolute path");
	if (n < 0)
		return aw_fail(err, errno, "read /proc/self/exe");
	self[n] = '\0';
	ret->home = realpath(home, NULL);
	if (ret->home == NULL)
		return aw_fail(err, errno, "HOME '%s'", home);
	ret->xdg_state_home = aw_environ_get(environment, "XDG_STATE_HOME");
	ret->xdg_runtime_dir = aw_environ_get(environment, "XDG_RUNTIME_DIR");
	ret->config_dir =
		xdg_dir(aw_environ_get(environment, "XDG_CONFIG_HOME"), ret->home, ".config");
	ret->state_dir = xdg_dir(ret->xdg_state_home, ret->home, ".local/state");
	ret->program_dir = strndup(self, (size_t)(strrchr(self, '/') - self));
	if (ret->config_dir == NULL || ret->state_dir == NULL || ret->program_dir == NULL) {
		aw_host_fini(ret);
		return aw_fail(err, ENOMEM, "look at the host");
	}
	return 0;
}

void aw_host_fini(struct aw_host *host)
{
	free(host->home);
	free(host->config_dir);
	free(host->state_dir);
	free(host->program_dir);
	*host = (struct aw_host){ 0 };
}

/* The next number of a line of uid_map: they are right-aligned in columns. */
static bool next_number(struct aw_str *line, uint64_t *ret)
{
	struct aw_str word;

	*line = aw_str_trim(*line);
	return aw_str_next(line, ' ', &word) && aw_str_to_u64(word, UINT32_MAX, ret) == 0;
}

/* Whether @uid exists in our user namespace: user_namespaces(7), /proc/self/uid_map. */
static bool is_mapped(uid_t uid)
{
	autofree char *text = NULL;
	struct aw_error none;
	struct aw_str rest, line;
	ssize_t n = aw_read_file(AT_FDCWD, "/proc/self/uid_map", UID_MAP_MAX, &text, &none);

	rest = (struct aw_str){ text, n < 0 ? 0 : (size_t)n };
	while (aw_str_next(&rest, '\n', &line)) {
		uint64_t inside, outside, count;

		if (next_number(&line, &inside) && next_number(&line, &outside) &&
		    next_number(&line, &count) && uid >= inside && uid - inside < count)
			return true;
	}
	return false;
}

/*
 * Who the agent is outside. A user's agent has the user's own id. Root's agent is never root: it gets
 * the project owner's id or, where that is root too, one that nobody has. Where "root" is only the
 * single id of a user namespace there is no other to give.
 */
static void choose_ids(struct aw_prepared *p)
{
	p->outside_uid = geteuid();
	p->outside_gid = getegid();
	if (geteuid() != 0 || !aw_caps_are_effective(ROOT_CAPS))
		return;
	if (p->workspace.uid != 0 && is_mapped(p->workspace.uid)) {
		p->outside_uid = p->workspace.uid;
		p->outside_gid = p->workspace.gid;
		p->is_root_started = true;
	} else if (p->workspace.uid == 0 && is_mapped(AW_UNPRIVILEGED_AGENT)) {
		p->outside_uid = p->outside_gid = AW_UNPRIVILEGED_AGENT;
		p->is_root_started = p->needs_idmap = true;
	}
}

static int ask_about_secrets(const struct aw_run_options *o, const struct aw_prepared *p,
			     struct aw_error *err)
{
	char question[512], shown[256];

	if (p->workspace.secret_count == 0 || o->allow_secrets)
		return 0;
	(void)aw_str_escape(aw_str_from(p->workspace.path), shown, sizeof(shown));
	(void)aw_str_format(question, sizeof(question),
			    "%s has %s in it, which the agent would read", shown,
			    p->workspace.secrets[0]);
	if (o->confirm != NULL && o->confirm(question))
		return 0;
	return aw_refuse(err, EACCES, "%s: give another directory, or say --allow-secrets",
			 question);
}

struct aw_workspace_host aw_prepare_host_for_guard(const struct aw_prepared *p)
{
	return (struct aw_workspace_host){
		.home = p->host.home,
		.state_dir = p->host.state_dir,
		.config_dir = p->host.config_dir,
		.program_dir = p->host.program_dir,
	};
}

static int open_workspace(const struct aw_run_options *o, struct aw_prepared *p,
			  struct aw_error *err)
{
	struct aw_workspace_host host = aw_prepare_host_for_guard(p);
	struct stat st;
	int r = aw_workspace_open(o->dir != NULL ? o->dir : ".", &host, &p->workspace, err);

	/* -ENOENT is for what was to be run: a missing project is a mistake in the words. */
	if (r < 0)
		return r == -ENOENT ? -EINVAL : r;
	r = ask_about_secrets(o, p, err);
	if (r < 0)
		return r;
	if (fstat(p->workspace.fd, &st) < 0)
		return aw_fail(err, errno, "project '%s'", p->workspace.path);
	p->workspace_device = st.st_dev;
	p->workspace_inode = st.st_ino;
	choose_ids(p);
	return 0;
}

/* The profile of @name: none is no error, since any command may be run. */
static int load_agent(struct aw_prepared *p, const char *name, struct aw_error *err)
{
	int r = aw_agent_load(p->host.config_dir, aw_str_from(name), &p->agent, &p->errors, err);

	return r == -ENOENT ? 0 : r;
}

static int load_policy(const struct aw_run_options *o, struct aw_prepared *p, struct aw_error *err)
{
	struct aw_policy_sources sources = {
		.home = p->host.home,
		.config_dir = p->host.config_dir,
		.policy_file = o->policy_file,
		.workspace = p->workspace.path,
		.workspace_fd = p->workspace.fd,
		.agent = p->agent,
		.command = o->policy,
	};

	aw_policy_drop(&p->policy);
	return aw_policy_load(&sources, &p->policy, &p->errors, err);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

static struct aw_program_search search_of(const struct aw_run_options *o,
					  const struct aw_prepared *p)
{
	return (struct aw_program_search){
		.path = aw_environ_get(o->environment, "PATH"),
		.home = p->host.home,
		.workspace = p->workspace.path,
	};
}

/* A profile brings keys and hosts: a command of that name has it only if the project did not bring it. */
static int agent_of_command(const struct aw_run_options *o, struct aw_prepared *p,
			    struct aw_error *err)
{
	struct aw_program_search search = search_of(o, p);
	autofree char *path = NULL;
	struct aw_error none;
	int r = load_agent(p, base_name(o->command[0]), err);

	if (r < 0 || p->agent == NULL)
		return r;
	if (aw_program_find(&search, o->command[0], &path, &none) < 0 ||
	    aw_path_is_within(path, p->workspace.path))
		aw_agent_drop(&p->agent);
	return 0;
}

static int named_agent(struct aw_prepared *p, const char *name, struct aw_error *err)
{
	int r = load_agent(p, name, err);

	if (r == 0 && p->agent == NULL)
		return aw_refuse(err, ENOENT, "there is no agent profile '%s'", name);
	return r;
}

/* Which profile, if any, and then the policy that it is part of. */
static int choose_agent(const struct aw_run_options *o, struct aw_prepared *p, struct aw_error *err)
{
	const char *name = o->profile != NULL ? o->profile : o->agent;
	int r = 0;

	if (o->no_profile)
		return load_policy(o, p, err);
	if (name != NULL)
		r = named_agent(p, name, err);
	else if (o->command != NULL)
		r = agent_of_command(o, p, err);
	if (r == 0)
		r = load_policy(o, p, err);
	if (r < 0 || name != NULL || o->command != NULL || p->policy->default_agent == NULL)
		return r;
	r = named_agent(p, p->policy->default_agent, err);
	return r < 0 ? r : load_policy(o, p, err);
}

static int append(char ***vector, size_t *count, const char *text, struct aw_error *err)
{
	char **larger = reallocarray(*vector, *count + 2, sizeof(*larger));

	if (larger == NULL)
		return aw_fail(err, ENOMEM, "build the command");
	*vector = larger;
	larger[*count] = strdup(text);
	larger[*count + 1] = NULL;
	if (larger[*count] == NULL)
		return aw_fail(err, ENOMEM, "build the command");
	(*count)++;
	return 0;
}

static int find_agent_program(const struct aw_program_search *search, const struct aw_agent *agent,
			      char **ret, struct aw_error *err)
{
	for (size_t i = 0; i < agent->binaries.count; i++)
		if (aw_program_find(search, agent->binaries.entry[i].text, ret, err) == 0)
			return 0;
	return aw_refuse(err, ENOENT, "%s is not installed; to install it: %s", agent->title,
			 agent->install);
}

/*
 * The first word of the command. A program of the system or the project is started by the name that
 * was typed, inside; one from elsewhere (a home directory) is granted and started by its place.
 */
static int choose_program(const struct aw_run_options *o, struct aw_prepared *p, char **ret,
			  struct aw_error *err)
{
	struct aw_program_search search = search_of(o, p);
	bool is_agent = p->agent != NULL && (o->agent != NULL || o->command == NULL);
	const char *name = is_agent ? NULL : o->command != NULL ? o->command[0] : "/bin/bash";
	struct aw_error none;
	int r;

	if (is_agent)
		r = find_agent_program(&search, p->agent, ret, err);
	else
		r = strchr(name, '/') != NULL ? -ENOENT
					      : aw_program_find(&search, name, ret, &none);
	if (!is_agent && (r < 0 || aw_path_is_within(*ret, "/usr"))) {
		free(*ret);
		*ret = strdup(name);
		return *ret == NULL ? aw_fail(err, ENOMEM, "name the command") : 0;
	}
	return r < 0 ? r : aw_program_grant(&search, *ret, &p->grants, err);
}

static int build_command(const struct aw_run_options *o, struct aw_prepared *p,
			 struct aw_error *err)
{
	autofree char *program = NULL;
	bool is_agent = p->agent != NULL;
	char *const *rest = o->command;
	size_t count = 0;
	int r;

	r = choose_program(o, p, &program, err);
	if (r == 0)
		r = append(&p->argv, &count, program, err);
	for (size_t i = 0; r == 0 && is_agent && !o->is_login && i < p->agent->args.count; i++)
		r = append(&p->argv, &count, p->agent->args.entry[i].text, err);
	if (o->agent == NULL && rest != NULL)
		rest++; /* its first word is the program */
	for (; r == 0 && rest != NULL && *rest != NULL; rest++)
		r = append(&p->argv, &count, *rest, err);
	p->agent_name = is_agent ? p->agent->name : base_name(p->argv != NULL ? p->argv[0] : "?");
	return r;
}

/* A way out that goes around the upstream proxy of a company would be a bypass: refused by name. */
static int check_upstream(const struct aw_run_options *o, const struct aw_prepared *p,
			  struct aw_error *err)
{
	static const char *const names[] = { "HTTPS_PROXY", "https_proxy", "ALL_PROXY",
					     "all_proxy" };

	for (size_t i = 0; p->policy->has_network && i < AW_ARRAY_LEN(names); i++) {
		const char *value = aw_environ_get(o->environment, names[i]);

		if (value != NULL && *value != '\0')
			return aw_refuse(
				err, ENOTSUP,
				"this host goes out through a proxy (%s), which this version does "
				"not speak and will not go around: run --offline, or unset it if "
				"direct connections are allowed",
				names[i]);
	}
	return 0;
}

/* In a cell nothing of this works, and each failure would blame something else. */
static int check_outside(const struct aw_run_options *o, struct aw_error *err)
{
	struct utsname name;

	if (aw_environ_get(o->environment, "WARDEN") == NULL || uname(&name) < 0 ||
	    strcmp(name.nodename, AW_CELL_HOSTNAME) != 0)
		return 0;
	return aw_refuse(
		err, EACCES,
		"this is a cell of Warden already: another cannot be started inside; run the "
		"command itself");
}

/*
 * Calls whose absence would show only when something is to be ended or closed: known by ENOSYS, whether
 * the kernel is older or the filter of a container answers so.
 */
static int check_kernel(struct aw_error *err)
{
	static const struct {
		const char *name, *since;
		long number;
	} calls[] = {
		{ "pidfd_open", "5.3", SYS_pidfd_open },
		{ "pidfd_send_signal", "5.1", SYS_pidfd_send_signal },
		{ "close_range", "5.9", SYS_close_range },
		{ "openat2", "5.6", SYS_openat2 },
	};

	for (size_t i = 0; i < AW_ARRAY_LEN(calls); i++)
		if (syscall(calls[i].number, -1, -1, -1, -1) < 0 && errno == ENOSYS)
			return aw_refuse(err, ENOSYS,
					 "this kernel has no %s (Linux %s), or the container that "
					 "Warden is started in forbids it",
					 calls[i].name, calls[i].since);
	return 0;
}

int aw_prepare(const struct aw_run_options *options, struct aw_prepared *ret, struct aw_error *err)
{
	struct aw_prepared *p = ret;
	int r;

	*p = (struct aw_prepared){ .workspace.fd = -EBADF,
				   .is_ephemeral = options->is_ephemeral,
				   .is_login = options->is_login };
	r = check_outside(options, err);
	if (r == 0)
		r = check_kernel(err);
	if (r == 0)
		r = aw_host_find(options->environment, &p->host, err);
	if (r == 0)
		r = open_workspace(options, p, err);
	if (r == 0)
		r = choose_agent(options, p, err);
	if (r == 0)
		r = check_upstream(options, p, err);
	if (r < 0)
		return r;
	p->workspace_at = strdup(strcmp(p->policy->preset, "strict") == 0 ? AW_PATH_WORKSPACE
									  : p->workspace.path);
	p->home_at = aw_view_home_for(p->workspace.path);
	if (p->workspace_at == NULL)
		return aw_fail(err, ENOMEM, "prepare the session");
	r = build_command(options, p, err);
	if (r == 0)
		r = aw_prepare_view(p, err);
	return r < 0 ? r : aw_environ_build(p, options->environment, options->env_file, err);
}

static void free_vector(char **vector)
{
	for (size_t i = 0; vector != NULL && vector[i] != NULL; i++)
		free(vector[i]);
	free(vector);
}

void aw_prepared_fini(struct aw_prepared *prepared)
{
	free_vector(prepared->argv);
	free_vector(prepared->env);
	free(prepared->workspace_at);
	aw_grants_fini(&prepared->grants);
	aw_texts_fini(&prepared->env_left_out);
	aw_policy_drop(&prepared->policy);
	aw_agent_drop(&prepared->agent);
	aw_policy_errors_fini(&prepared->errors);
	aw_workspace_fini(&prepared->workspace);
	aw_host_fini(&prepared->host);
	*prepared = (struct aw_prepared){ .workspace.fd = -EBADF };
}
