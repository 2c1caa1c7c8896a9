// Package mysqlslap reads the command lines and the output of mysqlslap and mariadb-slap, which
// print one block of text, or one row of CSV, per concurrency at the end. Formats:
// client/mysqlslap.c(c) of MySQL 5.1 to 8.4 and MariaDB 10.11.
package mysqlslap

import (
	"net"
	"slices"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/mysqlclient"
	"github.com/benchwatch/benchwatch/agent/model/tool/option"
)

// Name is the tool's name in reports.
const Name = "mysqlslap"

// Tool is mysqlslap.
var Tool = &tool.Tool{
	Name:      Name,
	Programs:  []string{"mysqlslap", "mariadb-slap"},
	Describe:  Describe,
	Login:     login,
	NewParser: func(tool.Description) tool.Parser { return NewParser() },
	Margin:    []string{"Benchmark"},
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

var syntax = option.Syntax{
	Short: map[byte]string{
		'c': "concurrency", 'e': "engine", 'h': "host", 'i': "iterations", 'P': "port", 'q': "query", 'u': "user", 'S': "socket",
		'F': "delimiter", 'x': "number-char-cols", 'y': "number-int-cols",
	},
	Switches: map[byte]string{'a': "auto-generate-sql", 'C': "", 's': "", 'v': "", 'T': ""},
	Valued: []string{
		"number-of-queries", "auto-generate-sql-load-type", "auto-generate-sql-execute-number",
		"auto-generate-sql-write-number", "auto-generate-sql-unique-query-number", "auto-generate-sql-unique-write-number",
		"auto-generate-sql-secondary-indexes", "create", "create-schema", "commit", "detach", "post-query", "post-system", "pre-query",
		"pre-system", "init-command", "protocol", "plugin-dir", "default-auth", "character-sets-dir", "defaults-file",
		"defaults-extra-file", "defaults-group-suffix", "login-path", "ssl-ca", "ssl-capath", "ssl-cert", "ssl-cipher", "ssl-key", "ssl-mode", "tls-version",
	},
	Flags: []string{"auto-generate-sql-add-autoincrement", "auto-generate-sql-guid-primary", "password", "ssl"},
}

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
		Database: o.Text("create-schema", "mysqlslap"), Target: target(o), Engine: "mysql", User: o.Values["user"], Threads: o.Number("concurrency", 1),
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

func parseOptions(in tool.Invocation) *option.Set {
	o := syntax.Parse(in.Args)
	o.WithSecrets = in.WithSecrets
	files := mysqlclient.Files{
		Groups: []string{"mysqlslap", "mariadb-slap"}, Only: o.Values["defaults-file"], Extra: o.Values["defaults-extra-file"],
		LoginPath: o.Values["login-path"], None: slices.Contains(in.Args, "--no-defaults"),
	}
	for name, value := range mysqlclient.Read(&in, files) { // options of the command line win
		o.SetDefault(name, value)
	}
	return o
}

// login reads the password of an option file or a login path, and how connections are encrypted.
func login(in tool.Invocation) tool.Login {
	o := parseOptions(in)
	return mysqlclient.Options(o.Values).Login(&in)
}

// target returns the server. Without a host the client library uses the socket.
func target(o *option.Set) string {
	host := o.Text("host", "localhost")
	if socket := o.Values["socket"]; host == "localhost" && socket != "" {
		return socket
	}
	return net.JoinHostPort(host, o.Text("port", "3306"))
}
