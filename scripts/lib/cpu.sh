# shellcheck shell=bash
# Making a server slow by leaving it part of one core. Sourced after process.sh.
#
# With cgroups single threads can be slowed: a replica whose appliers are slow and
# whose network threads are not falls behind as a real one does. Without the right
# to make cgroups, cpulimit stops and continues the whole process in turn.

# cpu_limit NODE PERCENT [THREAD...]: of the whole server if no THREAD is given.
# Sets CPU_LIMITED_BY to cgroup or cpulimit, for the caller.
# shellcheck disable=SC2034
cpu_limit() {
	local node=$1 percent=$2 pid
	shift 2
	[[ $percent =~ ^[1-9][0-9]?$ ]] || die "percent of one core expected (1 to 99), not: $percent"
	pid=$(process_pid "$node/pid") || die "the server in $node does not run"
	cpu_unlimit "$node"
	CPU_LIMITED_BY=cgroup
	[[ ${BENCHWATCH_CGROUPS:-yes} == no ]] || ! cgroup_limit "$node" "$pid" "$percent" "$@" 2>/dev/null || return 0
	cgroup_unlimit "$node"
	CPU_LIMITED_BY=cpulimit
	need cpulimit cpulimit
	process_start "$node/cpulimit.pid" /dev/null cpulimit --lazy --pid="$pid" --limit="$percent"
}

cpu_unlimit() {
	process_stop "$1/cpulimit.pid" 2
	cgroup_unlimit "$1"
	process_signal "$1/pid" CONT || true
}

# cpu_forget NODE: removes the cgroup of a server that has ended.
cpu_forget() {
	local group
	process_stop "$1/cpulimit.pid" 2
	[[ -r $1/cgroup ]] || return 0
	group=$(<"$1/cgroup")
	wait_for 2 cgroup_removed "$group" || note "could not remove the cgroup $group"
	rm -f "$1/cgroup"
}

cgroup_removed() {
	[[ ! -d $1/threads ]] || rmdir "$1/threads" 2>/dev/null || return 1
	[[ ! -d $1 ]] || rmdir "$1" 2>/dev/null
}

# cgroup_limit NODE PID PERCENT [THREAD...]: fails where cgroups can't be made.
cgroup_limit() {
	if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
		cgroup2_limit "$@"
	else
		cgroup1_limit "$@"
	fi
}

cgroup1_limit() {
	local node=$1 pid=$2 percent=$3 thread group=/sys/fs/cgroup/cpu/benchwatch-$2
	shift 3
	# Without the check an unmounted /sys would take all this as ordinary files.
	[[ -e /sys/fs/cgroup/cpu/cgroup.procs ]] || return 1
	mkdir -p "$group" || return 1
	printf '%s\n' "$group" >"$node/cgroup"
	echo 100000 >"$group/cpu.cfs_period_us" || return 1
	echo $((percent * 1000)) >"$group/cpu.cfs_quota_us" || return 1
	if (($#)); then
		for thread; do echo "$thread" >"$group/tasks" || return 1; done
	else
		echo "$pid" >"$group/cgroup.procs"
	fi
}

# In version 2 a process's threads can only spread below the process's own group.
cgroup2_limit() {
	local node=$1 pid=$2 percent=$3 thread group=/sys/fs/cgroup/benchwatch-$2 limited
	shift 3
	grep -qw cpu /sys/fs/cgroup/cgroup.subtree_control || return 1
	mkdir -p "$group" || return 1
	printf '%s\n' "$group" >"$node/cgroup"
	echo "$pid" >"$group/cgroup.procs" || return 1
	limited=$group
	if (($#)); then
		limited=$group/threads
		mkdir -p "$limited" || return 1
		echo threaded >"$limited/cgroup.type" || return 1
		echo +cpu >"$group/cgroup.subtree_control" || return 1
		for thread; do echo "$thread" >"$limited/cgroup.threads" || return 1; done
	fi
	echo "$((percent * 1000)) 100000" >"$limited/cpu.max"
}

cgroup_unlimit() {
	local group file
	[[ -r $1/cgroup ]] || return 0
	group=$(<"$1/cgroup")
	[[ ! -w $group/cpu.cfs_quota_us ]] || echo -1 >"$group/cpu.cfs_quota_us"
	for file in "$group/cpu.max" "$group/threads/cpu.max"; do
		[[ ! -w $file ]] || echo max >"$file"
	done
}
