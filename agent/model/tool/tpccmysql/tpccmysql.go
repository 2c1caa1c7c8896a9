// Package tpccmysql reads the command lines and the output of tpcc-mysql (tpcc_start and
// tpcc_load), from the first version of 2008 to the last of 2017. Formats: src/main.c, src/rthist.c
// and src/load.c of https://github.com/Percona-Lab/tpcc-mysql and its history. The program prints
// no version, so each line is recognised by its own form.
package tpccmysql

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/mysqlclient"
	"github.com/benchwatch/benchwatch/agent/model/tool/option"
)

// Name is the tool's name in reports.
const Name = "tpcc-mysql"

const (
	start = "tpcc_start"
	load  = "tpcc_load"
)

// Tool is tpcc-mysql.
var Tool = &tool.Tool{
	Name:     Name,
	Programs: []string{start, load},
	// Builds of several versions are installed side by side, as tpcc_start_2012 and so on.
	MatchArgs: func(base string, _ []string) bool {
		return hasPrefix(base, start) || hasPrefix(base, load)
	},
	Describe:  Describe,
	Login:     login,
	NewParser: func(tool.Description) tool.Parser { return NewParser() },
	Margin:    []string{"***", "<", "option ", "RAMP-UP TIME", "MEASURING START", "STOPPING THREADS"},
	Sniff:     Sniff,
	Facts: []tool.Fact{
		{Label: "warehouses", Before: "[warehouse]: "}, {Label: "ramp_up_seconds", Before: "[rampup]: ", After: " (sec.)"},
		{Label: "warehouses", Before: "option w with value '", After: "'"}, {Label: "ramp_up_seconds", Before: "option r with value '", After: "'"},
	},
}

// hasPrefix reports whether base is program followed by a suffix.
func hasPrefix(base, program string) bool {
	if len(base) <= len(program) || base[:len(program)] != program {
		return false
	}
	c := base[len(program)]
	return c == '_' || c == '-' || c == '.'
}

// Sniff returns from 0 to 100 how much an output that begins with head resembles tpcc-mysql's.
func Sniff(head []byte) int {
	if bytes.Contains(head, []byte(startBanner)) || bytes.Contains(head, []byte(loadBanner)) {
		return 100
	}
	score := 0
	tool.ParseAll(NewParser(), tool.Stdout, head, func(r *tool.Report) {
		if r.Kind == tool.Interval || r.Kind == tool.Summary {
			score = 90
		}
	})
	return score
}

// startOptions and loadOptions are the programs' arguments to getopt. All options take a value,
// glued or as the next word.
const (
	startOptions = "hPdupwcrliftmoS01234"
	loadOptions  = "hPdupwlmn"
)

// The options' defaults.
const (
	defaultPort        = "3306"
	defaultDatabase    = "tpcc"
	defaultConnections = 10
	defaultMeasure     = 20
)

// Describe reads a command line of tpcc_start or tpcc_load.
func Describe(in tool.Invocation) tool.Description {
	loader := in.Program == load || hasPrefix(in.Program, load)
	if positional(in.Args) {
		return describePositional(in.Args, loader)
	}
	accepted := startOptions
	if loader {
		accepted = loadOptions
	}
	o := (&option.Syntax{Short: option.Letters(accepted)}).Parse(in.Args)
	d := tool.Description{
		Command: "run", Workload: "tpcc",
		Labels:   o.Labels(map[string]string{"w": "warehouses", "r": "ramp_up_seconds", "m": "schemas"}),
		Database: o.Text("d", defaultDatabase), Target: target(o), Engine: "mysql", User: o.Values["u"],
	}
	if loader {
		d.Command = "load"
		d.Labels = o.Labels(map[string]string{"w": "warehouses", "m": "first_warehouse", "n": "last_warehouse", "l": "part"})
		return d
	}
	d.Threads = o.Number("c", defaultConnections)
	measure := o.Number("l", defaultMeasure)
	every := o.Number("i", defaultInterval)
	if !o.Has("i") {
		d.Insert = []tool.Insertion{{At: 0, Args: []string{"-i1"}}}
	}
	if every <= 0 {
		d.Notes = append(d.Notes, "-i must be at least 1")
		return d
	}
	d.ReportInterval = time.Duration(every) * time.Second
	whole := measure / every * every
	d.Duration = time.Duration(whole) * time.Second
	if whole != measure && measure > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf(
			"-l%d with intervals of %d s measures %d s: tpcc_start leaves out what is not a whole interval", measure, every, whole))
	}
	return d
}

// login: the client library decides how connections are encrypted.
func login(in tool.Invocation) tool.Login { return mysqlclient.Options{}.Login(&in) }

// target returns the server. Without a host the client library uses the socket.
func target(o *option.Set) string {
	if socket := o.Values["S"]; o.Values["h"] == "" && socket != "" {
		return socket
	}
	return hostPort(o.Text("h", "localhost"), o.Text("P", defaultPort))
}

// hostPort keeps a host that includes a port: versions before 2012 took host:port.
func hostPort(host, port string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(host, port)
}

// positional recognises the form of versions before October 2011:
//
//	tpcc_start server database user password warehouses connections ramp-up measure
//	tpcc_load server database user password warehouses [part first last]
func positional(args []string) bool {
	if len(args) < 4 {
		return false
	}
	for _, a := range args {
		if strings.HasPrefix(a, "-") && len(a) > 1 && strings.IndexByte(startOptions, a[1]) >= 0 && a != args[3] {
			return false
		}
	}
	return true
}

// describePositional reads the positional form, to which nothing can be added.
func describePositional(args []string, loader bool) tool.Description {
	d := tool.Description{
		Workload: "tpcc", Command: "run", Labels: map[string]string{},
		Target: hostPort(args[0], defaultPort), Database: args[1], Engine: "mysql", User: args[2],
	}
	if len(args) > 4 {
		d.Labels["warehouses"] = args[4]
	}
	if loader {
		d.Command = "load"
		return d
	}
	if len(args) > 5 {
		d.Threads = option.Number(args[5])
	}
	if len(args) > 6 {
		d.Labels["ramp_up_seconds"] = args[6]
	}
	d.ReportInterval = defaultInterval * time.Second
	if len(args) > 7 {
		d.Duration = time.Duration(option.Number(args[7])/defaultInterval*defaultInterval) * time.Second
	}
	return d
}
