# Sourced by the tests that install the deb in a bare Debian: counts checks, runs commands as ordinary
# users, and starts the agent as the unit would, since systemd can't run in a chroot.
# shellcheck shell=bash
export DEBIAN_FRONTEND=noninteractive
passed=0 failed=0
work=$(mktemp -d)
agent=''
# shellcheck disable=SC2034 # by the tests
deb=$(ls "$PWD/build/packages/"*_"$(dpkg --print-architecture)".deb)

ok() { # NAME COMMAND...
	local name=$1
	shift
	[[ ! -e $work/log ]] || mv "$work/log" "$work/log.before"
	if "$@" >"$work/log" 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'FAILED: %s\n' "$name"
		sed 's/^/  /' "$work/log"
	fi
}
not() { ! "$@"; }
mode() { [[ $(stat -c '%A %U %G' "$1") == "$2" ]]; }
as() { setpriv --reuid "$1" --regid "$1" --clear-groups env -i HOME="/home/$1" PATH=/usr/bin:/bin bash -c "umask 077; cd; $2"; }
# The chroot has the network of this machine, where another agent may have the default port.
port=$((20000 + RANDOM % 10000))
metrics() { exec 3<>"/dev/tcp/127.0.0.1/$port" 2>/dev/null && printf 'GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n' "$1" >&3 && cat <&3; }
serves() { metrics "$1" >"$work/answer" && grep -q "$2" "$work/answer"; }
eventually() { # SECONDS COMMAND...
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		((SECONDS < end)) || return 1
		sleep 0.2
	done
}

# unit KEY: a value of the unit. start_agent does what systemd would with it.
unit() { sed -n "s/^$1=//p" /usr/lib/systemd/system/benchwatch.service; }
start_agent() {
	local command
	read -ra command <<<"$(unit ExecStart)"
	[[ ${command[-1]} == \$BENCHWATCH_OPTIONS ]]
	unset 'command[-1]'
	echo "BENCHWATCH_OPTIONS=--web.listen-address=127.0.0.1:$port" >>"$(unit EnvironmentFile | tr -d -)"
	# shellcheck source=/dev/null
	. "$(unit EnvironmentFile | tr -d -)"
	command+=("$BENCHWATCH_OPTIONS")
	setpriv --reuid "$(unit User)" --regid "$(unit Group)" --clear-groups --no-new-privs --bounding-set=-all \
		env -i bash -c "umask $(unit UMask); exec \"\$@\"" bash "${command[@]}" 2>"$work/agent.log" &
	agent=$!
	eventually 20 serves /-/healthy 200 && kill -0 "$agent"
}
stop_agent() {
	kill "$agent" && wait "$agent"
	agent=''
}
