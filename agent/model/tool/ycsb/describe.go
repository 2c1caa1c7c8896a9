package ycsb

import (
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/dsn"
	"github.com/benchwatch/benchwatch/agent/model/tool/properties"
)

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
	if port := o.Values[strings.TrimSuffix(strings.TrimSuffix(key, "host"), "hosts")+"port"]; port != "" && !strings.Contains(value, ":") {
		value += ":" + port
	}
	return value, ""
}
