# A cell on the oldest kernel that many have: Linux 6.1, where Landlock has ABI 2 and no more.
# shellcheck shell=bash disable=SC2016,SC2154 # perl's and other shells' variables; those of ./run

test_the_agent_has_no_rights()
{
	expect 0 warden run -q "$project" -- grep -E '^(Uid|CapBnd|CapEff|NoNewPrivs|Seccomp):' /proc/self/status
	prints $'Uid:\t1001'
	prints $'CapBnd:\t0000000000000000'
	prints $'NoNewPrivs:\t1'
	prints $'Seccomp:\t2'
}

test_landlock_is_in_force()
{
	expect 0 warden logs
	grep -E 'session.ready .*landlock_abi=[2-9]' "$scratch/out"
}

test_the_project_is_read_and_written()
{
	echo before >"$project/a"
	expect 0 warden run -q "$project" -- sh -c 'cat a; echo after >b; mkdir d; mv b d/b; ln d/b c'
	prints before
	[[ $(<"$project/c") == after ]]
}

test_the_home_is_not_there()
{
	echo secret >"$HOME/secret"
	expect 2 warden run -q "$project" -- ls "$HOME/secret"
}

test_a_terminal_is_one_inside()
{
	expect 0 script -qec "warden run -q '$project' -- sh -c 'tty && test -t 1'" /dev/null
	prints /dev/pts/
}

test_protected_files_stay()
{
	local git=$HOME/git
	mkdir -p "$git/.git/hooks"
	echo '[core]' >"$git/.git/config"
	expect 0 warden run -q "$git" -- sh -c \
		'echo x >.git/config; echo y >.git/hooks/pre-commit; mv .git x; test -e .git/config'
	[[ $(<"$git/.git/config") == '[core]' && ! -e $git/.git/hooks/pre-commit ]]
}

test_a_time_limit_ends_it()
{
	expect 124 warden run -q -t 1 "$project" -- sleep 60
}

test_one_more_command_runs_in_it()
{
	start
	expect 0 warden exec "$session" -- id -u
	prints 1001
	expect 0 warden down
	wait_for nothing_left
}
