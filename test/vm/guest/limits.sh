# What holds wherever limits are enforced. $group is a function: the directory of $session's group.
# shellcheck shell=bash disable=SC2016,SC2154 # perl's and other shells' variables; those of ./run

test_memory_is_there_without_a_limit()
{
	expect 0 warden run -q "$project" -- "${eat[@]}"
	prints ate
}

test_memory_is_there_below_the_limit()
{
	expect 0 warden run -q -m 400 "$project" -- "${eat[@]}"
	prints ate
}

test_memory_beyond_the_limit_kills_and_is_named()
{
	expect 137 warden run -q -m 64 "$project" -- "${eat[@]}"
	says 'ended by the memory limit of 64 MiB'
	expect 0 warden logs
	prints 'limit=memory'
	expect 0 warden status --last
	prints 'limit'
}

test_an_agent_outlives_its_child_and_the_limit_is_told()
{
	expect 5 warden run -m 64 "$project" -- sh -c '"$@"; exit 5' sh "${eat[@]}"
	says 'the memory limit of 64 MiB ended processes'
}

test_pid_1_outlives_many_kills()
{
	expect 0 warden run -m 64 "$project" -- \
		sh -c 'for i in 1 2 3 4 5 6; do "$@" & done; wait; echo alive' sh "${eat[@]}"
	prints alive
}

# In the cell: children until fork fails, or 40 of them; their number.
fork_40=(perl -e 'for (1 .. 40) { my $pid = fork; last unless defined $pid; $n++, next if $pid; sleep 60; exit }
	print "$n\n"')

test_processes_are_counted_exactly()
{
	expect 0 warden run -q -m 200 "$project" -- "${fork_40[@]}"
	[[ $(<"$scratch/out") == 40 ]] || fail "the control"
	expect 0 warden run -m 200 --max-processes 20 "$project" -- "${fork_40[@]}"
	# Pid 1 and perl count too.
	[[ $(<"$scratch/out") == 18 ]] || fail "not 18"
	says 'the limit of 20 processes refused new ones'
}

test_processes_are_counted_exactly_without_a_group()
{
	expect 0 warden run -q --max-processes 20 "$project" -- "${fork_40[@]}"
	[[ $(<"$scratch/out") == 18 ]] || fail "not 18"
}

# Prints how many times longer than its CPU time a loop in a cell took, in tenths.
stretch()
{
	expect 0 warden run -q "$@" "$project" -- bash -c \
		'TIMEFORMAT="%3R %3U"; time for ((i = 0; i < 30000; i++)); do :; done'
	awk '{ printf "%d\n", 10 * $1 / $2 }' "$scratch/err" | tee "$scratch/stretch"
}

test_cpu_is_limited()
{
	stretch
	[[ $(<"$scratch/stretch") -lt 17 ]] || fail "the control"
	stretch --cpus 0.25
	[[ $(<"$scratch/stretch") -gt 22 ]] || fail "not slower"
}

reads()
{
	[[ $(<"$(group)/$1") == "$2" ]] || fail "$1 is $(<"$(group)/$1"), not $2"
}

test_the_kernel_has_every_limit()
{
	start -m 64 --cpus 0.5 --max-processes 40
	reads memory.max 67108864
	reads memory.swap.max 0
	reads pids.max 40
	reads cpu.max '50000 100000'
	kill "$monitor"
	wait_for nothing_left
}

test_only_the_cell_is_under_the_limits()
{
	local pid
	start -m 64
	for pid in $(<"$(group)/cgroup.procs"); do
		cat "/proc/$pid/comm"
	done >"$scratch/names"
	[[ $(sort "$scratch/names" | tr '\n' ' ') == 'sleep warden-cell ' ]] ||
		fail "there are: $(<"$scratch/names")"
	kill "$monitor"
	wait_for nothing_left
}

test_a_stopped_session_leaves_nothing()
{
	start -m 64
	expect 0 warden stop "$session"
	wait_for nothing_left
}

test_a_killed_monitor_leaves_nothing()
{
	start -m 64
	kill -9 "$monitor"
	wait_for nothing_left
}

test_doctor_finds_every_limit_enforced()
{
	warden doctor >"$scratch/out" || true
	grep -qE '^ok +limits +memory, processes, cpu by cgroup v2' "$scratch/out" ||
		fail "$(grep limits "$scratch/out")"
	wait_for nothing_left
}

test_strict_starts_where_its_limits_hold()
{
	expect 0 warden run -q -s "$(policy strict '"max_memory_mb": 300')" "$project" -- true
	wait_for nothing_left
}

test_the_agent_is_killed_before_pid_1()
{
	expect 0 warden run -q -m 64 "$project" -- \
		sh -c 'echo $(($(cat /proc/self/oom_score_adj) - $(cat /proc/1/oom_score_adj)))'
	prints 200
}
