package goycsb

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/tooltest"
)

func files(name string) ([]byte, error) {
	text, ok := map[string]string{
		"workloads/workloada": "recordcount=1000\noperationcount=1000\nworkload=core\nrequestdistribution=uniform\n",
		"db.properties":       "mysql.password=geheim\nthreadcount=8\nmeasurement.interval=2\n",
	}[name]
	if !ok {
		return nil, errors.New("no such file")
	}
	return []byte(text), nil
}

func TestDescribe(t *testing.T) {
	const note = "go-ycsb reports every 10 seconds; --interval 1 shows more"
	tests := []struct {
		name, args string
		want       tool.Description
	}{
		{"run", "run mysql -P workloads/workloada --interval 1 --threads 10 --target 1200 -p recordcount=3000 -p mysql.host=10.0.0.1 -p mysql.port=3357 -p mysql.password=dummy-pass -p mysql.db=goycsb",
			tool.Description{
				Command: "run", Workload: "workloada", Threads: 10, Rate: 1200, ReportInterval: time.Second, Target: "10.0.0.1:3357", Database: "goycsb",
				Labels: map[string]string{"binding": "mysql", "recordcount": "3000", "operationcount": "1000", "request_distribution": "uniform", "target_rate": "1200"},
			}},
		{"joined values", "load mongodb -Pworkloads/workloada,db.properties -pmongodb.url=mongodb://u:geheim2@h:27017/db --threads=4 --prop=pg.password=geheim3",
			tool.Description{
				Command: "load", Workload: "workloada", Threads: 4, ReportInterval: 2 * time.Second, Target: "h:27017", Database: "db",
				Labels: map[string]string{"binding": "mongodb", "recordcount": "1000", "operationcount": "1000", "request_distribution": "uniform"},
			}},
		{"defaults", "run pg",
			tool.Description{
				Command: "run", Threads: 1, ReportInterval: 10 * time.Second, Target: "127.0.0.1:5432",
				Labels: map[string]string{"binding": "pg"}, Notes: []string{note},
			}},
		{"nothing live", "run basic -p measurementtype=raw -p warmuptime=5",
			tool.Description{
				Command: "run", Threads: 1, Labels: map[string]string{"binding": "basic", "warmup_seconds": "5"},
				Notes: []string{"measurementtype=raw: go-ycsb prints nothing before its end, so nothing is live"},
			}},
		{"a flag wins", "run redis -p threadcount=3 --threads 7 -p threadcount=5 -p redis.addr=h:6379 --interval 5",
			tool.Description{
				Command: "run", Threads: 7, ReportInterval: 5 * time.Second, Target: "h:6379", Labels: map[string]string{"binding": "redis"},
			}},
		{"a file that is not there", "run basic -P nosuch --interval 1",
			tool.Description{
				Command: "run", Workload: "nosuch", ReportInterval: time.Second, Labels: map[string]string{"binding": "basic"},
			}},
		{"shell", "shell mysql",
			tool.Description{Command: "shell", Threads: 1, Target: "127.0.0.1:3306", Labels: map[string]string{"binding": "mysql"}}},
		{"an option without its value", "run basic --threads",
			tool.Description{Command: "run", Threads: 1, ReportInterval: 10 * time.Second, Labels: map[string]string{"binding": "basic"}, Notes: []string{note}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := describe(tool.Invocation{Args: strings.Fields(test.args), ReadFile: files})
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(tool.Description{}, "Engine", "User")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// For every recorded command line and dump of properties: nothing that is stored contains a
// password.
func TestCapturedCommandLines(t *testing.T) {
	for _, file := range tooltest.Cases(t, captures) {
		dir := filepath.Dir(file)
		text, err := os.ReadFile(filepath.Join(dir, "cmd.txt"))
		if err != nil {
			t.Fatal(err)
		}
		args := strings.Fields(string(text))
		clean, secrets := secret.Arguments("go-ycsb", args[1:])
		d := describe(tool.Invocation{Args: clean})
		if d.Command != args[1] || d.Labels["binding"] != args[2] {
			t.Errorf("%s: command %q, binding %q", dir, d.Command, d.Labels["binding"])
		}
		out, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{strings.Join(clean, " "), secret.New(secrets...).Text(string(out))} {
			if strings.Contains(s, "dummy-pass") || strings.Contains(s, "wrong-pass") {
				t.Errorf("%s: %.200s", dir, s)
			}
		}
	}
}

func TestSniff(t *testing.T) {
	// YCSB's basic binding dumps its properties in the same form.
	tooltest.Sniffs(t, Tool, 70, tooltest.Cases(t, "testdata/*/std*.txt"),
		"***************** properties *****************\n\"db\"=\"site.ycsb.BasicDB\"\n")
}

// TestLogin guards which login is used to sample a server if the user asks for it.
func TestLogin(t *testing.T) {
	for command, want := range map[string][2]string{
		"go-ycsb run mysql -p mysql.user=app":                       {"mysql", "app"},
		"go-ycsb run mysql":                                         {"mysql", "root"},
		"go-ycsb run mongodb -p mongodb.url=mongodb://app:x@h/ycsb": {"mongodb", "app"},
		"go-ycsb run pg":                                            {"postgresql", "root"},
	} {
		words := strings.Fields(command)
		got := describe(tool.Invocation{Program: words[0], Args: words[1:], Getenv: func(string) string { return "" }})
		if got.Engine != want[0] || got.User != want[1] {
			t.Errorf("%s: engine %q, user %q", command, got.Engine, got.User)
		}
	}
}
