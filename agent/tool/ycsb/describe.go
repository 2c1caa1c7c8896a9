package ycsb

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/secret"
	"github.com/benchwatch/benchwatch/agent/tool"
	"github.com/benchwatch/benchwatch/agent/tool/dsn"
	"github.com/benchwatch/benchwatch/agent/tool/properties"
)

// options are what a command line of YCSB says.
type options struct {
	command string // load, run, shell
	binding string // as the launcher calls it: mongodb, jdbc …
	files   []string
	unread  bool // a property file could not be read
	// props are the properties, those of the command line before those of the
	// files.
	props   map[string]string
	secrets []string
	// insert is where options can be added; -1 if nowhere.
	insert int
}

// describe reads the launcher's arguments (bin/ycsb, bin/ycsb.sh), those of a
// Python that runs it, or those of a JVM.
func describe(inv tool.Invocation) tool.Description {
	o := read(inv)
	d := tool.Description{
		Command:  o.command,
		Workload: o.workload(),
		Threads:  o.number("threadcount"),
		Duration: time.Duration(o.number("maxexecutiontime")) * time.Second,
		Labels:   o.labels(),
	}
	if _, set := o.props["threadcount"]; !set && !o.unread {
		d.Threads = 1
	}
	for _, key := range addressKeys {
		if v := o.props[key]; v != "" && d.Target == "" {
			d.Target, d.Database = o.address(key, v)
		}
	}
	d.Redacted, d.Secrets = redact(inv.Args, o.secrets)
	o.liveReports(&d)
	return d
}

// liveReports tells the interval of the status lines, and what to add for one
// a second.
func (o *options) liveReports(d *tool.Description) {
	status, said := o.props["status"]
	interval, set := o.props["status.interval"]
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
	if f := o.props["exportfile"]; f != "" {
		d.Notes = append(d.Notes, "exportfile: YCSB writes its summary to a file and prints none")
	}
	if o.number("target") > 0 && o.command == "run" && o.props["measurement.interval"] == "" {
		d.Notes = append(d.Notes, "with -target, latencies leave out the time that operations wait behind slow ones; add -p measurement.interval=both to see it")
	}
}

// read tells the launcher's form from the JVM's.
func read(inv tool.Invocation) options {
	args, at := inv.Args, 0
	if i := mainClass(args); i >= 0 {
		o := readClient(args[i+1:], inv.ReadFile)
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
	c := readClient(rest, inv.ReadFile)
	c.command, c.binding, c.insert = o.command, o.binding, o.insert
	return c
}

// readClient reads the arguments of site.ycsb.Client.
func readClient(args []string, readFile func(string) ([]byte, error)) options {
	o := options{command: "run", props: map[string]string{}}
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
			o.files = append(o.files, value)
		case "-p":
			if key, v, ok := strings.Cut(value, "="); ok {
				own[key] = v
			}
		default:
			continue
		}
		i++
	}
	for _, f := range o.files {
		o.readFile(f, readFile)
	}
	for key, v := range own {
		o.props[key] = v
	}
	if strings.EqualFold(o.props["dotransactions"], "false") {
		o.command = "load"
	}
	for key, v := range o.props {
		if secret.Name(key) && v != "" {
			o.secrets = append(o.secrets, v)
		}
		o.secrets = append(o.secrets, dsn.Parse(v).Secrets...)
	}
	return o
}

// readFile adds the properties of a -P file; a later file wins.
func (o *options) readFile(name string, readFile func(string) ([]byte, error)) {
	if readFile == nil {
		o.unread = true
		return
	}
	text, err := readFile(name)
	if err != nil {
		o.unread = true
		return
	}
	properties.Each(string(text), func(key, value string) { o.props[key] = value })
}

// number returns a property that is a whole number, else 0.
func (o *options) number(key string) int {
	n, err := strconv.Atoi(strings.TrimSpace(o.props[key]))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// workload names the workload by its file: workloada. Of several files the one
// called so is meant, the others hold settings.
func (o *options) workload() string {
	name := ""
	for _, f := range o.files {
		base := path.Base(strings.ReplaceAll(f, `\`, "/"))
		if strings.HasPrefix(base, "workload") {
			return base
		}
		if name == "" {
			name = base
		}
	}
	if name != "" {
		return name
	}
	class := o.props["workload"]
	return class[strings.LastIndexByte(class, '.')+1:]
}

// labels are the facts that describe a run, from the properties of the same
// name unless said otherwise.
func (o *options) labels() map[string]string {
	labels := map[string]string{}
	set := func(label, value string) {
		if value != "" {
			labels[label] = value
		}
	}
	set("binding", o.bindingName())
	set("recordcount", o.props["recordcount"])
	set("operationcount", o.props["operationcount"])
	set("insertcount", o.props["insertcount"])
	set("request_distribution", o.props["requestdistribution"])
	if o.number("target") > 0 {
		set("target_rate", strconv.Itoa(o.number("target")))
	}
	return labels
}

// bindingName is the launcher's name of the binding or, where a JVM was
// started, the class of its client.
func (o *options) bindingName() string {
	if o.binding != "" {
		return o.binding
	}
	class := o.props["db"]
	return class[strings.LastIndexByte(class, '.')+1:]
}

// addressKeys are the properties that say where the database is.
var addressKeys = []string{"mongodb.url", "db.url", "hosts", "redis.host", "as.host", "postgrenosql.url", "es.hosts.list",
	"rocksdb.dir", "riak.hosts", "couchbase.host", "couchbase.url", "voltdb.servers", "scylla.hosts", "arangodb.ip", "tarantool.host"}

func (o *options) address(key, value string) (target, database string) {
	if a := dsn.Parse(value); a.Hosts != "" {
		return a.Hosts, a.Database
	}
	if strings.Contains(value, ":/") || strings.Contains(value, "@") {
		return "", "" // a form that is not known; it may hold a password
	}
	if port := o.props[strings.TrimSuffix(strings.TrimSuffix(key, "host"), "hosts")+"port"]; port != "" && !strings.Contains(value, ":") {
		value += ":" + port
	}
	return value, ""
}

// minToken is the length from which a secret is blanked wherever it stands: a
// password "1" must not blank every option whose value is 1.
const minToken = 4

// redact blanks secrets in args.
func redact(args, secrets []string) (redacted, found []string) {
	for _, s := range secrets {
		if s != "" && !slices.Contains(found, s) {
			found = append(found, s)
		}
	}
	slices.Sort(found)
	r := secret.New(slices.DeleteFunc(slices.Clone(found), func(s string) bool { return len(s) < minToken })...)
	for _, a := range args {
		key, value, ok := strings.Cut(a, "=")
		switch {
		case ok && value != "" && secret.Name(strings.TrimLeft(key, "-")):
			a = key + "=" + secret.Blank
			if !slices.Contains(found, value) {
				found = append(found, value)
			}
		case ok:
			a = key + "=" + r.Text(value)
		default:
			a = r.Text(a)
		}
		redacted = append(redacted, a)
	}
	return redacted, found
}
