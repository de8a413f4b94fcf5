#include "cell/view.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/str.h"

static struct aw_error err;

static struct aw_view view_of(const char *workspace)
{
	return (struct aw_view){
		.workspace = workspace,
		.workspace_at = workspace,
		.home_at = AW_CELL_HOME,
		.notice = AW_STR("notice\n"),
		.has_network = true,
	};
}

/* A decided view as a checked plan, to be read. */
struct decided {
	char *bytes;
	const struct aw_plan_header *plan;
};

static struct decided decide(const struct aw_view *view)
{
	static char *const argv[] = { (char *)(uintptr_t) "sh", NULL };
	struct aw_plan_header header = { 0 };
	struct aw_plan_builder b;
	struct decided d;
	struct stat st;
	int fd;

	aw_plan_begin(&b);
	assert_int_equal(aw_view_decide(view, &b, &err), 0);
	header.hostname = aw_plan_text(&b, AW_CELL_HOSTNAME);
	header.cwd = aw_plan_text(&b, view->workspace_at);
	header.argv = aw_plan_vector(&b, argv);
	header.env = header.argv;
	header.filter = aw_plan_blob(&b, "", 0);
	fd = aw_plan_seal(&b, &header, &err);
	aw_plan_fini(&b);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	d.bytes = test_malloc((size_t)st.st_size);
	assert_int_equal(pread(fd, d.bytes, (size_t)st.st_size, 0), st.st_size);
	(void)close(fd);
	d.plan = (const void *)d.bytes;
	assert_int_equal(aw_plan_check(d.bytes, (size_t)st.st_size, &err), 0);
	return d;
}

/* Where the first operation of @code at @at is; -1: nowhere. @code 0: any. */
static int index_of(const struct decided *d, unsigned code, const char *at)
{
	for (uint32_t i = 0; i < d->plan->op_count; i++) {
		const struct aw_plan_op *op = aw_plan_op_at(d->plan, i);

		if (op->code != AW_PLAN_CAP && (code == 0 || op->code == code) &&
		    strcmp(aw_plan_text_at(d->plan, op->at), at) == 0)
			return (int)i;
	}
	return -1;
}

static const struct aw_plan_op *op_of(const struct decided *d, unsigned code, const char *at)
{
	int index = index_of(d, code, at);

	if (index < 0)
		fail_msg("no operation %u at '%s'", code, at);
	return aw_plan_op_at(d->plan, (uint32_t)index);
}

static const char *source_of(const struct decided *d, const struct aw_plan_op *op)
{
	return aw_plan_text_at(d->plan, op->source);
}

static void the_order_is_the_precedence(void **state)
{
	static const struct aw_view_grant grants[] = { { .source = "/data", .at = "/srv/p/data" } };
	static const char *const pins[] = { "/srv/p/.git" },
				 *const protects[] = { "/srv/p/.git/hooks" },
				 *const masks[] = { "/srv/p/.env" };
	struct aw_view view = view_of("/srv/p");
	struct decided d;
	int at[7];

	(void)state;
	view.grants = grants;
	view.pins = pins;
	view.protects = protects;
	view.masks = masks;
	view.grant_count = view.pin_count = view.protect_count = view.mask_count = 1;
	d = decide(&view);
	at[0] = index_of(&d, AW_PLAN_BIND, "/usr");
	at[1] = index_of(&d, AW_PLAN_TMPFS, "/tmp");
	at[2] = index_of(&d, AW_PLAN_BIND, "/srv/p");
	at[3] = index_of(&d, AW_PLAN_BIND, "/srv/p/data");
	at[4] = index_of(&d, AW_PLAN_PIN, "/srv/p/.git");
	at[5] = index_of(&d, AW_PLAN_PIN, "/srv/p/.git/hooks");
	at[6] = index_of(&d, AW_PLAN_MASK, "/srv/p/.env");
	assert_true(at[0] >= 0);
	for (size_t i = 1; i < AW_ARRAY_LEN(at); i++)
		assert_true(at[i] > at[i - 1]);
	assert_int_equal(aw_plan_op_at(d.plan, (uint32_t)at[3])->flags, AW_PLAN_READ_ONLY);
	assert_int_equal(aw_plan_op_at(d.plan, (uint32_t)at[4])->flags, AW_PLAN_OPTIONAL);
	assert_int_equal(aw_plan_op_at(d.plan, (uint32_t)at[5])->flags,
			 AW_PLAN_OPTIONAL | AW_PLAN_READ_ONLY);
	test_free(d.bytes);
}

