package sysbench

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

func describe(command string, files map[string]string) tool.Description {
	return Describe(tool.Invocation{
		Args: strings.Fields(command),
		ReadFile: func(name string) ([]byte, error) {
			text, ok := files[name]
			if !ok {
				return nil, errors.New("no such file")
			}
			return []byte(text), nil
		},
	})
}

var every1s = []string{"--report-interval=1"}

func TestDescribe(t *testing.T) {
	for _, c := range []struct {
		name, command string
		files         map[string]string
		want          tool.Description // without Redacted if nothing is secret
	}{
		{
			"1.0", "oltp_read_write --db-driver=mysql --mysql-host=127.0.0.1 --mysql-port=3317 --mysql-user=bench --mysql-password=hunter2 --mysql-db=sb --tables=2 --table_size=20000 --threads=16 --time=60 --report-interval=10 --skip-trx=on --db-ps-mode=disable --percentile=99 run", nil,
			tool.Description{
				Command: "run", Workload: "oltp_read_write", Threads: 16, Duration: time.Minute, ReportInterval: 10 * time.Second,
				LatencyPercentile: series.Some(99.0), Target: "127.0.0.1:3317", Database: "sb",
				Labels: map[string]string{"db_driver": "mysql", "tables": "2", "table_size": "20000", "skip_trx": "on", "db_ps_mode": "disable", "percentile": "99"},
			},
		},
		{
			"defaults, and what is missing for live reports", "oltp_point_select run", nil,
			tool.Description{
				Command: "run", Workload: "oltp_point_select", Threads: 1, Duration: 10 * time.Second, Target: "localhost:3306", Database: "sbtest",
				Insert: []tool.Insertion{{At: 1, Args: every1s}},
			},
		},
		{
			"an explicit 0 is explicit", "./my/tpcc.lua run --report_interval=0 --time=0 --events=100 --scale=10 --warmup-time=5 --rate=20", nil,
			tool.Description{
				Command: "run", Workload: "tpcc", Threads: 1, Rate: 20, Target: "localhost:3306", Database: "sbtest",
				Labels: map[string]string{"events": "100", "scale": "10", "warmup_time": "5", "rate": "20"},
			},
		},
		{
			"prepare", "oltp_read_write --threads=4 prepare", nil,
			tool.Description{Command: "prepare", Workload: "oltp_read_write", Threads: 4, Target: "localhost:3306", Database: "sbtest"},
		},
		{
			"no command", "oltp_read_write --histogram", nil,
			tool.Description{Workload: "oltp_read_write", Target: "localhost:3306", Database: "sbtest", Labels: map[string]string{"histogram": "on"}},
		},
		{
			"nothing", "--version", nil, tool.Description{},
		},
		{
			"a test without database", "memory --threads=2 --memory-total-size=200G run", nil,
			tool.Description{Command: "run", Workload: "memory", Threads: 2, Duration: 10 * time.Second, Labels: map[string]string{"memory_total_size": "200G"}, Insert: []tool.Insertion{{At: 3, Args: every1s}}},
		},
		{
			"deprecated names", "oltp_read_only --num-threads=2 --max-time=4 --max-requests=7 run", nil,
			tool.Description{
				Command: "run", Workload: "oltp_read_only", Threads: 2, Duration: 4 * time.Second, Target: "localhost:3306", Database: "sbtest",
				Labels: map[string]string{"events": "7"}, Insert: []tool.Insertion{{At: 4, Args: every1s}},
			},
		},
		{
			"the deprecated --test of 1.0", "run --test=oltp_read_only --threads=2", nil,
			tool.Description{Command: "run", Workload: "oltp_read_only", Threads: 2, Duration: 10 * time.Second, Target: "localhost:3306", Database: "sbtest", Insert: []tool.Insertion{{At: 0, Args: every1s}}},
		},
		{
			"0.5", "--test=/usr/share/doc/sysbench/tests/db/update_index.lua --mysql-socket=/tmp/my.sock --oltp-tables-count=2 --oltp-table-size=10000 --max-requests=0 --max-time=8 --num-threads=4 --tx-rate=40 run", nil,
			tool.Description{
				Command: "run", Workload: "update_index", Threads: 4, Duration: 8 * time.Second, Rate: 40, Target: "/tmp/my.sock", Database: "sbtest",
				Labels: map[string]string{"tables": "2", "table_size": "10000", "events": "0", "rate": "40"}, Insert: []tool.Insertion{{At: 8, Args: every1s}},
			},
		},
		{
			"0.4", "--test=oltp --oltp-test-mode=nontrx --oltp-nontrx-mode=select --oltp-table-size=80000 --mysql-table-engine=innodb --max-time=10 --num-threads=4 --mysql-host=a,b run", nil,
			tool.Description{
				Command: "run", Workload: "oltp", Threads: 4, Duration: 10 * time.Second, Target: "a:3306,b:3306", Database: "sbtest",
				Labels: map[string]string{"oltp_test_mode": "nontrx", "oltp_nontrx_mode": "select", "table_size": "80000", "mysql_storage_engine": "innodb"},
				Notes: []string{"--report-interval was not added: sysbench 0.4.12 may not know it and would refuse to run; give it if yours does",
					"sysbench 0.4 and 0.5 stop after 10000 requests, maybe long before --max-time: give --max-requests=0 for the full time"},
			},
		},
		{
			"0.4 with the option that its last version knows", "--test=oltp --report-interval=2 --max-requests=0 run", nil,
			tool.Description{Command: "run", Workload: "oltp", Threads: 1, ReportInterval: 2 * time.Second, Target: "localhost:3306", Database: "sbtest", Labels: map[string]string{"events": "0"}},
		},
		{
			"a test that all versions have", "--test=cpu --num-threads=4 run", nil,
			tool.Description{Command: "run", Workload: "cpu", Threads: 4,
				Notes: []string{"--report-interval was not added: sysbench 0.4.12 may not know it and would refuse to run; give it if yours does"}},
		},
		{
			"such a test with an option of 1.0", "--test=cpu --threads=4 run", nil,
			tool.Description{Command: "run", Workload: "cpu", Threads: 4, Duration: 10 * time.Second, Insert: []tool.Insertion{{At: 2, Args: every1s}}},
		},
		{
			"lists of hosts and ports", "oltp_read_write --mysql-host=a,::1 --mysql-port=1,2 cleanup", nil,
			tool.Description{Command: "cleanup", Workload: "oltp_read_write", Target: "a:1,[::1]:1,a:2,[::1]:2", Database: "sbtest"},
		},
		{
			"PostgreSQL", "oltp_read_write --db-driver=pgsql --pgsql-host=pg --pgsql-db=p --pgsql_password=hunter2 cleanup", nil,
			tool.Description{
				Command: "cleanup", Workload: "oltp_read_write", Target: "pg:5432", Database: "p", Engine: "postgresql", User: "sbtest", Labels: map[string]string{"db_driver": "pgsql"},
			},
		},
		{
			"an unknown driver", "x --db-driver=drizzle cleanup", nil,
			tool.Description{Command: "cleanup", Workload: "x", Labels: map[string]string{"db_driver": "drizzle"}},
		},
		{
			"configuration file; the command line wins", "--config-file=bench.cfg oltp_read_only --threads=5 run",
			map[string]string{"bench.cfg": "# sysbench config file\nmysql-host=h1, h2 # two\nmysql-password='hunter 2'\nthreads=3\ntime=8\nreport-interval=2\ntables = 2\n#events=9\nnonsense\ndb_ps_mode=\"disable\"\n"},
			tool.Description{
				Command: "run", Workload: "oltp_read_only", Threads: 5, Duration: 8 * time.Second, ReportInterval: 2 * time.Second,
				Target: "h1:3306,h2:3306", Database: "sbtest", Labels: map[string]string{"tables": "2", "db_ps_mode": "disable"},
			},
		},
		{
			"a configuration file that can't be read", "--config-file=other.cfg oltp_read_only run", nil,
			tool.Description{
				Command: "run", Workload: "oltp_read_only", Threads: 1, Duration: 10 * time.Second, Target: "localhost:3306", Database: "sbtest",
				Notes: []string{"--report-interval was not added: it may be in other.cfg, which could not be read"},
			},
		},
		{
			"too quiet", "oltp_read_only --verbosity=2 run", nil,
			tool.Description{
				Command: "run", Workload: "oltp_read_only", Threads: 1, Duration: 10 * time.Second, Target: "localhost:3306", Database: "sbtest",
				Notes: []string{"--verbosity=2 hides all of sysbench's reports: there will be nothing to see"},
			},
		},
		{
			"too talkative", "oltp_read_only --report-interval=1 --verbosity=5 --mysql-debug run", nil,
			tool.Description{
				Command: "run", Workload: "oltp_read_only", Threads: 1, Duration: 10 * time.Second, ReportInterval: time.Second, Target: "localhost:3306", Database: "sbtest",
				Notes: []string{"--mysql-debug with --verbosity=5 makes sysbench print the database password"},
			},
		},
		{
			"a password behind a blank", "oltp_read_only --mysql-password *** --report-interval=1 run", nil,
			tool.Description{
				Command: "run", Workload: "oltp_read_only", Threads: 1, Duration: 10 * time.Second, ReportInterval: time.Second, Target: "localhost:3306", Database: "sbtest",
			},
		},
		{
			"no password: the command is none", "oltp_read_only --report-interval=1 --mysql-password run", nil,
			tool.Description{Command: "run", Workload: "oltp_read_only", Threads: 1, Duration: 10 * time.Second, ReportInterval: time.Second, Target: "localhost:3306", Database: "sbtest"},
		},
		{
			"secrets elsewhere", "x --api-token=hunter2 --url=http://u:***@h/ cleanup", nil,
			tool.Description{
				Command: "cleanup", Workload: "x", Target: "localhost:3306", Database: "sbtest",
				Labels: map[string]string{"url": "http://u:***@h/"},
			},
		},
		{
			"numbers that are none", "x --threads=many --time=-1 --report-interval=1e3 run", nil,
			tool.Description{Command: "run", Workload: "x", Threads: 1, Target: "localhost:3306", Database: "sbtest"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := describe(c.command, c.files)
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(tool.Description{}, "Engine", "User")); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestSniff(t *testing.T) {
	for _, path := range captures(t) {
		stdout, _ := readCapture(t, path)
		if got := Sniff(stdout); got != 100 {
			t.Errorf("%s: %d", path, got)
		}
	}
	for _, c := range []struct {
		text     string
		from, to int
	}{
		{"", 0, 0},
		{"WARNING: --num-threads is deprecated, use --threads instead\n" + banner10, 100, 100},
		{line10, 90, 90},
		{line05, 90, 90},
		{sql10, 90, 90},
		{"FATAL: x\n", 1, 20},
		{"2026-01-01 00:00:00:000 10 sec: 100 operations; 10 current ops/sec; [READ: Count=1]\n", 0, 0},
		{"   1, trx: 2, 95%: 3.0, 99%: 4.0, max_rt: 5.0, 1|2.0, 1|2.0, 1|2.0, 1|2.0\n", 0, 0},
		{"[Current] NEW_ORDER - Takes(s): 1.0, Count: 12\n[{\"Count\":\"1\"}]\n", 0, 0},
		{"Benchmark\n\tAverage number of seconds to run all queries: 0.1 seconds\n", 0, 0},
		{"{\n  \"a\": 1\n}\n", 0, 0},
	} {
		if got := Sniff([]byte(c.text)); got < c.from || got > c.to {
			t.Errorf("%q: %d", c.text, got)
		}
	}
}

func TestOpenLoop(t *testing.T) {
	for _, c := range []struct {
		version string
		rate    int
		want    bool
	}{
		{"1.0.20", 200, true}, {"0.5", 200, true}, {"", 200, true},
		{"1.0.20", 0, false}, {"0.4.12", 200, false},
	} {
		if got := Tool.OpenLoop(c.version, c.rate); got != c.want {
			t.Errorf("OpenLoop(%q, rate %d) = %v", c.version, c.rate, got)
		}
	}
}

// TestLogin guards which login is used to sample a server if the user asks for it.
func TestLogin(t *testing.T) {
	for command, want := range map[string][2]string{
		"sysbench oltp_read_only --mysql-user=app run":  {"mysql", "app"},
		"sysbench oltp_read_only run":                   {"mysql", "sbtest"},
		"sysbench oltp_read_only --db-driver=pgsql run": {"postgresql", "sbtest"},
		"sysbench cpu run":                              {"", ""},
	} {
		words := strings.Fields(command)
		got := Describe(tool.Invocation{Program: words[0], Args: words[1:], Getenv: func(string) string { return "" }})
		if got.Engine != want[0] || got.User != want[1] {
			t.Errorf("%s: engine %q, user %q", command, got.Engine, got.User)
		}
	}
}
