/* Limits by a control group: one is made around a child that waits, read back, and removed. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "cell/cgroup.h"
#include "cli/doctor.h"

static const struct aw_cgroup_limits asked = {
	.of = {
		[AW_CGROUP_MEMORY] = 64U << 20,
		[AW_CGROUP_PROCESSES] = 64,
		[AW_CGROUP_CPU] = 1000,
	},
};

static pid_t start_child(void)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	for (;;)
		(void)pause();
}

/* As for a session. 0: all of them hold; -ENOTSUP: not all, @ret tells which. */
static int try_limits(pid_t child, struct aw_cgroup *ret, struct aw_error *err)
{
	char id[32];
	int r;

	(void)aw_str_format(id, sizeof(id), "doctor-%d", (int)getpid());
	r = aw_cgroup_create(id, &asked, ret, err);
	if (r == 0)
		r = aw_cgroup_join(ret, child, err);
	return r == 0 ? aw_cgroup_settle(ret, err) : r;
}

/* The names of the limits that are (not) among @held. */
static void list(unsigned held, bool is_held, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (unsigned i = 0; i < AW_CGROUP_LIMITS; i++) {
		int n;

		if (asked.of[i] == 0 || ((held >> i) & 1) != is_held)
			continue;
		n = aw_str_format(out + used, size - used, "%s%s", used > 0 ? ", " : "",
				  aw_cgroup_limit_name((enum aw_cgroup_limit)i));
		used += n > 0 ? (size_t)n : 0;
	}
}

static void report(const struct aw_cgroup *group, int r, const struct aw_error *err,
		   struct aw_doctor_finding *ret)
{
	char held[96], missing[96];

	list(group->held, true, held, sizeof(held));
	list(group->held, false, missing, sizeof(missing));
	if (r == 0 && missing[0] == '\0')
		aw_doctor_find(ret, AW_DOCTOR_OK, "%s by cgroup v%u: %s", held, group->version,
			       group->dir_count > 0 ? group->dirs[0] : "a scope of systemd");
	else if (held[0] != '\0')
		aw_doctor_find(ret, AW_DOCTOR_DEGRADED, "%s by cgroup v%u, not %s: %s", held,
			       group->version, missing, err->message);
	else
		aw_doctor_find(ret, AW_DOCTOR_DEGRADED, "%s", err->message);
}

bool aw_doctor_measure_limits(const struct aw_doctor *doctor, struct aw_doctor_finding *ret)
{
	struct aw_cgroup group = AW_CGROUP_INIT;
	struct aw_error err = { 0 };
	pid_t child = start_child();
	int r;

	(void)doctor;
	if (child < 0) {
		aw_doctor_find(ret, AW_DOCTOR_UNKNOWN, "no child to try it on: %s",
			       strerror(errno));
		return true;
	}
	r = try_limits(child, &group, &err);
	report(&group, r, &err, ret);
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	aw_cgroup_remove(&group);
	return true;
}