static void the_system_is_read_only_and_nothing_else_of_the_host_is_there(void **state)
{
	static const char *const own[] = { "/usr", "/nix/store", "/gnu/store", "/bin",   "/sbin",
					   "/lib", "/lib32",     "/lib64",     "/libx32" };
	struct aw_view view = view_of("/srv/p");
	struct decided d = decide(&view);

	(void)state;
	for (uint32_t i = 0; i < d.plan->op_count; i++) {
		const struct aw_plan_op *op = aw_plan_op_at(d.plan, i);
		const char *source = op->code == AW_PLAN_BIND ? source_of(&d, op) : "/srv/p";
		bool is_known = strcmp(source, "/srv/p") == 0 || strncmp(source, "/etc/", 5) == 0 ||
				strncmp(source, "/dev/", 5) == 0;

		for (size_t k = 0; k < AW_ARRAY_LEN(own); k++)
			is_known = is_known || strcmp(source, own[k]) == 0;
		if (!is_known)
			fail_msg("'%s' is bound", source);
		if (strncmp(source, "/srv", 4) != 0 && !(op->flags & AW_PLAN_DEVICE))
			assert_true(op->flags & AW_PLAN_READ_ONLY);
	}
	assert_int_equal(d.plan->allowed_dev_mounts, 6);
	test_free(d.bytes);
}

static void nothing_of_etc_holds_a_secret(void **state)
{
	static const char *const never[] = { "/etc/shadow",      "/etc/ssh",     "/etc/sudoers",
					     "/etc/ssl/private", "/etc/npmrc",   "/etc/gitconfig",
					     "/etc/docker",      "/etc/warden",  "/etc",
					     "/etc/machine-id",  "/etc/pip.conf" };
	struct aw_view view = view_of("/srv/p");
	struct decided d = decide(&view);

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(never); i++)
		assert_int_equal(index_of(&d, AW_PLAN_BIND, never[i]), -1);
	/* Users are the cell's own. */
	assert_non_null(
		strstr(aw_plan_blob_at(d.plan, op_of(&d, AW_PLAN_FILE, "/etc/passwd")->blob),
		       AW_CELL_USER ":x:1001"));
	test_free(d.bytes);
}

static void the_project_is_at_its_own_place_and_at_workspace(void **state)
{
	struct aw_view view = view_of("/srv/p");
	struct decided d = decide(&view);

	(void)state;
	assert_string_equal(source_of(&d, op_of(&d, AW_PLAN_BIND, "/srv/p")), "/srv/p");
	assert_int_equal(op_of(&d, AW_PLAN_BIND, "/srv/p")->flags, 0);
	assert_string_equal(source_of(&d, op_of(&d, AW_PLAN_SYMLINK, "/workspace")), "/srv/p");
	test_free(d.bytes);
	view.workspace_at = "/workspace";
	d = decide(&view);
	assert_string_equal(source_of(&d, op_of(&d, AW_PLAN_BIND, "/workspace")), "/srv/p");
	assert_int_equal(index_of(&d, AW_PLAN_SYMLINK, "/workspace"), -1);
	assert_int_equal(index_of(&d, 0, "/srv/p"), -1);
	test_free(d.bytes);
}

static void an_idmapped_project_is_the_monitors_tree(void **state)
{
	struct aw_view view = view_of("/srv/p");
	struct decided d;

	(void)state;
	view.workspace_is_tree = true;
	d = decide(&view);
	assert_int_equal(op_of(&d, AW_PLAN_TREE, "/srv/p")->mode, 0);
	assert_int_equal(index_of(&d, AW_PLAN_BIND, "/srv/p"), -1);
	test_free(d.bytes);
}

static void of_a_hidden_project_only_the_grants_are_there(void **state)
{
	static const struct aw_view_grant grants[] = {
		{ .source = "/srv/p/in", .at = "/srv/p/in" },
		{ .source = "/srv/p/out",
		  .at = "/srv/p/out",
		  .is_writable = true,
		  .is_optional = true },
	};
	struct aw_view view = view_of("/srv/p");
	struct decided d;

	(void)state;
	view.is_workspace_hidden = true;
	view.grants = grants;
	view.grant_count = 2;
	d = decide(&view);
	assert_int_equal(index_of(&d, AW_PLAN_BIND, "/srv/p"), -1);
	assert_int_equal(op_of(&d, AW_PLAN_BIND, "/srv/p/in")->flags, AW_PLAN_READ_ONLY);
	assert_int_equal(op_of(&d, AW_PLAN_BIND, "/srv/p/out")->flags, AW_PLAN_OPTIONAL);
	/* Landlock agrees: only what is writable may be written. */
	assert_int_equal(index_of(&d, AW_PLAN_LANDLOCK, "/srv/p"), -1);
	assert_int_equal(index_of(&d, AW_PLAN_LANDLOCK, "/srv/p/in"), -1);
	assert_int_equal(op_of(&d, AW_PLAN_LANDLOCK, "/srv/p/out")->mode, AW_PLAN_ACCESS_WRITE);
	test_free(d.bytes);
}

