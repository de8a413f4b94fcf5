#include "cli/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "store/scratch.h"

static void make_dirs(const struct scratch *s, const char *path)
{
	char part[128];

	for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		(void)snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		(void)mkdirat(s->fd, part, 0755);
	}
}

static void put(const struct scratch *s, const char *path, const char *text, size_t len)
{
	make_dirs(s, path);
	scratch_store(s, path, text, len);
}

static void a_host_without_marks_is_no_container(void **state)
{
	const struct scratch *s = *state;
	char place[160];

	put(s, "proc/version", "Linux version 6.1.0-13-amd64", 28);
	put(s, "proc/self/cgroup", "0::/user.slice/user-1000.slice", 30);
	assert_false(aw_doctor_find_nesting(s->fd, place, sizeof(place)));
}

static void each_kind_of_host_is_known_by_its_mark(void **state)
{
	static const struct {
		const char *file, *text, *name;
	} hosts[] = {
		{ ".dockerenv", "", "Docker (/.dockerenv)" },
		{ "run/.containerenv", "", "Podman (/run/.containerenv)" },
		{ "proc/version", "Linux version 5.15.90.1-microsoft-standard-WSL2", "WSL" },
		{ "proc/version", "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016",
		  "gVisor" },
		{ "proc/version", "Linux version 4.19.0-gvisor", "gVisor" },
		{ "proc/self/cgroup", "12:cpu:/kubepods/burstable/pod1/x", "Kubernetes" },
		{ "proc/self/cgroup", "12:cpu:/lxc/box", "LXC" },
		{ "run/systemd/container", "systemd-nspawn\n", "systemd-nspawn" },
		{ "run/systemd/container", "other\n", "a container" },
	};
	const struct scratch *s = *state;

	for (size_t i = 0; i < AW_ARRAY_LEN(hosts); i++) {
		char place[160];

		put(s, hosts[i].file, hosts[i].text, strlen(hosts[i].text));
		assert_true(aw_doctor_find_nesting(s->fd, place, sizeof(place)));
		if (strncmp(place, hosts[i].name, strlen(hosts[i].name)) != 0)
			fail_msg("%s: %s", hosts[i].name, place);
		assert_int_equal(unlinkat(s->fd, hosts[i].file, 0), 0);
	}
}

static void a_mark_behind_a_nul_byte_is_found(void **state)
{
	static const char environ_of_init[] = "PATH=/bin\0container=lxc\0TERM=linux";
	const struct scratch *s = *state;
	char place[160];

	put(s, "proc/1/environ", environ_of_init, sizeof(environ_of_init));
	assert_true(aw_doctor_find_nesting(s->fd, place, sizeof(place)));
	assert_string_equal(place, "LXC (/proc/1/environ says \"container=lxc\")");
}

static void instances_and_watches_are_counted_for_one_user(void **state)
{
	static const char two[] =
		"pos:\t0\nflags:\t02004000\ninotify wd:2 ino:1\ninotify wd:1 ino:2\n";
	const struct scratch *s = *state;
	struct aw_doctor_inotify used = { 0 };

	put(s, "12/fd/x", "", 0);
	put(s, "12/fdinfo/5", two, strlen(two));
	put(s, "12/fdinfo/6", "pos:\t0\n", 7);
	put(s, "12/fdinfo/7", two, strlen(two));
	put(s, "not-a-process/fd/x", "", 0);
	assert_int_equal(symlinkat("anon_inode:inotify", s->fd, "12/fd/5"), 0);
	assert_int_equal(symlinkat("anon_inode:inotify", s->fd, "12/fd/6"), 0);
	assert_int_equal(symlinkat("anon_inode:inotify2", s->fd, "12/fd/7"), 0);
	assert_int_equal(symlinkat("anon_inode:inotify", s->fd, "not-a-process/fd/5"), 0);
	aw_doctor_count_inotify(s->fd, geteuid(), &used);
	assert_int_equal(used.instances, 2);
	assert_int_equal(used.watches, 2);
	aw_doctor_count_inotify(s->fd, geteuid() + 1, &used);
	assert_int_equal(used.instances, 2);
}

/* A /proc with no process but this one: others come and go. */
static void what_this_process_holds_is_seen_in_proc(void **state)
{
	const struct scratch *s = *state;
	struct aw_doctor_inotify before = { 0 }, after = { 0 };
	autoclose int fd = -EBADF;

	assert_int_equal(symlinkat("/proc/self", s->fd, "1"), 0);
	aw_doctor_count_inotify(s->fd, geteuid(), &before);
	fd = inotify_init1(IN_CLOEXEC);
	assert_true(fd >= 0 && inotify_add_watch(fd, "/", IN_CREATE) >= 0);
	aw_doctor_count_inotify(s->fd, geteuid(), &after);
	assert_int_equal(after.instances, before.instances + 1);
	assert_int_equal(after.watches, before.watches + 1);
}

/* The check of that name, measured with @doctor. */
static struct aw_doctor_finding check_host(const struct aw_doctor *doctor, const char *name)
{
	struct aw_doctor_table table = aw_doctor_host();
	struct aw_doctor_finding finding = { 0 };

	for (size_t i = 0; i < table.count; i++)
		if (strcmp(table.check[i].name, name) == 0)
			assert_true(table.check[i].measure(doctor, &finding));
	assert_int_not_equal(finding.state, 0);
	return finding;
}

