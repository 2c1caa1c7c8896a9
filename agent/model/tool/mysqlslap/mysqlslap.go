// Package mysqlslap reads the command lines and the output of mysqlslap and mariadb-slap, which
// print one block of text, or one row of CSV, per concurrency at the end. Formats:
// client/mysqlslap.c(c) of MySQL 5.1 to 8.4 and MariaDB 10.11.
package mysqlslap

import (
	"bufio"
	"bytes"
	"net"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/option"
)

// Name is the tool's name in reports.
const Name = "mysqlslap"

// Tool is mysqlslap.
var Tool = &tool.Tool{
	Name:      Name,
	Programs:  []string{"mysqlslap", "mariadb-slap"},
	Describe:  Describe,
	NewParser: func(tool.Description) tool.Parser { return NewParser() },
	Sniff:     Sniff,
}

// Sniff returns from 0 to 100 how much an output that begins with head resembles mysqlslap's.
func Sniff(head []byte) int {
	p := NewParser()
	score := 0
	tool.ParseAll(p, tool.Stdout, head, func(r *tool.Report) {
		switch {
		case r.Kind == tool.Summary && p.csv:
			score = max(score, 60) // seven columns
		case r.Kind == tool.Summary:
			score = 100
		case r.Kind == tool.Error:
			score = max(score, 70)
		}
	})
	return score
}

// shorthands map the one-letter options that take a value to their long names.
var shorthands = map[byte]string{
	'c': "concurrency", 'e': "engine", 'h': "host", 'i': "iterations", 'P': "port", 'q': "query", 'u': "user", 'S': "socket",
	'F': "delimiter", 'x': "number-char-cols", 'y': "number-int-cols",
}

// valued are the relevant long options that take a value, perhaps as the next word. The client
// library accepts any unique prefix of a name.
var valued = []string{
	"concurrency", "engine", "host", "iterations", "port", "query", "user", "socket", "delimiter", "number-char-cols",
	"number-int-cols", "number-of-queries", "auto-generate-sql-load-type", "auto-generate-sql-execute-number",
	"auto-generate-sql-write-number", "auto-generate-sql-unique-query-number", "auto-generate-sql-unique-write-number",
	"auto-generate-sql-secondary-indexes", "create", "create-schema", "commit", "detach", "post-query", "post-system", "pre-query",
	"pre-system", "init-command", "protocol", "plugin-dir", "default-auth", "character-sets-dir", "defaults-file",
	"defaults-extra-file", "defaults-group-suffix", "login-path", "ssl-ca", "ssl-capath", "ssl-cert", "ssl-cipher", "ssl-key", "ssl-mode", "tls-version",
}

// flags are long options without a value that share a prefix with options in valued.
var flags = []string{"auto-generate-sql", "auto-generate-sql-add-autoincrement", "auto-generate-sql-guid-primary", "password", "ssl"}

// labels map options to labels.
var labels = map[string]string{
	"concurrency": "concurrency", "iterations": "iterations", "number-of-queries": "queries", "engine": "engine",
	"number-char-cols": "char_columns", "number-int-cols": "int_columns",
}

// Describe reads a command line of mysqlslap.
func Describe(in tool.Invocation) tool.Description {
	o := parseOptions(in)
	d := tool.Description{
		Command: "run", Labels: o.Labels(labels),
		Database: o.Text("create-schema", "mysqlslap"), Target: target(o.Set), Engine: "mysql", User: o.Values["user"], Threads: o.Number("concurrency", 1),
		Notes: []string{"mysqlslap reports only at its end: until then only the servers can be watched"},
	}
	switch {
	case o.Values["auto-generate-sql"] != "" || o.Values["auto-generate-sql-load-type"] != "":
		d.Workload = o.Text("auto-generate-sql-load-type", "mixed")
	case o.Values["query"] != "":
		d.Workload = "query"
	}
	return d
}

// options of a command line and of its option files.
type options struct{ *option.Set }

func parseOptions(in tool.Invocation) options {
	o := options{option.New()}
	for i := 0; i < len(in.Args); i++ {
		a := in.Args[i]
		switch {
		case strings.HasPrefix(a, "--") && len(a) > 2:
			i = o.long(in.Args, i)
		case len(a) >= 2 && a[0] == '-' && shorthands[a[1]] != "":
			name, value := shorthands[a[1]], a[2:]
			if value == "" && i+1 < len(in.Args) {
				i++
				value = in.Args[i]
			}
			o.Values[name] = value
		case len(a) >= 2 && a[0] == '-' && strings.IndexByte(a, 'a') > 0 && strings.Trim(a[1:], "aCsvT") == "":
			o.Values["auto-generate-sql"] = "on"
		}
	}
	for _, name := range []string{"defaults-file", "defaults-extra-file"} {
		if file := o.Values[name]; file != "" {
			o.readFile(in, file)
		}
	}
	return o
}

// long reads the long option at i and returns the index of its last word.
func (o options) long(args []string, i int) int {
	raw, value, assigned := strings.Cut(args[i][2:], "=")
	name := complete(strings.ReplaceAll(raw, "_", "-"))
	if !assigned {
		value = "on"
		for _, v := range valued {
			if v == name && i+1 < len(args) {
				i++
				value = args[i]
				break
			}
		}
	}
	o.Values[name] = value
	return i
}

// complete returns the long option whose unique prefix is name.
func complete(name string) string {
	found := ""
	for _, list := range [][]string{valued, flags} {
		for _, v := range list {
			if v == name {
				return name
			}
			if strings.HasPrefix(v, name) {
				if found != "" {
					return name
				}
				found = v
			}
		}
	}
	if found != "" {
		return found
	}
	return name
}

// groups are the sections of option files that mysqlslap reads.
var groups = map[string]bool{
	"client": true, "mysqlslap": true, "mariadb-slap": true, "client-server": true, "client-mariadb": true,
}

// readFile reads an option file. Options of the command line win.
func (o options) readFile(in tool.Invocation, name string) {
	data, err := in.Read(name)
	if err != nil {
		return // mysqlslap itself reports that
	}
	ours := false
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		line := strings.TrimSpace(s.Text())
		if group, ok := strings.CutPrefix(line, "["); ok {
			ours = groups[strings.TrimSuffix(group, "]")]
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		key, value = strings.ReplaceAll(strings.TrimSpace(key), "_", "-"), strings.Trim(strings.TrimSpace(value), `"'`)
		if ours && key != "" && !strings.HasPrefix(key, "#") {
			o.SetDefault(key, value)
		}
	}
}

// target returns the server. Without a host the client library uses the socket.
func target(o *option.Set) string {
	host := o.Text("host", "localhost")
	if socket := o.Values["socket"]; host == "localhost" && socket != "" {
		return socket
	}
	return net.JoinHostPort(host, o.Text("port", "3306"))
}
