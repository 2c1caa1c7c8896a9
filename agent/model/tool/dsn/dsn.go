// Package dsn reads the connection strings that benchmark tools take: URLs as
// those of MongoDB and Redis, JDBC URLs, the keywords of PostgreSQL.
package dsn

import "strings"

// Address is where a connection string leads.
type Address struct {
	// Hosts as host:port, or host where no port is given, joined by commas.
	Hosts    string
	Database string
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
	}
	all.Hosts = strings.Join(hosts, ",")
	return all
}

// Login returns the kind of database that s is for, as the configuration names it,
// and the user; each empty if it is another kind or s does not have it.
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
	// Parameters: ?a=b&c=d, or ;a=b of SQL Server.
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

// Keywords reads a connection string of PostgreSQL's library, such as
// `host=db1 port=5432 application_name='my bench'`. What it can't read is left out.
func Keywords(s string) map[string]string {
	values := map[string]string{}
	for {
		key, rest, found := strings.Cut(s, "=")
		if !found {
			return values
		}
		rest = strings.TrimLeft(rest, " \t\n")
		var value strings.Builder
		quoted := strings.HasPrefix(rest, "'")
		i := 0
		if quoted {
			i = 1
		}
		for ; i < len(rest); i++ {
			c := rest[i]
			if quoted && c == '\'' || !quoted && strings.IndexByte(" \t\n", c) >= 0 {
				i++
				break
			}
			if c == '\\' && i+1 < len(rest) {
				i++
			}
			value.WriteByte(rest[i])
		}
		values[strings.TrimSpace(key)] = value.String()
		s = rest[min(i, len(rest)):]
	}
}
