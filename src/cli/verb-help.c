#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "cli/cli.h"
#include "cli/run-line.h"

#ifndef AW_VERSION
#define AW_VERSION "0.1.0"
#endif

static void print_options(void)
{
	char line[160];

	(void)puts("\noptions (they end at AGENT or --):");
	for (size_t i = 0; aw_run_line_help(i, line, sizeof(line)); i++)
		(void)puts(line);
}

static void print_all(const struct aw_verb *verbs, size_t count)
{
	(void)puts(
		"warden runs an AI coding agent in a cell: it sees the project, reaches the hosts it was\n"
		"granted, holds no privilege, and leaves a record that it cannot touch.\n\n"
		"  warden run ./my-project claude       an agent\n"
		"  warden run . -- make test            a command\n"
		"  warden claude                        in the current directory\n\nverbs:");
	for (size_t i = 0; i < count; i++)
		if (verbs[i].run != NULL)
			(void)printf("  %-12s %s\n", verbs[i].name, verbs[i].summary);
	(void)fputs("\nnot in this version:", stdout);
	for (size_t i = 0; i < count; i++)
		if (verbs[i].run == NULL)
			(void)printf(" %s", verbs[i].name);
	(void)puts("\n\nmore: warden help VERB, warden(1)");
}

int aw_verb_help(char *const *args)
{
	size_t count;
	const struct aw_verb *verbs = aw_verbs(&count);

	if (args == NULL || args[0] == NULL) {
		print_all(verbs, count);
		return AW_EXIT_OK;
	}
	for (size_t i = 0; i < count; i++) {
		if (strcmp(verbs[i].name, args[0]) != 0)
			continue;
		(void)printf("warden %s\n%s%s\n", verbs[i].usage, verbs[i].summary,
			     verbs[i].run == NULL ? " (not in this version)" : "");
		if (strcmp(args[0], "run") == 0)
			print_options();
		return AW_EXIT_OK;
	}
	return aw_cli_usage(NULL, "there is no verb '%s'", args[0]);
}

int aw_verb_version(char *const *args)
{
	(void)args;
	(void)puts("warden " AW_VERSION);
	return AW_EXIT_OK;
}

int aw_verb_build(char *const *args)
{
	(void)args;
	(void)puts("there is no image to build: warden run DIR AGENT starts at once");
	return AW_EXIT_OK;
}

int aw_verb_up(char *const *args)
{
	(void)args;
	(void)puts("there is no daemon to start: each session brings its own gate");
	return AW_EXIT_OK;
}
