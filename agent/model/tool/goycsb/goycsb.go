// Package goycsb reads go-ycsb: its command line, its intervals in three output styles, and its
// summary. Formats: pkg/measurement and pkg/client of https://github.com/pingcap/go-ycsb, April
// 2024.
//
// go-ycsb prints everything cumulatively since the first operation of each kind. Intervals are
// differences; the percentiles of an interval cannot be derived and are left out.
package goycsb

import (
	"bytes"
	"cmp"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/dsn"
	"github.com/benchwatch/benchwatch/agent/model/tool/option"
	"github.com/benchwatch/benchwatch/agent/model/tool/properties"
)

// Name of the tool.
const Name = "go-ycsb"

// Tool is go-ycsb.
var Tool = &tool.Tool{
	Name:      Name,
	Programs:  []string{"go-ycsb"},
	Describe:  describe,
	Login:     login,
	NewParser: newParser,
	Margin:    []string{""},
	Sniff:     sniff,
	Facts: []tool.Fact{
		{Label: "recordcount", Before: `"recordcount"="`, After: `"`},
		{Label: "operationcount", Before: `"operationcount"="`, After: `"`},
		{Label: "field_count", Before: `"fieldcount"="`, After: `"`},
		{Label: "field_length", Before: `"fieldlength"="`, After: `"`},
		{Label: "request_distribution", Before: `"requestdistribution"="`, After: `"`},
		{Label: "target_rate", Before: `"target"="`, After: `"`},
		{Label: "read_proportion", Before: `"readproportion"="`, After: `"`},
		{Label: "update_proportion", Before: `"updateproportion"="`, After: `"`},
		{Label: "insert_proportion", Before: `"insertproportion"="`, After: `"`},
		{Label: "scan_proportion", Before: `"scanproportion"="`, After: `"`},
		{Label: "readmodifywrite_proportion", Before: `"readmodifywriteproportion"="`, After: `"`},
	},
}

func sniff(head []byte) int {
	for _, c := range [...]struct {
		text  string
		score int
	}{
		{"operation,timestamp_us,latency_us", 95},
		{"should be bigger than threadCount: ", 95},
		{"Using request distribution '", 90},
		{"\nRun finished, takes ", 90},
		{`"debug.pprof"="`, 90},
	} {
		if bytes.Contains(head, []byte(c.text)) {
			return c.score
		}
	}
	// go-tpc prints the same rows with TPM instead of OPS.
	for _, c := range [...][2]string{
		{" - Takes(s): ", ", OPS: "}, {"| OPERATION | TAKES(S) |", "  OPS  |"}, {`"Takes(s)":"`, `"OPS":"`},
	} {
		if bytes.Contains(head, []byte(c[0])) && bytes.Contains(head, []byte(c[1])) {
			return 97
		}
	}
	for _, p := range [...]string{"create db ", "create workload "} {
		if bytes.HasPrefix(head, []byte(p)) {
			return 70
		}
	}
	return 0
}

// options are the parsed command line of go-ycsb.
type options struct {
	properties.Set
	verb, binding string
}

