// Package dsn reads the connection strings of benchmark tools: URLs (MongoDB, Redis), JDBC URLs,
// and PostgreSQL's keywords.
package dsn

import (
	"regexp"
	"strings"
)

// Address is the destination of a connection string.
type Address struct {
	// Hosts are host:port, or host if no port is given, joined by commas.
	Hosts    string
	Database string
}

// Parse reads s, which may be several JDBC URLs separated by semicolons. It leaves out what it
// can't read.
func Parse(s string) Address {
	var all Address
	var hosts []string
	for part := range strings.SplitSeq(strings.ReplaceAll(s, ";jdbc:", "\x00jdbc:"), "\x00") {
		a := parseOne(part)
		if a.Hosts != "" {
			hosts = append(hosts, a.Hosts)
		}
		if all.Database == "" {
			all.Database = a.Database
		}
	}
	all.Hosts = strings.Join(hosts, ",")
	return all
}

// Login returns the kind of database, in the words of the configuration, and the user. Either is
// empty if s does not say or the kind is another one.
func Login(s string) (engine, user string) {
	scheme, rest, _ := strings.Cut(strings.TrimPrefix(s, "jdbc:"), "://")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		user, _, _ = strings.Cut(rest[:at], ":")
	}
	switch {
	case strings.HasPrefix(scheme, "mongodb"):
		engine = "mongodb"
	case strings.HasPrefix(scheme, "mysql"), strings.HasPrefix(scheme, "mariadb"):
		engine = "mysql"
	case strings.HasPrefix(scheme, "postgres"):
		engine = "postgresql"
	}
	return engine, user
}

func parseOne(s string) (a Address) {
	jdbc := strings.HasPrefix(s, "jdbc:")
	_, rest, ok := strings.Cut(s, "://")
	if !ok {
		if !jdbc {
			return a
		}
		return oracle(s)
	}
	// Parameters: ?a=b&c=d, or ;a=b for SQL Server.
	parameters := ""
	slash := max(strings.LastIndexByte(rest, '@'), 0)
	if i := strings.IndexAny(rest[slash:], "?;"); i >= 0 {
		rest, parameters = rest[:slash+i], rest[slash+i+1:]
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	a.Hosts, a.Database, _ = strings.Cut(rest, "/")
	for _, p := range strings.FieldsFunc(parameters, func(r rune) bool { return r == '&' || r == ';' }) {
		key, value, _ := strings.Cut(p, "=")
		if strings.EqualFold(key, "databaseName") || strings.EqualFold(key, "database") {
			a.Database = value
		}
	}
	if strings.ContainsAny(a.Hosts, "()") {
		a.Hosts = "" // address=(host=…): not read
	}
	return a
}

// oracle reads jdbc:oracle:thin:user/password@host:port:sid.
func oracle(s string) (a Address) {
	i := strings.LastIndexByte(s, '@')
	if i < 0 {
		return a
	}
	a.Hosts, a.Database, _ = strings.Cut(strings.TrimLeft(s[i+1:], "/"), "/")
	return a
}

// Keywords reads a connection string of libpq, such as `host=db1 port=5432 application_name='my
// bench'`. It leaves out what it can't read.
func Keywords(s string) map[string]string {
	values := map[string]string{}
	for _, m := range keyword.FindAllStringSubmatch(s, -1) {
		values[m[1]] = escaped.ReplaceAllString(m[2]+m[3], "$1")
	}
	return values
}

var (
	// keyword matches key = 'value' and key=value. The closing quote may be missing.
	keyword = regexp.MustCompile(`(?s)([^\s=]+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'?|((?:[^\s\\]|\\.|\\$)*))`)
	escaped = regexp.MustCompile(`(?s)\\(.)`)
)
