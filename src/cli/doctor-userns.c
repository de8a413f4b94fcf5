/* Why no cell can be made here: the settings beside the step that failed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/doctor.h"

#define LIMIT "/proc/sys/user/max_user_namespaces"
#define SWITCH "/proc/sys/kernel/unprivileged_userns_clone"
#define APPARMOR "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"

static const struct {
	const char *text, *fix;
} causes[] = {
	[AW_USERNS_LIMIT_ZERO] = { "user.max_user_namespaces is 0",
				   "echo user.max_user_namespaces=15000 | sudo tee "
				   "/etc/sysctl.d/60-warden.conf && sudo sysctl --system" },
	[AW_USERNS_USED_UP] = { "no more may be made (user.max_user_namespaces), or they are "
				"nested 32 deep",
				"end other sandboxes or raise user.max_user_namespaces" },
	[AW_USERNS_SWITCHED_OFF] = { "kernel.unprivileged_userns_clone is 0",
				     "echo kernel.unprivileged_userns_clone=1 | sudo tee "
				     "/etc/sysctl.d/60-warden.conf && sudo sysctl --system" },
	[AW_USERNS_APPARMOR] = { "AppArmor takes the rights in it away "
				 "(kernel.apparmor_restrict_unprivileged_userns is 1)",
				 NULL },
	[AW_USERNS_FILTERED] = { "a seccomp filter is on this process: that of a container",
				 "Docker: --security-opt seccomp=unconfined --security-opt "
				 "apparmor=unconfined --security-opt systempaths=unconfined; "
				 "Podman: --security-opt seccomp=unconfined --security-opt unmask=ALL" },
	[AW_USERNS_NOT_BUILT] = { "this kernel does not have them",
				  "a kernel with CONFIG_USER_NS, 5.19 or later" },
	[AW_USERNS_OTHER] = { "no setting that is known forbids it: a chroot, or a security module",
			      "look for denials: sudo dmesg | grep -iE 'denied|avc'" },
};

/* The first step that failed; AW_CHAIN_STEPS: none did. A /proc that stays masked is another check's. */
static enum aw_chain_step broken_step(const struct aw_doctor_chain *chain)
{
	for (size_t i = 0; i < AW_CHAIN_STEPS; i++)
		if (chain->code[i] != 0 && i != AW_CHAIN_PROC)
			return (enum aw_chain_step)i;
	return AW_CHAIN_STEPS;
}

/* The clone worked and the rights in the namespace do not: AppArmor's way of forbidding it. */
static bool is_apparmor(const struct aw_userns_facts *f, enum aw_chain_step step, int code)
{
	return step != AW_CHAIN_CLONE && (code == EPERM || code == EACCES) && !f->is_root &&
	       f->apparmor_restricts > 0;
}

static bool is_switched_off(const struct aw_userns_facts *f, enum aw_chain_step step, int code)
{
	return step == AW_CHAIN_CLONE && code == EPERM && !f->is_root && f->unprivileged_clone == 0;
}

static bool is_denied_by_filter(const struct aw_userns_facts *f, int code)
{
	/* Docker answers clone3 with ENOSYS, so that libraries fall back to clone, which it denies. */
	return f->is_filtered && (code == EPERM || code == ENOSYS);
}

enum aw_userns_cause aw_doctor_judge_userns(const struct aw_userns_facts *facts)
{
	enum aw_chain_step step = broken_step(&facts->chain);
	int code = step == AW_CHAIN_STEPS ? 0 : facts->chain.code[step];

	if (code == 0)
		return AW_USERNS_WORKS;
	if (code == ENOSPC || code == EUSERS)
		return facts->max_user_namespaces == 0 ? AW_USERNS_LIMIT_ZERO : AW_USERNS_USED_UP;
	if (is_switched_off(facts, step, code))
		return AW_USERNS_SWITCHED_OFF;
	if (is_apparmor(facts, step, code))
		return AW_USERNS_APPARMOR;
	if (is_denied_by_filter(facts, code))
		return AW_USERNS_FILTERED;
	return code == ENOSYS || code == EINVAL ? AW_USERNS_NOT_BUILT : AW_USERNS_OTHER;
}

static long read_number(const char *path)
{
	autofree char *text = NULL;
	struct aw_error none;
	ssize_t n = aw_read_file(AT_FDCWD, path, 64, &text, &none);
	uint64_t value;

	while (n > 0 && text[n - 1] == '\n')
		n--;
	if (n <= 0 || aw_str_to_u64((struct aw_str){ text, (size_t)n }, INT32_MAX, &value) < 0)
		return -1;
	return (long)value;
}

/* proc_pid_status(5): "Seccomp:\t2" is a filter. */
static bool is_filtered(void)
{
	autofree char *text = NULL;
	struct aw_error none;
	ssize_t n = aw_read_file(AT_FDCWD, "/proc/self/status", 65536, &text, &none);

	return n > 0 && strstr(text, "\nSeccomp:\t2\n") != NULL;
}

void aw_doctor_read_userns(const struct aw_doctor_chain *chain, struct aw_userns_facts *ret)
{
	*ret = (struct aw_userns_facts){
		.chain = *chain,
		.is_root = geteuid() == 0,
		.max_user_namespaces = read_number(LIMIT),
		.unprivileged_clone = read_number(SWITCH),
		.apparmor_restricts = read_number(APPARMOR),
		.is_filtered = is_filtered(),
	};
}

static void tell_profile(const struct aw_host *host, struct aw_doctor_finding *ret)
{
	autofree char *profile = aw_doctor_profile(host);

	if (aw_doctor_profile_covers(host) && profile != NULL)
		(void)aw_str_format(ret->fix, sizeof(ret->fix),
				    "sudo install -m644 %s /etc/apparmor.d/warden && "
				    "sudo apparmor_parser -r /etc/apparmor.d/warden   "
				    "(or: warden doctor --fix)",
				    profile);
	else
		(void)aw_str_format(
			ret->fix, sizeof(ret->fix),
			"install this Warden: the profile that it ships "
			"(/usr/share/warden/apparmor/warden) is for /usr/bin/warden, not "
			"for %s/warden",
			host->program_dir);
}

bool aw_doctor_measure_userns(const struct aw_doctor *doctor, struct aw_doctor_finding *ret)
{
	enum aw_chain_step step = broken_step(&doctor->chain);
	struct aw_userns_facts facts;
	enum aw_userns_cause cause;

	aw_doctor_read_userns(&doctor->chain, &facts);
	cause = aw_doctor_judge_userns(&facts);
	if (cause == AW_USERNS_WORKS) {
		aw_doctor_find(ret, AW_DOCTOR_OK,
			       "made, mapped, mounted in, with a network of their own");
		return true;
	}
	if (doctor->chain.code[step] == AW_CHAIN_NOT_TRIED) {
		aw_doctor_find(ret, AW_DOCTOR_UNKNOWN,
			       "the child that tried ended before an answer");
		return true;
	}
	aw_doctor_find(ret, AW_DOCTOR_MISSING, "%s: %s; %s", aw_doctor_step_text(step),
		       strerror(doctor->chain.code[step]), causes[cause].text);
	if (cause == AW_USERNS_APPARMOR)
		tell_profile(doctor->host, ret);
	else
		(void)aw_str_format(ret->fix, sizeof(ret->fix), "%s", causes[cause].fix);
	return true;
}