// describe reads `go-ycsb run mysql -P workloads/workloada --threads 10`. go-ycsb always prints
// intervals, so there is nothing to insert.
func describe(inv tool.Invocation) tool.Description {
	o := read(inv)
	d := tool.Description{
		Command:        o.verb,
		Workload:       o.Workload(),
		Threads:        o.Threads(),
		Rate:           o.Rate(),
		ReportInterval: 10 * time.Second,
		Labels:         o.Labels(o.binding),
	}
	if warmup := o.Values["warmuptime"]; warmup != "" {
		d.Labels["warmup_seconds"] = warmup
	}
	d.Target, d.Database = o.address()
	switch o.binding {
	case "mysql", "mariadb", "tidb":
		d.Engine, d.User = "mysql", cmp.Or(o.Values["mysql.user"], "root")
	case "pg", "postgresql":
		d.Engine, d.User = "postgresql", cmp.Or(o.Values["pg.user"], "root")
	default:
		d.Engine, d.User = dsn.Login(o.Values["mongodb.url"])
	}
	interval, set := o.Values["measurement.interval"]
	if n, err := strconv.Atoi(interval); err == nil && n > 0 {
		d.ReportInterval = time.Duration(n) * time.Second
	}
	switch t := o.Values["measurementtype"]; {
	case d.Command != "run" && d.Command != "load":
		d.ReportInterval = 0
	case t == "raw" || t == "csv":
		d.ReportInterval = 0
		d.Notes = append(d.Notes, "measurementtype="+t+": go-ycsb prints nothing before its end, so nothing is live")
	case !set:
		d.Notes = append(d.Notes, "go-ycsb reports every 10 seconds; --interval 1 shows more")
	}
	if o.Values["measurement.output_file"] != "" {
		d.Notes = append(d.Notes, "measurement.output_file: go-ycsb writes its summary to a file and prints none")
	}
	return d
}

// login reads the login in the properties. The binding of MySQL uses no TLS.
func login(inv tool.Invocation) tool.Login {
	o := read(inv)
	switch o.binding {
	case "mysql", "mariadb", "tidb":
		return tool.Login{Password: o.Values["mysql.password"]}
	case "pg", "postgresql":
		return tool.Login{Password: o.Values["pg.password"], TLS: tool.TLS{Mode: tool.ParseTLSMode(cmp.Or(o.Values["pg.sslmode"], "disable"))}}
	}
	return dsn.Credentials(o.Values["mongodb.url"])
}

var syntax = option.Syntax{Short: map[byte]string{'P': "property_file", 'p': "prop"}, Switches: map[byte]string{'h': "help"}, Flags: []string{"help"}, PFlag: true}

// flagProperties are the properties that options set.
var flagProperties = map[string]string{"threads": "threadcount", "target": "target", "interval": "measurement.interval"}

func read(inv tool.Invocation) options {
	var o options
	own, flags := map[string]string{}, map[string]string{}
	words := syntax.Read(inv.Args, func(name, value string) {
		switch name {
		case "property_file":
			o.Files = append(o.Files, strings.Split(value, ",")...)
		case "prop":
			if key, v, ok := strings.Cut(value, "="); ok {
				own[key] = v
			}
		default:
			if property, ok := flagProperties[name]; ok {
				flags[property] = value
			}
		}
	})
	words = append(words, "", "")
	o.verb, o.binding = words[0], words[1]
	o.ReadFiles(&inv)
	maps.Copy(o.Values, own)
	maps.Copy(o.Values, flags)
	return o
}

// address returns the address of the database. Each binding has its own properties; those of MySQL
// and PostgreSQL have defaults.
func (o *options) address() (target, database string) {
	hostPort := func(prefix, host, port string) string {
		if h := o.Values[prefix+".host"]; h != "" {
			host = h
		}
		if p := o.Values[prefix+".port"]; p != "" {
			port = p
		}
		return host + ":" + port
	}
	switch o.binding {
	case "mysql", "mariadb", "tidb":
		return hostPort("mysql", "127.0.0.1", "3306"), o.Values["mysql.db"]
	case "pg", "postgresql", "cockroach", "cdb":
		return hostPort("pg", "127.0.0.1", "5432"), o.Values["pg.db"]
	}
	for _, key := range []string{"mongodb.url", "redis.addr", "tikv.pd", "cassandra.cluster", "etcd.endpoints", "aerospike.host",
		"es.hosts.list", "minio.endpoint", "pegasus.metaservers", "dynamodb.endpoint", "spanner.db", "sqlite.db"} {
		v := o.Values[key]
		if a := dsn.Parse(v); a.Hosts != "" {
			return a.Hosts, a.Database
		}
		if v != "" && !strings.ContainsAny(v, "@") {
			return v, ""
		}
	}
	return "", ""
}
