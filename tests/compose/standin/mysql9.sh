#!/bin/sh
# What MySQL's official image does at its start, as far as compose/ needs it, for a
# stand-in image with an unpacked MySQL 9: the same options, a password for root, a
# database, and *.sql of /docker-entrypoint-initdb.d, all before the first connection
# can come and none of it in a binary log.
set -eu
[ "${1:-mysqld}" = mysqld ] || exec "$@"
[ $# -eq 0 ] || shift
data=/var/lib/mysql
set -- --no-defaults --user=mysql --datadir=$data --socket=/run/mysqld/mysqld.sock --mysqlx=OFF --secure-file-priv=NULL "$@"
if [ ! -d $data/mysql ]; then
	(
		umask 077
		{
			echo 'SET sql_log_bin = 0;'
			printf "ALTER USER root@localhost IDENTIFIED BY '%s';\n" "$(cat "$MYSQL_ROOT_PASSWORD_FILE")"
			printf "CREATE USER root@'%%' IDENTIFIED BY '%s';\nGRANT ALL ON *.* TO root@'%%' WITH GRANT OPTION;\n" "$(cat "$MYSQL_ROOT_PASSWORD_FILE")"
			[ -z "${MYSQL_DATABASE:-}" ] || echo "CREATE DATABASE IF NOT EXISTS $MYSQL_DATABASE;"
			cat /docker-entrypoint-initdb.d/*.sql
		} >/run/mysqld/init.sql
	)
	chown mysql /run/mysqld/init.sql
	mysqld "$@" --initialize-insecure --init-file=/run/mysqld/init.sql
	rm /run/mysqld/init.sql
fi
exec mysqld "$@"
