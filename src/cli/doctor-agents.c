/* Which of the agents that Warden knows are installed here. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "cell/program.h"
#include "cli/doctor.h"
#include "monitor/environ.h"

struct teller {
	const struct aw_doctor *doctor;
	void (*tell)(void *data, const char *name, const struct aw_doctor_finding *finding);
	void *data;
};

static void find_agent(const struct aw_doctor *doctor, const struct aw_agent *agent,
		       struct aw_doctor_finding *ret)
{
	struct aw_program_search search = {
		.path = aw_environ_get(doctor->environment, "PATH"),
		.home = doctor->host->home,
	};
	struct aw_error none;

	for (size_t i = 0; i < agent->binaries.count; i++) {
		autofree char *path = NULL;

		if (aw_program_find(&search, agent->binaries.entry[i].text, &path, &none) < 0)
			continue;
		aw_doctor_find(ret, AW_DOCTOR_OK, "%s: %s", agent->title, path);
		return;
	}
	aw_doctor_find(ret, AW_DOCTOR_MISSING, "%s is not installed", agent->title);
	(void)aw_str_format(ret->fix, sizeof(ret->fix), "%s", agent->install);
}

static void tell_agent(const struct teller *t, const char *name)
{
	struct aw_doctor_finding finding = { 0 };
	struct aw_policy_errors errors = { 0 };
	struct aw_agent *agent = NULL;
	struct aw_error err = { 0 };
	char label[96];

	if (aw_agent_load(t->doctor->host->config_dir, aw_str_from(name), &agent, &errors, &err) <
	    0) {
		aw_doctor_find(&finding, AW_DOCTOR_UNKNOWN, "%s", err.message);
		(void)aw_str_format(finding.fix, sizeof(finding.fix),
				    "warden run . %s tells every error with its line", name);
	} else {
		find_agent(t->doctor, agent, &finding);
	}
	(void)aw_str_format(label, sizeof(label), "agent %s", name);
	t->tell(t->data, label, &finding);
	aw_agent_drop(&agent);
	aw_policy_errors_fini(&errors);
}

static bool is_built_in(const char *name)
{
	for (size_t i = 0; aw_agent_name(i) != NULL; i++)
		if (strcmp(aw_agent_name(i), name) == 0)
			return true;
	return false;
}

static void tell_own_agents(const struct teller *t)
{
	autofree char *path = aw_str_print("%s/agents", t->doctor->host->config_dir);
	DIR *dir = path == NULL ? NULL : opendir(path);
	struct dirent *entry;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		struct aw_str file = aw_str_from(entry->d_name);
		autofree char *name = NULL;

		if (!aw_str_ends(file, ".json"))
			continue;
		name = aw_str_dup((struct aw_str){ file.ptr, file.len - strlen(".json") });
		if (name != NULL && !is_built_in(name))
			tell_agent(t, name);
	}
	if (dir != NULL)
		(void)closedir(dir);
}

void aw_doctor_agents(const struct aw_doctor *doctor,
		      void (*tell)(void *data, const char *name,
				   const struct aw_doctor_finding *finding),
		      void *data)
{
	struct teller t = { doctor, tell, data };

	for (size_t i = 0; aw_agent_name(i) != NULL; i++)
		tell_agent(&t, aw_agent_name(i));
	tell_own_agents(&t);
}
