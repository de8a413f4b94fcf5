/* What stands around: the kind of host, its names and proxies, and Warden's own files. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "cell/launch.h"
#include "cli/doctor.h"
#include "monitor/environ.h"
#include "monitor/names.h"
#include "store/state.h"

static bool measure_nesting(const struct aw_doctor *doctor, struct aw_doctor_finding *ret)
{
	autoclose int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char place[160];

	(void)doctor;
	if (root < 0 || !aw_doctor_find_nesting(root, place, sizeof(place)))
		aw_doctor_find(ret, AW_DOCTOR_OK, "no mark of a container or of another kernel");
	else if (aw_str_starts(aw_str_from(place), "gVisor"))
		aw_doctor_find(ret, AW_DOCTOR_DEGRADED, "in %s", place);
	else
		aw_doctor_find(ret, AW_DOCTOR_OK, "in %s", place);
	return true;
}

static bool measure_selinux(const struct aw_doctor *doctor, struct aw_doctor_finding *ret)
{
	autofree char *text = NULL;
	struct aw_error none;

	(void)doctor;
	if (aw_read_file(AT_FDCWD, "/sys/fs/selinux/enforce", 16, &text, &none) <= 0 ||
	    text[0] != '1')
		return false;
	aw_doctor_find(ret, AW_DOCTOR_UNKNOWN, "enforcing");
	return true;
}

static bool measure_resolvers(const struct aw_doctor *doctor, struct aw_doctor_finding *ret)
{
	struct aw_ipc_resolvers resolvers = { 0 };
	char text[256] = "", address[INET6_ADDRSTRLEN];
	size_t used = 0;

	(void)doctor;
	aw_names_read_resolv(&resolvers);
	for (uint32_t i = 0; i < resolvers.count; i++) {
		const struct aw_ipc_addr *server = &resolvers.server[i];
		int n;

		if (inet_ntop(server->family, server->bytes, address, sizeof(address)) == NULL)
			continue;
		n = aw_str_format(text + used, sizeof(text) - used, "%s%s", i > 0 ? ", " : "",
				  address);
		used += n > 0 ? (size_t)n : 0;
	}
	aw_doctor_find(ret, resolvers.count > 0 ? AW_DOCTOR_OK : AW_DOCTOR_MISSING, "%s: %s",
		       AW_NAMES_RESOLV_CONF, resolvers.count > 0 ? text : "no name servers");
	return true;
}

static bool measure_upstream(const struct aw_doctor *doctor, struct aw_doctor_finding *ret)
{
	static const char *const names[] = { "HTTPS_PROXY", "https_proxy", "ALL_PROXY",
					     "all_proxy" };

	for (size_t i = 0; i < AW_ARRAY_LEN(names); i++) {
		const char *value = aw_environ_get(doctor->environment, names[i]);

		if (value == NULL || *value == '\0')
			continue;
		aw_doctor_find(ret, AW_DOCTOR_MISSING, "%s is set", names[i]);
		(void)aw_str_format(ret->fix, sizeof(ret->fix),
				    "warden run --offline, or unset %s if direct connections are "
				    "allowed here",
				    names[i]);
		return true;
	}
	aw_doctor_find(ret, AW_DOCTOR_OK, "no proxy stands before the network");
	return true;
}

static bool measure_programs(const struct aw_doctor *doctor, struct aw_doctor_finding *ret)
{
	static const char *const names[] = { "warden-cell", "warden-gate" };

	for (size_t i = 0; i < AW_ARRAY_LEN(names); i++) {
		struct aw_error err = { 0 };
		autoclose int fd = aw_launch_open_program(names[i], &err);

		if (fd >= 0 && faccessat(fd, "", X_OK, AT_EMPTY_PATH | AT_EACCESS) == 0)
			continue;
		aw_doctor_find(ret, AW_DOCTOR_MISSING, "%s",
			       fd < 0 ? err.message : "a helper may not be executed");
		return true;
	}
	aw_doctor_find(ret, AW_DOCTOR_OK, "warden-cell, warden-gate found from %s",
		       doctor->host->program_dir);
	return true;
}

static bool measure_directories(const struct aw_doctor *doctor, struct aw_doctor_finding *ret)
{
	struct aw_state_env env = {
		.home = doctor->host->home,
		.xdg_state_home = doctor->host->xdg_state_home,
		.xdg_runtime_dir = doctor->host->xdg_runtime_dir,
		.uid = geteuid(),
	};
	struct aw_error err = { 0 };
	struct aw_state state;

	if (aw_state_open(&env, &state, &err) < 0) {
		aw_doctor_find(ret, AW_DOCTOR_MISSING, "%s", err.message);
		return true;
	}
	aw_doctor_find(ret, AW_DOCTOR_OK, "%s, %s: closed to others", state.path, state.run_path);
	aw_state_fini(&state);
	return true;
}

static const struct aw_doctor_check checks[] = {
	{ "host", measure_nesting, false,
	  "a kernel of its own kind: what it does not have is named in the other lines",
	  "a Linux kernel" },
	{ "selinux", measure_selinux, false,
	  "its policy may stop what the other lines could not try",
	  "if a session fails although all else is ok: sudo ausearch -m avc -ts recent" },
	{ "programs", measure_programs, true, "a session cannot be started",
	  "install Warden again, all of it" },
	{ "directories", measure_directories, true, "sessions cannot be recorded",
	  "a home directory of your own, or XDG_STATE_HOME; mode 0700" },
	{ "name-servers", measure_resolvers, true, "no granted name can be resolved",
	  "a nameserver line in " AW_NAMES_RESOLV_CONF ", or warden run --offline" },
	{ "upstream-proxy", measure_upstream, true,
	  "Warden does not speak to a proxy of yours yet and does not go around it: sessions "
	  "with a network are refused",
	  NULL },
};

struct aw_doctor_table aw_doctor_host(void)
{
	return (struct aw_doctor_table){ checks, AW_ARRAY_LEN(checks) };
}
