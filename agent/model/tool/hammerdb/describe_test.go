package hammerdb

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

func TestDescribe(t *testing.T) {
	python := "#!/bin/tclsh\ndbset('db','mysql')\ndbset('bm','TPC-C')\ndiset('connection','mysql_host','db1')\ndiset('tpcc','mysql_pass','hush')\n" +
		"diset('tpcc','mysql_count_ware','40')\nvuset('vu', os.environ['VU'])\nbuildschema()\n"
	files := func(name string) ([]byte, error) {
		switch name {
		case "run.py":
			return []byte(python), nil
		case "run.tcl":
			return os.ReadFile("testdata/4.12/mariadb-run/run.tcl")
		}
		return nil, errors.ErrUnsupported
	}
	for _, test := range []struct {
		args string
		want tool.Description
	}{
		{"tcl auto run.tcl", tool.Description{
			Command: "run", Workload: "tproc-c", Duration: time.Minute, ReportInterval: 5 * time.Second,
			Target: "127.0.0.1:26101", Database: "tpcc_maria", Engine: "mysql", User: "h",
			Labels:      map[string]string{"driver": "timed", "rampup_minutes": "1", "duration_minutes": "1"},
			LatencyLogs: []string{"/tmp/hdbxtprofile*.log"},
		}},
		{"hammerdbcli py auto run.py", tool.Description{
			Command: "prepare", Workload: "tproc-c", Threads: 8, Target: "db1:3306", Database: "tpcc", Engine: "mysql", User: "root",
			Labels: map[string]string{"warehouses": "40"},
		}},
		{"auto none.tcl", tool.Description{Labels: map[string]string{}}},
		{"", tool.Description{Labels: map[string]string{}}},
	} {
		got := describe(tool.Invocation{Args: strings.Fields(test.args), ReadFile: files, Getenv: func(name string) string {
			if name == "VU" {
				return "8"
			}
			return ""
		}})
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", test.args, diff)
		}
	}
	got := Tool.LoginOf(tool.Invocation{Args: []string{"auto", "run.py"}, ReadFile: files})
	if got.Password != "hush" {
		t.Errorf("login %+v", got)
	}
}
