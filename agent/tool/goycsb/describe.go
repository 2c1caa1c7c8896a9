package goycsb

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

// options are what a command line of go-ycsb says.
type options struct {
	words  []string // the verb and the database
	files  []string
	unread bool // a property file could not be read
	props  map[string]string
}

// describe reads `go-ycsb run mysql -P workloads/workloada --threads 10`.
// Interval output is always on, so nothing is inserted.
func describe(inv tool.Invocation) tool.Description {
	o := read(inv)
	d := tool.Description{
		Command:        o.word(0),
		Workload:       o.workload(),
		Threads:        o.number("threadcount"),
		ReportInterval: 10 * time.Second,
		Labels:         o.labels(),
	}
	if _, set := o.props["threadcount"]; !set && !o.unread {
		d.Threads = 1
	}
	d.Target, d.Database = o.address()
	interval, set := o.props["measurement.interval"]
	if n, err := strconv.Atoi(interval); err == nil && n > 0 {
		d.ReportInterval = time.Duration(n) * time.Second
	}
	switch t := o.props["measurementtype"]; {
	case d.Command != "run" && d.Command != "load":
		d.ReportInterval = 0
	case t == "raw" || t == "csv":
		d.ReportInterval = 0
		d.Notes = append(d.Notes, "measurementtype="+t+": go-ycsb prints nothing before its end, so nothing is live")
	case !set:
		d.Notes = append(d.Notes, "go-ycsb reports every 10 seconds; --interval 1 shows more")
	}
	if o.props["measurement.output_file"] != "" {
		d.Notes = append(d.Notes, "measurement.output_file: go-ycsb writes its summary to a file and prints none")
	}
	var secrets []string
	for key, value := range o.props {
		secrets = append(secrets, secretsOf(key, value)...)
	}
	d.Redacted, d.Secrets = redact(inv.Args, secrets)
	return d
}

// secretsOf returns what must not be shown of a property.
func secretsOf(key, value string) []string {
	if value != "" && secret.Name(key) {
		return []string{value}
	}
	return dsn.Parse(value).Secrets
}

// values are the options that take a value, by their long names.
var values = map[string]string{
	"-P": "property_file", "--property_file": "property_file",
	"-p": "prop", "--prop": "prop",
	"--table": "table", "--threads": "threadcount", "--target": "target", "--interval": "measurement.interval",
}

func read(inv tool.Invocation) options {
	o := options{props: map[string]string{}}
	var own, flags [][2]string
	for i := 0; i < len(inv.Args); i++ {
		a := inv.Args[i]
		if len(a) < 2 || a[0] != '-' {
			o.words = append(o.words, a)
			continue
		}
		flag, value, joined := strings.Cut(a, "=")
		if !strings.HasPrefix(a, "--") {
			flag, value, joined = a[:2], strings.TrimPrefix(a[2:], "="), len(a) > 2 // -P file, -Pfile, -P=file
		}
		option, ok := values[flag]
		if !ok {
			continue
		}
		if !joined {
			if i++; i == len(inv.Args) {
				break
			}
			value = inv.Args[i]
		}
		switch option {
		case "property_file":
			o.files = append(o.files, strings.Split(value, ",")...)
		case "prop":
			if key, v, ok := strings.Cut(value, "="); ok {
				own = append(own, [2]string{key, v})
			}
		case "table":
		default:
			flags = append(flags, [2]string{option, value})
		}
	}
	for _, f := range o.files {
		o.readFile(f, inv.ReadFile)
	}
	for _, kv := range append(own, flags...) { // the latter win
		o.props[kv[0]] = kv[1]
	}
	return o
}

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

func (o *options) word(i int) string {
	if i < len(o.words) {
		return o.words[i]
	}
	return ""
}

func (o *options) number(key string) int {
	n, err := strconv.Atoi(o.props[key])
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// workload names the workload by its file: workloada.
func (o *options) workload() string {
	name := ""
	for _, f := range o.files {
		base := path.Base(f)
		if strings.HasPrefix(base, "workload") {
			return base
		}
		if name == "" {
			name = base
		}
	}
	if name == "" {
		name = o.props["workload"]
	}
	return name
}

func (o *options) labels() map[string]string {
	labels := map[string]string{}
	for label, value := range map[string]string{
		"binding":              o.word(1),
		"recordcount":          o.props["recordcount"],
		"operationcount":       o.props["operationcount"],
		"insertcount":          o.props["insertcount"],
		"request_distribution": o.props["requestdistribution"],
		"warmup_seconds":       o.props["warmuptime"],
	} {
		if value != "" {
			labels[label] = value
		}
	}
	if n := o.number("target"); n > 0 {
		labels["target_rate"] = strconv.Itoa(n)
	}
	return labels
}

// address tells where the database is. Each binding has its own properties;
// those of MySQL and PostgreSQL have defaults.
func (o *options) address() (target, database string) {
	hostPort := func(prefix, host, port string) string {
		if h := o.props[prefix+".host"]; h != "" {
			host = h
		}
		if p := o.props[prefix+".port"]; p != "" {
			port = p
		}
		return host + ":" + port
	}
	switch o.word(1) {
	case "mysql", "mariadb", "tidb":
		return hostPort("mysql", "127.0.0.1", "3306"), o.props["mysql.db"]
	case "pg", "postgresql", "cockroach", "cdb":
		return hostPort("pg", "127.0.0.1", "5432"), o.props["pg.db"]
	}
	for _, key := range []string{"mongodb.url", "redis.addr", "tikv.pd", "cassandra.cluster", "etcd.endpoints", "aerospike.host",
		"es.hosts.list", "minio.endpoint", "pegasus.metaservers", "dynamodb.endpoint", "spanner.db", "sqlite.db"} {
		v := o.props[key]
		if a := dsn.Parse(v); a.Hosts != "" {
			return a.Hosts, a.Database
		}
		if v != "" && !strings.ContainsAny(v, "@") {
			return v, ""
		}
	}
	return "", ""
}

// minToken is the length from which a secret is blanked wherever it stands.
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
		option, property := "", a
		for _, p := range []string{"--prop=", "-p=", "-p"} {
			if rest, ok := strings.CutPrefix(a, p); ok && rest != "" {
				option, property = p, rest
				break
			}
		}
		key, value, ok := strings.Cut(property, "=")
		if ok && value != "" && secret.Name(key) {
			a = option + key + "=" + secret.Blank
		} else {
			a = r.Text(a)
		}
		redacted = append(redacted, a)
	}
	return redacted, found
}
