package ycsb

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
		"workloads/workloada": "recordcount=1000\noperationcount=1000\nworkload=site.ycsb.workloads.CoreWorkload\nrequestdistribution=zipfian\n",
		"workload_s6":         "recordcount=1000000\noperationcount=1000000\nreadproportion=0.6\ninsertproportion=0.4\nupdateproportion=0\nscanproportion=0\n",
		"db.properties":       "db.url=jdbc:mysql://10.0.0.7:3306/ycsb\ndb.user=u\ndb.passwd=geheim\nthreadcount=8\ntarget=500\n",
		"live.properties":     "status=true\nstatus.interval=5\n",
	}[name]
	if !ok {
		return nil, errors.New("no such file")
	}
	return []byte(text), nil
}

func TestDescribe(t *testing.T) {
	const note = "exportfile: YCSB writes its summary to a file and prints none"
	oneSecond := []string{"-s", "-p", "status.interval=1"}
	tests := []struct {
		name string
		args string
		want tool.Description
	}{
		{"launcher", "load mongodb -P workloads/workloada -threads 10 -p mongodb.url=mongodb://bench:dummy@127.0.0.1:27359/ycsb?w=1 -target 200",
			tool.Description{
				Command: "load", Workload: "workloada", Threads: 10, Rate: 200, Target: "127.0.0.1:27359", Database: "ycsb",
				Labels: map[string]string{"binding": "mongodb", "recordcount": "1000", "operationcount": "1000", "request_distribution": "zipfian", "target_rate": "200"},
				Insert: []tool.Insertion{{At: 2, Args: oneSecond}},
			}},
		{"the shares of a workload", "run mongodb -threads 1 -P workload_s6 -p fieldcount=1 -p fieldlength=1024",
			tool.Description{
				Command: "run", Workload: "workload_s6", Threads: 1,
				Labels: map[string]string{
					"binding": "mongodb", "recordcount": "1000000", "operationcount": "1000000", "field_count": "1", "field_length": "1024",
					"read_proportion": "0.6", "insert_proportion": "0.4",
				},
				Insert: []tool.Insertion{{At: 2, Args: oneSecond}},
			}},
		{"python", "/opt/ycsb/bin/ycsb run basic -P workloads/workloada -s",
			tool.Description{
				Command: "run", Workload: "workloada", Threads: 1, ReportInterval: 10 * time.Second,
				Labels: map[string]string{"binding": "basic", "recordcount": "1000", "operationcount": "1000", "request_distribution": "zipfian"},
				Insert: []tool.Insertion{{At: 3, Args: []string{"-p", "status.interval=1"}}},
			}},
		{"launcher's own options first", "-cp /x -jvm-args -Xmx4g run basic -p workload=site.ycsb.workloads.CoreWorkload -p status.interval=2",
			tool.Description{
				Command: "run", Workload: "CoreWorkload", Threads: 1,
				Labels: map[string]string{"binding": "basic"},
				Insert: []tool.Insertion{{At: 6, Args: []string{"-s"}}},
			}},
		{"JVM", "-Xmx1g -cp a.jar:b.jar site.ycsb.Client -db site.ycsb.db.JdbcDBClient -P workloads/workloada -P db.properties -p operationcount=5000 -p maxexecutiontime=60 -load",
			tool.Description{
				Command: "load", Workload: "workloada", Threads: 8, Duration: time.Minute, Rate: 500, Target: "10.0.0.7:3306", Database: "ycsb",
				Labels: map[string]string{"binding": "JdbcDBClient", "recordcount": "1000", "operationcount": "5000", "request_distribution": "zipfian", "target_rate": "500"},
				Insert: []tool.Insertion{{At: 4, Args: oneSecond}},
			}},
		{"old JVM class", "-cp x com.yahoo.ycsb.Client -t -p db.passwd=geheim -p exportfile=/tmp/x",
			tool.Description{
				Command: "run", Threads: 1,
				Labels: map[string]string{},
				Insert: []tool.Insertion{{At: 3, Args: oneSecond}},
				Notes:  []string{note},
			}},
		{"set in a file", "run basic -P workloads/workloada -P live.properties",
			tool.Description{
				Command: "run", Workload: "workloada", Threads: 1, ReportInterval: 5 * time.Second,
				Labels: map[string]string{"binding": "basic", "recordcount": "1000", "operationcount": "1000", "request_distribution": "zipfian"},
			}},
		{"the command line wins over files", "run basic -P live.properties -p status=false",
			tool.Description{
				Command: "run", Workload: "live.properties", Threads: 1,
				Labels: map[string]string{"binding": "basic"},
			}},
		{"a file that is not there", "run basic -P nosuch -s -p status.interval=1",
			tool.Description{
				Command: "run", Workload: "nosuch", ReportInterval: time.Second,
				Labels: map[string]string{"binding": "basic"},
			}},
		{"hosts and a port", "run redis -p redis.host=10.1.1.1 -p redis.port=6380 -p redis.password=geheim -s -p status.interval=1",
			tool.Description{
				Command: "run", Threads: 1, Target: "10.1.1.1:6380", ReportInterval: time.Second,
				Labels: map[string]string{"binding": "redis"},
			}},
		{"shell", "shell basic", tool.Description{Command: "shell", Threads: 1, Labels: map[string]string{"binding": "basic"}}},
		{"nothing", "", tool.Description{Threads: 1, Labels: map[string]string{}}},
		{"waiting hidden", "run basic -target 100 -s -p status.interval=1",
			tool.Description{
				Command: "run", Threads: 1, Rate: 100, ReportInterval: time.Second,
				Labels: map[string]string{"binding": "basic", "target_rate": "100"},
				Notes:  []string{"with -target, latencies leave out the time that operations wait for slow ones; add -p measurement.interval=both to see it"},
			}},
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

func TestMatchArgs(t *testing.T) {
	for line, want := range map[string]bool{
		"java -cp x site.ycsb.Client -t":         true,
		"java.exe com.yahoo.ycsb.Client -load":   true,
		"java -jar other.jar":                    false,
		"python2 bin/ycsb run basic":             true,
		"python3.11 /opt/ycsb/bin/ycsb load x":   true,
		"python3 other.py ycsb":                  false,
		"python3":                                false,
		"bash site.ycsb.Client":                  false,
		"ruby -e site.ycsb.Client":               false,
		"java -Dx=site.ycsb.Client -jar foo.jar": false,
	} {
		f := strings.Fields(line)
		if got := matchArgs(f[0], f[1:]); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
	for base, want := range map[string]bool{"ycsb": true, "ycsb.sh": true, "go-ycsb": false} {
		if Tool.Match(base) != want {
			t.Errorf("%s: %v", base, !want)
		}
	}
}

// For every recorded command line: nothing that is stored contains a password from the outputs.
func TestCapturedCommandLines(t *testing.T) {
	for _, dir := range tooltest.Cases(t, captures) {
		text, err := os.ReadFile(filepath.Join(dir, "cmd.txt"))
		if err != nil {
			t.Fatal(err)
		}
		args := strings.Fields(string(text))
		clean, secrets := secret.Arguments("ycsb", args[1:])
		d := describe(tool.Invocation{Args: clean})
		if d.Command != args[1] || d.Labels["binding"] != args[2] {
			t.Errorf("%s: command %q, binding %q", dir, d.Command, d.Labels["binding"])
		}
		stored := strings.Join(clean, " ")
		for _, password := range []string{"dummy-pass", "not-the-password"} {
			if strings.Contains(stored, password) {
				t.Errorf("%s: %s", dir, stored)
			}
			for _, name := range []string{"stdout.txt", "stderr.txt"} {
				out, _ := os.ReadFile(filepath.Join(dir, name))
				if strings.Contains(secret.New(secrets...).Text(string(out)), password) {
					t.Errorf("%s: %s still holds %q", dir, name, password)
				}
			}
		}
	}
}

func TestSniff(t *testing.T) {
	tooltest.Sniffs(t, Tool, 70, tooltest.Cases(t, captures+"/std*.txt"),
		"sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n", "[ 10s ] thds: 4 tps: 3.00", "10, 123, 1.1, 2.2, 3.3, 0|0.0\n")
}

// TestLogin guards which login is used to sample a server if the user asks for it.
func TestLogin(t *testing.T) {
	for command, want := range map[string][2]string{
		"ycsb run mongodb -p mongodb.url=mongodb://app:x@h/ycsb":     {"mongodb", "app"},
		"ycsb run jdbc -p db.url=jdbc:mysql://h/ycsb -p db.user=app": {"mysql", "app"},
		"ycsb run redis -p redis.host=h":                             {"", ""},
	} {
		words := strings.Fields(command)
		got := describe(tool.Invocation{Program: words[0], Args: words[1:], Getenv: func(string) string { return "" }})
		if got.Engine != want[0] || got.User != want[1] {
			t.Errorf("%s: engine %q, user %q", command, got.Engine, got.User)
		}
	}
}
