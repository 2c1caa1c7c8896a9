package sysbench

import (
	"cmp"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/libpq"
	"github.com/benchwatch/benchwatch/agent/model/tool/mysqlclient"
	"github.com/benchwatch/benchwatch/agent/model/tool/option"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// Name is the tool's name in reports.
const Name = "sysbench"

// Tool is sysbench 0.4 to 1.1.
var Tool = &tool.Tool{
	Name:          Name,
	Programs:      []string{"sysbench"},
	Describe:      Describe,
	Login:         login,
	NewParser:     func(d tool.Description) tool.Parser { return NewParser(d) },
	OpenLoop:      openLoop,
	AskPercentile: askPercentile,
	Margin: []string{
		"[ ", "sysbench ", "Running the test with", "Number of threads: ", "Threads started!", "Threads fairness:", "SQL statistics:",
		"OLTP test statistics:", "General statistics:", "Test execution summary:", "Latency (ms)", "Throughput:", "CPU speed:", "File operations:",
		"Operations performed:", "Total operations:", "FATAL: ",
	},
	Sniff: Sniff,
	Facts: []tool.Fact{
		{Label: "rate", Before: "Target transaction rate: ", After: "/sec"}, {Label: "table_size", Before: "Inserting ", After: " records into"},
		{Label: "cpu_max_prime", Before: "Prime numbers limit: "}, {Label: "cpu_max_prime", Before: "Maximum prime number checked in CPU test: "},
		{Label: "file_num", After: " files, "}, {Label: "file_total_size", After: " total file size"},
		{Label: "file_block_size", Before: "Block size "}, {Label: "file_rw_ratio", Before: "Read/Write ratio for combined random IO test: "},
		{Label: "memory_block_size", Before: "block size: "}, {Label: "memory_total_size", Before: "total size: "},
		{Label: "memory_oper", Before: "operation: "}, {Label: "memory_scope", Before: "scope: "},
	},
}

// askPercentile returns the option for a percentile. sysbench takes whole numbers.
func askPercentile(name string) string {
	if n, err := strconv.Atoi(strings.TrimPrefix(name, "p")); err == nil && n > 0 && n <= 100 {
		return "--percentile=" + strconv.Itoa(n)
	}
	return ""
}

// openLoop reports whether the run is in the mode of --rate, in which latencies include the time in
// the queue. In 0.4 the rate only pauses the threads.
func openLoop(version string, rate int) bool {
	return rate > 0 && !strings.HasPrefix(version, "0.4")
}

// Sniff returns from 0 to 100 how much an output that begins with head resembles sysbench's.
func Sniff(head []byte) int {
	p := NewParser(tool.Description{})
	score := 0
	tool.ParseAll(p, tool.Stdout, head, func(r *tool.Report) {
		switch {
		case r.Kind == tool.Start && r.Version != "":
			score = max(score, 100)
		case r.Kind == tool.Interval && p.run.family == luaCSV:
			score = max(score, 30) // ten columns of numbers
		case r.Kind == tool.Interval && p.run.family == luaJSON:
			score = max(score, 60)
		case r.Kind == tool.Interval, r.Kind == tool.Summary && r.Count(tool.Transaction).Known:
			score = max(score, 90)
		case r.Kind == tool.Summary, r.Kind == tool.Error:
			score = max(score, 10)
		}
	})
	return score
}

// generation is the version of sysbench for which a command line was written.
type generation uint8

const (
	// unknownAge: 0.4, 0.5 and 1.x accept the command line, and it is unknown whether
	// --report-interval is an option.
	unknownAge generation = iota
	// legacy05 is 0.5: --test names a script.
	legacy05
	// modern is 1.x.
	modern
)

// builtInTests need no database, except oltp of 0.4.
var builtInTests = map[string]bool{"cpu": true, "fileio": true, "memory": true, "threads": true, "mutex": true, "oltp": true}

// Describe reads a command line of sysbench 0.4, 0.5, 1.0 or 1.1.
func Describe(in tool.Invocation) tool.Description {
	o := parseOptions(in)
	var d tool.Description

	test, byOption := o.First("test")
	words := o.words
	if !byOption && len(words) > 0 {
		test, words = in.Args[words[0]], words[1:]
	}
	command := -1
	if len(words) > 0 {
		command = words[len(words)-1]
		d.Command = in.Args[command]
	}
	d.Workload = strings.TrimSuffix(path.Base(test), ".lua")
	if test == "" || test == "-" {
		d.Workload = ""
	}
	age := o.age(test, byOption)

	d.Threads = number(o, "threads", "num_threads")
	if d.Threads == 0 && d.Command == "run" {
		d.Threads = 1 // the default of all versions
	}
	d.Duration = o.duration(age, d.Command)
	d.Rate = number(o, "rate", "tx_rate")
	d.ReportInterval = time.Duration(number(o, "report_interval")) * time.Second
	d.LatencyPercentile = o.percentile()
	if test != "" && (!builtInTests[test] || test == "oltp") {
		o.server(&d, &in)
	}
	d.Labels = o.labels()
	if d.Command == "run" {
		o.insert(&d, age, command)
		o.warn(&d, age)
	}
	return d
}

// age returns the version for which a command line is written. The name of a 0.4 test proves
// nothing, since cpu and others still exist.
func (o *options) age(test string, byOption bool) generation {
	switch {
	case !byOption, o.Has("threads", "time", "events", "tables", "table_size", "rate", "warmup_time"):
		return modern
	case strings.HasSuffix(test, ".lua") || strings.Contains(test, "/"):
		return legacy05
	case !builtInTests[test]:
		return modern // --test=oltp_read_write, deprecated
	}
	return unknownAge
}

// number returns an option's value, 0 if it is not a number.
func number(o *options, names ...string) int {
	v, _ := o.First(names...)
	return option.Number(v)
}

// percentile is unknown if the option is not a number; some builds accept a list.
func (o *options) percentile() series.Optional[float64] {
	v, _ := o.First("percentile")
	p, err := strconv.ParseFloat(v, 64)
	if err != nil || !(p >= 0 && p <= 100) {
		return series.Optional[float64]{}
	}
	return series.Some(p)
}

// duration returns the time limit. By default 1.x stops after 10 s.
func (o *options) duration(age generation, command string) time.Duration {
	if !o.Has("time", "max_time") && age == modern && command == "run" {
		return 10 * time.Second
	}
	return time.Duration(number(o, "time", "max_time")) * time.Second
}

// server sets the address of the database, with sysbench's own defaults.
func (o *options) server(d *tool.Description, in *tool.Invocation) {
	switch o.driver() {
	case "pgsql":
		o.postgres(d, in)
		return
	case "mysql":
	default:
		return
	}
	d.Engine, d.User, d.Database = "mysql", o.Text("mysql_user", "sbtest"), "sbtest"
	if v, ok := o.First("mysql_db"); ok {
		d.Database = v
	}
	if socket, ok := o.First("mysql_socket"); ok && socket != "" {
		d.Target = socket
		return
	}
	d.Target = option.Targets(o.Text("mysql_host", "localhost"), o.Text("mysql_port", "3306"), false)
}

// driver returns the kind of database: mysql, pgsql, or another word of the command line.
func (o *options) driver() string {
	v, _ := o.First("db_driver")
	if v == "" && o.Has("pgsql_host", "pgsql_port", "pgsql_user", "pgsql_db", "pgsql_password") {
		return "pgsql"
	}
	return cmp.Or(v, "mysql")
}

// postgres sets the address of a PostgreSQL server, and returns how sysbench logs in.
func (o *options) postgres(d *tool.Description, in *tool.Invocation) tool.Login {
	return libpq.Describe(d, in, libpq.Settings{
		"host": o.Text("pgsql_host", "localhost"), "port": o.Text("pgsql_port", "5432"), "user": o.Text("pgsql_user", "sbtest"),
		"dbname": o.Text("pgsql_db", "sbtest"), "password": o.Text("pgsql_password", ""), "sslmode": o.Text("pgsql_sslmode", ""),
	})
}

// login reads the password of a configuration file, and how connections are encrypted. Without --mysql-ssl, and
// with `off` in 1.0, the client library decides.
func login(in tool.Invocation) tool.Login {
	o := parseOptions(in)
	if o.driver() == "pgsql" {
		return o.postgres(&tool.Description{}, &in)
	}
	library := mysqlclient.Read(&in, mysqlclient.Files{Groups: []string{Name}})
	if password := o.Values["mysql_password"]; password != "" && password != "on" {
		library["password"] = password
	}
	for _, name := range []string{"ca", "cert", "key"} {
		if file := o.Values["mysql_ssl_"+name]; file != "" {
			library["ssl-"+name] = file
		}
	}
	switch mode := strings.ToLower(o.Values["mysql_ssl"]); mode {
	case "", "off":
	case "on":
		library["ssl"] = mode
	default: // 1.1
		library["ssl-mode"] = mode
	}
	l := library.Login(&in)
	l.User = "" // never the file's
	return l
}

// unlabelled are options that never become labels: the description contains them elsewhere, or they
// do not affect the load.
var unlabelled = map[string]bool{
	"test": true, "threads": true, "num_threads": true, "time": true, "max_time": true, "report_interval": true,
	"config_file": true, "help": true, "version": true, "verbosity": true, "debug": true, "luajit_cmd": true,
	"thread_stack_size": true, "thread_init_timeout": true, "forced_shutdown": true, "db_debug": true, "mysql_debug": true,
	"mysql_host": true, "mysql_port": true, "mysql_socket": true, "mysql_user": true, "mysql_db": true,
	"mysql_ssl_key": true, "mysql_ssl_ca": true, "mysql_ssl_cert": true, "mysql_ssl_cipher": true,
	"pgsql_host": true, "pgsql_port": true, "pgsql_user": true, "pgsql_db": true, "pgsql_sslmode": true,
}

// labelNames map renamed options to their labels.
var labelNames = map[string]string{
	"max_requests": "events", "tx_rate": "rate", "oltp_tables_count": "tables", "oltp_table_size": "table_size",
	"oltp_table_name": "table_name", "oltp_skip_trx": "skip_trx", "mysql_table_engine": "mysql_storage_engine",
}

// maxLabel is the maximum length of a label's value in bytes.
const maxLabel = 128

// labels returns all other options, including those of a user's own script.
func (o *options) labels() map[string]string {
	labels := map[string]string{}
	for name, value := range o.Values {
		if unlabelled[name] || secret.Name(name) || !isLabel(name) || value == "" || len(value) > maxLabel {
			continue
		}
		if now, renamed := labelNames[name]; renamed {
			if o.Has(now) {
				continue
			}
			name = now
		}
		labels[name] = value
	}
	return labels
}

// isLabel reports whether name can be the name of a label.
func isLabel(name string) bool {
	return scan.Only(name, scan.Small+scan.Digits+"_") && !scan.Only(name[:1], scan.Digits) && len(name) <= maxLabel
}

// insert adds the arguments missing for live reports if they are known to be harmless.
func (o *options) insert(d *tool.Description, age generation, command int) {
	if v, ok := o.First("verbosity"); ok && v != "" && v < "3" && len(v) == 1 {
		d.Notes = append(d.Notes, "--verbosity="+v+" hides all of sysbench's reports: there will be nothing to see")
		return
	}
	switch {
	case o.Has("report_interval"):
	case age == unknownAge:
		d.Notes = append(d.Notes, "--report-interval was not added: sysbench 0.4.12 may not know it and would refuse to run; give it if yours does")
	case len(o.unreadFiles) > 0:
		d.Notes = append(d.Notes, "--report-interval was not added: it may be in "+o.unreadFiles[0]+", which could not be read")
	default:
		d.Insert = []tool.Insertion{{At: command, Args: []string{"--report-interval=1"}}}
	}
}

// warn notes the pitfalls of the options.
func (o *options) warn(d *tool.Description, age generation) {
	if age != modern && o.Has("max_time") && number(o, "max_time") > 0 && !o.Has("max_requests") {
		d.Notes = append(d.Notes, "sysbench 0.4 and 0.5 stop after 10000 requests, maybe long before --max-time: give --max-requests=0 for the full time")
	}
	verbosity, _ := o.First("verbosity")
	debug, _ := o.First("debug")
	if v, _ := o.First("mysql_debug"); v != "" && v != "off" && (verbosity == "5" || debug != "" && debug != "off") {
		d.Notes = append(d.Notes, "--mysql-debug with --verbosity=5 makes sysbench print the database password")
	}
}

// options of a command line and its configuration files. Names are in lower case with
// underscores, since sysbench treats `-` and `_` alike.
type options struct {
	*option.Set
	// words are the arguments that are not options, by index.
	words []int
	// unreadFiles are the configuration files that could not be read.
	unreadFiles []string
}

// canonical returns a name in the form that options uses.
func canonical(name string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimSpace(name), "-", "_"))
}

