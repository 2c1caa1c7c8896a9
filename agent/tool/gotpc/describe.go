package gotpc

import (
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/secret"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// shorthands are the options of one letter, all with a value, and their long
// names. -h is the help, -H the host.
var shorthands = map[byte]string{
	'D': "db", 'H': "host", 'U': "user", 'p': "password", 'P': "port", 'S': "statusPort", 'T': "threads", 't': "acThreads", 'd': "driver",
}

// switches are the options that take no value but behind "=".
var switches = map[string]bool{
	"dropdata": true, "ignore-error": true, "silence": true, "check-all": true, "wait": true, "no-check": true, "use-fk": true,
	"use-clustered-index": true, "use-explain": true, "check": true, "analyze": true, "use-plan-replayer": true,
	"enable-query-tuning": true, "help": true,
}

// verbs are the subcommands of the workloads. cobra takes a unique beginning.
var verbs = []string{"run", "prepare", "cleanup", "check"}

// defaultInterval is --interval's default.
const defaultInterval = 10 * time.Second

// labels are options that become labels.
var labels = []struct{ option, label string }{
	{"warehouses", "warehouses"}, {"count", "count"}, {"isolation", "isolation"}, {"weight", "weight"}, {"wait", "wait"},
	{"driver", "driver"}, {"sf", "scale_factor"}, {"acThreads", "analytical_threads"}, {"queries", "queries"}, {"parts", "parts"},
	{"ignore-error", "ignore_error"},
}

// Describe reads a command line of go-tpc.
func Describe(in tool.Invocation) tool.Description {
	o := parseOptions(in.Args)
	d := tool.Description{Redacted: o.redacted, Secrets: o.secrets, Labels: map[string]string{}, Workload: o.word(0)}
	if d.Workload == "" || d.Workload == "version" {
		return d
	}
	for _, v := range verbs {
		if w := o.word(1); w != "" && strings.HasPrefix(v, w) {
			d.Command = v
			break
		}
	}
	d.Threads = o.number("threads", 1)
	d.Database = o.text("db", "test")
	d.Target = o.target()
	for _, l := range labels {
		if v := o.text(l.option, ""); v != "" {
			d.Labels[l.label] = v
		}
	}
	if (d.Workload == "tpcc" || d.Workload == "ch") && d.Labels["warehouses"] == "" {
		d.Labels["warehouses"] = "10"
	}
	if d.Command != "run" {
		return d
	}
	d.Duration = o.duration("time", 0)
	d.ReportInterval = o.duration("interval", defaultInterval)
	if _, given := o.values["interval"]; !given {
		d.Notes = append(d.Notes, "go-tpc reports every 10 s: with --interval 1s there is more to see")
	}
	return d
}

// options are what pflag makes of a command line.
type options struct {
	values   map[string]string // the last one counts, but lists are joined
	words    []string
	redacted []string
	secrets  []string
}

func parseOptions(args []string) options {
	o := options{values: map[string]string{}, redacted: make([]string, len(args))}
	for i, a := range args {
		o.redacted[i] = secret.Text(a)
	}
	for i := 0; i < len(args); i++ {
		name, value, prefix, ok := split(args[i])
		if !ok {
			if args[i] != "--" {
				o.words = append(o.words, args[i])
			}
			continue
		}
		if prefix == "" { // the value is the next word
			if switches[name] {
				o.values[name] = "true"
				continue
			}
			if i++; i == len(args) {
				break
			}
			value = args[i]
		}
		o.set(name, value)
		o.hide(i, name, value, prefix)
	}
	return o
}

// split returns an option's name and value, and what stands before the value
// in the same word; that is empty if the value is not in it.
func split(a string) (name, value, prefix string, ok bool) {
	switch {
	case strings.HasPrefix(a, "--") && len(a) > 2:
		name, value, found := strings.Cut(a[2:], "=")
		if !found {
			return name, "", "", true
		}
		return name, value, "--" + name + "=", true
	case len(a) >= 2 && a[0] == '-' && a[1] != '-':
		name := shorthands[a[1]]
		switch {
		case name == "":
			return "help", "", "-" + a[1:2], true
		case len(a) == 2:
			return name, "", "", true
		case a[2] == '=':
			return name, a[3:], a[:3], true
		}
		return name, a[2:], a[:2], true
	}
	return "", "", "", false
}

func (o *options) set(name, value string) {
	if list := name == "host" || name == "port" || name == "targets"; list && o.values[name] != "" {
		value = o.values[name] + "," + value
	}
	o.values[name] = value
}

// hide redacts the word i, which holds prefix and value.
func (o *options) hide(i int, name, value, prefix string) {
	if value == "" {
		return
	}
	switch {
	case strings.HasSuffix(name, "conn-params"):
		// The query of a connection string, with any of the driver's options.
		pairs := strings.Split(value, "&")
		for j, p := range pairs {
			if key, v, found := strings.Cut(p, "="); found && v != "" && secret.Name(key) {
				o.secrets = append(o.secrets, v)
				pairs[j] = key + "=" + secret.Blank
			}
		}
		o.redacted[i] = prefix + strings.Join(pairs, "&")
	case name == "ssl-key":
		// A file's name.
	case secret.Name(name):
		o.secrets = append(o.secrets, value)
		o.redacted[i] = prefix + secret.Blank
	}
}

// word returns one of the words that are no options.
func (o *options) word(i int) string {
	if i < len(o.words) {
		return o.words[i]
	}
	return ""
}

func (o *options) text(name, otherwise string) string {
	if v := o.values[name]; v != "" {
		return v
	}
	return otherwise
}

// number returns a number, or 0 if there is something else.
func (o *options) number(name string, otherwise int) int {
	v, given := o.values[name]
	if !given {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

func (o *options) duration(name string, otherwise time.Duration) time.Duration {
	v, given := o.values[name]
	if !given {
		return otherwise
	}
	t, err := time.ParseDuration(v)
	if err != nil || t < 0 {
		return 0
	}
	return t
}

// target is every host with every port, as go-tpc connects to them in turn.
func (o *options) target() string {
	if t := o.values["targets"]; t != "" {
		return t
	}
	var all []string
	for _, host := range strings.Split(o.text("host", "127.0.0.1"), ",") {
		for _, port := range strings.Split(o.text("port", "4000"), ",") {
			if len(all) < maxTargets {
				all = append(all, net.JoinHostPort(strings.Trim(host, "[]"), port))
			}
		}
	}
	return strings.Join(all, ",")
}

// maxTargets bounds the list.
const maxTargets = 64
