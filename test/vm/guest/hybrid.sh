# A host with the hierarchies of cgroup v1, and one of v2 without controllers.
# shellcheck shell=bash disable=SC2016,SC2154 # perl's and other shells' variables; those of ./run

no_group()
{
	! find /sys/fs/cgroup -depth -mindepth 2 -name warden 2>/dev/null | grep .
}

test_memory_beyond_the_limit_kills_and_is_named()
{
	expect 137 warden run -q -m 64 "$project" -- "${eat[@]}"
	says 'ended by the memory limit of 64 MiB'
	wait_for nothing_left
}

test_every_limit_is_in_its_hierarchy()
{
	start -m 64 --cpus 0.5 --max-processes 40
	(
		cd /sys/fs/cgroup || exit
		[[ $(<"memory/warden/$session/memory.limit_in_bytes") == 67108864 ]]
		[[ $(<"memory/warden/$session/memory.memsw.limit_in_bytes") == 67108864 ]]
		[[ $(<"pids/warden/$session/pids.max") == 40 ]]
		[[ $(<"cpu,cpuacct/warden/$session/cpu.cfs_quota_us") == 50000 ]]
		[[ $(<"freezer/warden/$session/freezer.state") == THAWED ]]
	)
	kill "$monitor"
	wait_for nothing_left
}

test_a_frozen_group_dies_with_its_monitor()
{
	start -m 64
	echo FROZEN >"/sys/fs/cgroup/freezer/warden/$session/freezer.state"
	kill -9 "$monitor"
	wait_for nothing_left
}

test_io_degrades_alone()
{
	local io
	io=$(policy balanced '"max_memory_mb": 64, "max_io_mb_s": 2')
	expect 137 warden run -s "$io" "$project" -- "${eat[@]}"
	says 'not enforced: io: cgroup v1 cannot limit what is written to disks'
	wait_for nothing_left
}

test_a_user_is_refused()
{
	local file=$scratch/strict.json
	cp "$(policy strict '"max_memory_mb": 64')" "$file"
	chmod -R a+rX "$scratch"
	expect 78 systemd-run --quiet --wait --pipe --collect --uid=alice -- \
		bash -c 'cd; mkdir -p project; /job/bin/warden run -q -s "$1" project -- true' sh "$file"
	says 'memory, processes: make the control group'
}
