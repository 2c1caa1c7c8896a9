// Package secret keeps passwords out of what benchwatch stores, shows or
// sends.
//
// Text recognises the forms in which passwords appear in command lines,
// configuration and the output of benchmark tools. A Redactor also blanks known
// values. In doubt both blank too much rather than too little.
package secret

import (
	"regexp"
	"strings"
)

// Blank replaces a secret.
const Blank = "***"

// maxPasses bounds how often the rules are applied: the result of one rule can
// match another.
const maxPasses = 16

// Text returns s with everything blanked that looks like a secret: passwords
// in URLs and DSNs, values of options, variables and properties with the name
// of a secret, the lines in which sysbench and tpcc-mysql print the password,
// SQL's IDENTIFIED BY, bearer tokens. It returns s itself, without allocation,
// if s has none of these. Text(Text(s)) is Text(s).
func Text(s string) string {
	if !textTriggers.in(s) {
		return s
	}
	for range maxPasses {
		t := pass(s)
		if t == s {
			break
		}
		s = t
	}
	return s
}

func pass(s string) string {
	for _, r := range shapes {
		if r.triggers.in(s) {
			s = r.expr.ReplaceAllString(s, r.with)
		}
	}
	if strings.Contains(s, "@") && strings.Contains(s, "://") {
		s = urls(s)
	}
	if nameTriggers.in(s) {
		s = pairs(s)
	}
	return s
}

// shape is a fixed form in which a secret appears.
type shape struct {
	triggers *triggers
	expr     *regexp.Regexp
	with     string
}

var shapes = []shape{
	{ // sysbench's --mysql-debug. A quote may be part of the password.
		triggersOf("mysql_real_connect"),
		regexp.MustCompile(`(mysql_real_connect\([^,\n]*, "[^"\n]*", "[^"\n]*", ").*(", "[^"\n]*", [0-9]+, )`),
		"${1}" + Blank + "${2}",
	},
	{ // The same line, cut off.
		triggersOf("mysql_real_connect"),
		regexp.MustCompile(`(mysql_real_connect\([^,\n]*, "[^"\n]*", "[^"\n]*", ")([^"\n]*)$`),
		"${1}" + Blank,
	},
	{ // tpcc-mysql's echo of its options.
		triggersOf("option p"),
		regexp.MustCompile(`(?m)(option p with value ')(.*?)('?[ \t\r]*)$`),
		"${1}" + Blank + "${3}",
	},
	{ // SQL: IDENTIFIED [WITH plugin] BY|AS [PASSWORD] 'x'
		triggersOf("identified"),
		regexp.MustCompile(`(?i)(identified\s+(?:with\s+\S+\s+)?(?:by|as)\s+(?:password\s+)?)('(?:[^'\\]|\\.|'')*'?|"(?:[^"\\]|\\.|"")*"?)`),
		"${1}'" + Blank + "'",
	},
	{ // SQL: PASSWORD('x')
		triggersOf("password("),
		regexp.MustCompile(`(?i)(password\(\s*)('(?:[^'\\]|\\.|'')*'?|"(?:[^"\\]|\\.|"")*"?)`),
		"${1}'" + Blank + "'",
	},
	{ // user:password@tcp(host:port)/db, as the Go MySQL driver writes it.
		triggersOf("("),
		regexp.MustCompile(`([^\s"'` + "`" + `:@/=]*):\S*@([A-Za-z0-9]*\()`),
		"${1}:" + Blank + "@${2}",
	},
	{ // user:password@host:port without a scheme.
		triggersOf("@"),
		regexp.MustCompile(`(^|[\s"'=])([\w.%+-]+):([^\s/"'][^\s"']*|)@([\w.-]+|\[[0-9a-fA-F:]+\])(:[0-9]+|/)`),
		"${1}${2}:" + Blank + "@${4}${5}",
	},
	{
		triggersOf("authorization"),
		regexp.MustCompile(`(?i)(authorization["']?\s*[:=]\s*["']?(?:basic|bearer|token|digest|apikey)\s+)[^\s"'][^\r\n"']*`),
		"${1}" + Blank,
	},
	{
		triggersOf("bearer"),
		regexp.MustCompile(`(?i)(\bbearer\s+)[\w.~+/=-]+`),
		"${1}" + Blank,
	},
	{ // Service account tokens of Grafana and JSON web tokens, recognised by their beginning.
		triggersOf("glsa_", "eyj"),
		regexp.MustCompile(`\bglsa_\w+|\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?`),
		Blank,
	},
	{ // -pX of the MySQL programs, in commands that are one string.
		triggersOf("mysql", "mariadb"),
		regexp.MustCompile(`((?:^|[\s/'"])(?:mysql|mariadb)[\w.-]*\s(?:[^\n|;&]*?\s)?['"]?-p)([^\s'"]+|'[^'\n]*'?|"[^"\n]*"?)`),
		"${1}" + Blank,
	},
	{ // -p X and -pX of the TPC-C tools.
		triggersOf("tpc"),
		regexp.MustCompile(`((?:^|[\s/'"])(?:tpcc_start|tpcc_load|go-tpc)[\w.]*\s(?:[^\n|;&]*?\s)?['"]?-p['"]?\s*)([^\s'"]+|'[^'\n]*'?|"[^"\n]*"?)`),
		"${1}" + Blank,
	},
}
