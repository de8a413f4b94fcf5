/* doctor: what this host can enforce, what is missing, and how to mend it. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/cli.h"
#include "cli/doctor.h"
#include "event/flat.h"

struct report {
	bool as_json;
	unsigned missing; /* of what is needed */
};

static const char *const state_texts[] = {
	[AW_DOCTOR_OK] = "ok",
	[AW_DOCTOR_MISSING] = "missing",
	[AW_DOCTOR_DEGRADED] = "degraded",
	[AW_DOCTOR_UNKNOWN] = "unknown",
};

static void print_json(const char *name, const struct aw_doctor_finding *f)
{
	struct aw_flat flat;
	struct aw_str line;

	aw_flat_begin(&flat, 0, AW_FLAT_MAX);
	aw_flat_add_str(&flat, "check", aw_str_from(name));
	aw_flat_add_str(&flat, "state", aw_str_from(state_texts[f->state]));
	aw_flat_add_bool(&flat, "needed", f->is_needed);
	aw_flat_add_str(&flat, "value", aw_str_from(f->value));
	if (f->state != AW_DOCTOR_OK) {
		aw_flat_add_str(&flat, "effect", aw_str_from(f->effect));
		aw_flat_add_str(&flat, "fix", aw_str_from(f->fix));
	}
	line = aw_flat_end(&flat, (struct aw_str){ 0 });
	(void)fwrite(line.ptr, 1, line.len, stdout);
}

static void print_text(const char *name, const struct aw_doctor_finding *f)
{
	(void)printf("%-9s %-18s %s\n", state_texts[f->state], name, f->value);
	if (f->state == AW_DOCTOR_OK)
		return;
	if (f->effect[0] != '\0')
		(void)printf("%29seffect: %s\n", "", f->effect);
	if (f->fix[0] != '\0')
		(void)printf("%29sfix: %s\n", "", f->fix);
}

static void tell(void *data, const char *name, const struct aw_doctor_finding *finding)
{
	struct report *report = data;

	(report->as_json ? print_json : print_text)(name, finding);
	/* What is needed and could not be measured is not there. */
	report->missing += finding->is_needed && (finding->state == AW_DOCTOR_MISSING ||
						  finding->state == AW_DOCTOR_UNKNOWN);
}

static void run_check(const struct aw_doctor *doctor, const struct aw_doctor_check *check,
		      struct report *report)
{
	struct aw_doctor_finding finding = { .is_needed = check->is_needed };

	if (!check->measure(doctor, &finding))
		return;
	if (finding.effect[0] == '\0' && check->effect != NULL)
		(void)aw_str_format(finding.effect, sizeof(finding.effect), "%s", check->effect);
	if (finding.fix[0] == '\0' && check->fix != NULL)
		(void)aw_str_format(finding.fix, sizeof(finding.fix), "%s", check->fix);
	tell(report, check->name, &finding);
}

static void examine(const struct aw_doctor *doctor, struct report *report)
{
	const struct aw_doctor_table tables[] = { aw_doctor_kernel(), aw_doctor_cell(),
						  aw_doctor_host() };

	for (size_t i = 0; i < AW_ARRAY_LEN(tables); i++)
		for (size_t j = 0; j < tables[i].count; j++)
			run_check(doctor, &tables[i].check[j], report);
	aw_doctor_agents(doctor, tell, report);
	if (report->as_json)
		return;
	if (report->missing > 0)
		(void)printf("\na session needs what is missing or unknown above: %u checks\n",
			     report->missing);
	else
		(void)puts("\neverything that a session under the policy balanced needs is here");
}

/* The profile is looked up when a program is executed: only a new process can measure what it does. */
static int fix(const struct aw_doctor *doctor, bool as_json)
{
	char name[] = "warden", verb[] = "doctor", json[] = "--json";
	char *const argv[] = { name, verb, as_json ? json : NULL, NULL };
	struct aw_userns_facts facts;
	int code;

	aw_doctor_read_userns(&doctor->chain, &facts);
	if (aw_doctor_judge_userns(&facts) != AW_USERNS_APPARMOR) {
		(void)fputs("warden: nothing here that doctor mends by itself: the fix lines say "
			    "what to do\n",
			    stderr);
		return AW_EXIT_OK;
	}
	code = aw_doctor_fix(doctor->host);
	if (code != AW_EXIT_OK)
		return code;
	(void)execv("/proc/self/exe", argv);
	return AW_EXIT_USAGE;
}

static int examine_host(bool as_json, bool is_fixed)
{
	struct report report = { .as_json = as_json };
	struct aw_error err = { 0 };
	struct aw_host host;
	struct aw_doctor doctor = { .host = &host, .environment = environ };
	int code = AW_EXIT_OK;

	if (aw_host_find(environ, &host, &err) < 0)
		return aw_cli_fail(AW_EXIT_USAGE, &err);
	aw_doctor_try_chain(&doctor.chain);
	if (is_fixed)
		code = fix(&doctor, as_json);
	if (code == AW_EXIT_OK) {
		examine(&doctor, &report);
		code = report.missing > 0 ? AW_EXIT_NO : AW_EXIT_OK;
	}
	aw_host_fini(&host);
	return code;
}

int aw_verb_doctor(char *const *args)
{
	bool as_json = false, is_fixed = false;

	for (; *args != NULL; args++) {
		if (strcmp(*args, "--json") == 0)
			as_json = true;
		else if (strcmp(*args, "--fix") == 0)
			is_fixed = true;
		else
			return aw_cli_usage("doctor", "'%s' is not understood", *args);
	}
	return examine_host(as_json, is_fixed);
}
