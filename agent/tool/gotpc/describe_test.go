package gotpc

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/tool"
)

const note = "go-tpc reports every 10 s: with --interval 1s there is more to see"

func TestDescribe(t *testing.T) {
	tests := []struct {
		name, args string
		want       tool.Description
	}{
		{
			"options before and behind the words", "tpcc -H 127.0.0.1 -P 3317 -U bench -p secret -D gotpc --warehouses 100 -T 16 --time 20s --interval 2s run",
			tool.Description{
				Command: "run", Workload: "tpcc", Threads: 16, Duration: 20 * time.Second, ReportInterval: 2 * time.Second,
				Target: "127.0.0.1:3317", Database: "gotpc", Labels: map[string]string{"warehouses": "100"}, Secrets: []string{"secret"},
				Redacted: strings.Fields("tpcc -H 127.0.0.1 -P 3317 -U bench -p *** -D gotpc --warehouses 100 -T 16 --time 20s --interval 2s run"),
			},
		},
		{
			"glued and long", "--host=a,b --port 4000,4001 -psecret tpcc run -T8 --ignore-error --wait --db=x",
			tool.Description{
				Command: "run", Workload: "tpcc", Threads: 8, ReportInterval: 10 * time.Second, Notes: []string{note},
				Target: "a:4000,a:4001,b:4000,b:4001", Database: "x", Secrets: []string{"secret"},
				Labels:   map[string]string{"warehouses": "10", "wait": "true", "ignore_error": "true"},
				Redacted: strings.Fields("--host=a,b --port 4000,4001 -p*** tpcc run -T8 --ignore-error --wait --db=x"),
			},
		},
		{
			"passwords of all forms", "tpcc prepare --password=a --password b -p=c -pd",
			tool.Description{
				Command: "prepare", Workload: "tpcc", Threads: 1, Target: "127.0.0.1:4000", Database: "test",
				Labels: map[string]string{"warehouses": "10"}, Secrets: []string{"a", "b", "c", "d"},
				Redacted: strings.Fields("tpcc prepare --password=*** --password *** -p=*** -p***"),
			},
		},
		{
			"a password like an option", "tpcc cleanup -p --count --ssl-key key.pem",
			tool.Description{
				Command: "cleanup", Workload: "tpcc", Threads: 1, Target: "127.0.0.1:4000", Database: "test",
				Labels: map[string]string{"warehouses": "10"}, Secrets: []string{"--count"},
				Redacted: strings.Fields("tpcc cleanup -p *** --ssl-key key.pem"),
			},
		},
		{
			"secrets of the connection", "tpch run --sf 10 --conn-params sslpassword=x&sslmode=disable --interval=1m0s",
			tool.Description{
				Command: "run", Workload: "tpch", Threads: 1, ReportInterval: time.Minute, Target: "127.0.0.1:4000", Database: "test",
				Labels: map[string]string{"scale_factor": "10"}, Secrets: []string{"x"},
				Redacted: strings.Fields("tpch run --sf 10 --conn-params sslpassword=***&sslmode=disable --interval=1m0s"),
			},
		},
		{
			"an IPv6 address, a short verb", "ch ru -H ::1 -t 2 --interval 1s",
			tool.Description{
				Command: "run", Workload: "ch", Threads: 1, ReportInterval: time.Second, Target: "[::1]:4000", Database: "test",
				Labels: map[string]string{"warehouses": "10", "analytical_threads": "2"}, Redacted: strings.Fields("ch ru -H ::1 -t 2 --interval 1s"),
			},
		},
		{"no workload", "--help", tool.Description{Labels: map[string]string{}, Redacted: []string{"--help"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Describe(tool.Invocation{Program: "go-tpc", Args: strings.Fields(tt.args)})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestDescribeOddArguments(t *testing.T) {
	for _, args := range [][]string{nil, {""}, {"-"}, {"--"}, {"-p"}, {"--password"}, {"-x"}, {"tpcc", "run", "-T", "x", "--time", "soon"}, {"tpcc", "run", "--interval", "-1s"}} {
		if d := Describe(tool.Invocation{Args: args}); len(d.Redacted) != len(args) {
			t.Errorf("%q: Redacted = %q", args, d.Redacted)
		}
	}
}
