/* What a cell is made of, and the limits around it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "cell/launch.h"
#include "cli/doctor.h"

#define INSTANCES_SPARE 8

/* One step of the chain as a check of its own. */
static bool measure_step(const struct aw_doctor *doctor, enum aw_chain_step step,
			 struct aw_doctor_finding *ret)
{
	int code = doctor->chain.code[step];

	if (code == AW_CHAIN_NOT_TRIED) {
		aw_doctor_find(ret, AW_DOCTOR_UNKNOWN, "cannot be tried without user namespaces");
		(void)aw_str_format(ret->fix, sizeof(ret->fix), "as for user-namespaces");
		return true;
	}
	aw_doctor_find(ret, code == 0 ? AW_DOCTOR_OK : AW_DOCTOR_MISSING, "%s: %s",
		       aw_doctor_step_text(step), code == 0 ? "works" : strerror(code));
	return true;
}

static bool measure_mounts(const struct aw_doctor *doctor, struct aw_doctor_finding *ret)
{
	return measure_step(doctor, AW_CHAIN_TREE, ret);
}

static bool measure_proc(const struct aw_doctor *doctor, struct aw_doctor_finding *ret)
{
	return measure_step(doctor, AW_CHAIN_PROC, ret);
}

static bool measure_network(const struct aw_doctor *doctor, struct aw_doctor_finding *ret)
{
	enum aw_chain_step step =
		doctor->chain.code[AW_CHAIN_NET] != 0 ? AW_CHAIN_NET : AW_CHAIN_LO;

	return measure_step(doctor, step, ret);
}

/* user_namespaces(7): each line of uid_map is a range: inside, outside, count. */
static bool holds_agent(struct aw_str line)
{
	char text[64], *at = text;
	unsigned long inside, count;

	(void)aw_str_format(text, sizeof(text), "%.*s", (int)line.len, line.ptr);
	inside = strtoul(at, &at, 10);
	(void)strtoul(at, &at, 10);
	count = strtoul(at, &at, 10);
	return AW_UNPRIVILEGED_AGENT >= inside && AW_UNPRIVILEGED_AGENT - inside < count;
}

/* Inside a user namespace of one id "root" has no other id to give to the agent. */
static bool is_real_root(void)
{
	autofree char *text = NULL;
	struct aw_error none;
	struct aw_str rest, line;
	ssize_t n = aw_read_file(AT_FDCWD, "/proc/self/uid_map", 65536, &text, &none);
	bool is_mapped = false;

	rest = (struct aw_str){ text, n < 0 ? 0 : (size_t)n };
	while (aw_str_next(&rest, '\n', &line))
		is_mapped |= line.len > 0 && holds_agent(line);
	return is_mapped && geteuid() == 0;
}

/* Only root needs it, and only where root owns the project. */
static bool measure_idmap(const struct aw_doctor *doctor, struct aw_doctor_finding *ret)
{
	struct aw_error err = { 0 };
	autoclose int tree = -EBADF;
	struct stat st;

	(void)doctor;
	if (!is_real_root() || stat(".", &st) < 0)
		return false;
	tree = aw_launch_idmapped_tree(".", 0, 0, AW_UNPRIVILEGED_AGENT, AW_UNPRIVILEGED_AGENT,
				       &err);
	ret->is_needed = st.st_uid == 0;
	if (tree >= 0)
		aw_doctor_find(ret, AW_DOCTOR_OK, "the file system of this directory maps owners");
	else
		aw_doctor_find(ret, AW_DOCTOR_MISSING, "%s", err.message);
	return true;
}

static unsigned long read_limit(const char *path)
{
	autofree char *text = NULL;
	struct aw_error none;
	ssize_t n = aw_read_file(AT_FDCWD, path, 64, &text, &none);
	uint64_t value;

	while (n > 0 && text[n - 1] == '\n')
		n--;
	return n > 0 && aw_str_to_u64((struct aw_str){ text, (size_t)n }, INT64_MAX, &value) == 0
		       ? (unsigned long)value
		       : 0;
}

static bool measure_inotify(const struct aw_doctor *doctor, struct aw_doctor_finding *ret)
{
	unsigned long instances = read_limit("/proc/sys/fs/inotify/max_user_instances");
	unsigned long watches = read_limit("/proc/sys/fs/inotify/max_user_watches");
	autoclose int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autoclose int fd = inotify_init1(IN_CLOEXEC);
	int code = fd < 0 || inotify_add_watch(fd, "/", IN_CREATE) < 0 ? errno : 0;
	struct aw_doctor_inotify used = { 0 };

	(void)doctor;
	if (proc >= 0)
		aw_doctor_count_inotify(proc, geteuid(), &used);
	if (code != 0)
		aw_doctor_find(ret, AW_DOCTOR_MISSING, "%s; %u of %lu instances, %u of %lu watches",
			       strerror(code), used.instances, instances, used.watches, watches);
	else
		aw_doctor_find(ret,
			       used.instances + INSTANCES_SPARE > instances ? AW_DOCTOR_DEGRADED
									    : AW_DOCTOR_OK,
			       "%u of %lu instances, %u of %lu watches in use", used.instances,
			       instances, used.watches, watches);
	return true;
}

static const struct aw_doctor_check checks[] = {
	{ "user-namespaces", aw_doctor_measure_userns, true, "no cell can be made: nothing starts",
	  NULL },
	{ "mounts", measure_mounts, true, "the view of a cell cannot be made",
	  "Linux 5.12 or later; in a container: let its seccomp profile allow open_tree, "
	  "move_mount and mount_setattr" },
	{ "procfs", measure_proc, true,
	  "a cell gets no /proc of its own; a container that masks parts of /proc forbids it",
	  "Docker: --security-opt systempaths=unconfined; Podman: --security-opt unmask=ALL; "
	  "Kubernetes: procMount: Unmasked" },
	{ "network-namespace", measure_network, true, "the agent cannot be cut off the network",
	  "a kernel with CONFIG_NET_NS; see user-namespaces" },
	{ "owner-mapping", measure_idmap, false,
	  "root cannot give a project that root owns to an agent",
	  "keep projects on ext4, xfs, btrfs or tmpfs, or run as the user who owns them" },
	{ "limits", aw_doctor_measure_limits, false,
	  "memory and cpu are watched and not enforced; the number of processes is enforced "
	  "all the same",
	  "a login with systemd and cgroup v2 (loginctl user-status), or start as root" },
	{ "inotify", measure_inotify, true, "changes of protected files cannot be watched",
	  "echo fs.inotify.max_user_instances=1024 | sudo tee /etc/sysctl.d/60-warden.conf && "
	  "sudo sysctl --system" },
};

struct aw_doctor_table aw_doctor_cell(void)
{
	return (struct aw_doctor_table){ checks, AW_ARRAY_LEN(checks) };
}
