// Package gotpc reads the command lines and the output of go-tpc: TPC-C in the styles plain, table
// and json, and the rows of TPC-H and CH-benCHmark. Formats: tpcc/workload.go,
// pkg/measurement/hist.go and pkg/util/output.go of https://github.com/pingcap/go-tpc, up to
// version 1.0.12.
package gotpc

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/option"
)

// Name is the tool's name in reports.
const Name = "go-tpc"

// Tool is go-tpc.
var Tool = &tool.Tool{
	Name:      Name,
	Programs:  []string{"go-tpc"},
	MatchArgs: isTiUP,
	Describe:  Describe,
	Login:     login,
	NewParser: func(d tool.Description) tool.Parser { return NewParser(d) },
	Margin:    []string{""},
	Sniff:     Sniff,
	Unread: []tool.Unread{{
		Text: "NEW_ORDER - Takes(s): ",
		Why:  "go-tpc of early 2020 printed its rows without [Current] or [Summary]: they may be of an interval or of a whole run, and are not read",
	}},
	OwnTime: func(line []byte) bool { return len(line) > 0 && stampedFailure(line) },
	Facts: []tool.Fact{
		{Label: "analytical_threads", Line: "Finished: ", Before: " OLTP workers, ", After: " OLAP workers"},
	},
}

// Sniff returns from 0 to 100 how much an output that begins with head resembles go-tpc's.
func Sniff(head []byte) int {
	score := 0
	tool.ParseAll(NewParser(tool.Description{}), tool.Stdout, head, func(r *tool.Report) {
		switch {
		case r.Kind == tool.Interval || r.Kind == tool.Summary:
			score = 100 // no other tool's rows begin with [Current]
		case r.Command != "", strings.HasPrefix(r.Message, "failed to ping db, err "):
			score = max(score, 60)
		}
	})
	return score
}

var syntax = option.Syntax{
	Short: map[byte]string{
		'D': "db", 'H': "host", 'U': "user", 'p': "password", 'P': "port", 'S': "statusPort", 'T': "threads", 't': "acThreads", 'd': "driver",
	},
	Switches: map[byte]string{'h': "help"},
	Flags: []string{
		"dropdata", "ignore-error", "silence", "check-all", "wait", "no-check", "use-fk", "use-clustered-index", "use-explain", "check", "analyze",
		"use-plan-replayer", "enable-query-tuning", "help",
	},
	PFlag: true,
}

// verbs are the subcommands of the workloads. cobra accepts any unique prefix.
var verbs = []string{"run", "prepare", "cleanup", "check"}

// defaultInterval is --interval's default.
const defaultInterval = 10 * time.Second

// labels map options to labels.
var labels = map[string]string{
	"warehouses": "warehouses", "count": "count", "isolation": "isolation", "weight": "weight", "wait": "wait",
	"driver": "driver", "sf": "scale_factor", "acThreads": "analytical_threads", "queries": "queries", "parts": "parts",
	"ignore-error": "ignore_error",
}

// component begins TiUP's name of go-tpc: bench or bench:v1.12.0.
const component = "bench"

// isTiUP recognises go-tpc as a component of TiUP.
func isTiUP(base string, args []string) bool {
	return base == "tiup" && componentAt(args) >= 0
}

// componentAt returns the index of the component among TiUP's arguments, -1 if it runs another one.
func componentAt(args []string) int {
	for i, a := range args {
		if a == component || strings.HasPrefix(a, component+":") {
			return i
		}
		if !strings.HasPrefix(a, "-") && (i == 0 || args[i-1] != "--tag" && args[i-1] != "-T") {
			break
		}
	}
	return -1
}

// Describe reads a command line of go-tpc.
func Describe(in tool.Invocation) tool.Description {
	o := parseOptions(in)
	d := tool.Description{Labels: map[string]string{}, Workload: o.Word(0)}
	if d.Workload == "" || d.Workload == "version" {
		return d
	}
	for _, v := range verbs {
		if w := o.Word(1); w != "" && strings.HasPrefix(v, w) {
			d.Command = v
			break
		}
	}
	d.Threads = o.Number("threads", 1)
	d.Database = o.Text("db", "test")
	d.Target = target(o)
	switch driver := o.Text("driver", "mysql"); driver {
	case "mysql":
		d.Engine, d.User = driver, o.Text("user", "root")
	case "postgres":
		d.Engine, d.User = "postgresql", o.Text("user", "root")
	}
	d.Labels = o.Labels(labels)
	if (d.Workload == "tpcc" || d.Workload == "ch") && d.Labels["warehouses"] == "" {
		d.Labels["warehouses"] = "10"
	}
	if d.Command != "run" {
		return d
	}
	d.Duration = o.Duration("time", 0)
	d.ReportInterval = o.Duration("interval", defaultInterval)
	if !o.Has("interval") {
		d.Notes = append(d.Notes, "go-tpc reports every 10 s: with --interval 1s there is more to see")
	}
	return d
}

// login reads the TLS of the connection parameters; by default there is none.
func login(in tool.Invocation) tool.Login {
	o := parseOptions(in)
	parameters, err := url.ParseQuery(o.Values["conn-params"])
	if err != nil || parameters.Get("tls") == "" {
		return tool.Login{Password: o.Values["password"]}
	}
	mode := tool.ParseTLSMode(parameters.Get("tls"))
	if mode == tool.TLSRequired && parameters.Get("tls") != "skip-verify" {
		mode = tool.TLSVerify // true
	}
	return tool.Login{Password: o.Values["password"], TLS: tool.TLS{Mode: mode}}
}

func parseOptions(in tool.Invocation) *option.Set {
	o, args := option.New(), in.Args
	if in.Program == "tiup" {
		args = args[componentAt(args)+1:]
	}
	o.Words = syntax.Read(args, func(name, value string) {
		switch {
		case slices.Contains(syntax.Flags, name) && value == "on":
			value = "true"
		case (name == "host" || name == "port" || name == "targets") && o.Values[name] != "":
			value = o.Values[name] + "," + value // lists are joined
		}
		o.Values[name] = value
	})
	return o
}

// target returns every host with every port: go-tpc connects to them in turn.
func target(o *option.Set) string {
	return o.Text("targets", option.Targets(o.Text("host", "127.0.0.1"), o.Text("port", "4000"), true))
}
