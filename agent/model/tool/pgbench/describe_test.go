package pgbench

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

func TestDescribe(t *testing.T) {
	progress := []tool.Insertion{{At: 0, Args: []string{"-P", "1"}}}
	env := map[string]string{}
	tests := []struct {
		name, args, env string
		want            tool.Description
	}{
		{"the defaults", "", "", tool.Description{
			Command: "run", Workload: "tpcb-like", Threads: 1, Target: "localhost:5432", Insert: progress,
		}},
		{"as usual", "-h db1 -p 5433 -U app -c 16 -j4 -T 60 -P 5 -M prepared bench", "", tool.Description{
			Command: "run", Workload: "tpcb-like", Threads: 16, Duration: time.Minute, ReportInterval: 5 * time.Second,
			Target: "db1:5433", Database: "bench", User: "app", Labels: map[string]string{"jobs": "4", "protocol": "prepared"},
		}},
		{"glued and joined short options, scripts with weights", "-Srlc8 -btpcb@3 -f /srv/transfer.sql@2 --rate=99.5 -L 10 -d bench", "", tool.Description{
			Command: "run", Workload: "select-only+tpcb-like+transfer.sql", Threads: 8, Rate: 99, Target: "localhost:5432", Database: "bench",
			Labels: map[string]string{"rate": "99.5", "latency_limit": "10"}, Insert: progress, LatencyLogs: []string{"pgbench_log.{pid}", "pgbench_log.{pid}.[0-9]*"},
		}},
		{"long options, shortened", "--cl=4 --progress=1 --skip --transac=100 --max-tries 3 --progress-timestamp bench", "", tool.Description{
			Command: "run", Workload: "simple-update", Threads: 4, ReportInterval: time.Second, Target: "localhost:5432", Database: "bench",
			Labels: map[string]string{"transactions": "100", "max_tries": "3"},
		}},
		{"initialization", "-i -s 100 -F 90 --partitions=4 bench", "", tool.Description{
			Command: "prepare", Target: "localhost:5432", Database: "bench",
			Labels: map[string]string{"scale": "100", "fillfactor": "90", "partitions": "4"},
		}},
		{"the flag -d of versions before 15", "-d -c 2 bench", "", tool.Description{
			Command: "run", Workload: "tpcb-like", Threads: 2, Target: "localhost:5432", Database: "bench", Insert: progress,
		}},
		{"the environment", "-c 2", "PGHOST=/run/pg PGPORT=6000 PGUSER=app PGPASSWORD=x", tool.Description{
			Command: "run", Workload: "tpcb-like", Threads: 2, Target: "/run/pg/.s.PGSQL.6000", Database: "app", User: "app", Insert: progress,
		}},
		{"a URL takes precedence", "-h db9 -P1 postgresql://app:***@db1,db2:6000/bench?sslmode=require", "PGPORT=7000", tool.Description{
			Command: "run", Workload: "tpcb-like", Threads: 1, ReportInterval: time.Second, Target: "db1:5432,db2:6000", Database: "bench", User: "app",
		}},
		{"keywords", "-P1 --dbname host=db1·port=6000·dbname='my·bench'·user=app·password=***", "", tool.Description{
			Command: "run", Workload: "tpcb-like", Threads: 1, ReportInterval: time.Second, Target: "db1:6000", Database: "my bench", User: "app",
		}},
		{"hosts with their ports", "-P1 host=db1,db2·port=6000,6001 -- ", "", tool.Description{
			Command: "run", Workload: "tpcb-like", Threads: 1, ReportInterval: time.Second, Target: "db1:6000,db2:6001",
		}},
		{"logs elsewhere", "--log --log-pre=/srv/[1]/*a -P1", "", tool.Description{
			Command: "run", Workload: "tpcb-like", Threads: 1, ReportInterval: time.Second, Target: "localhost:5432",
			LatencyLogs: []string{`/srv/\[1]/\*a.{pid}`, `/srv/\[1]/\*a.{pid}.[0-9]*`},
		}},
		{"aggregates", "-l --aggregate-interval=5 -P1", "", tool.Description{
			Command: "run", Workload: "tpcb-like", Threads: 1, ReportInterval: time.Second, Target: "localhost:5432",
			Notes: []string{"--aggregate-interval: the log has no latencies of single transactions, so the run has no histogram"},
		}},
		{"no run", "--version", "", tool.Description{Command: "run", Workload: "tpcb-like", Threads: 1, Target: "localhost:5432"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clear(env)
			for v := range strings.FieldsSeq(tt.env) {
				name, value, _ := strings.Cut(v, "=")
				env[name] = value
			}
			args := strings.Fields(tt.args)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "·", " ")
			}
			got := describe(tool.Invocation{Program: Name, Args: args, Getenv: func(name string) string { return env[name] }})
			tt.want.Engine = "postgresql"
			if tt.want.Labels == nil {
				tt.want.Labels = map[string]string{}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// For any arguments: no panic, and every insertion has a valid index.
func FuzzDescribe(f *testing.F) {
	f.Add("-h\x00db1\x00-Src4\x00--prog=1\x00postgres://u:p@h:1/d")
	f.Add("host=a,b port='1\\'\x00-d\x00-\x00--")
	f.Fuzz(func(t *testing.T, text string) {
		args := strings.Split(text, "\x00")
		d := describe(tool.Invocation{Args: args})
		for _, in := range d.Insert {
			if in.At > len(args) {
				t.Errorf("insertion at %d of %d", in.At, len(args))
			}
		}
	})
}

func TestOpenLoop(t *testing.T) {
	if Tool.OpenLoop("15.18", 0) || !Tool.OpenLoop("9.6.24", 100) {
		t.Error("only with --rate do latencies include the waiting")
	}
}
