#!/bin/sh
# What MySQL's official image does at its start, as far as compose/ needs it, for a
# stand-in image with Debian's MariaDB: a password for root, a database, and *.sql of
# /docker-entrypoint-initdb.d, all before the first connection can come.
set -eu
[ "${1:-mysqld}" = mysqld ] || exec "$@"
[ $# -eq 0 ] || shift
data=/var/lib/mysql
if [ ! -d $data/mysql ]; then
	mariadb-install-db --no-defaults --user=mysql --datadir=$data --auth-root-authentication-method=normal --skip-test-db >/dev/null
	{
		printf "FLUSH PRIVILEGES;\nALTER USER root@localhost IDENTIFIED BY '%s';\n" "$(cat "$MYSQL_ROOT_PASSWORD_FILE")"
		printf "CREATE USER root@'%%' IDENTIFIED BY '%s';\nGRANT ALL ON *.* TO root@'%%' WITH GRANT OPTION;\n" "$(cat "$MYSQL_ROOT_PASSWORD_FILE")"
		[ -z "${MYSQL_DATABASE:-}" ] || echo "CREATE DATABASE IF NOT EXISTS $MYSQL_DATABASE;"
		cat /docker-entrypoint-initdb.d/*.sql
	} >/run/mysqld/init.sql
	chown mysql /run/mysqld/init.sql
	set -- --init-file=/run/mysqld/init.sql "$@"
fi
exec mariadbd --no-defaults --user=mysql --datadir=$data --socket=/run/mysqld/mysqld.sock --bind-address=0.0.0.0 "$@"
