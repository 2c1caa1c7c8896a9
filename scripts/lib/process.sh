# shellcheck shell=bash
# Long-running processes of a folder, known by pid file. Sourced, not run.
#
# A pid file holds "PID START BOOT": a pid alone may have been given to somebody
# else since, so nothing is signalled unless its start time and the machine's
# boot id still match.

# Daemons live in sbin, which an ordinary user's PATH may lack.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

note() { printf '%s\n' "$*" >&2; }

# need COMMAND PACKAGE: ends the script if COMMAND is not installed.
need() {
	command -v "$1" >/dev/null || die "$1 is not installed (Debian package $2); scripts/packages.sh installs it"
}

# process_stat PID FIELD: a field of /proc/PID/stat, counted as in proc(5); the
# command name, which may hold blanks and brackets, is cut off first.
process_stat() {
	local stat fields
	stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
	read -ra fields <<<"${stat##*) }"
	printf '%s\n' "${fields[$2 - 3]}"
}

process_write() { # PIDFILE PID
	printf '%s %s %s\n' "$2" "$(process_stat "$2" 22)" "$(cat /proc/sys/kernel/random/boot_id)" >"$1.new"
	mv -f "$1.new" "$1"
}

# process_pid PIDFILE: prints the pid if that very process still runs. A zombie
# does not run.
process_pid() {
	local pid start boot
	[[ -r $1 ]] || return 1
	read -r pid start boot <"$1" || return 1
	[[ $pid =~ ^[0-9]+$ && $boot == "$(cat /proc/sys/kernel/random/boot_id)" ]] || return 1
	[[ $(process_stat "$pid" 22) == "$start" && $(process_stat "$pid" 3) != Z ]] || return 1
	printf '%s\n' "$pid"
}

# process_start PIDFILE LOG COMMAND...: starts COMMAND in a session of its own,
# without our input, so that a Ctrl-C meant for the script does not reach it.
# File descriptor 9, the folder's lock, stays ours.
process_start() {
	local pidfile=$1 log=$2
	shift 2
	setsid "$@" </dev/null >>"$log" 2>&1 9>&- &
	process_write "$pidfile" $!
	disown $!
}

process_signal() { # PIDFILE SIGNAL
	local pid
	pid=$(process_pid "$1") || return 1
	kill "-$2" "$pid" 2>/dev/null
}

process_gone() { ! process_pid "$1" >/dev/null; }

# process_stop PIDFILE [SECONDS]: asks it to end, insists after SECONDS, and ends
# what it left behind in its session (a half-done state transfer's rsync).
process_stop() {
	local pidfile=$1 seconds=${2:-20} pid session
	[[ -e $pidfile ]] || return 0
	read -r session _ <"$pidfile" || session=
	if pid=$(process_pid "$pidfile"); then
		kill -TERM "$pid" 2>/dev/null || true
		kill -CONT "$pid" 2>/dev/null || true
		if ! wait_for "$seconds" process_gone "$pidfile"; then
			kill -KILL "$pid" 2>/dev/null || true
			wait_for 10 process_gone "$pidfile" || die "process $pid does not end, not even by SIGKILL"
		fi
	fi
	[[ -z $session ]] || session_end "$session" "$(dirname "$pidfile")"
	rm -f "$pidfile"
}

# session_end SESSION DIR: ends processes of that session whose command line
# names DIR. Both must hold: the session's number may be somebody else's by now.
session_end() {
	local stat pid
	for stat in /proc/[0-9]*/stat; do
		pid=${stat#/proc/}
		pid=${pid%/stat}
		[[ $(process_stat "$pid" 6) == "$1" ]] || continue
		tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF -- "$2" || continue
		kill -KILL "$pid" 2>/dev/null || true
	done
}

# wait_for SECONDS COMMAND...: polls until COMMAND succeeds.
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		((SECONDS < end)) || return 1
		sleep 0.1
	done
}

# port_taken PORT...: whether one of them is listened on, or still closing, here.
port_taken() {
	local port hex
	for port in "$@"; do
		hex=$(printf '%04X' "$port")
		if awk -v p="$hex" 'FNR > 1 { n = split($2, a, ":"); if (a[n] == p && $4 == "0A") exit 1 }' \
			/proc/net/tcp /proc/net/tcp6 2>/dev/null; then :; else
			return 0
		fi
	done
	return 1
}

# ports_free COUNT: prints the first of COUNT free ports in a row, below the
# ports that the kernel gives to clients.
ports_free() {
	local count=$1 try base ports
	for try in {1..50}; do
		base=$((20000 + (RANDOM * 32768 + RANDOM) % (12000 - count)))
		mapfile -t ports < <(seq "$base" $((base + count - 1)))
		port_taken "${ports[@]}" || {
			printf '%s\n' "$base"
			return 0
		}
	done
	die "no $count free ports in a row between 20000 and 32000 after $try tries"
}

# folder_claim DIR KIND: makes DIR, or takes it if it is one of ours or empty, and
# locks it for as long as the script runs.
folder_claim() {
	local dir=$1 kind=$2
	if [[ -d $dir && ! -e $dir/.$kind && -n $(ls -A "$dir") ]]; then
		die "$dir is not empty and was not made by this script"
	fi
	mkdir -p "$dir"
	# The server's own user must be able to pass through.
	chmod 0711 "$dir"
	: >"$dir/.$kind"
	folder_lock "$dir"
}

folder_lock() {
	exec 9>>"$1/.lock"
	flock -w 300 9 || die "$1 is in use by another call"
}
