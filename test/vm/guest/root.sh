# Root: the group is made by hand. Then what root can arrange for users.
# shellcheck shell=bash disable=SC2016,SC2154 # perl's and other shells' variables; those of ./run

readonly groups=/sys/fs/cgroup/warden

group()
{
	echo "$groups/$session"
}

# Prints the seconds that writing 8 MiB to the project's disk took in a cell.
write_seconds()
{
	local begin=$SECONDS
	expect 0 warden run -q "$@" "$project" -- \
		dd if=/dev/zero of=written bs=1M count=8 oflag=direct conv=fsync
	echo $((SECONDS - begin)) | tee "$scratch/seconds"
}

test_io_is_limited()
{
	write_seconds
	[[ $(<"$scratch/seconds") -lt 3 ]] || fail "the control"
	write_seconds -s "$(policy balanced '"max_io_mb_s": 1')"
	[[ $(<"$scratch/seconds") -ge 5 ]] || fail "not slower"
}

test_limits_outlast_a_reload_of_systemd()
{
	start -s "$(policy balanced '"max_memory_mb": 64, "max_io_mb_s": 1')"
	systemctl daemon-reload
	systemd-run --quiet --wait -p MemoryMax=100M -p IOWeight=50 true
	grep 'rbps=1048576 wbps=1048576' "$(group)/io.max"
	[[ $(<"$(group)/memory.max") == 67108864 ]] || fail "memory.max is $(<"$(group)/memory.max")"
	kill "$monitor"
	wait_for nothing_left
}

test_what_a_killed_start_left_goes_with_the_next()
{
	mkdir -p $groups/stale $groups/fresh
	touch -d '10 minutes ago' $groups/stale
	expect 0 warden run -q -m 64 "$project" -- true
	[[ ! -e $groups/stale ]] || fail "it is still there"
	[[ -e $groups/fresh ]] || fail "another start's group has been taken away"
	rmdir $groups/fresh $groups
}

test_killed_at_any_moment_leaves_nothing_that_stays()
{
	local i
	for ((i = 0; i < 12; i++)); do
		warden run -q -m 64 "$project" -- sleep 300 &
		sleep "0.$((RANDOM % 6))$((RANDOM % 10))"
		kill -9 $!
	done
	wait_for no_process
	find $groups -mindepth 1 -exec touch -d '10 minutes ago' {} + || true
	expect 0 warden run -q -m 64 "$project" -- true
	wait_for nothing_left
}

# As alice, from a login of her own.
as_alice()
{
	systemd-run --quiet --wait --pipe --collect --uid=alice --property=PAMName=login \
		--setenv=XDG_SESSION_CLASS=user --setenv=XDG_SESSION_TYPE=tty -- "$@"
}

test_io_is_limited_for_a_user_it_is_delegated_to()
{
	local file=$scratch/io.json drop_in=/etc/systemd/system/user@.service.d
	mkdir -p "$drop_in"
	printf '[Service]\nDelegate=cpu cpuset io memory pids\n' >"$drop_in/delegate.conf"
	systemctl daemon-reload
	cp "$(policy strict '"max_memory_mb": 64, "max_io_mb_s": 1')" "$file"
	chmod -R a+rX "$scratch"
	# The line of the disk is read in the scope itself, while the agent sleeps.
	expect 0 as_alice bash -c 'mkdir -p ~/project
		PATH=/job/bin:$PATH
		warden run -q -s "$1" ~/project -- sleep 5 &
		for i in {1..40}; do
			cat /sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/warden*/io.max && break
			sleep 0.1
		done 2>/dev/null
		wait $!' sh "$file"
	prints 'rbps=1048576 wbps=1048576'
	rm -r "$drop_in"
	systemctl daemon-reload
}

test_lingering_makes_a_group_possible_without_a_login()
{
	local file=$scratch/strict.json
	cp "$(policy strict '"max_memory_mb": 64')" "$file"
	chmod -R a+rX "$scratch"
	loginctl enable-linger alice
	wait_for test -S /run/user/1000/bus
	expect 0 systemd-run --quiet --wait --pipe --collect --uid=alice -- \
		bash -c 'cd; mkdir -p project; /job/bin/warden run -q -s "$1" project -- true' sh "$file"
	loginctl disable-linger alice
}
