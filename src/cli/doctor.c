#include "cli/doctor.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"

/* Installed, and in a build directory of the sources. */
static const char *const places[] = { "../share/warden/apparmor/warden",
				      "../data/apparmor/warden" };

/* What data/apparmor/warden attaches to. */
static const char *const covered[] = { "/usr/bin", "/usr/local/bin" };

char *aw_doctor_profile(const struct aw_host *host)
{
	for (size_t i = 0; i < AW_ARRAY_LEN(places); i++) {
		char path[PATH_MAX];
		char *real = NULL;

		if (aw_str_format(path, sizeof(path), "%s/%s", host->program_dir, places[i]) >= 0)
			real = realpath(path, NULL);
		if (real != NULL)
			return real;
	}
	return NULL;
}

bool aw_doctor_profile_covers(const struct aw_host *host)
{
	for (size_t i = 0; i < AW_ARRAY_LEN(covered); i++)
		if (strcmp(host->program_dir, covered[i]) == 0)
			return true;
	return false;
}

void aw_doctor_find(struct aw_doctor_finding *finding, enum aw_doctor_state state,
		    const char *format, ...)
{
	va_list args;

	finding->state = state;
	va_start(args, format);
	(void)vsnprintf(finding->value, sizeof(finding->value), format, args);
	va_end(args);
	/* Paths and messages of others are in it: they do not get at the terminal. */
	for (char *c = finding->value; *c != '\0'; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
}
