// Package ycsb reads YCSB, the Java program: its command line, its status lines and its summary.
// Formats: 0.17.0 and the main branch, which calls itself 0.18.0-SNAPSHOT (StatusThread,
// Measurements and its exporters).
//
// YCSB prints no latency over all operations, counts failed operations as ended ones, and always
// exits with 0. The parser therefore uses counts and messages to decide whether a run failed.
package ycsb

import (
	"bytes"
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/dsn"
	"github.com/benchwatch/benchwatch/agent/model/tool/properties"
)

// Name of the tool.
const Name = "ycsb"

// Tool is YCSB.
var Tool = &tool.Tool{
	Name:      Name,
	Programs:  []string{"ycsb"},
	MatchArgs: matchArgs,
	Describe:  describe,
	Login:     login,
	NewParser: func(tool.Description) tool.Parser { return newParser() },
	Margin:    []string{"[", "YCSB Client ", "Command line: ", "20"},
	Sniff:     sniff,

	Echo: "Command line: ",
	EchoLabels: func(options []string) map[string]string {
		return describe(tool.Invocation{Program: "java", Args: append([]string{mainClasses[0]}, options...), Getenv: func(string) string { return "" }}).Labels
	},
	CountsFailures:  func(verb string) bool { return verb != "load" },
	ReportsOnStderr: true,
}

// mainClasses are YCSB's entry points, now and before 0.15.
var mainClasses = []string{"site.ycsb.Client", "com.yahoo.ycsb.Client"}

// matchArgs recognises a JVM that runs YCSB, and a Python that runs its launcher.
func matchArgs(base string, args []string) bool {
	base = strings.TrimSuffix(base, ".exe")
	switch {
	case base == "java":
		return mainClass(args) >= 0
	case strings.HasPrefix(base, "python"):
		return len(args) > 0 && isLauncher(args[0])
	}
	return false
}

// isLauncher reports whether arg is the path of one of YCSB's scripts.
func isLauncher(arg string) bool {
	switch path.Base(arg) {
	case "ycsb", "ycsb.sh", "ycsb.py":
		return true
	}
	return false
}

// mainClass returns the index of YCSB's main class, or -1.
func mainClass(args []string) int {
	for i, a := range args {
		if slices.Contains(mainClasses, a) {
			return i
		}
	}
	return -1
}

// sniff recognises texts that only YCSB prints, on either stream.
func sniff(head []byte) int {
	for _, c := range [...]struct {
		text  string
		score int
	}{
		{"YCSB Client ", 98},
		{"site.ycsb.Client -", 98},
		{"com.yahoo.ycsb.Client -", 98},
		{"[OVERALL], RunTime(ms), ", 98},
		{"[OVERALL],RunTime(ms), ", 98}, // 0.1
		{" current ops/sec; ", 95},
		{`"metric" : "OVERALL"`, 95},
		{`"metric":"OVERALL"`, 95},
		{" operations; est completion in ", 95},
		{"DBWrapper: report latency for each error", 95},
		{"Command line: -", 70},
		{"mongo client connection created with mongodb", 90},
		{"Adding shard node URL: jdbc:", 90},
		{"Raw data measurement: will output to ", 85},
		{" latency raw data: op, timestamp(ms), latency(us)", 90},
		{"the threadcount will be recordcount!", 90},
		{"at site.ycsb.", 85},
		{"Failed check required properties.", 80},
		{"Unable to open the properties file ", 80},
		{"-db site.ycsb.", 80},
		{`"workload"="site.ycsb.`, 90},
		{" sec: 0 operations; ", 80},
		{"Unknown DB site.ycsb.", 80},
	} {
		if bytes.Contains(head, []byte(c.text)) {
			return c.score
		}
	}
	if i := statusAt(head); i >= 0 {
		return 80
	}
	return 0
}

// options are the parsed command line of YCSB. Its properties win over those in files.
type options struct {
	properties.Set
	command string // load, run, shell
	binding string // in the launcher's words: mongodb, jdbc …
	// insert is the index at which options can be added; -1 if impossible.
	insert int
}

// describe reads the arguments of the launcher (bin/ycsb, bin/ycsb.sh), of a Python that runs it,
// or of a JVM.
func describe(inv tool.Invocation) tool.Description {
	o := read(inv)
	d := tool.Description{
		Command:  o.command,
		Workload: o.Workload(),
		Threads:  o.Threads(),
		Rate:     o.Rate(),
		Duration: time.Duration(o.Number("maxexecutiontime")) * time.Second,
		Labels:   o.Labels(o.bindingName()),
	}
	for _, key := range addressKeys {
		if v := o.Values[key]; v != "" && d.Target == "" {
			d.Target, d.Database = o.address(key, v)
			d.Engine, d.User = dsn.Login(v)
			if d.User == "" {
				d.User = o.Values["db.user"]
			}
		}
	}
	o.liveReports(&d)
	return d
}

