#!/bin/bash
# What MariaDB's official image does at its start, as far as compose/ needs it, for a
# stand-in image with Debian's MariaDB: as the user mysql, a data folder made with the
# server's own options, then root's password, a database and *.sql of
# /docker-entrypoint-initdb.d by a server without network and without Galera.
set -euo pipefail
data=/var/lib/mysql socket=/run/mysqld/mysqld.sock
if ((EUID == 0)); then
	chown -R mysql:mysql $data
	exec setpriv --reuid=mysql --regid=mysql --clear-groups "$0" "$@"
fi
[[ $1 == mariadbd ]] || exec "$@"
"$@" --verbose --help >/dev/null
if [[ ! -d $data/mysql ]]; then
	mariadb-install-db --datadir=$data --rpm --auth-root-authentication-method=normal "${@:2}" --skip-test-db --skip-log-bin >/dev/null
	"$@" --skip-networking --wsrep_on=OFF --socket=$socket &
	until mariadb --no-defaults --socket=$socket -uroot -e 'SELECT 1' >/dev/null 2>&1; do sleep 0.2; done
	{
		password=$(<"$MARIADB_ROOT_PASSWORD_FILE")
		printf "SET SESSION sql_log_bin = 0;\nCREATE USER root@'%%' IDENTIFIED BY '%s';\nGRANT ALL ON *.* TO root@'%%' WITH GRANT OPTION;\n" "$password"
		echo 'SET SESSION sql_log_bin = 1;'
		[[ -z ${MARIADB_DATABASE:-} ]] || echo "CREATE DATABASE IF NOT EXISTS $MARIADB_DATABASE;"
		cat /docker-entrypoint-initdb.d/*.sql
		printf "SET PASSWORD FOR root@localhost = PASSWORD('%s');\n" "$password"
	} | mariadb --no-defaults --socket=$socket -uroot
	kill $!
	wait $! || true
fi
exec "$@"
