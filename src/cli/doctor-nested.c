/* In what we run: marks that container runtimes and other kernels leave. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/doctor.h"

#define MARK_MAX 65536

/* The file is there and, if there is a word, holds it. The more exact mark comes first. */
static const struct {
	const char *file, *word, *name;
} marks[] = {
	{ "proc/version", "gvisor", "gVisor" },
	/* The build date that gVisor gives for its kernel, in all versions before 2025. */
	{ "proc/version", "Sun Jan 10 15:06:54 PST 2016", "gVisor" },
	{ "proc/version", "microsoft", "WSL" },
	{ "proc/self/cgroup", "kubepods", "Kubernetes" },
	{ "var/run/secrets/kubernetes.io", NULL, "Kubernetes" },
	{ "run/.containerenv", NULL, "Podman" },
	{ ".dockerenv", NULL, "Docker" },
	{ "proc/self/cgroup", "/docker", "Docker" },
	{ "run/systemd/container", "docker", "Docker" },
	{ "run/systemd/container", "podman", "Podman" },
	{ "run/systemd/container", "lxc", "LXC" },
	{ "proc/1/environ", "container=lxc", "LXC" },
	{ "proc/self/cgroup", "/lxc", "LXC" },
	{ "run/systemd/container", "systemd-nspawn", "systemd-nspawn" },
	{ "run/systemd/container", "", "a container" },
	{ "proc/1/environ", "container=", "a container" },
	{ "run/host/container-manager", "", "a container" },
};

static bool has_word(int root_fd, const char *file, const char *word)
{
	autofree char *text = NULL;
	struct aw_error none;
	ssize_t n = aw_read_file(root_fd, file, MARK_MAX, &text, &none);

	for (ssize_t i = 0; i < n; i++) /* an environ has NULs between its variables */
		if (text[i] == '\0')
			text[i] = '\n';
	return n > 0 && strcasestr(text, word) != NULL;
}

bool aw_doctor_find_nesting(int root_fd, char *out, size_t size)
{
	for (size_t i = 0; i < AW_ARRAY_LEN(marks); i++) {
		bool is_there = marks[i].word == NULL
					? faccessat(root_fd, marks[i].file, F_OK, 0) == 0
					: has_word(root_fd, marks[i].file, marks[i].word);

		if (!is_there)
			continue;
		(void)aw_str_format(out, size, "%s (/%s%s%s%s)", marks[i].name, marks[i].file,
				    marks[i].word != NULL && *marks[i].word ? " says \"" : "",
				    marks[i].word != NULL ? marks[i].word : "",
				    marks[i].word != NULL && *marks[i].word ? "\"" : "");
		return true;
	}
	return false;
}
