package tpccmysql

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

func TestDescribe(t *testing.T) {
	insert := []tool.Insertion{{At: 0, Args: []string{"-i1"}}}
	tests := []struct {
		name, command string
		want          tool.Description
	}{
		{
			"glued", "tpcc_start -hdb1 -P3317 -dtpcc1000 -ubench -psecret -w100 -c32 -r30 -l600 -i1",
			tool.Description{
				Command: "run", Workload: "tpcc", Threads: 32, Duration: 10 * time.Minute, ReportInterval: time.Second,
				Target: "db1:3317", Database: "tpcc1000",
				Labels: map[string]string{"warehouses": "100", "ramp_up_seconds": "30"},
			},
		},
		{
			"separate, interval absent", "tpcc_start -h db1 -d tpcc -u bench -p secret -w 10 -c 4 -l 30",
			tool.Description{
				Command: "run", Workload: "tpcc", Threads: 4, Duration: 30 * time.Second, ReportInterval: 10 * time.Second,
				Target: "db1:3306", Database: "tpcc", Labels: map[string]string{"warehouses": "10"}, Insert: insert,
			},
		},
		{
			"the defaults", "tpcc_start",
			tool.Description{
				Command: "run", Workload: "tpcc", Threads: 10, Duration: 20 * time.Second, ReportInterval: 10 * time.Second,
				Target: "localhost:3306", Database: "tpcc", Labels: map[string]string{}, Insert: insert,
			},
		},
		{
			"a rest that is not measured", "tpcc_start_2012 -l15 -i10 -S /tmp/my.sock",
			tool.Description{
				Command: "run", Workload: "tpcc", Threads: 10, Duration: 10 * time.Second, ReportInterval: 10 * time.Second,
				Target: "/tmp/my.sock", Database: "tpcc", Labels: map[string]string{},
				Notes: []string{"-l15 with intervals of 10 s measures 10 s: tpcc_start leaves out what is not a whole interval"},
			},
		},
		{
			"a password like an option", "tpcc_start -p -i5 -i 2 -l 4",
			tool.Description{
				Command: "run", Workload: "tpcc", Threads: 10, Duration: 4 * time.Second, ReportInterval: 2 * time.Second,
				Target: "localhost:3306", Database: "tpcc", Labels: map[string]string{},
			},
		},
		{
			"load", "tpcc_load -hdb1 -dtpcc -uroot -psecret -w100 -l 2 -m 1 -n 50",
			tool.Description{
				Command: "load", Workload: "tpcc", Target: "db1:3306", Database: "tpcc",
				Labels: map[string]string{"warehouses": "100", "first_warehouse": "1", "last_warehouse": "50", "part": "2"},
			},
		},
		{
			"positional", "tpcc_start db1:3307 tpcc root secret 10 16 20 60",
			tool.Description{
				Command: "run", Workload: "tpcc", Threads: 16, Duration: time.Minute, ReportInterval: 10 * time.Second,
				Target: "db1:3307", Database: "tpcc",
				Labels: map[string]string{"warehouses": "10", "ramp_up_seconds": "20"},
			},
		},
		{
			"load, positional", "tpcc_load db1 tpcc root secret 10 1 1 5",
			tool.Description{
				Command: "load", Workload: "tpcc", Target: "db1:3306", Database: "tpcc",
				Labels: map[string]string{"warehouses": "10"},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			words := strings.Fields(tt.command)
			got := Describe(tool.Invocation{Program: words[0], Args: words[1:]})
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(tool.Description{}, "Engine", "User")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestDescribeOddArguments(t *testing.T) {
	for _, args := range [][]string{{"-p"}, {"-"}, {""}, {"-i0"}, {"-i", "x"}, {"-l", "99999999999999999999"}, {"a", "b", "c", ""}, {"--", "-psecret"}} {
		Describe(tool.Invocation{Program: "tpcc_start", Args: args}) // does not panic
	}
}

func TestMatch(t *testing.T) {
	for name, want := range map[string]bool{
		"tpcc_start": true, "tpcc_load": true, "tpcc_start_2012": true, "tpcc_start.static": true,
		"tpcc": false, "tpcc_started": false, "tpcc_start_": true,
	} {
		if got := Tool.Match(name) || Tool.MatchArgs(name, nil); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestLogin guards which login is used to sample a server if the user asks for it.
func TestLogin(t *testing.T) {
	for command, want := range map[string][2]string{
		"tpcc_start -h db1 -u app -p x":         {"mysql", "app"},
		"tpcc_start db1 tpcc app x 10 10 10 60": {"mysql", "app"},
	} {
		words := strings.Fields(command)
		got := Describe(tool.Invocation{Program: words[0], Args: words[1:], Getenv: func(string) string { return "" }})
		if got.Engine != want[0] || got.User != want[1] {
			t.Errorf("%s: engine %q, user %q", command, got.Engine, got.User)
		}
	}
}
