package commandline_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/tool/commandline"
	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
)

// Each tool is found by its command line, alone and within shell text, and its password is blanked
// in every form. The password is hunter2.
func TestTools(t *testing.T) {
	tests := []struct{ tool, command, title string }{
		{"sysbench", "sysbench oltp_read_write --mysql-host=db1 --mysql-password=hunter2 --threads=16 run", "oltp_read_write 16 threads db1:3306"},
		{"sysbench", "sysbench --test=tests/db/oltp.lua --mysql-password hunter2 --num-threads=4 run", ""},
		{"sysbench", "sysbench --pgsql-password=hunter2 cpu run", "cpu 1 thread"},
		{"ycsb", "bin/ycsb run mongodb -P workloads/workloada -p mongodb.url=mongodb://u:hunter2@db1:27017/ycsb -threads 8", ""},
		{"ycsb", "python2 bin/ycsb load jdbc -P workloads/workloada -p db.passwd=hunter2 -p db.url=jdbc:mysql://db1/ycsb?password=hunter2", ""},
		{"ycsb", "java -cp a:b site.ycsb.Client -t -db site.ycsb.db.MongoDbClient -p mongodb.url=mongodb://u:hunter2@db1/ycsb", ""},
		{"go-ycsb", "go-ycsb run mysql -P workloads/workloada -p mysql.password=hunter2 -p mysql.host=db1", ""},
		{"tpcc-mysql", "./tpcc_start -hdb1 -dtpcc -uroot -phunter2 -w100 -c32 -r10 -l60", "tpcc 32 threads db1:3306"},
		{"tpcc-mysql", "./tpcc_start -h db1 -p hunter2 -c 32 -i 1", "tpcc 32 threads db1:3306"},
		{"tpcc-mysql", "tpcc_load db1 tpcc root hunter2 10", "tpcc load db1:3306"},
		{"go-tpc", "go-tpc tpcc -H db1 -p hunter2 -T 8 run", "tpcc 8 threads db1:4000"},
		{"go-tpc", "go-tpc -phunter2 tpcc prepare --password=hunter2 --conn-params password=hunter2", "tpcc prepare 1 thread 127.0.0.1:4000"},
		{"pgbench", "pgbench -h db1 -c 8 password=hunter2", "tpcb-like 8 threads db1:5432"},
		{"pgbench", "/usr/lib/postgresql/15/bin/pgbench -P1 -Sd postgresql://u:hunter2@db1/bench", "select-only 1 thread db1:5432"},
		{"pgbench", "env PGPASSWORD=hunter2 pgbench -i -s 10 bench", ""},
		{"pgbench", "pgbench -c 4 -T 5 postgresql://db1,db2:5433/bench?user=u&password=hunter2&target_session_attrs=read-write", "tpcb-like 4 threads db1:5432,db2:5433"},
		{"pgbench", "PGHOST=db1 PGPASSWORD=hunter2 pgbench -S bench", ""},
		{"sysbench", "sysbench --db-driver=pgsql --pgsql-host=db1 --pgsql-password=hunter2 oltp_read_only run", "oltp_read_only 1 thread db1:5432"},
		{"go-tpc", "go-tpc tpcc -d postgres -H db1 -P 5432 -p hunter2 run", "tpcc 1 thread db1:5432"},
		{"ycsb", "bin/ycsb run jdbc -P workloads/workloada -p db.url=jdbc:postgresql://db1:5432/ycsb -p db.user=u -p db.passwd=hunter2", ""},
		{"go-tpc", "tiup bench:v1.12.0 --tag=x tpcc -H db1 -p hunter2 -T 8 run", "tpcc 8 threads db1:4000"},
		{"go-tpc", "tiup bench tpch -H db1 -phunter2 prepare", "tpch prepare 1 thread db1:4000"},
		{"go-tpc", "go-tpc -D bench tpcc -p hunter2 run", "tpcc 1 thread 127.0.0.1:4000"},
		{"hammerdb", "env DB_PASSWORD=hunter2 ./hammerdbcli tcl auto run.tcl", ""},
		{"hammerdb", "env DB_PASSWORD=hunter2 tclsh8.6 /opt/hammerdb/hammerdbcli tcl auto run.tcl", ""},
		{"benchbase", "java -Ddb.password=hunter2 -jar lib/benchbase.jar -b tpcc -c config.xml --execute=true", ""},
		{"mysqlslap", "mariadb-slap -hdb1 -phunter2 --concurrency=4 -a", "mixed 4 threads db1:3306"},
		{"mysqlslap", "env MYSQL_PWD=hunter2 mysqlslap --password=hunter2 --query=x", "query 1 thread localhost:3306"},
	}
	for _, tool := range registry.Tools {
		if len(tool.Programs) > 0 && !slices.ContainsFunc(tests, func(tt struct{ tool, command, title string }) bool { return tt.tool == tool.Name }) {
			t.Errorf("no command line of %s", tool.Name)
		}
	}
	for _, tt := range tests {
		for _, args := range [][]string{
			strings.Fields(tt.command),
			{"bash", "-lc", "cd /tmp && " + tt.command + " 2>&1 | tee log"},
			{"sudo", "-u", "x", "sh", "-c", "exec nice " + strings.ReplaceAll(tt.command, "hunter2", `"hunter2"`)},
		} {
			c := commandline.Read(args, registry.Tools, commandline.Env{})
			if c.Tool == nil || c.Tool.Name != tt.tool {
				t.Errorf("%q: found %v, want %s", args, c.Tool, tt.tool)
				continue
			}
			if tt.title != "" && c.Title() != tt.title {
				t.Errorf("%q: Title = %q, want %q", args, c.Title(), tt.title)
			}
			if all := strings.Join(c.Redacted, " "); strings.Contains(all, "hunter2") {
				t.Errorf("the password stands in %q", all)
			}
			if !slices.Contains(c.Secrets, "hunter2") {
				t.Errorf("%q: Secrets = %q", args, c.Secrets)
			}
			if len(c.Added) > 0 == slices.Equal(c.Start, args) {
				t.Errorf("%q: Added = %q, Start = %q", args, c.Added, c.Start)
			}
		}
	}
}
