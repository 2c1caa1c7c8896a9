// Package dsn reads the connection strings that benchmark tools take: URLs as
// those of MongoDB and Redis, JDBC URLs.
package dsn

import (
	"net/url"
	"strings"

	"github.com/benchwatch/benchwatch/agent/secret"
)

// Address is where a connection string leads.
type Address struct {
	// Hosts as host:port, or host where no port is given, joined by commas.
	Hosts    string
	Database string
	// Secrets are the passwords in it, as written.
	Secrets []string
}

// Parse reads s, which may be several JDBC URLs separated by semicolons. What it
// can't read is left out.
func Parse(s string) Address {
	var all Address
	var hosts []string
	for one := range strings.SplitSeq(strings.ReplaceAll(s, ";jdbc:", "\x00jdbc:"), "\x00") {
		a := parseOne(one)
		if a.Hosts != "" {
			hosts = append(hosts, a.Hosts)
		}
		if all.Database == "" {
			all.Database = a.Database
		}
		all.Secrets = append(all.Secrets, a.Secrets...)
	}
	all.Hosts = strings.Join(hosts, ",")
	return all
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
	// Parameters: ?a=b&c=d, or ;a=b of SQL Server.
	parameters := ""
	slash := max(strings.LastIndexByte(rest, '@'), 0)
	if i := strings.IndexAny(rest[slash:], "?;"); i >= 0 {
		rest, parameters = rest[:slash+i], rest[slash+i+1:]
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		if _, password, ok := strings.Cut(rest[:i], ":"); ok {
			a.secret(password)
		}
		rest = rest[i+1:]
	}
	a.Hosts, a.Database, _ = strings.Cut(rest, "/")
	for _, p := range strings.FieldsFunc(parameters, func(r rune) bool { return r == '&' || r == ';' }) {
		key, value, _ := strings.Cut(p, "=")
		switch {
		case secret.Name(key):
			a.secret(value)
		case strings.EqualFold(key, "databaseName"), strings.EqualFold(key, "database"):
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
	user := s[:i]
	if _, password, ok := strings.Cut(user[strings.LastIndexByte(user, ':')+1:], "/"); ok {
		a.secret(password)
	}
	a.Hosts, a.Database, _ = strings.Cut(strings.TrimLeft(s[i+1:], "/"), "/")
	return a
}

// secret adds s, and what it is without the escapes of URLs, as a tool prints
// either.
func (a *Address) secret(s string) {
	if s == "" {
		return
	}
	a.Secrets = append(a.Secrets, s)
	if plain, err := url.PathUnescape(s); err == nil && plain != s {
		a.Secrets = append(a.Secrets, plain)
	}
}
