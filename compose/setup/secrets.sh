#!/bin/sh
# Creates the missing passwords and tokens in /secrets, and the files derived from them.
# Only its users can read each file, although all files are in one volume. Runs as root
# in busybox at each start of the stack.
set -eu
umask 077
cd /secrets

# The users in the images: the agent, nobody (Prometheus' images), Grafana, the servers.
agent=65532 nobody=65534 grafana=472 server=999

# put FILE OWNER MODE: writes standard input to FILE atomically.
put() {
	cat >"$1.new"
	chown "$2" "$1.new"
	chmod "$3" "$1.new"
	mv "$1.new" "$1"
}

# secret FILE OWNER MODE: writes 144 random bits unless FILE exists.
secret() {
	if [ -s "$1" ]; then
		chown "$2" "$1"
		chmod "$3" "$1"
	else
		head -c 18 /dev/urandom | base64 | tr '+/' '-_' | tr -d '\n' | put "$@"
	fi
}

chmod 0711 /secrets
secret grafana-admin-password $grafana:0 0400
secret webhook-token $agent:$nobody 0440
secret monitor-password $agent:$server 0440
secret benchmark-password $agent:$server 0440
secret replication-password $server:$server 0400
secret root-password $server:$server 0400
secret mongodb-key $server:$server 0400
secret objects-password 0:0 0400
# grafana-token.sh fills it when Grafana runs; the agent starts before that.
[ -e grafana-token ] || put grafana-token $agent:$agent 0400 </dev/null

monitor=$(cat monitor-password) benchmark=$(cat benchmark-password)
replication=$(cat replication-password) root=$(cat root-password)

# For mysqld_exporter, one file per server.
for host in mysql galera1 galera2 galera3 gr1 gr2 gr3 primary replica1 replica2; do
	put "mysqld-exporter-$host.cnf" $nobody:$nobody 0400 <<END
[client]
host = $host
port = 3306
user = monitor
password = $monitor
END
done
# For the servers' health checks.
put client.cnf $server:$server 0400 <<END
[client]
user = monitor
password = $monitor
END
put mongodb-exporter-password $nobody:$nobody 0400 <monitor-password
put postgres-exporter-password $nobody:$nobody 0400 <monitor-password

# For the standbys of PostgreSQL, PgBouncer and pgbench.
put postgresql.pgpass $server:$server 0400 <<END
postgresql1:5432:*:replication:$replication
END
put pgbouncer.users $nobody:$nobody 0400 <<END
"benchmark" "$benchmark"
"monitor" "$monitor"
END
put benchmark.pgpass $agent:$agent 0400 <<END
*:*:*:benchmark:$benchmark
END

# ProxySQL has no public key for caching_sha2_password, so it connects to MySQL with TLS.
put proxysql.cnf $server:$server 0400 <<END
datadir = "/tmp"
admin_variables = {
	admin_credentials = "admin:$root"
	mysql_ifaces = "0.0.0.0:6032"
	stats_credentials = "monitor:$monitor"
	restapi_enabled = true
	restapi_port = 6070
}
mysql_variables = {
	interfaces = "0.0.0.0:3306"
	threads = 4
	max_connections = 8192
	server_version = "8.4.6"
	monitor_username = "monitor"
	monitor_password = "$monitor"
}
mysql_servers = ( { address = "mysql", port = 3306, hostgroup = 0, max_connections = 4096, use_ssl = 1 } )
mysql_users = ( { username = "benchmark", password = "$benchmark", default_hostgroup = 0 } )
END

# For Thanos: its bucket on the server of the profile fleet.
put bucket.yml 0:0 0400 <<END
type: S3
config:
  bucket: blocks
  endpoint: fleet-objects:7070
  access_key: benchwatch
  secret_key: $(cat objects-password)
  insecure: true
END

# For the load generator, to keep passwords off the command line.
put sysbench.cnf $agent:$agent 0400 <<END
mysql-user=benchmark
mysql-password=$benchmark
mysql-db=sbtest
pgsql-user=benchmark
pgsql-password=$benchmark
pgsql-db=sbtest
END
put ycsb-mongodb.properties $agent:$agent 0400 <<END
mongodb.url=mongodb://benchmark:$benchmark@mongo1,mongo2,mongo3/ycsb?replicaSet=rs0&authSource=admin
END
put ycsb-mongodb-sharded.properties $agent:$agent 0400 <<END
mongodb.url=mongodb://benchmark:$benchmark@mongos/ycsb?authSource=admin
END
put ycsb-mysql.properties $agent:$agent 0400 <<END
db.driver=com.mysql.cj.jdbc.Driver
db.user=benchmark
db.passwd=$benchmark
END

# users [PRIVILEGES]: prints the SQL for the accounts on each MySQL or MariaDB server.
users() {
	cat <<END
CREATE DATABASE IF NOT EXISTS sbtest;
CREATE DATABASE IF NOT EXISTS ycsb;
CREATE DATABASE IF NOT EXISTS test;
CREATE USER IF NOT EXISTS 'monitor'@'%' IDENTIFIED BY '$monitor';
GRANT PROCESS, REPLICATION CLIENT${1-} ON *.* TO 'monitor'@'%';
CREATE USER IF NOT EXISTS 'benchmark'@'%' IDENTIFIED BY '$benchmark';
GRANT ALL ON sbtest.* TO 'benchmark'@'%';
GRANT ALL ON ycsb.* TO 'benchmark'@'%';
GRANT ALL ON test.* TO 'benchmark'@'%';
END
}

# Each server creates its own accounts: do not write them to the binary log.
chmod 0755 /initdb
{
	echo 'SET SESSION sql_log_bin = 0;'
	# MariaDB has a separate privilege for SHOW REPLICA STATUS.
	users ' /*M!100502 , SLAVE MONITOR */'
	cat <<END
GRANT SELECT ON performance_schema.* TO 'monitor'@'%';
CREATE USER IF NOT EXISTS 'replication'@'%' IDENTIFIED BY '$replication';
GRANT REPLICATION SLAVE ON *.* TO 'replication'@'%';
END
} | put /initdb/users.sql $server:$server 0440

{
	printf "ALTER USER 'root'@'%%' IDENTIFIED BY '%s';\n" "$root"
	users
} | put tidb.sql 0:0 0400

# The agent and the load generator use the same user, which owns the runs.
chown $agent:$agent /data
