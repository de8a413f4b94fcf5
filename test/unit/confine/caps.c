#include "confine/caps.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/own.h"
#include "confine/posture.h"
#include "confine/probe.h"

enum set {
	INHERITABLE,
	PERMITTED,
	EFFECTIVE,
	BOUNDING,
	AMBIENT
};

static struct aw_posture_status status_now(void)
{
	struct aw_posture_status status = { .seccomp = 99 };
	struct aw_error err;
	autofree char *text = NULL;
	ssize_t len = aw_read_file(AT_FDCWD, "/proc/self/status", 1 << 16, &text, &err);

	if (len >= 0)
		(void)aw_posture_parse_status((struct aw_str){ text, (size_t)len }, &status, &err);
	return status;
}

/* A new user namespace gives all capabilities in it, to root and to others. */
static long in_namespace(void *state)
{
	long (*body)(void);

	memcpy(&body, state, sizeof(body));
	return unshare(CLONE_NEWUSER) < 0 ? -10000 : body();
}

static long run(long (*body)(void))
{
	long r = probe_body(NULL, in_namespace, &body);

	if (r == -10000)
		probe_skip("no user namespace can be made here");
	return r;
}

static long drop_all(void)
{
	struct aw_error err;
	struct aw_posture_status before = status_now(), after;
	unsigned still = 0;

	if (before.capabilities[PERMITTED] == 0 || before.capabilities[BOUNDING] == 0)
		return -1;
	if (aw_caps_drop_all(&err) < 0)
		return -err.code;
	after = status_now();
	for (size_t i = 0; i < AW_ARRAY_LEN(after.capabilities); i++)
		still |= after.capabilities[i] != 0;
	return still == 0 && after.no_new_privs == 1 &&
	       prctl(PR_GET_SECUREBITS) ==
		       (SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
			SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
			SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED);
}

static void drops_every_set(void **state)
{
	(void)state;
	assert_int_equal(run(drop_all), 1);
}

static long drop_twice(void)
{
	struct aw_error err;

	if (aw_caps_drop_all(&err) < 0)
		return -1;
	return aw_caps_drop_all(&err);
}

static void can_be_done_again(void **state)
{
	(void)state;
	assert_int_equal(run(drop_twice), 0);
}

static long take_back(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 1, 1, 0 }, { 0, 0, 0 } };
	struct aw_error err;

	if (aw_caps_drop_all(&err) < 0)
		return -1;
	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

static void nothing_can_be_taken_back(void **state)
{
	(void)state;
	assert_int_equal(run(take_back), -EPERM);
}

static long bounding_without_right(void)
{
	struct aw_error err;

	return aw_caps_clear(&err) < 0 ? -1 : aw_caps_drop_bounding(&err);
}

static long lock_without_right(void)
{
	struct aw_error err;

	return aw_caps_clear(&err) < 0 ? -1 : aw_caps_lock(&err);
}

static void says_when_it_has_not_the_right(void **state)
{
	(void)state;
	assert_int_equal(run(bounding_without_right), -EPERM);
	assert_int_equal(run(lock_without_right), -EPERM);
}

static long raise_two(void)
{
	const uint64_t set = AW_CAP_BIT(CAP_NET_ADMIN) | AW_CAP_BIT(CAP_CHECKPOINT_RESTORE);
	struct aw_error err;
	struct aw_posture_status status;

	if (aw_caps_raise_ambient(AW_CAP_BIT(CAP_CHOWN), &err) < 0 ||
	    aw_caps_raise_ambient(set, &err) < 0)
		return -err.code;
	status = status_now();
	return status.capabilities[AMBIENT] == set && status.capabilities[INHERITABLE] == set &&
	       (status.capabilities[PERMITTED] & set) == set;
}

static void raises_exactly_what_was_asked(void **state)
{
	(void)state;
	assert_int_equal(run(raise_two), 1);
}

static long raise_what_is_not_ours(void)
{
	struct aw_error err;

	return aw_caps_clear(&err) < 0 ? -1
				       : aw_caps_raise_ambient(AW_CAP_BIT(CAP_SYS_ADMIN), &err);
}

static void hands_on_only_what_is_permitted(void **state)
{
	(void)state;
	assert_int_equal(run(raise_what_is_not_ours), -EPERM);
}

static long drop_without_any(void *state)
{
	struct aw_error err;

	(void)state;
	return aw_caps_clear(&err) < 0 ? -1 : aw_caps_drop_all(&err);
}

static void a_process_without_capabilities_passes(void **state)
{
	(void)state;
	assert_int_equal(probe_body(NULL, drop_without_any, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drops_every_set),
		cmocka_unit_test(can_be_done_again),
		cmocka_unit_test(nothing_can_be_taken_back),
		cmocka_unit_test(says_when_it_has_not_the_right),
		cmocka_unit_test(raises_exactly_what_was_asked),
		cmocka_unit_test(hands_on_only_what_is_permitted),
		cmocka_unit_test(a_process_without_capabilities_passes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