func parseOptions(in tool.Invocation) *options {
	o := &options{Set: option.New()}
	o.WithSecrets = in.WithSecrets
	var files []string
	for i := 0; i < len(in.Args); i++ {
		arg := in.Args[i]
		body, isOption := strings.CutPrefix(arg, "--")
		if !isOption {
			o.words = append(o.words, i)
			continue
		}
		rawName, value, assigned := strings.Cut(body, "=")
		name := canonical(rawName)
		switch {
		case assigned:
		case i+1 < len(in.Args) && in.Args[i+1] == secret.Blank:
			i++ // sysbench requires `=`, but users write a blank
			value = in.Args[i]
		default:
			value = "on"
		}
		if name == "config_file" {
			files = append(files, value)
			continue
		}
		o.Values[name] = value
	}
	for _, file := range files {
		o.readFile(in, file)
	}
	return o
}

// readFile reads a configuration file: one name=value per line, with optional quotes around the
// value and an optional comment. The command line wins.
func (o *options) readFile(in tool.Invocation, file string) {
	data, err := in.Read(file)
	if err != nil {
		o.unreadFiles = append(o.unreadFiles, file)
		return
	}
	for line := range strings.Lines(string(data)) {
		rawName, rest, assigned := strings.Cut(line, "=")
		name := canonical(rawName)
		if !assigned || name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		o.SetDefault(name, fileValue(rest))
	}
}

// fileValue reads a value of a configuration file: words and quoted strings, separated by commas or
// blanks, before any comment (read_config in src/sb_options.c). It joins them by commas.
func fileValue(s string) string {
	var values []string
	for {
		s = strings.TrimLeft(s, " \t\r\n\v\f")
		switch {
		case s == "" || s[0] == '#':
			return strings.Join(values, ",")
		case s[0] == '\'' || s[0] == '"':
			value, rest, closed := strings.Cut(s[1:], s[:1])
			values = append(values, strings.TrimRight(value, "\r\n"))
			if !closed {
				return strings.Join(values, ",")
			}
			_, s, _ = strings.Cut(rest, ",")
		default:
			n := strings.IndexAny(s, ", \t\r\n\v\f")
			if n < 0 {
				n = len(s)
			}
			values = append(values, s[:n])
			s = s[min(n+1, len(s)):]
		}
	}
}
