# shellcheck shell=bash
# One MariaDB server in a folder: NODE/{my.cnf,data,tmp,sock,error.log,pid}. Sourced
# after process.sh.

START_TIMEOUT=${BENCHWATCH_START_TIMEOUT:-120}

# The administrator is whoever runs the script, known to the server by the
# socket's peer, so no administrator's password exists.
ADMIN=$(id -un)

# as_server COMMAND...: as the unprivileged user mysql if root calls.
as_server() {
	if ((EUID == 0)); then
		setpriv --reuid=mysql --regid=mysql --init-groups env HOME=/nonexistent "$@"
	else
		"$@"
	fi
}

server_check() {
	need mariadbd mariadb-server
	need mariadb-install-db mariadb-server
	need mariadb mariadb-client
	need setsid util-linux
	((EUID != 0)) || id mysql >/dev/null 2>&1 || die "the user mysql is missing; the package mariadb-server makes it"
}

# server_folder NODE: an empty folder for a server.
server_folder() {
	rm -rf "$1"
	mkdir -m 0700 "$1" "$1/data" "$1/tmp"
	: >"$1/error.log"
	((EUID != 0)) || chown -R mysql:mysql "$1"
	((${#1} < 95)) || die "$1: the path is too long for a Unix socket"
	as_server test -w "$1/data" || die "the user mysql can't reach $1: a folder above it is closed (chmod 711 opens it for passing through)"
}

# server_config NODE PORT ID [LINE...]: writes my.cnf; LINEs are added to it.
server_config() {
	local node=$1 port=$2 id=$3
	shift 3
	{
		cat <<-END
			[mariadbd]
			datadir=$node/data
			tmpdir=$node/tmp
			socket=$node/sock
			pid-file=$node/mariadbd.pid
			log-error=$node/error.log
			bind-address=127.0.0.1
			port=$port
			server-id=$id
			skip-name-resolve
			max_connections=200
			innodb_buffer_pool_size=128M
			innodb_log_file_size=64M
			innodb_flush_log_at_trx_commit=2
		END
		((!$#)) || printf '%s\n' "$@"
	} >"$node/my.cnf"
	chmod 0644 "$node/my.cnf"
}

# server_install NODE: a fresh data directory without test database.
server_install() {
	local log
	log=$(as_server mariadb-install-db --defaults-file="$1/my.cnf" --skip-test-db --skip-name-resolve \
		--auth-root-authentication-method=socket --auth-root-socket-user="$ADMIN" 2>&1) ||
		die "mariadb-install-db failed: $(tail -n 5 <<<"$log")"
}

# server_launch NODE [OPTION...]: starts mariadbd, without waiting for it.
server_launch() {
	local node=$1
	shift
	if ((EUID == 0)); then
		process_start "$node/pid" "$node/error.log" setpriv --reuid=mysql --regid=mysql --init-groups \
			env HOME=/nonexistent mariadbd --defaults-file="$node/my.cnf" "$@"
	else
		process_start "$node/pid" "$node/error.log" mariadbd --defaults-file="$node/my.cnf" "$@"
	fi
}

# sql NODE [CLIENT OPTION...]: the administrator's client; statements from stdin.
# The time limit is for a server that is stopped and doesn't answer.
sql() {
	local node=$1
	shift
	timeout "${SQL_TIMEOUT:-10}" mariadb --no-defaults --socket="$node/sock" --user="$ADMIN" \
		--connect-timeout=3 --batch --skip-column-names "$@"
}

server_answers() { sql "$1" -e 'SELECT 1' >/dev/null 2>&1; }

# server_wait NODE CHECK...: waits until CHECK succeeds; ends the script with the
# server's own words if it dies or takes too long.
server_wait() {
	local node=$1 end=$((SECONDS + START_TIMEOUT))
	shift
	until "$@" "$node"; do
		process_pid "$node/pid" >/dev/null || server_failed "$node" "did not start"
		((SECONDS < end)) || server_failed "$node" "was not ready after $START_TIMEOUT s"
		sleep 0.1
	done
}

server_failed() {
	note "last lines of $1/error.log:"
	tail -n 15 "$1/error.log" >&2
	die "the server in $1 $2"
}

# password_file FILE: a new random password, readable by its owner only. An
# existing one stays.
password_file() {
	[[ -s $1 ]] && return
	(umask 077 && head -c 24 /dev/urandom | base64 | tr '+/' '-_' >"$1.new")
	mv "$1.new" "$1"
}

# accounts DIR NODE PORT: makes the accounts `bench` (the benchmark) and `monitor`
# (the agent and exporters) and the files to use them with:
# DIR/{bench,monitor}.password, DIR/sysbench.cnf for sysbench --config-file.
accounts() {
	local dir=$1 node=$2 port=$3 bench monitor errors
	password_file "$dir/bench.password"
	password_file "$dir/monitor.password"
	bench=$(<"$dir/bench.password")
	monitor=$(<"$dir/monitor.password")
	# REPLICA MONITOR shows how far a replica is; PROCESS is for mysqld_exporter.
	# SHOW GLOBAL STATUS, all that Galera needs, takes no right at all.
	# The client repeats a statement that failed, password and all: only the code is shown.
	errors=$(sql "$node" 2>&1 <<-END
		CREATE DATABASE IF NOT EXISTS sbtest;
		CREATE USER IF NOT EXISTS bench@127.0.0.1 IDENTIFIED BY '$bench';
		GRANT ALL ON sbtest.* TO bench@127.0.0.1;
		CREATE USER IF NOT EXISTS monitor@127.0.0.1 IDENTIFIED BY '$monitor' WITH MAX_USER_CONNECTIONS 50;
		GRANT PROCESS, REPLICA MONITOR, BINLOG MONITOR ON *.* TO monitor@127.0.0.1;
	END
	) || die "creating the accounts failed: $(grep -oE '^ERROR [0-9]+ \([0-9A-Z]+\)' <<<"$errors")"
	sysbench_config "$dir/sysbench.cnf" "$port" "$bench"
}

# sysbench_config FILE PORT PASSWORD: sysbench takes no password from a file but
# through its whole configuration.
sysbench_config() {
	(
		umask 077
		cat >"$1.new" <<-END
			db-driver=mysql
			mysql-host=127.0.0.1
			mysql-port=$2
			mysql-user=bench
			mysql-password=$3
			mysql-db=sbtest
		END
	)
	mv "$1.new" "$1"
}
