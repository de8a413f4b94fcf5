#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/str.h"
#include "confine/posture.h"

#define GOOD_STATUS                      \
	"Name:\tsh\nUmask:\t0022\n"      \
	"Uid:\t1001\t1001\t1001\t1001\n" \
	"Gid:\t1002\t1002\t1002\t1002\n" \
	"CapInh:\t0000000000000000\n"    \
	"CapPrm:\t0000000000000000\n"    \
	"CapEff:\t0000000000000000\n"    \
	"CapBnd:\t000001ffffffffff\n"    \
	"CapAmb:\t0000000000000000\n"    \
	"NoNewPrivs:\t1\n"               \
	"Seccomp:\t2\nSeccomp_filters:\t1\n"

static struct aw_error err;

static int parse(const char *text, struct aw_posture_status *status)
{
	return aw_posture_parse_status(aw_str_from(text), status, &err);
}

static void reads_the_lines_of_status(void **state)
{
	struct aw_posture_status status;

	(void)state;
	assert_int_equal(parse(GOOD_STATUS, &status), 0);
	assert_int_equal(status.uid[3], 1001);
	assert_int_equal(status.gid[0], 1002);
	assert_true(status.capabilities[3] == 0x1ffffffffff);
	assert_int_equal(status.capabilities[4], 0);
	assert_int_equal(status.no_new_privs, 1);
	assert_int_equal(status.seccomp, 2);
}

static void refuses_odd_status_texts(void **state)
{
	static const struct {
		const char *replace, *by;
	} rows[] = {
		{ "Uid:\t1001\t1001\t1001\t1001\n", "" },
		{ "Uid:\t1001\t1001\t1001\t1001\n", "Uid:\t1001\t1001\t1001\n" },
		{ "Uid:\t1001\t1001\t1001\t1001\n", "Uid:\t1001\t1001\t1001\t1001\t1\n" },
		{ "Uid:\t1001\t1001\t1001\t1001\n", "Uid:\t1001\t1001\t\t1001\n" },
		{ "Uid:\t1001\t1001\t1001\t1001\n", "Uid:\t-1\t1001\t1001\t1001\n" },
		{ "Uid:\t1001\t1001\t1001\t1001\n", "Uid: 1001 1001 1001 1001\n" },
		{ "CapEff:\t0000000000000000\n", "CapEff:\t00000000000000000\n" },
		{ "CapEff:\t0000000000000000\n", "CapEff:\t0x00000000000000\n" },
		{ "CapEff:\t0000000000000000\n", "CapEff:\t\n" },
		{ "CapEff:\t0000000000000000\n", "CapEff:" },
		{ "CapAmb:\t0000000000000000\n", "CapAmb:\t0\nCapAmb:\t0\n" },
		{ "NoNewPrivs:\t1\n", "NoNewPrivs:\tone\n" },
		{ "NoNewPrivs:\t1\n", "NoNewPrivs:\ta\n" },
		{ "Seccomp:\t2\n", "" },
	};
	char text[1024];

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(rows); i++) {
		struct aw_posture_status status;
		const char *at = strstr(GOOD_STATUS, rows[i].replace);

		assert_non_null(at);
		assert_true(aw_str_format(text, sizeof(text), "%.*s%s%s", (int)(at - GOOD_STATUS),
					  GOOD_STATUS, rows[i].by,
					  at + strlen(rows[i].replace)) > 0);
		if (parse(text, &status) != -EBADMSG)
			fail_msg("taken: %s", rows[i].by);
	}
	assert_int_equal(parse("", &(struct aw_posture_status){ 0 }), -EBADMSG);
	assert_int_equal(parse(NULL, &(struct aw_posture_status){ 0 }), -EBADMSG);
}

static void judges_each_of_the_eight_ids(void **state)
{
	const struct aw_posture_expected expected = { .uid = 1, .gid = 2 };

	(void)state;
	for (size_t i = 0; i < 9; i++) {
		struct aw_posture_status status = { .uid = { 1, 1, 1, 1 }, .gid = { 2, 2, 2, 2 } };

		if (i < 4)
			status.uid[i] = 0;
		else if (i < 8)
			status.gid[i - 4] = 0;
		assert_int_equal(aw_posture_judge_identity(&status, &expected, &err),
				 i < 8 ? -EACCES : 0);
	}
}

static void judges_each_capability_set(void **state)
{
	struct aw_posture_status clean = { 0 };

	(void)state;
	assert_int_equal(aw_posture_judge_capabilities(&clean, &err), 0);
	for (size_t i = 0; i < 5; i++) {
		struct aw_posture_status status = { 0 };

		status.capabilities[i] = UINT64_C(1) << 40;
		assert_int_equal(aw_posture_judge_capabilities(&status, &err), -EACCES);
	}
}

