// Package benchbase reads the command lines and the output of BenchBase, and of OLTPBench, from which it was made: the
// log, with the lines of its throughput monitor, its summary and its counts by procedure, and the files *.samples.csv and
// *.summary.json. Formats: DBWorkload.java, ThreadBench.java, Phase.java, Results.java and
// util/ResultWriter.java of https://github.com/cmu-db/benchbase.
package benchbase

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"io"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/dsn"
	"github.com/benchwatch/benchwatch/agent/model/tool/option"
)

// Name is the tool's name in reports.
const Name = "benchbase"

// jar is the program's archive.
const jar = "benchbase.jar"

// Tool is BenchBase.
var Tool = &tool.Tool{
	Name:     Name,
	Programs: []string{"benchbase", "oltpbenchmark"},
	MatchArgs: func(base string, args []string) bool {
		if base != "java" {
			return false
		}
		for _, a := range args {
			if path.Base(a) == jar || a == "com.oltpbenchmark.DBWorkload" {
				return true
			}
		}
		return false
	},
	Describe:  describe,
	Login:     login,
	NewParser: func(tool.Description) tool.Parser { return &Parser{} },
	Sniff:     sniff,
	SideFile:  sideFile,
	Facts: []tool.Fact{
		{Label: "dbms", Line: "Type:", Before: " "},
		{Label: "isolation", Line: "Isolation:", Before: " "},
		{Label: "scale_factor", Line: "Scale Factor:", Before: " "},
		{Label: "batch_size", Line: "Batch Size:", Before: " "},
		{Label: "new_connection_per_transaction", Line: "New Connection Per Txn:", Before: " "},
	},
}

func sniff(head []byte) int {
	for _, c := range [...]struct {
		text  string
		score int
	}{
		{"com.oltpbenchmark.", 98}, {"Rate limited reqs/s: Results(", 98}, {"Time (seconds),Requests,", 98}, {`"Measured Requests": `, 95},
		{"Time (seconds),Throughput (requests/second),", 98}, {"time(sec), throughput(req/sec), avg_lat(ms)", 98},
		{"ransaction Type Index,Transaction Name,Start Time (microseconds),", 98}, {"start time (microseconds),latency (microseconds)", 95},
		{`95th Percentile Latency (microseconds)": `, 90},
		{"(DBWorkload.java:", 95}, {"(ThreadBench.java:", 95}, {"PHASE START :: [Workload=", 95},
	} {
		if bytes.Contains(head, []byte(c.text)) {
			return c.score
		}
	}
	return 0
}

var syntax = option.Syntax{
	Short: map[byte]string{'b': "bench", 'c': "config", 's': "sample", 'd': "directory"}, Switches: map[byte]string{'h': "help"}, Flags: []string{"help"}, PFlag: true,
}

// config is a workload's configuration file.
type config struct {
	URL       string `xml:"url"`
	Username  string `xml:"username"`
	Password  string `xml:"password"`
	Isolation string `xml:"isolation"`
	Scale     string `xml:"scalefactor"`
	Terminals string `xml:"terminals"`
	OldURL    string `xml:"DBUrl"` // of OLTPBench
	Work      []struct {
		Time   string `xml:"time"`
		Rate   string `xml:"rate"`
		Active string `xml:"active_terminals"`
	} `xml:"works>work"`
}

// read returns the options and the configuration file of a command line.
func read(in *tool.Invocation) (*option.Set, config) {
	args := in.Args
	for i, a := range args {
		if path.Base(a) == jar || a == "com.oltpbenchmark.DBWorkload" {
			args = args[i+1:]
			break
		}
	}
	// The program takes its long options -im, -mt and -jh with one dash, and two work, too.
	args = append([]string(nil), args...)
	for i, a := range args {
		if a == "-im" || a == "-mt" || a == "-jh" {
			args[i] = "-" + a
		}
	}
	o := syntax.Parse(args)
	var c config
	if text, err := in.Read(o.Values["config"]); err == nil {
		d := xml.NewDecoder(bytes.NewReader(text))
		d.Strict = false
		d.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil }
		_ = d.Decode(&c) // what was read of a damaged file is used
	}
	return o, c
}

func describe(in tool.Invocation) tool.Description {
	o, c := read(&in)
	d := tool.Description{Workload: o.Values["bench"], Threads: option.Number(c.Terminals), Labels: map[string]string{}}
	yes := func(name string) bool { return o.Values[name] == "true" }
	switch {
	case yes("execute"):
		d.Command = "run"
	case yes("load"), yes("create"):
		d.Command = "load"
	case yes("clear"):
		d.Command = "cleanup"
	}
	url := strings.TrimPrefix(cmp.Or(c.URL, c.OldURL), "jdbc:")
	address := dsn.Parse(url)
	d.Target, d.Database, d.User = address.Hosts, address.Database, secret.Value("username", c.Username)
	switch scheme, _, _ := strings.Cut(url, ":"); scheme {
	case "postgresql":
		d.Engine = "postgresql"
	case "mysql", "mariadb":
		d.Engine = "mysql"
	}
	for label, value := range map[string]string{"isolation": c.Isolation, "scale_factor": c.Scale} {
		if value != "" {
			d.Labels[label] = secret.Value(label, strings.TrimSpace(value))
		}
	}
	if d.Command != "run" {
		return d
	}
	for _, w := range c.Work {
		d.Duration += time.Duration(option.Number(w.Time)) * time.Second
		if rate, err := strconv.ParseFloat(w.Rate, 64); err == nil && len(c.Work) == 1 {
			d.Rate = int(rate)
		}
		if n := option.Number(w.Active); n > 0 && len(c.Work) == 1 {
			d.Threads = n
		}
	}
	for _, suffix := range []string{rawSuffix, summarySuffix} {
		d.LatencyLogs = append(d.LatencyLogs, path.Join(cmp.Or(o.Values["directory"], "results"), d.Workload+"_*"+suffix))
	}
	d.ReportInterval = time.Duration(o.Number("im", 0)+o.Number("interval-monitor", 0)) * time.Millisecond
	if d.ReportInterval == 0 {
		d.Insert = []tool.Insertion{{At: len(in.Args), Args: []string{"-im", "1000"}}}
	}
	return d
}

// login reads the login of the configuration file and the TLS of the database's URL.
func login(in tool.Invocation) tool.Login {
	_, c := read(&in)
	l := tool.Login{User: c.Username, Password: c.Password}
	_, query, _ := strings.Cut(cmp.Or(c.URL, c.OldURL), "?")
	for pair := range strings.SplitSeq(query, "&") {
		switch name, value, _ := strings.Cut(pair, "="); strings.ToLower(name) {
		case "sslmode":
			l.TLS.Mode = tool.ParseTLSMode(value)
		case "usessl", "ssl":
			if value == "true" && l.TLS.Mode == tool.TLSOff {
				l.TLS.Mode = tool.TLSRequired
			}
		}
	}
	return l
}
