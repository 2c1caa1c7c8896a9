// Package hammerdb reads the scripts and the output of HammerDB's command line interface, TPROC-C and TPROC-H, versions 3
// to 6: what hammerdbcli prints, its transaction counter and its time profile. Formats: src/generic/gencli.tcl,
// src/generic/genvu.tcl, modules/tpcccommon-1.0.tm, modules/xtprof-1.0.tm and src/<database>/*ol?p.tcl of
// https://github.com/TPC-Council/HammerDB.
package hammerdb

import (
	"bytes"
	"cmp"
	"path"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/option"
)

// Name is the tool's name in reports.
const Name = "hammerdb"

// program is the command line interface, a script of Tcl.
const program = "hammerdbcli"

// Tool is HammerDB.
var Tool = &tool.Tool{
	Name:     Name,
	Programs: []string{program},
	MatchArgs: func(base string, args []string) bool {
		return strings.HasPrefix(base, "tclsh") && len(args) > 0 && path.Base(args[0]) == program
	},
	Describe: describe,
	Login:    login,
	NewParser: func(d tool.Description) tool.Parser {
		p := NewParser()
		if d.ReportInterval > 0 {
			p.refresh = int(d.ReportInterval / time.Second)
		}
		return p
	},
	Sniff:  sniff,
	Decode: decodeJobs,
}

func sniff(head []byte) int {
	if isJobDatabase(head) {
		return 100
	}
	for _, c := range [...]struct {
		text  string
		score int
	}{
		{"HammerDB CLI v", 100}, {"TEST RESULT : System achieved ", 100}, {"Hammerdb Log @ ", 95},
		{"Hammerdb Transaction Counter Log @ ", 95}, {jobHeader, 95}, {reportSchema, 100},
		{"\"TEST RESULT : System achieved ", 95},
		{" Hammerdb Time Profile Report @ ", 95}, {"Vuser 1:RUNNING", 90}, {"Vuser 1:Beginning rampup time of ", 90},
		{">>>>> SUMMARY OF ", 80}, {" query set(s) in ", 70}, {"\"NEWORD\": {", 70}, {" tpm\": {", 70}, {"\"nopm\": \"", 70},
	} {
		if bytes.Contains(head, []byte(c.text)) {
			return c.score
		}
	}
	return 0
}

// database is what HammerDB calls a kind of database, and benchwatch's word for it.
type database struct {
	prefix, engine string
	host, port     string // defaults
	user, name     string // defaults of TPROC-C
}

// databases are by the name that dbset takes. Those without an engine are known by their settings only.
var databases = map[string]database{
	"maria":  {"maria", "mysql", "127.0.0.1", "3306", "root", "tpcc"},
	"mysql":  {"mysql", "mysql", "127.0.0.1", "3306", "root", "tpcc"},
	"pg":     {"pg", "postgresql", "localhost", "5432", "tpcc", "tpcc"},
	"mssqls": {prefix: "mssqls"}, "ora": {prefix: "ora"}, "db2": {prefix: "db2"},
}

// settings maps a setting of the dictionary, without the prefix of its database, to its label.
var settings = map[string]string{
	"rampup": "rampup_minutes", "duration": "duration_minutes", "driver": "driver", "allwarehouse": "all_warehouses",
	"keyandthink": "keying_and_thinking_time", "storedprocs": "stored_procedures", "no_stored_procs": "no_stored_procedures",
	"prepared": "prepared", "storage_engine": "storage_engine", "partition": "partition", "async_scale": "asynchronous",
	"raiseerror": "raise_error", "total_querysets": "query_sets", "degree_of_parallel": "degree_of_parallel", "connect_pool": "connection_pool",
}

// settingLabel returns the label of a setting such as tpcc:maria_rampup or maria_rampup; empty for other settings.
func settingLabel(key string) string {
	if _, after, ok := strings.Cut(key, ":"); ok {
		key = after
	}
	prefix, name, _ := strings.Cut(key, "_")
	for _, d := range databases {
		if d.prefix == prefix {
			return settings[name]
		}
	}
	return ""
}

// describe reads `hammerdbcli auto run.tcl` with its script.
func describe(in tool.Invocation) tool.Description {
	s := readScript(&in)
	d := tool.Description{Command: s.verb(), Workload: s.workload(), Threads: option.Number(s.users), Labels: map[string]string{}}
	if s.db.engine != "" {
		d.Engine = s.db.engine
		d.Target = s.connection("host", s.db.host) + ":" + s.connection("port", s.db.port)
		d.User = s.benchmark("user", s.db.user)
		d.Database = s.benchmark("dbase", s.db.name)
	}
	for key, value := range s.values {
		if label := settingLabel(key[strings.IndexByte(key, ' ')+1:]); label != "" && value != "" && value != "false" {
			d.Labels[label] = secret.Value(label, value)
		}
	}
	if n := s.benchmark("count_ware", ""); d.Command == verbPrepare && n != "" {
		d.Labels["warehouses"] = n
	}
	if d.Command != verbRun {
		return d
	}
	if s.benchmark("driver", "") == "timed" {
		d.Duration = time.Duration(option.Number(s.benchmark("duration", "5"))) * time.Minute
	}
	if s.benchmark("timeprofile", "") == "true" {
		d.LatencyLogs = []string{path.Join(tempDir(in.Getenv), "hdbxtprofile*.log")}
	}
	if s.loops {
		d.Notes = append(d.Notes, "the script has a loop: each run that it starts is part of this one; with one run per start, such as benchwatch sweep, or import of the log each is a run of its own")
	}
	if s.counter {
		d.ReportInterval = time.Duration(cmp.Or(option.Number(s.refresh), defaultRefresh)) * time.Second
	} else if len(s.values) > 0 {
		d.Notes = append(d.Notes, "the script starts no transaction counter: with tcset refreshrate 1 and tcstart before vurun there are intervals")
	}
	return d
}

// tempDir is the folder into which HammerDB writes its files.
func tempDir(getenv func(string) string) string {
	if getenv != nil {
		for _, name := range []string{"TMP", "TMPDIR"} {
			if dir := getenv(name); dir != "" {
				return dir
			}
		}
	}
	return "/tmp"
}

// login reads the login of the script.
func login(in tool.Invocation) tool.Login {
	s := readScript(&in)
	l := tool.Login{Password: s.benchmark("pass", "")}
	switch s.db.prefix {
	case "pg":
		l.TLS.Mode = tool.ParseTLSMode(s.connection("sslmode", "prefer"))
	default:
		if s.connection("ssl", "false") == "true" {
			l.TLS.Mode = tool.TLSRequired
		}
	}
	return l
}
