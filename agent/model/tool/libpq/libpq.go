// Package libpq finds out where and how a program with PostgreSQL's client library logs in: from its
// options, a connection string or URI, the environment, a service file and a password file, in the
// library's own order. Source: https://www.postgresql.org/docs/current/libpq-connect.html.
package libpq

import (
	"bufio"
	"bytes"
	"cmp"
	"net"
	"net/url"
	"path"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/dsn"
	"github.com/benchwatch/benchwatch/agent/model/tool/option"
)

// Engine is the kind of database in the words of the configuration.
const Engine = "postgresql"

// Settings are parameters of a connection by the names that connection strings have: host, hostaddr,
// port, dbname, user, password, passfile, service, sslmode, sslrootcert, sslcert, sslkey.
type Settings map[string]string

// Parse returns the parameters in the name of a database, which may be a URI or a connection string.
func Parse(name string) Settings {
	switch {
	case strings.HasPrefix(name, "postgres://"), strings.HasPrefix(name, "postgresql://"):
		return parseURI(name)
	case strings.Contains(name, "="):
		return dsn.Keywords(name)
	case name != "":
		return Settings{"dbname": name}
	}
	return Settings{}
}

// parseURI reads a URI, which may have several hosts with ports.
func parseURI(text string) Settings {
	s := Settings{}
	_, rest, _ := strings.Cut(text, "://")
	rest, query, _ := strings.Cut(rest, "?")
	rest, name, _ := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		user, password, _ := strings.Cut(rest[:at], ":")
		s.set("user", user)
		s.set("password", password)
		rest = rest[at+1:]
	}
	var hosts, ports []string
	for one := range strings.SplitSeq(rest, ",") {
		host, port, err := net.SplitHostPort(one)
		if err != nil {
			host, port = strings.Trim(one, "[]"), ""
		}
		hosts, ports = append(hosts, decoded(host)), append(ports, port)
	}
	if rest != "" {
		s["host"] = strings.Join(hosts, ",")
		if len(hosts) > 1 || ports[0] != "" { // otherwise PGPORT counts
			s["port"] = strings.Join(ports, ",")
		}
	}
	s.set("dbname", name)
	for pair := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		if key == "ssl" && value == "true" { // of JDBC
			key, value = "sslmode", "require"
		}
		s.set(decoded(key), value)
	}
	return s
}

func (s Settings) set(key, encoded string) {
	if encoded != "" && key != "" {
		s[key] = decoded(encoded)
	}
}

// decoded returns a text with %-escapes decoded; unchanged if they are not valid.
func decoded(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}

// environment maps variables to parameters.
var environment = []struct{ variable, parameter string }{
	{"PGHOST", "host"}, {"PGHOSTADDR", "hostaddr"}, {"PGPORT", "port"}, {"PGDATABASE", "dbname"}, {"PGUSER", "user"}, {"PGPASSWORD", "password"},
	{"PGPASSFILE", "passfile"}, {"PGSERVICE", "service"}, {"PGSSLMODE", "sslmode"}, {"PGSSLROOTCERT", "sslrootcert"}, {"PGSSLCERT", "sslcert"}, {"PGSSLKEY", "sslkey"},
}

// Describe sets target, database and user of d, and returns the login. given are the parameters of the command line.
func Describe(d *tool.Description, in *tool.Invocation, given Settings) tool.Login {
	s := Settings{}
	add := func(more Settings) {
		for key, value := range more {
			if s[key] == "" && value != "" {
				s[key] = value
			}
		}
	}
	env := Settings{}
	for _, e := range environment {
		env[e.parameter] = getenv(in, e.variable)
	}
	add(given)
	add(service(in, cmp.Or(given["service"], env["service"])))
	add(env)
	add(Settings{"port": "5432"})
	d.Engine = Engine
	d.User = s["user"]
	if d.User == "" {
		d.User = getenv(in, "USER")
	}
	d.Database = cmp.Or(s["dbname"], d.User)
	s["user"] = d.User
	d.Target = target(s)
	l := tool.Login{User: d.User, TLS: encryption(s)}
	if in.WithSecrets {
		l.Password = cmp.Or(s["password"], passwordFrom(in, s))
	}
	return l
}

func getenv(in *tool.Invocation, name string) string {
	if in.Getenv == nil {
		return ""
	}
	return in.Getenv(name)
}

