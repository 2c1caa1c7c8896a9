// Package pgbench reads the command lines and the output of PostgreSQL's pgbench, versions 9.0 to
// 18: progress lines, the summary, and the files of --log, which have a line for each transaction
// or, with --aggregate-interval, for each interval. Format: src/bin/pgbench/pgbench.c.
package pgbench

import (
	"bytes"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/libpq"
	"github.com/benchwatch/benchwatch/agent/model/tool/option"
)

// Name is the tool's name in reports.
const Name = "pgbench"

// Tool is pgbench.
var Tool = &tool.Tool{
	Name:      Name,
	Programs:  []string{Name},
	Describe:  describe,
	Login:     login,
	NewParser: func(d tool.Description) tool.Parser { return newParser(d) },
	Margin: []string{
		"pgbench", "progress: ", "starting vacuum", "transaction type: ", "scaling factor: ", "query mode: ", "number of ", "duration: ",
		"maximum number of tries: ", "total number of retries: ", "latency ", "initial connection time = ", "tps = ", "statement latencies",
	},
	Sniff: sniff,
	Facts: []tool.Fact{
		{Label: "scale", Before: "scaling factor: "}, {Label: "protocol", Before: "query mode: "}, {Label: "jobs", Before: "number of threads: "},
		{Label: "transactions", Before: "number of transactions per client: "}, {Label: "max_tries", Before: "maximum number of tries: "},
		{Label: "partition_method", Before: "partition method: "}, {Label: "partitions", Before: "partitions: "},
		// The version of the server is printed only if it is another one.
		{Label: "server_version", Line: "pgbench (", Before: ", server ", After: ")"}, {Label: "server_version", Line: "pgbench (", After: ")"},
	},
	ReportsOnStderr: true,
	ThreadLog:       threadLog,
	JoinThreads:     joinThreads,
	// With --rate, latencies count from the scheduled start of a transaction.
	OpenLoop: func(_ string, rate int) bool { return rate > 0 },
}

// threadLogName matches prefix.PID of the first thread and prefix.PID.N of the others.
var threadLogName = regexp.MustCompile(`^(.+?\.[0-9]+)(\.[0-9]+)?$`)

// threadLog recognises a file of --log.
func threadLog(name string, head []byte) string {
	m := threadLogName.FindStringSubmatch(name)
	if m == nil {
		return ""
	}
	p := newParser(tool.Description{})
	line, _, _ := bytes.Cut(head, []byte("\n"))
	p.Parse(tool.Line{Text: line}, func(*tool.Report) {})
	if !p.streams[tool.Stdout].log.active() {
		return ""
	}
	return m[1]
}

// sniff recognises texts that only pgbench prints, on either stream, and lines of its log.
func sniff(head []byte) int {
	for _, text := range []string{
		"\ntransaction type: ", "number of transactions actually processed: ", " of pgbench_accounts done (elapsed ", "pgbench: error: ",
		"pgbench: fatal: ", " tuples (100%) done (elapsed ",
	} {
		if bytes.Contains(head, []byte(text)) {
			return 95
		}
	}
	if bytes.Contains(head, []byte("progress: ")) && bytes.Contains(head, []byte(" tps, lat ")) {
		return 95
	}
	for _, text := range []string{"transaction type: ", "pgbench ("} {
		if bytes.HasPrefix(head, []byte(text)) {
			return 90
		}
	}
	p := newParser(tool.Description{})
	score := 0
	for lines := 0; lines < 20 && score == 0; lines++ {
		line, rest, whole := bytes.Cut(head, []byte("\n"))
		if !whole {
			break
		}
		head = rest
		if p.Parse(tool.Line{Text: line}, func(*tool.Report) {}) == tool.Reported {
			score = 90
			if bytes.HasPrefix(line, []byte("progress: ")) {
				break
			}
			score = 60 // numbers
		}
	}
	return score
}

// initialization is what other tools call the verb of --initialize.
const initialization = "prepare"

