package dsn

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// parameters has the parameters of a connection string, by name in lower case.
type parameters map[string]string

func (p parameters) is(name string) bool { return strings.EqualFold(p[name], "true") || p[name] == "1" }

// Credentials returns how a tool logs in with a connection string. The string has its secrets. What the
// string does not say is as the drivers' defaults.
func Credentials(s string) tool.Login {
	var l tool.Login
	scheme, rest, ok := strings.Cut(strings.TrimPrefix(s, "jdbc:"), "://")
	if !ok {
		return l
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		user, password, _ := strings.Cut(rest[:at], ":")
		l.User, l.Password = plain(user), plain(password)
		rest = rest[at+1:]
	}
	rest, query, _ := strings.Cut(rest, "?")
	p := parameters{}
	for pair := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, _ := strings.Cut(pair, "=")
		p[strings.ToLower(name)] = plain(value)
	}
	switch engine, _ := Login(s); engine {
	case "mongodb":
		_, database, _ := strings.Cut(rest, "/")
		l.TLS, l.Options = p.mongodb(scheme), p.mongodbOptions(database)
	case "mysql":
		l.TLS = p.mysql()
	case "postgresql":
		l.TLS = tool.TLS{Mode: tool.ParseTLSMode(cmp.Or(p["sslmode"], "prefer")),
			CAFile: p["sslrootcert"], CertFile: p["sslcert"], KeyFile: p["sslkey"]}
	}
	l.User, l.Password = cmp.Or(l.User, p["user"]), cmp.Or(l.Password, p["password"])
	return l
}

// plain decodes a part of a URL.
func plain(s string) string {
	if text, err := url.PathUnescape(s); err == nil {
		return text
	}
	return s
}

// mongodb returns the TLS of a MongoDB URI. Its drivers verify certificates by default.
func (p parameters) mongodb(scheme string) tool.TLS {
	value, given := p["tls"]
	if !given {
		value, given = p["ssl"]
	}
	files := tool.TLS{CAFile: p["tlscafile"], CertFile: p["tlscertificatekeyfile"], KeyFile: p["tlscertificatekeyfile"]}
	on := strings.EqualFold(value, "true") || !given && (scheme == "mongodb+srv" || files != (tool.TLS{}))
	switch {
	case !on:
		return tool.TLS{}
	case p.is("tlsinsecure"), p.is("tlsallowinvalidcertificates"):
		files.Mode = tool.TLSRequired
	case p.is("tlsallowinvalidhostnames"):
		files.Mode = tool.TLSVerifyCA
	default:
		files.Mode = tool.TLSVerify
	}
	return files
}

// mongodbOptions returns the options of a target. The user is in the URI's database unless it says otherwise.
func (p parameters) mongodbOptions(database string) map[string]string {
	options := map[string]string{}
	mechanism := p["authmechanism"]
	source := p["authsource"]
	if source == "" && mechanism != "MONGODB-X509" && mechanism != "PLAIN" {
		source = plain(database)
	}
	if source != "" {
		options["auth_source"] = source
	}
	if mechanism != "" {
		options["auth_mechanism"] = mechanism
	}
	return options
}

// mysql returns the TLS of a JDBC URL for MySQL or MariaDB. MySQL's driver prefers TLS by default.
func (p parameters) mysql() tool.TLS {
	switch mode, ssl := p["sslmode"], p["usessl"]; {
	case mode != "":
		return tool.TLS{Mode: tool.ParseTLSMode(mode), CAFile: p["serversslcert"]}
	case ssl != "" && !p.is("usessl"):
		return tool.TLS{}
	case p.is("verifyservercertificate"):
		return tool.TLS{Mode: tool.TLSVerifyCA}
	case p.is("usessl"), p.is("requiressl"):
		return tool.TLS{Mode: tool.TLSRequired}
	}
	return tool.TLS{Mode: tool.TLSPreferred}
}
