// Package mysqlclient reads how tools log in that use MySQL's or MariaDB's client library: option files,
// login paths, the environment, and the options of TLS.
package mysqlclient

import (
	"bytes"
	"cmp"
	"crypto/aes"
	"encoding/binary"
	"path"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// Options are options of a client by name, with dashes and without the leading ones.
type Options map[string]string

// Files are where the client library looks for options.
type Files struct {
	// Groups are the sections that count, besides those of every client.
	Groups []string
	// Only replaces the usual files, Extra is read after the system's (--defaults-file, --defaults-extra-file).
	Only, Extra string
	// None: no option files, except the login path's.
	None bool
	// LoginPath is the section of the file with obfuscated logins; empty: client.
	LoginPath string
}

// clientGroups are the sections for every client.
var clientGroups = []string{"client", "client-server", "client-mariadb"}

// mostIncludes bounds the option files that include others.
const mostIncludes = 10

// Read returns the options in the files that the library reads; later ones win.
func Read(in *tool.Invocation, f Files) Options {
	o := Options{}
	groups := append(slices.Clone(clientGroups), f.Groups...)
	home := ""
	if in.Getenv != nil {
		home = in.Getenv("HOME")
	}
	names := []string{"/etc/my.cnf", "/etc/mysql/my.cnf"}
	if f.Extra != "" {
		names = append(names, f.Extra)
	}
	if home != "" {
		names = append(names, path.Join(home, ".my.cnf"))
	}
	switch {
	case f.None:
		names = nil
	case f.Only != "":
		names = []string{f.Only}
	}
	for _, name := range names {
		left := mostIncludes
		o.file(in, name, groups, &left)
	}
	login := ""
	if in.Getenv != nil {
		login = in.Getenv("MYSQL_TEST_LOGIN_FILE")
	}
	if login == "" && home != "" {
		login = path.Join(home, ".mylogin.cnf")
	}
	if login != "" {
		if data, err := in.Read(login); err == nil {
			if f.LoginPath != "" {
				groups = append(groups, f.LoginPath)
			}
			o.text(in, reveal(data), groups, new(int))
		}
	}
	return o
}

func (o Options) file(in *tool.Invocation, name string, groups []string, left *int) {
	if data, err := in.Read(name); err == nil {
		o.text(in, string(data), groups, left)
	}
}

// text reads an option file. It skips folders of option files, which a tool's view of the file system can't list.
func (o Options) text(in *tool.Invocation, text string, groups []string, left *int) {
	ours := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			name, _, _ := strings.Cut(line[1:], "]")
			ours = slices.Contains(groups, name)
		case strings.HasPrefix(line, "!include "):
			if *left--; *left >= 0 {
				o.file(in, strings.TrimSpace(line[len("!include "):]), groups, left)
			}
		case ours && line[0] != '!':
			name, value, _ := strings.Cut(line, "=")
			o[strings.ReplaceAll(strings.TrimSpace(name), "_", "-")] = fileValue(value)
		}
	}
}

// fileValue reads a value of an option file: quotes around it, or a comment after it.
func fileValue(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 1 && (s[0] == '"' || s[0] == '\'') {
		if end := strings.IndexByte(s[1:], s[0]); end >= 0 {
			return unescape(s[1 : end+1])
		}
	}
	if i := strings.Index(s, " #"); i >= 0 {
		s = strings.TrimSpace(s[:i])
	}
	return unescape(s)
}

var escapes = strings.NewReplacer(`\\`, `\`, `\s`, " ", `\t`, "\t", `\n`, "\n", `\r`, "\r", `\b`, "\b")

func unescape(s string) string { return escapes.Replace(s) }

// reveal decodes the file that mysql_config_editor writes: 4 unused bytes, a key of 20 bytes, and lines, each
// encrypted after its length (AES of 128 bits, ECB). The key is in the file: it only hides the text.
func reveal(data []byte) string {
	const unused, keyLength = 4, 20
	if len(data) < unused+keyLength {
		return ""
	}
	var key [16]byte
	for i, b := range data[unused : unused+keyLength] {
		key[i%len(key)] ^= b
	}
	block, _ := aes.NewCipher(key[:]) // fails only for another length
	var text bytes.Buffer
	for data = data[unused+keyLength:]; len(data) >= 4; {
		n := binary.LittleEndian.Uint32(data)
		data = data[4:]
		if n == 0 || n%aes.BlockSize != 0 || uint64(n) > uint64(len(data)) {
			break
		}
		line := make([]byte, n)
		for i := 0; i < len(line); i += aes.BlockSize {
			block.Decrypt(line[i:], data[i:])
		}
		data = data[n:]
		if pad := int(line[len(line)-1]); pad <= aes.BlockSize {
			line = line[:len(line)-pad]
		}
		text.Write(line)
	}
	return text.String()
}

// Login returns the login of these options. Without a password there, the environment's is used.
func (o Options) Login(in *tool.Invocation) tool.Login {
	l := tool.Login{User: o["user"], Password: o["password"], TLS: o.tls()}
	if l.Password == "" && in.Getenv != nil {
		l.Password = in.Getenv("MYSQL_PWD")
	}
	return l
}

// tls returns the TLS of these options. By default MySQL's library prefers it.
func (o Options) tls() tool.TLS {
	t := tool.TLS{Mode: tool.TLSPreferred, CAFile: o["ssl-ca"], CertFile: o["ssl-cert"], KeyFile: o["ssl-key"]}
	_, skipped := o["skip-ssl"]
	mode, named := o["ssl-mode"]
	ssl, given := o["ssl"]
	verify, verified := o["ssl-verify-server-cert"]
	on := func(v string) bool { return tool.ParseTLSMode(cmp.Or(v, "on")) != tool.TLSOff }
	switch {
	case named:
		t.Mode = tool.ParseTLSMode(mode)
	case skipped || given && !on(ssl):
		return tool.TLS{}
	case verified && on(verify):
		t.Mode = tool.TLSVerify
	case t.CAFile != "":
		t.Mode = tool.TLSVerifyCA
	case given, t.CertFile != "":
		t.Mode = tool.TLSRequired
	}
	if t.Mode == tool.TLSRequired && t.CAFile != "" && !named {
		t.Mode = tool.TLSVerifyCA
	}
	if t.Mode == tool.TLSOff {
		return tool.TLS{}
	}
	return t
}