static void a_proxy_before_the_network_is_named_and_not_shown(void **state)
{
	char with[] = "https_proxy=http://u:secret@proxy:8080", empty[] = "ALL_PROXY=";
	char *const set[] = { empty, with, NULL }, *const unset[] = { empty, NULL };
	struct aw_doctor doctor = { .environment = set };
	struct aw_doctor_finding finding = check_host(&doctor, "upstream-proxy");

	(void)state;
	assert_int_equal(finding.state, AW_DOCTOR_MISSING);
	assert_string_equal(finding.value, "https_proxy is set");
	assert_null(strstr(finding.fix, "secret"));
	doctor.environment = unset;
	assert_int_equal(check_host(&doctor, "upstream-proxy").state, AW_DOCTOR_OK);
}

static void directories_that_others_may_enter_are_not_ok(void **state)
{
	const struct scratch *s = *state;
	char home[96];
	struct aw_host host = { .home = home };
	struct aw_doctor doctor = { .host = &host };

	(void)snprintf(home, sizeof(home), "%s", s->path);
	assert_int_equal(check_host(&doctor, "directories").state, AW_DOCTOR_OK);
	assert_int_equal(fchmodat(s->fd, ".local/state/warden", 0755, 0), 0);
	assert_int_equal(check_host(&doctor, "directories").state, AW_DOCTOR_MISSING);
}

static void helpers_that_are_not_beside_the_program_are_missing(void **state)
{
	char dir[] = "/nowhere";
	struct aw_host host = { .program_dir = dir };
	struct aw_doctor doctor = { .host = &host };
	struct aw_doctor_finding finding = check_host(&doctor, "programs");

	(void)state;
	/* This test program has none beside it. */
	assert_int_equal(finding.state, AW_DOCTOR_MISSING);
	assert_non_null(strstr(finding.value, "warden-cell"));
}

static void every_check_says_what_it_means_and_what_to_do(void **state)
{
	const struct aw_doctor_table tables[] = { aw_doctor_kernel(), aw_doctor_cell(),
						  aw_doctor_host() };

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(tables); i++) {
		for (size_t j = 0; j < tables[i].count; j++) {
			assert_non_null(tables[i].check[j].effect);
			assert_true(strlen(tables[i].check[j].name) <= 18);
		}
	}
}

/* Counts the findings, and remembers the one of an agent. */
struct heard {
	const char *name;
	struct aw_doctor_finding finding;
	unsigned count;
};

static void hear(void *data, const char *name, const struct aw_doctor_finding *finding)
{
	struct heard *heard = data;

	heard->count++;
	if (strcmp(name, heard->name) == 0)
		heard->finding = *finding;
}

static void agents_are_found_by_path_and_come_with_their_install_hint(void **state)
{
	static const char profile[] =
		"{\"name\": \"mine\", \"title\": \"Mine\", \"install\": \"make it\", "
		"\"binaries\": [\"mine-agent\"]}";
	const struct scratch *s = *state;
	char home[96], config[96], path[112];
	char *const environment[] = { path, NULL };
	struct aw_host host = { .home = home, .config_dir = config };
	struct aw_doctor doctor = { .host = &host, .environment = environment };
	struct heard heard = { .name = "agent mine" };

	(void)snprintf(home, sizeof(home), "%s", s->path);
	(void)snprintf(config, sizeof(config), "%s/config", s->path);
	(void)snprintf(path, sizeof(path), "PATH=%s/bin", s->path);
	put(s, "config/agents/mine.json", profile, strlen(profile));
	aw_doctor_agents(&doctor, hear, &heard);
	assert_int_equal(heard.finding.state, AW_DOCTOR_MISSING);
	assert_string_equal(heard.finding.fix, "make it");
	assert_true(heard.count > 1);
	put(s, "bin/mine-agent", "#!/bin/sh\n", 10);
	assert_int_equal(fchmodat(s->fd, "bin/mine-agent", 0755, 0), 0);
	aw_doctor_agents(&doctor, hear, &heard);
	assert_int_equal(heard.finding.state, AW_DOCTOR_OK);
	assert_non_null(strstr(heard.finding.value, "/bin/mine-agent"));
}

static void control_bytes_do_not_reach_the_terminal(void **state)
{
	struct aw_doctor_finding finding = { 0 };

	(void)state;
	aw_doctor_find(&finding, AW_DOCTOR_OK, "a%sb", "\x1b[2J\n");
	assert_string_equal(finding.value, "a?[2J?b");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SCRATCH(a_host_without_marks_is_no_container),
		IN_SCRATCH(each_kind_of_host_is_known_by_its_mark),
		IN_SCRATCH(a_mark_behind_a_nul_byte_is_found),
		IN_SCRATCH(instances_and_watches_are_counted_for_one_user),
		IN_SCRATCH(what_this_process_holds_is_seen_in_proc),
		cmocka_unit_test(a_proxy_before_the_network_is_named_and_not_shown),
		IN_SCRATCH(directories_that_others_may_enter_are_not_ok),
		cmocka_unit_test(helpers_that_are_not_beside_the_program_are_missing),
		cmocka_unit_test(every_check_says_what_it_means_and_what_to_do),
		IN_SCRATCH(agents_are_found_by_path_and_come_with_their_install_hint),
		cmocka_unit_test(control_bytes_do_not_reach_the_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
