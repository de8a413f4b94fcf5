/* What only root can make is for test/vm. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cell/cgroup-internal.h"
#include "support/place.h"

static void sweeps_old_groups_that_nobody_is_in(void **state)
{
	struct place *place = *state;

	place_dir(place, "warden/empty");
	place_file(place, "warden/used/process", "");
	place_file(place, "warden/file", "");
	aw_cgroup_sweep(place_at(place, "warden"), 3600);
	assert_true(place_has(place, "warden/empty"));
	aw_cgroup_sweep(place_at(place, "warden"), 0);
	assert_false(place_has(place, "warden/empty"));
	assert_true(place_has(place, "warden/used/process"));
	assert_true(place_has(place, "warden/file"));
	aw_cgroup_sweep(place_at(place, "nowhere"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(sweeps_old_groups_that_nobody_is_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