static void landlock_lets_write_what_the_view_does_and_no_more(void **state)
{
	static const char *const writable[] = { "/tmp", "/dev/shm", "/proc", AW_CELL_HOME,
						"/srv/p" };
	struct aw_view view = view_of("/srv/p");
	struct decided d = decide(&view);
	size_t count = 0;

	(void)state;
	for (uint32_t i = 0; i < d.plan->op_count; i++)
		count += aw_plan_op_at(d.plan, i)->code == AW_PLAN_LANDLOCK &&
			 aw_plan_op_at(d.plan, i)->mode == AW_PLAN_ACCESS_WRITE;
	assert_int_equal(count, AW_ARRAY_LEN(writable));
	for (size_t i = 0; i < AW_ARRAY_LEN(writable); i++)
		assert_int_equal(op_of(&d, AW_PLAN_LANDLOCK, writable[i])->mode,
				 AW_PLAN_ACCESS_WRITE);
	assert_int_equal(op_of(&d, AW_PLAN_LANDLOCK, "/")->mode, AW_PLAN_ACCESS_READ);
	test_free(d.bytes);
}

static void places_that_a_cell_needs_for_itself_are_refused(void **state)
{
	static const char *const refused[] = { "/usr/src/p", "/etc/p", "/proc/p", "/dev/shm/p",
					       "/sys/p",     "/run/p", "/boot/p", "/usr" };

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(refused); i++) {
		struct aw_view view = view_of(refused[i]);
		struct aw_plan_builder b;

		aw_plan_begin(&b);
		assert_int_equal(aw_view_decide(&view, &b, &err), -EINVAL);
		assert_non_null(strstr(err.message, "move it"));
		assert_int_equal(b.op_count, 0);
		aw_plan_fini(&b);
	}
}

static void a_project_below_tmp_is_put_into_the_private_tmp(void **state)
{
	struct aw_view view = view_of("/tmp/p");
	struct decided d = decide(&view);

	(void)state;
	assert_true(index_of(&d, AW_PLAN_BIND, "/tmp/p") > index_of(&d, AW_PLAN_TMPFS, "/tmp"));
	test_free(d.bytes);
}

static void a_home_is_bound_or_goes_with_the_session(void **state)
{
	struct aw_view view = view_of("/srv/p");
	struct decided d;

	(void)state;
	view.tmp_size = 1 << 20;
	d = decide(&view);
	assert_int_equal(op_of(&d, AW_PLAN_TMPFS, AW_CELL_HOME)->mode, 0700);
	assert_int_equal(op_of(&d, AW_PLAN_TMPFS, AW_CELL_HOME)->size, 1 << 20);
	test_free(d.bytes);
	view.home_source = "/state/homes/p";
	d = decide(&view);
	assert_string_equal(source_of(&d, op_of(&d, AW_PLAN_BIND, AW_CELL_HOME)), "/state/homes/p");
	assert_int_equal(index_of(&d, AW_PLAN_TMPFS, AW_CELL_HOME), -1);
	test_free(d.bytes);
}

static void a_home_does_not_lie_over_a_project_of_that_name(void **state)
{
	(void)state;
	assert_string_equal(aw_view_home_for("/home/me/p"), AW_CELL_HOME);
	assert_string_equal(aw_view_home_for(AW_CELL_HOME "x"), AW_CELL_HOME);
	assert_string_equal(aw_view_home_for(AW_CELL_HOME "/p"), AW_CELL_HOME ".warden");
	assert_string_equal(aw_view_home_for(AW_CELL_HOME), AW_CELL_HOME ".warden");
}

static const char *file_of(const struct decided *d, const char *at, size_t *ret_len)
{
	const struct aw_plan_op *op = op_of(d, AW_PLAN_FILE, at);

	*ret_len = op->blob_len;
	return aw_plan_blob_at(d->plan, op->blob);
}

