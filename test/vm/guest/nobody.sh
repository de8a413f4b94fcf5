# An ordinary user without a session, as cron and a bare su have it: no limit can be enforced.
# shellcheck shell=bash disable=SC2016,SC2154 # perl's and other shells' variables; those of ./run

test_a_policy_that_wants_its_limits_enforced_is_refused()
{
	expect 78 warden run -q -s "$(policy strict '"max_memory_mb": 64')" "$project" -- true
	says "the policy's limits cannot be enforced here"
	says 'loginctl enable-linger'
	wait_for nothing_left
}

test_another_user_s_runtime_directory_is_not_tried()
{
	XDG_RUNTIME_DIR=/run/user/0 \
		expect 78 warden run -q -s "$(policy strict '"max_memory_mb": 64')" "$project" -- true
}

test_a_policy_that_lets_limits_degrade_runs_and_it_is_recorded()
{
	expect 0 warden run -m 64 "$project" -- echo ran
	prints ran
	says 'not enforced: memory'
	expect 0 warden logs
	prints 'degraded'
}

test_memory_is_watched_instead()
{
	expect 137 warden run -q -m 64 "$project" -- \
		perl -e 'my $x = "a" x 200_000_000; sleep 20; print "ate\n"'
	says 'the memory limit of 64 MiB (watched)'
	expect 0 warden run -q -m 400 "$project" -- perl -e 'my $x = "a" x 200_000_000; sleep 1'
	wait_for nothing_left
}

test_no_limit_needs_no_group()
{
	expect 0 warden run "$project" -- echo ran
	expect 0 warden logs
	! grep degraded "$scratch/out"
}

test_doctor_says_what_would_help()
{
	warden doctor >"$scratch/out" || true
	grep -E '^degraded +limits' "$scratch/out"
}