// syntax: the short -d has a value since version 15; earlier it was a flag before the name of the
// database or before another option.
var syntax = option.Syntax{
	Short: map[byte]string{
		'b': "builtin", 'c': "client", 'd': "dbname", 'D': "define", 'f': "file", 'F': "fillfactor", 'h': "host", 'I': "init-steps",
		'j': "jobs", 'L': "latency-limit", 'M': "protocol", 'p': "port", 'P': "progress", 'R': "rate", 's': "scale", 'T': "time",
		't': "transactions", 'U': "username",
	},
	Switches: map[byte]string{
		'i': "initialize", 'S': "select-only", 'N': "skip-some-updates", 'C': "connect", 'l': "log",
		'n': "no-vacuum", 'q': "quiet", 'r': "report-per-command", 'v': "vacuum-all", 'V': "version", '?': "help",
	},
	Valued: []string{
		"tablespace", "index-tablespace", "sampling-rate", "aggregate-interval", "log-prefix", "random-seed", "show-script", "partitions",
		"partition-method", "max-tries",
	},
	Flags: []string{
		"debug", "exit-on-abort", "failures-detailed", "foreign-keys", "progress-timestamp", "unlogged-tables", "verbose-errors", "continue-on-error",
	},
	Optional: "dbname",
}

// labels map options to labels.
var labels = map[string]string{
	"jobs": "jobs", "scale": "scale", "protocol": "protocol", "rate": "rate", "transactions": "transactions", "latency-limit": "latency_limit",
	"max-tries": "max_tries", "connect": "connect", "fillfactor": "fillfactor", "partitions": "partitions", "partition-method": "partition_method",
}

// describe reads a command line.
func describe(in tool.Invocation) tool.Description {
	o, scripts := read(in.Args)
	d := tool.Description{Command: "run", Labels: o.Labels(labels)}
	address(&d, o, &in)
	if o.Has("initialize", "init-steps") {
		d.Command = initialization
		return d
	}
	d.Workload = strings.Join(scripts, "+")
	d.Threads = o.Number("client", 1)
	d.Duration = time.Duration(o.Number("time", 0)) * time.Second
	if rate, err := strconv.ParseFloat(o.Values["rate"], 64); err == nil && rate >= 1 && rate < 1e9 {
		d.Rate = int(rate)
	}
	d.ReportInterval = time.Duration(o.Number("progress", 0)) * time.Second
	if o.Has("log") {
		logs(&d, o)
	}
	if !o.Has("progress", "help", "version", "show-script") && o.Values["builtin"] != "list" {
		d.Insert = []tool.Insertion{{At: 0, Args: []string{"-P", "1"}}}
	}
	return d
}

// logs adds the files of --log, one for each thread of pgbench: prefix.PID, prefix.PID.1 …
func logs(d *tool.Description, o *option.Set) {
	if o.Has("aggregate-interval") {
		d.Notes = append(d.Notes, "--aggregate-interval: the log has no latencies of single transactions, so the run has no histogram")
		return
	}
	prefix := "pgbench_log"
	if o.Has("log-prefix") {
		prefix = pattern.Replace(o.Values["log-prefix"])
	}
	first := prefix + "." + tool.PID
	d.LatencyLogs = []string{first, first + ".[0-9]*"}
}

// pattern escapes a path so that it matches only itself.
var pattern = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// read returns the options, and the scripts that pgbench executes.
func read(args []string) (o *option.Set, scripts []string) {
	o = option.New()
	o.Words = syntax.Read(args, func(name, value string) {
		switch name {
		case "builtin":
			scripts = append(scripts, builtin(value))
		case "file":
			file, _, _ := strings.Cut(value, "@")
			scripts = append(scripts, path.Base(file))
		case "select-only":
			scripts = append(scripts, "select-only")
		case "skip-some-updates":
			scripts = append(scripts, "simple-update")
		}
		o.Values[name] = value
	})
	if len(scripts) == 0 {
		scripts = []string{"tpcb-like"}
	}
	return o, scripts
}

// builtin returns the name of a built-in script. name is a prefix of it, perhaps followed by @ and
// a weight.
func builtin(name string) string {
	name, _, _ = strings.Cut(name, "@")
	for _, known := range []string{"tpcb-like", "simple-update", "select-only"} {
		if name != "" && strings.HasPrefix(known, name) {
			return known
		}
	}
	return name
}

// login reads the login from the same sources as libpq.
func login(in tool.Invocation) tool.Login {
	o, _ := read(in.Args)
	return address(&tool.Description{}, o, &in)
}

// address sets target, database and user, and returns the login, from the same sources as libpq.
func address(d *tool.Description, o *option.Set, in *tool.Invocation) tool.Login {
	name := o.Values["dbname"]
	if name == "" || len(o.Words) > 0 {
		name = o.Word(0)
	}
	given := libpq.Parse(name)
	for key, value := range map[string]string{"host": o.Values["host"], "port": o.Values["port"], "user": o.Values["username"]} {
		if given[key] == "" && value != "" {
			given[key] = value
		}
	}
	return libpq.Describe(d, in, given)
}
