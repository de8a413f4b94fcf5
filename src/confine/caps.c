#include "confine/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SECUREBITS                                                                               \
	(SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |                         \
	 SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | \
	 SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

/* capset() has room for 64; PR_CAPBSET_READ says EINVAL behind the last that the kernel knows. */
#define CAPABILITIES_MAX 64

struct sets {
	uint64_t effective, permitted, inheritable;
};

static int read_sets(struct sets *ret, struct aw_error *err)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &head, data) < 0)
		return aw_fail(err, errno, "read our capabilities");
	ret->effective = data[0].effective | (uint64_t)data[1].effective << 32;
	ret->permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
	ret->inheritable = data[0].inheritable | (uint64_t)data[1].inheritable << 32;
	return 0;
}

static int write_sets(const struct sets *sets, struct aw_error *err)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		data[i] = (struct __user_cap_data_struct){
			.effective = (uint32_t)(sets->effective >> (32 * i)),
			.permitted = (uint32_t)(sets->permitted >> (32 * i)),
			.inheritable = (uint32_t)(sets->inheritable >> (32 * i)),
		};
	return syscall(SYS_capset, &head, data) < 0 ? aw_fail(err, errno, "set our capabilities")
						    : 0;
}

static int clear_ambient(struct aw_error *err)
{
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return aw_fail(err, errno, "clear the ambient capabilities");
	return 0;
}

bool aw_caps_are_effective(uint64_t set)
{
	struct aw_error none;
	struct sets now;

	return read_sets(&now, &none) == 0 && (now.effective & set) == set;
}

int aw_caps_lock(struct aw_error *err)
{
	int now = prctl(PR_GET_SECUREBITS);

	if (now == SECUREBITS)
		return 0;
	if (prctl(PR_SET_SECUREBITS, (unsigned long)SECUREBITS) < 0)
		return aw_fail(err, errno, "lock the securebits");
	return 0;
}

int aw_caps_drop_bounding(struct aw_error *err)
{
	for (unsigned long i = 0; i < CAPABILITIES_MAX; i++) {
		int present = prctl(PR_CAPBSET_READ, i);

		if (present < 0)
			break;
		if (present > 0 && prctl(PR_CAPBSET_DROP, i) < 0)
			return aw_fail(err, errno, "drop capability %lu from the bounding set", i);
	}
	return 0;
}

int aw_caps_clear(struct aw_error *err)
{
	int r = clear_ambient(err);

	return r < 0 ? r : write_sets(&(struct sets){ 0 }, err);
}

int aw_caps_raise_ambient(uint64_t set, struct aw_error *err)
{
	struct sets sets;
	int r = read_sets(&sets, err);

	if (r < 0)
		return r;
	if ((set & ~sets.permitted) != 0)
		return aw_refuse(err, EPERM, "capabilities %#llx are not ours to hand on",
				 (unsigned long long)(set & ~sets.permitted));
	sets.inheritable = set;
	r = clear_ambient(err);
	if (r == 0)
		r = write_sets(&sets, err);
	for (unsigned long i = 0; r == 0 && i < CAPABILITIES_MAX; i++)
		if ((set & AW_CAP_BIT(i)) != 0 &&
		    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0) < 0)
			r = aw_fail(err, errno, "raise capability %lu", i);
	return r;
}

int aw_caps_no_new_privs(struct aw_error *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return aw_fail(err, errno, "set no_new_privs");
	return 0;
}

int aw_caps_drop_all(struct aw_error *err)
{
	struct sets sets;
	int r = read_sets(&sets, err);

	/*
	 * Without CAP_SETPCAP neither the securebits nor the bounding set can be changed. With an
	 * empty permitted set and no_new_privs they cannot give anything back either.
	 */
	if (r == 0 && (sets.effective & AW_CAP_BIT(CAP_SETPCAP)) != 0) {
		r = aw_caps_lock(err);
		if (r == 0)
			r = aw_caps_drop_bounding(err);
	}
	if (r == 0)
		r = aw_caps_clear(err);
	return r == 0 ? aw_caps_no_new_privs(err) : r;
}
