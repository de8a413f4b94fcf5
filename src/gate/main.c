/*
 * warden-gate LINK-ON-FD-3: the egress role as a program. Started by the monitor in namespaces of its
 * own with an empty root; everything else it needs comes over the link. Ends when the link does.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "confine/caps.h"
#include "confine/landlock.h"
#include "confine/seccomp.h"
#include "gate/gate.h"

#define LINK 3
#define EXIT_FAILED 125

/* First of all, so that no copy of another role's descriptors outlives it here. */
static int leave_everything(struct aw_error *err)
{
	static const int keep[] = { STDERR_FILENO, LINK };
	int r = aw_close_others(0, keep, AW_ARRAY_LEN(keep));

	if (r < 0)
		return aw_fail(err, -r, "close what is not gate's");
	/* No socket of ours shall be taken for standard input or output by anyone. */
	(void)dup2(STDERR_FILENO, STDIN_FILENO);
	(void)dup2(STDERR_FILENO, STDOUT_FILENO);
	(void)clearenv(); /* c-ares looks for options there */
	/* splice(2) into a closed socket has no flag against it. */
	(void)signal(SIGPIPE, SIG_IGN);
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? aw_fail(err, errno, "prctl") : 0;
}

/* Where the kernel has no Landlock the empty root and the filter still stand. */
static int deny_files(struct aw_error *err)
{
	int abi = aw_landlock_abi(err);

	return abi < 0 ? 0 : aw_landlock_deny_all(abi, err);
}

static int confine(struct aw_error *err)
{
	int r = aw_caps_drop_all(err);

	/* After the last change of credentials, which would clear it. A monitor that is gone by now is
	 * noticed by the end of the link. */
	if (r == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		r = aw_fail(err, errno, "prctl");
	if (r == 0)
		r = deny_files(err);
	if (r == 0)
		r = aw_seccomp_apply(aw_confine_filter_gate.code, aw_confine_filter_gate.size, err);
	return r < 0 ? aw_while(err, "confine gate") : 0;
}

static int run(struct aw_error *err)
{
	struct aw_gate *gate;
	int r = leave_everything(err);

	if (r == 0)
		r = aw_gate_receive(LINK, &gate, err);
	if (r == 0)
		r = aw_gate_start(gate, err);
	if (r == 0)
		r = confine(err);
	if (r == 0)
		r = aw_gate_serve(gate, err);
	return r;
}

int main(void)
{
	struct aw_error err = { 0 };
	int r = run(&err);

	if (r < 0)
		(void)dprintf(STDERR_FILENO, "warden-gate: %s\n", err.message);
	/* Nothing to give back: what gate had dies with it, and at once. */
	_exit(r < 0 ? EXIT_FAILED : r);
}