// target returns the addresses of the servers.
func target(s Settings) string {
	host := cmp.Or(s["hostaddr"], s["host"], "localhost")
	switch port := s["port"]; {
	case strings.HasPrefix(host, "/"), strings.HasPrefix(host, "@"):
		return path.Join(host, ".s.PGSQL."+port)
	case strings.Contains(host, ",") || strings.Contains(port, ","):
		return pairs(host, port)
	default:
		return option.Targets(host, port, false)
	}
}

// pairs joins a list of hosts with the list of their ports, or with one port.
func pairs(hosts, ports string) string {
	h, p := strings.Split(hosts, ","), strings.Split(ports, ",")
	var all []string
	for i := range min(len(h), option.MaxTargets) {
		port := p[0]
		if len(p) > 1 {
			if i >= len(p) {
				break
			}
			port = p[i]
		}
		all = append(all, net.JoinHostPort(strings.TrimSpace(h[i]), cmp.Or(strings.TrimSpace(port), "5432")))
	}
	return strings.Join(all, ",")
}

// encryption returns how the connections are encrypted. The library's default is to prefer TLS.
func encryption(s Settings) tool.TLS {
	mode, root := tool.ParseTLSMode(cmp.Or(s["sslmode"], "prefer")), s["sslrootcert"]
	switch {
	case mode == tool.TLSOff:
		return tool.TLS{}
	case root == "system":
		root, mode = "", tool.TLSVerify
	case root != "" && mode == tool.TLSRequired: // as the library does
		mode = tool.TLSVerifyCA
	}
	return tool.TLS{Mode: mode, CAFile: root, CertFile: s["sslcert"], KeyFile: s["sslkey"]}
}

// service returns the parameters of a service: from the user's file, otherwise from the system's.
func service(in *tool.Invocation, name string) Settings {
	if name == "" {
		return nil
	}
	files := []string{getenv(in, "PGSERVICEFILE")}
	if files[0] == "" {
		files[0] = path.Join(cmp.Or(getenv(in, "HOME"), "/nonexistent"), ".pg_service.conf")
	}
	if folder := getenv(in, "PGSYSCONFDIR"); folder != "" {
		files = append(files, path.Join(folder, "pg_service.conf"))
	}
	files = append(files, "/etc/postgresql-common/pg_service.conf", "/etc/pg_service.conf")
	for _, file := range files {
		text, err := in.Read(file)
		if err != nil {
			continue
		}
		if s, found := section(text, name); found {
			return s
		}
	}
	return nil
}

// section returns the parameters of one section of a service file.
func section(text []byte, name string) (s Settings, found bool) {
	s = Settings{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if head, ok := strings.CutPrefix(line, "["); ok {
			if found {
				return s, true
			}
			found = strings.TrimSuffix(head, "]") == name
			continue
		}
		if key, value, ok := strings.Cut(line, "="); ok && found && !strings.HasPrefix(line, "#") {
			s[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return s, found
}

// passwordFrom returns the password for the first server in the password file; empty if it has none.
func passwordFrom(in *tool.Invocation, s Settings) string {
	file := cmp.Or(s["passfile"], path.Join(cmp.Or(getenv(in, "HOME"), "/nonexistent"), ".pgpass"))
	text, err := in.Read(file)
	if err != nil {
		return ""
	}
	host, _, _ := strings.Cut(cmp.Or(s["host"], s["hostaddr"], "localhost"), ",")
	port, _, _ := strings.Cut(s["port"], ",")
	if strings.HasPrefix(host, "/run/postgresql") || strings.HasPrefix(host, "/var/run/postgresql") || host == "/tmp" {
		host = "localhost"
	}
	want := []string{host, port, cmp.Or(s["dbname"], s["user"]), s["user"]}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		fields := split(lines.Text())
		if len(fields) < 5 {
			continue
		}
		matches := true
		for i, w := range want {
			matches = matches && (fields[i] == "*" || fields[i] == w)
		}
		if matches {
			return fields[4]
		}
	}
	return ""
}

// split splits a line of a password file at colons that are not escaped.
func split(line string) []string {
	var fields []string
	var b strings.Builder
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && i+1 < len(line):
			i++
			b.WriteByte(line[i])
		case line[i] == ':' && len(fields) < 4:
			fields = append(fields, b.String())
			b.Reset()
		default:
			b.WriteByte(line[i])
		}
	}
	return append(fields, b.String())
}
