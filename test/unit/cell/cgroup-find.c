#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/sysmacros.h>

#include <cmocka.h>

#include "cell/cgroup-internal.h"
#include "support/place.h"

static struct aw_error err;

static void finds_the_whole_disk_of_a_partition(void **state)
{
	struct place *place = *state;
	char name[32];
	dev_t disk = 0;

	place_file(place, "devices/nvme0n1/dev", "259:0\n");
	place_file(place, "devices/nvme0n1/uevent", "MAJOR=259\nMINOR=0\nDEVNAME=nvme0n1\n");
	place_file(place, "devices/nvme0n1/nvme0n1p3/dev", "259:3\n");
	place_file(place, "devices/nvme0n1/nvme0n1p3/partition", "3\n");
	place_link(place, "dev/block/259:0", "../../devices/nvme0n1");
	place_link(place, "dev/block/259:3", "../../devices/nvme0n1/nvme0n1p3");
	assert_true(aw_cgroup_find_disk(place->path, makedev(259, 3), &disk, name, sizeof(name)));
	assert_true(disk == makedev(259, 0));
	assert_string_equal(name, "nvme0n1");
	disk = 0;
	assert_true(aw_cgroup_find_disk(place->path, makedev(259, 0), &disk, name, sizeof(name)));
	assert_true(disk == makedev(259, 0));
}

static void a_file_system_without_a_disk_has_none(void **state)
{
	struct place *place = *state;
	char name[32];
	dev_t disk;

	assert_false(aw_cgroup_find_disk(place->path, makedev(0, 41), &disk, name, sizeof(name)));
	place_file(place, "dev/block/0:41/dev", "none\n");
	place_file(place, "dev/block/0:41/uevent", "DEVNAME=x\n");
	assert_false(aw_cgroup_find_disk(place->path, makedev(0, 41), &disk, name, sizeof(name)));
	place_file(place, "dev/block/0:41/dev", "0:41\n");
	assert_true(aw_cgroup_find_disk(place->path, makedev(0, 41), &disk, name, sizeof(name)));
	place_file(place, "dev/block/0:41/uevent", "MAJOR=0\n");
	assert_false(aw_cgroup_find_disk(place->path, makedev(0, 41), &disk, name, sizeof(name)));
}

static const char mounts[] =
	"22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"
	"30 22 0:26 / /sys/fs/cgroup ro,nosuid shared:9 - tmpfs tmpfs ro,mode=755\n"
	"31 30 0:27 / /sys/fs/cgroup/unified rw shared:10 - cgroup2 cgroup2 rw\n"
	"32 30 0:28 / /sys/fs/cgroup/systemd rw shared:11 - cgroup cgroup rw,name=systemd\n"
	"33 30 0:29 / /var/lib/lxc/memory rw - cgroup cgroup rw,memory\n"
	"34 30 0:30 / /sys/fs/cgroup/cpuset rw shared:12 - cgroup cgroup rw,cpuset\n"
	"35 30 0:31 / /sys/fs/cgroup/cpu,cpuacct rw shared:13 master:2 - cgroup cgroup "
	"rw,cpu,cpuacct\n"
	"36 30 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

static void finds_the_hierarchy_of_a_controller(void **state)
{
	char out[64];

	(void)state;
	assert_true(aw_cgroup_find_mount(mounts, "cpu", out, sizeof(out)));
	assert_string_equal(out, "/sys/fs/cgroup/cpu,cpuacct");
	assert_true(aw_cgroup_find_mount(mounts, "memory", out, sizeof(out)));
	assert_string_equal(out, "/sys/fs/cgroup/memory");
	assert_false(aw_cgroup_find_mount(mounts, "pids", out, sizeof(out)));
	assert_false(aw_cgroup_find_mount(mounts, "systemd", out, sizeof(out)));
	assert_false(aw_cgroup_find_mount("", "memory", out, sizeof(out)));
}

static int find_group(const char *table, char *out, size_t size)
{
	return aw_cgroup_find_group(table, "/sys/fs/cgroup", "warden-a.scope", out, size, &err);
}

static void finds_the_scope_that_a_process_is_in(void **state)
{
	char out[96];

	(void)state;
	assert_int_equal(find_group("0::/user.slice/app.slice/warden-a.scope\n", out, sizeof(out)),
			 0);
	assert_string_equal(out, "/sys/fs/cgroup/user.slice/app.slice/warden-a.scope");
	assert_int_equal(
		find_group("1:name=x:/warden-a.scope\n0::/a/warden-a.scope\n", out, sizeof(out)),
		0);
	assert_string_equal(out, "/sys/fs/cgroup/a/warden-a.scope");
	assert_int_equal(find_group("0::/session-1.scope\n", out, sizeof(out)), -ENOTSUP);
	assert_int_equal(find_group("0::/b/xwarden-a.scope\n", out, sizeof(out)), -ENOTSUP);
	assert_int_equal(find_group("1:name=x:/warden-a.scope\n", out, sizeof(out)), -ENOTSUP);
	assert_int_equal(find_group("0::/a/warden-a.scope\n", out, 16), -ENAMETOOLONG);
}

static void finds_a_scope_that_nothing_will_leave(void **state)
{
	struct place *place = *state;
	char out[64];

	place_file(place, "warden-a.scope/cgroup.events", "populated 1\nfrozen 0\n");
	place_file(place, "warden-b.service/cgroup.events", "populated 0\nfrozen 0\n");
	place_file(place, "other-c.scope/cgroup.events", "populated 0\nfrozen 0\n");
	place_dir(place, "warden-d.scope");
	assert_false(aw_cgroup_find_stale_scope(place->path, 0, out, sizeof(out)));
	place_file(place, "warden-e.scope/cgroup.events", "populated 0\nfrozen 0\n");
	assert_false(aw_cgroup_find_stale_scope(place->path, 3600, out, sizeof(out)));
	assert_true(aw_cgroup_find_stale_scope(place->path, 0, out, sizeof(out)));
	assert_string_equal(out, "warden-e.scope");
	assert_false(aw_cgroup_find_stale_scope(place_at(place, "nowhere"), 0, out, sizeof(out)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(finds_the_whole_disk_of_a_partition),
		IN_PLACE(a_file_system_without_a_disk_has_none),
		cmocka_unit_test(finds_the_hierarchy_of_a_controller),
		cmocka_unit_test(finds_the_scope_that_a_process_is_in),
		IN_PLACE(finds_a_scope_that_nothing_will_leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
