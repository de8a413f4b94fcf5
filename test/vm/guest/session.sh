# An ordinary user who is logged in: the user's systemd makes the group.
# shellcheck shell=bash disable=SC2016,SC2154 # perl's and other shells' variables; those of ./run

readonly manager=/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service

group()
{
	echo "$manager/app.slice/warden-$session.scope"
}

test_the_monitor_stays_in_its_session()
{
	start -m 64
	grep -q 'session-[0-9]*.scope$' "/proc/$monitor/cgroup" ||
		fail "it is in $(<"/proc/$monitor/cgroup")"
	kill "$monitor"
	wait_for nothing_left
}

test_limits_outlast_a_reload_of_systemd()
{
	start -m 64 --cpus 0.5
	systemctl --user daemon-reload
	[[ $(<"$(group)/memory.max") == 67108864 ]] || fail "memory.max is $(<"$(group)/memory.max")"
	[[ $(<"$(group)/cpu.max") == '50000 100000' ]] || fail "cpu.max is $(<"$(group)/cpu.max")"
	kill "$monitor"
	wait_for nothing_left
}

test_systemd_s_own_limit_on_tasks_does_not_hold()
{
	start -m 64
	[[ $(<"$(group)/pids.max") == 4096 ]] || fail "pids.max is $(<"$(group)/pids.max")"
	kill "$monitor"
	wait_for nothing_left
}

test_what_is_not_delegated_degrades_alone()
{
	local io
	io=$(policy balanced '"max_memory_mb": 64, "max_io_mb_s": 2')
	expect 137 warden run -s "$io" "$project" -- "${eat[@]}"
	says 'not enforced: io: the io controller is not delegated to users'
	says 'user@.service.d/delegate.conf'
	says 'ended by the memory limit of 64 MiB'
	expect 0 warden logs
	prints 'degraded'
}

test_what_is_not_delegated_is_refused_by_strict()
{
	expect 78 warden run -q -s "$(policy strict '"max_io_mb_s": 2')" "$project" -- true
	says 'io: the io controller is not delegated to users'
	wait_for nothing_left
}

test_nothing_degrades_where_all_is_had()
{
	expect 0 warden run -m 64 "$project" -- true
	expect 0 warden logs
	! grep degraded "$scratch/out"
}

# A zombie is what a cell is whose monitor was killed at once: systemd takes it, and never sees it leave.
test_a_scope_that_nothing_will_leave_goes_with_the_next_start()
{
	local stale=$manager/app.slice/warden-stale.scope
	perl -e '$| = 1; my $pid = fork; exit unless $pid; print "$pid\n"; sleep 30' >"$scratch/zombie" &
	wait_for test -s "$scratch/zombie"
	busctl --user call org.freedesktop.systemd1 /org/freedesktop/systemd1 \
		org.freedesktop.systemd1.Manager StartTransientUnit 'ssa(sv)a(sa(sv))' \
		warden-stale.scope fail 2 PIDs au 1 "$(<"$scratch/zombie")" Delegate b true 0
	wait_for test -d "$stale"
	expect 0 warden run -q -m 64 "$project" -- true
	[[ -d $stale ]] || fail "a young one has been taken away"
	touch -d '10 minutes ago' "$stale"
	expect 0 warden run -q -m 64 "$project" -- true
	wait_for nothing_left
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
	find "$manager/app.slice" -name 'warden-*' -exec touch -d '10 minutes ago' {} +
	expect 0 warden run -q -m 64 "$project" -- true
	wait_for nothing_left
	[[ -z $(systemctl --user list-units --failed --plain --no-legend) ]] || fail "failed units"
}

test_a_user_s_own_bus_is_not_needed()
{
	systemctl --user stop dbus.socket dbus.service
	expect 137 warden run -q -m 64 "$project" -- "${eat[@]}"
	says 'ended by the memory limit of 64 MiB'
	wait_for no_group
	systemctl --user start dbus.socket
}

test_ended_at_any_moment_leaves_nothing()
{
	local i
	for ((i = 0; i < 12; i++)); do
		warden run -q -m 64 "$project" -- sleep 300 &
		sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
		kill $!
		wait $! || true
	done
	wait_for nothing_left
}
