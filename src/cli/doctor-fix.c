/* Installing the AppArmor profile, the one thing that doctor can mend by itself. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/doctor.h"

#define TARGET "/etc/apparmor.d/warden"

/* Commands of the system, by the system's own PATH: never by the caller's. */
static _Noreturn void execute(char *const *argv)
{
	char path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
	char *const env[] = { path, NULL };
	static const char *const dirs[] = { "/usr/sbin", "/usr/bin", "/sbin", "/bin" };

	for (size_t i = 0; i < AW_ARRAY_LEN(dirs); i++) {
		char program[PATH_MAX];

		if (aw_str_format(program, sizeof(program), "%s/%s", dirs[i], argv[0]) >= 0)
			(void)execve(program, argv, env);
	}
	_exit(AW_EXIT_NOT_FOUND);
}

static int run(const char *const *words)
{
	bool needs_sudo = geteuid() != 0;
	const char *const *argv = needs_sudo ? words : words + 1;
	int status;
	pid_t pid;

	(void)fputs("warden:", stderr);
	for (const char *const *word = argv; *word != NULL; word++)
		(void)fprintf(stderr, " %s", *word);
	(void)fputc('\n', stderr);
	pid = fork();
	if (pid == 0)
		execute((char *const *)(uintptr_t)argv);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECHILD;
}

static int install(const char *profile, struct aw_error *err)
{
	const char *const copy[] = { "sudo", "install", "-m644", profile, TARGET, NULL };
	const char *const load[] = { "sudo", "apparmor_parser", "-r", TARGET, NULL };
	int r = run(copy);

	if (r == 0)
		r = run(load);
	return r < 0 ? aw_refuse(err, -r, "that command failed: the profile is not in force") : 0;
}

int aw_doctor_fix(const struct aw_host *host)
{
	autofree char *profile = aw_doctor_profile(host);
	struct aw_error err = { 0 };
	int r;

	if (profile == NULL)
		r = aw_refuse(&err, ENOENT,
			      "the AppArmor profile is not beside %s/warden: reinstall",
			      host->program_dir);
	else if (!aw_doctor_profile_covers(host))
		r = aw_refuse(&err, EXDEV,
			      "the AppArmor profile is for /usr/bin/warden and "
			      "/usr/local/bin/warden, not for %s/warden: install it there first",
			      host->program_dir);
	else
		r = install(profile, &err);
	return r < 0 ? aw_cli_fail(AW_EXIT_USAGE, &err) : AW_EXIT_OK;
}