static void without_a_network_there_is_nobody_to_ask(void **state)
{
	struct aw_view view = view_of("/srv/p");
	struct decided d = decide(&view);
	size_t len;

	(void)state;
	assert_memory_equal(file_of(&d, "/etc/resolv.conf", &len), "nameserver 127.0.0.1\n", 21);
	test_free(d.bytes);
	view.has_network = false;
	d = decide(&view);
	assert_memory_equal(file_of(&d, "/etc/resolv.conf", &len), "# offline", 9);
	test_free(d.bytes);
}

static void the_notice_is_in_etc(void **state)
{
	struct aw_view view = view_of("/srv/p");
	struct decided d = decide(&view);
	size_t len;

	(void)state;
	assert_memory_equal(file_of(&d, "/etc/warden/notice", &len), "notice\n", 7);
	assert_int_equal(len, 7);
	test_free(d.bytes);
}

static void what_the_agent_shares_with_the_user_is_capped(void **state)
{
	static const char *const caps[] = { "max_inotify_instances", "max_inotify_watches" };
	struct aw_view view = view_of("/srv/p");
	struct decided d = decide(&view);
	size_t found = 0;

	(void)state;
	for (uint32_t i = 0; i < d.plan->op_count; i++) {
		const struct aw_plan_op *op = aw_plan_op_at(d.plan, i);

		for (size_t k = 0; op->code == AW_PLAN_CAP && k < AW_ARRAY_LEN(caps); k++)
			found += strcmp(source_of(&d, op), caps[k]) == 0 && op->size > 0;
	}
	assert_int_equal(found, AW_ARRAY_LEN(caps));
	test_free(d.bytes);
}

static void what_was_decided_about_is_what_is_bound(void **state)
{
	struct aw_view view = view_of("/srv/p");
	struct aw_view_grant grant = { .source = "/data", .at = "/data", .dev = 7, .ino = 8 };
	struct decided d;

	(void)state;
	view.workspace_dev = 5;
	view.workspace_ino = 6;
	view.grants = &grant;
	view.grant_count = 1;
	d = decide(&view);
	assert_int_equal(op_of(&d, AW_PLAN_BIND, "/srv/p")->dev, 5);
	assert_int_equal(op_of(&d, AW_PLAN_BIND, "/srv/p")->ino, 6);
	assert_int_equal(op_of(&d, AW_PLAN_BIND, "/data")->dev, 7);
	assert_int_equal(op_of(&d, AW_PLAN_BIND, "/data")->ino, 8);
	test_free(d.bytes);
}

static void trees_of_the_monitor_come_in_the_order_of_the_plan(void **state)
{
	static const struct aw_view_grant grants[] = {
		{ .source = "/a", .at = "/a", .is_writable = true, .is_tree = true },
		{ .source = "/b", .at = "/b", .is_writable = true },
		{ .source = "/c", .at = "/c", .is_writable = true, .is_tree = true },
	};
	struct aw_view view = view_of("/srv/p");
	struct decided d;

	(void)state;
	view.workspace_is_tree = true;
	view.grants = grants;
	view.grant_count = 3;
	d = decide(&view);
	assert_int_equal(op_of(&d, AW_PLAN_TREE, "/srv/p")->mode, 0);
	assert_int_equal(op_of(&d, AW_PLAN_TREE, "/a")->mode, 1);
	assert_int_equal(op_of(&d, AW_PLAN_TREE, "/c")->mode, 2);
	assert_int_equal(index_of(&d, AW_PLAN_BIND, "/a"), -1);
	test_free(d.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_order_is_the_precedence),
		cmocka_unit_test(the_system_is_read_only_and_nothing_else_of_the_host_is_there),
		cmocka_unit_test(nothing_of_etc_holds_a_secret),
		cmocka_unit_test(the_project_is_at_its_own_place_and_at_workspace),
		cmocka_unit_test(an_idmapped_project_is_the_monitors_tree),
		cmocka_unit_test(of_a_hidden_project_only_the_grants_are_there),
		cmocka_unit_test(landlock_lets_write_what_the_view_does_and_no_more),
		cmocka_unit_test(places_that_a_cell_needs_for_itself_are_refused),
		cmocka_unit_test(a_project_below_tmp_is_put_into_the_private_tmp),
		cmocka_unit_test(a_home_is_bound_or_goes_with_the_session),
		cmocka_unit_test(a_home_does_not_lie_over_a_project_of_that_name),
		cmocka_unit_test(without_a_network_there_is_nobody_to_ask),
		cmocka_unit_test(the_notice_is_in_etc),
		cmocka_unit_test(what_the_agent_shares_with_the_user_is_capped),
		cmocka_unit_test(what_was_decided_about_is_what_is_bound),
		cmocka_unit_test(trees_of_the_monitor_come_in_the_order_of_the_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