// login reads the login in the URL of the database or beside it.
func login(inv tool.Invocation) tool.Login {
	o := read(inv)
	for _, key := range addressKeys {
		if v := o.Values[key]; v != "" {
			l := dsn.Credentials(v)
			l.Password = cmp.Or(l.Password, o.Values["db.passwd"])
			return l
		}
	}
	return tool.Login{}
}

// liveReports sets the interval of the status lines, and the arguments for one per second.
func (o *options) liveReports(d *tool.Description) {
	status, said := o.Values["status"]
	interval, set := o.Values["status.interval"]
	if strings.EqualFold(status, "true") {
		d.ReportInterval = 10 * time.Second
		if n, err := strconv.Atoi(interval); err == nil && n > 0 {
			d.ReportInterval = time.Duration(n) * time.Second
		}
	}
	if o.command == "load" || o.command == "run" {
		var add []string
		if !said {
			add = append(add, "-s")
		}
		if !set && !strings.EqualFold(status, "false") {
			add = append(add, "-p", "status.interval=1")
		}
		if len(add) > 0 && o.insert >= 0 {
			d.Insert = []tool.Insertion{{At: o.insert, Args: add}}
		}
	}
	if f := o.Values["exportfile"]; f != "" {
		d.Notes = append(d.Notes, "exportfile: YCSB writes its summary to a file and prints none")
	}
	if o.Number("target") > 0 && o.command == "run" && o.Values["measurement.interval"] == "" {
		d.Notes = append(d.Notes, "with -target, latencies leave out the time that operations wait for slow ones; add -p measurement.interval=both to see it")
	}
}

// read reads the launcher's form or the JVM's.
func read(inv tool.Invocation) options {
	args, at := inv.Args, 0
	if i := mainClass(args); i >= 0 {
		o := readClient(args[i+1:], &inv)
		o.insert = i + 1
		return o
	}
	if len(args) > 0 && isLauncher(args[0]) {
		args, at = args[1:], 1 // python2 bin/ycsb …
	}
	o := options{insert: -1}
	var rest []string
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-cp" || a == "-jvm-args":
			i++
		case o.binding == "" && (a == "" || a[0] != '-'):
			if o.command == "" {
				o.command = a
				continue
			}
			o.binding, o.insert = a, at+i+1
		default:
			rest = append(rest, args[i])
		}
	}
	c := readClient(rest, &inv)
	c.command, c.binding, c.insert = o.command, o.binding, o.insert
	return c
}

// readClient reads the arguments of site.ycsb.Client.
func readClient(args []string, inv *tool.Invocation) options {
	o := options{command: "run"}
	own := map[string]string{}
	for i := 0; i < len(args); i++ {
		value := ""
		if i+1 < len(args) {
			value = args[i+1]
		}
		switch args[i] {
		case "-s":
			own["status"] = "true"
			continue
		case "-load":
			own["dotransactions"] = "false"
			continue
		case "-t":
			own["dotransactions"] = "true"
			continue
		case "-threads":
			own["threadcount"] = value
		case "-target":
			own["target"] = value
		case "-db":
			own["db"] = value
		case "-l":
			own["label"] = value
		case "-P":
			o.Files = append(o.Files, value)
		case "-p":
			if key, v, ok := strings.Cut(value, "="); ok {
				own[key] = v
			}
		default:
			continue
		}
		i++
	}
	o.ReadFiles(inv)
	maps.Copy(o.Values, own)
	if strings.EqualFold(o.Values["dotransactions"], "false") {
		o.command = "load"
	}
	return o
}

// bindingName returns the launcher's name of the binding or, for a JVM, the class of its client.
func (o *options) bindingName() string {
	if o.binding != "" {
		return o.binding
	}
	class := o.Values["db"]
	return class[strings.LastIndexByte(class, '.')+1:]
}

// addressKeys are the properties with the address of the database.
var addressKeys = []string{"mongodb.url", "db.url", "hosts", "redis.host", "as.host", "postgrenosql.url", "es.hosts.list",
	"rocksdb.dir", "riak.hosts", "couchbase.host", "couchbase.url", "voltdb.servers", "scylla.hosts", "arangodb.ip", "tarantool.host"}

func (o *options) address(key, value string) (target, database string) {
	if a := dsn.Parse(value); a.Hosts != "" {
		return a.Hosts, a.Database
	}
	if strings.Contains(value, ":/") || strings.Contains(value, "@") {
		return "", "" // an unknown form, which may contain a password
	}
	if port := o.Values[strings.TrimSuffix(strings.TrimSuffix(key, "host"), "hosts")+"port"]; port != "" &&
		!strings.Contains(value, ":") {
		value += ":" + port
	}
	return value, ""
}
