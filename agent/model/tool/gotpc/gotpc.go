// Package gotpc reads the command lines and the output of go-tpc: TPC-C in the styles plain, table
// and json, and the rows of TPC-H and CH-benCHmark. Formats: tpcc/workload.go,
// pkg/measurement/hist.go and pkg/util/output.go of https://github.com/pingcap/go-tpc, up to
// version 1.0.12.
package gotpc

import (
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
	Describe:  Describe,
	NewParser: func(d tool.Description) tool.Parser { return NewParser(d) },
	Sniff:     Sniff,
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

// shorthands map the one-letter options, which all take a value, to their long names. -h is the
// help, -H the host.
var shorthands = map[byte]string{
	'D': "db", 'H': "host", 'U': "user", 'p': "password", 'P': "port", 'S': "statusPort", 'T': "threads", 't': "acThreads", 'd': "driver",
}

// switches are options that only take a value after "=".
var switches = map[string]bool{
	"dropdata": true, "ignore-error": true, "silence": true, "check-all": true, "wait": true, "no-check": true, "use-fk": true,
	"use-clustered-index": true, "use-explain": true, "check": true, "analyze": true, "use-plan-replayer": true,
	"enable-query-tuning": true, "help": true,
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

// Describe reads a command line of go-tpc.
func Describe(in tool.Invocation) tool.Description {
	o := parseOptions(in.Args)
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
	if driver := o.Text("driver", "mysql"); driver == "mysql" {
		d.Engine, d.User = driver, o.Text("user", "root")
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

// parseOptions splits args as pflag does.
func parseOptions(args []string) *option.Set {
	o := option.New()
	for i := 0; i < len(args); i++ {
		name, value, found, ok := split(args[i])
		if !ok {
			if args[i] != "--" {
				o.Words = append(o.Words, args[i])
			}
			continue
		}
		if !found { // the value is the next word
			if switches[name] {
				o.Values[name] = "true"
				continue
			}
			if i++; i == len(args) {
				break
			}
			value = args[i]
		}
		set(o, name, value)
	}
	return o
}

// split returns an option's name and value. found is false if the word contains no value.
func split(a string) (name, value string, found, ok bool) {
	switch {
	case strings.HasPrefix(a, "--") && len(a) > 2:
		name, value, found := strings.Cut(a[2:], "=")
		return name, value, found, true
	case len(a) >= 2 && a[0] == '-' && a[1] != '-':
		name := shorthands[a[1]]
		switch {
		case name == "":
			return "help", "", true, true
		case len(a) == 2:
			return name, "", false, true
		case a[2] == '=':
			return name, a[3:], true, true
		}
		return name, a[2:], true, true
	}
	return "", "", false, false
}

// set sets an option. A later value replaces an earlier one; lists are joined.
func set(o *option.Set, name, value string) {
	if list := name == "host" || name == "port" || name == "targets"; list && o.Values[name] != "" {
		value = o.Values[name] + "," + value
	}
	o.Values[name] = value
}

// target returns every host with every port: go-tpc connects to them in turn.
func target(o *option.Set) string {
	return o.Text("targets", option.Targets(o.Text("host", "127.0.0.1"), o.Text("port", "4000"), true))
}
