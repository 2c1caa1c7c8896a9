package gotpc

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchwatch/benchwatch/agent/model/tool"
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
				Target: "127.0.0.1:3317", Database: "gotpc", Labels: map[string]string{"warehouses": "100"},
			},
		},
		{
			"glued and long", "--host=a,b --port 4000,4001 -psecret tpcc run -T8 --ignore-error --wait --db=x",
			tool.Description{
				Command: "run", Workload: "tpcc", Threads: 8, ReportInterval: 10 * time.Second, Notes: []string{note},
				Target: "a:4000,a:4001,b:4000,b:4001", Database: "x",
				Labels: map[string]string{"warehouses": "10", "wait": "true", "ignore_error": "true"},
			},
		},
		{
			"passwords of all forms", "tpcc prepare --password=a --password b -p=c -pd",
			tool.Description{
				Command: "prepare", Workload: "tpcc", Threads: 1, Target: "127.0.0.1:4000", Database: "test",
				Labels: map[string]string{"warehouses": "10"},
			},
		},
		{
			"a password like an option", "tpcc cleanup -p --count --ssl-key key.pem",
			tool.Description{
				Command: "cleanup", Workload: "tpcc", Threads: 1, Target: "127.0.0.1:4000", Database: "test",
				Labels: map[string]string{"warehouses": "10"},
			},
		},
		{
			"secrets of the connection", "tpch run --sf 10 --conn-params sslpassword=x&sslmode=disable --interval=1m0s",
			tool.Description{
				Command: "run", Workload: "tpch", Threads: 1, ReportInterval: time.Minute, Target: "127.0.0.1:4000", Database: "test",
				Labels: map[string]string{"scale_factor": "10"},
			},
		},
		{
			"an IPv6 address, a short verb", "ch ru -H ::1 -t 2 --interval 1s",
			tool.Description{
				Command: "run", Workload: "ch", Threads: 1, ReportInterval: time.Second, Target: "[::1]:4000", Database: "test",
				Labels: map[string]string{"warehouses": "10", "analytical_threads": "2"},
			},
		},
		{"no workload", "--help", tool.Description{Labels: map[string]string{}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Describe(tool.Invocation{Program: "go-tpc", Args: strings.Fields(tt.args)})
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(tool.Description{}, "Engine", "User")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestDescribeOddArguments(t *testing.T) {
	for _, args := range [][]string{nil, {""}, {"-"}, {"--"}, {"-p"}, {"--password"}, {"-x"}, {"tpcc", "run", "-T", "x", "--time", "soon"}, {"tpcc", "run", "--interval", "-1s"}} {
		Describe(tool.Invocation{Args: args}) // does not panic
	}
}

// TestLogin guards which login is used to sample a server if the user asks for it.
func TestLogin(t *testing.T) {
	for command, want := range map[string][2]string{
		"go-tpc tpcc run":                   {"mysql", "root"},
		"go-tpc tpcc -U app run":            {"mysql", "app"},
		"go-tpc tpcc --driver postgres run": {"postgresql", "root"},
	} {
		words := strings.Fields(command)
		got := Describe(tool.Invocation{Program: words[0], Args: words[1:], Getenv: func(string) string { return "" }})
		if got.Engine != want[0] || got.User != want[1] {
			t.Errorf("%s: engine %q, user %q", command, got.Engine, got.User)
		}
	}
}