#define ROOT "22 1 0:21 / / ro,nosuid,nodev,relatime - tmpfs none rw\n"
#define PROC "23 22 0:22 / /proc rw,nosuid,nodev,noexec shared:5 master:1 - proc proc rw\n"
#define NULL_DEVICE "24 22 0:6 /null /dev/null rw,nosuid - devtmpfs udev rw,mode=755\n"

static void judges_the_flags_of_every_mount(void **state)
{
	static const char *const devices[] = { "/dev/null", "/dev/pts" };
	static const struct {
		const char *text;
		int result;
	} rows[] = {
		{ ROOT PROC NULL_DEVICE, 0 },
		{ ROOT PROC "\n" NULL_DEVICE, 0 },
		{ ROOT "24 22 0:6 /null /dev/zero rw,nosuid - devtmpfs udev rw\n", -EACCES },
		{ ROOT "24 22 0:6 / /dev/null rw,nodev - devtmpfs udev rw\n", -EACCES },
		/* Options of the superblock are not those of the mount; nor is a part of a word. */
		{ ROOT "25 22 8:1 / /srv rw,nodev - ext4 /dev/sda1 rw,nosuid\n", -EACCES },
		{ ROOT "25 22 8:1 / /srv rw,nosuidx,nodev - ext4 /dev/sda1 rw\n", -EACCES },
		{ ROOT "25 22 8:1 / /a\\040nosuid,nodev rw - ext4 /dev/sda1 rw\n", -EACCES },
		{ ROOT "25 22 8:1 / /dev/null\\040x rw,nosuid - ext4 /dev/sda1 rw\n", -EACCES },
		{ "", -EBADMSG },
		{ "\n\n", -EBADMSG },
		{ ROOT "25 22 8:1 /\n", -EBADMSG },
		{ ROOT "25 22 8:1  /srv rw,nosuid,nodev - ext4 x rw\n", -EBADMSG },
	};
	const struct aw_posture_expected expected = { .device_mounts = devices,
						      .device_mount_count = 2 };

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(rows); i++)
		if (aw_posture_judge_mounts(aw_str_from(rows[i].text), &expected, &err) !=
		    rows[i].result)
			fail_msg("row %zu", i);
}

static void names_the_mount_without_its_control_bytes(void **state)
{
	(void)state;
	assert_int_equal(aw_posture_judge_mounts(AW_STR("25 22 8:1 / /\x1b[2J rw - a b c\n"),
						 &(struct aw_posture_expected){ 0 }, &err),
			 -EACCES);
	assert_non_null(strstr(err.message, "'/\\x1b[2J' is not nosuid"));
}

static void judges_the_root_that_is_seen(void **state)
{
	static const struct {
		const char *text;
		int result;
	} rows[] = {
		{ ROOT PROC, 0 },
		{ PROC, -EACCES },
		{ "", -EACCES },
		{ "22 1 0:21 / / rw,nosuid,nodev - tmpfs none ro\n", -EACCES },
		{ ROOT "30 22 0:9 / / rw,nosuid,nodev - tmpfs none rw\n", -EACCES },
		{ "30 22 0:9 / / rw,nosuid,nodev - tmpfs none rw\n" ROOT, 0 },
		{ "bad\n", -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(rows); i++)
		if (aw_posture_judge_root(aw_str_from(rows[i].text), &err) != rows[i].result)
			fail_msg("row %zu", i);
}

static void knows_what_no_route_looks_like(void **state)
{
	static const int dead[] = { ENETUNREACH, EHOSTUNREACH, EADDRNOTAVAIL, EAFNOSUPPORT };
	static const int alive[] = { 0, ECONNREFUSED, ETIMEDOUT, EPERM, EACCES, ENOSYS, EMFILE };

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(dead); i++)
		assert_true(aw_posture_is_unreachable(dead[i]));
	for (size_t i = 0; i < AW_ARRAY_LEN(alive); i++)
		assert_false(aw_posture_is_unreachable(alive[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_the_lines_of_status),
		cmocka_unit_test(refuses_odd_status_texts),
		cmocka_unit_test(judges_each_of_the_eight_ids),
		cmocka_unit_test(judges_each_capability_set),
		cmocka_unit_test(judges_the_flags_of_every_mount),
		cmocka_unit_test(names_the_mount_without_its_control_bytes),
		cmocka_unit_test(judges_the_root_that_is_seen),
		cmocka_unit_test(knows_what_no_route_looks_like),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
