package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	engines "github.com/benchwatch/benchwatch/agent/model/engine/registry"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// ErrNoLogin is wrapped by the errors of AddLogin.
var ErrNoLogin = errors.New("the servers of this command can't be sampled")

// AddLogin adds the servers to which a tool connects as targets, sampled with the tool's own login,
// and returns their names. The password stays in memory. Several servers form a cluster. Existing
// targets stay unchanged. Its errors wrap ErrNoLogin.
func (c *Config) AddLogin(l rundir.Login) ([]string, error) {
	e := engines.ByName(l.Engine)
	switch {
	case l.Target == "":
		return nil, fmt.Errorf("%w: it does not show where the tool connects to", ErrNoLogin)
	case e == nil:
		return nil, fmt.Errorf("%w: %s is of a kind of database that benchwatch does not sample", ErrNoLogin, l.Target)
	}
	addresses := strings.Split(l.Target, ",")
	cluster := ""
	if len(addresses) > 1 {
		cluster = addresses[0]
	}
	var names []string
	for _, address := range addresses {
		t := Target{Engine: l.Engine, Address: strings.TrimSpace(address),
			Cluster: cluster, User: l.User, password: engine.Secret(l.Password), Options: map[string]string{}}
		t.takeLogin(e, &l)
		t.Address = t.plain().Address
		if l.Place != tool.PlaceHere && isLocal(t.Address) {
			return nil, fmt.Errorf("%w: %s is an address within a container or on another machine", ErrNoLogin, t.Address)
		}
		if i := slices.IndexFunc(c.Targets, func(o Target) bool { return o.plain().Address == t.Address }); i >= 0 {
			if name := c.Targets[i].Name; !slices.Contains(names, name) {
				names = append(names, name)
			}
			continue
		}
		t.Name = c.freeName(t.Address, e.DefaultPort)
		if socket := localSocket(&t); socket != "" {
			t.Address = socket
		}
		if err := errors.Join(CheckAddress(t.Address), t.checkEngine()); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoLogin, err)
		}
		c.Targets = append(c.Targets, t)
		names = append(names, t.Name)
	}
	return names, nil
}

// takeLogin sets the database and the encryption of a tool's connections.
func (t *Target) takeLogin(e *engine.Engine, l *rundir.Login) {
	if e.DatabaseOption != "" && l.Database != "" {
		t.Options[e.DatabaseOption] = l.Database
	}
	if l.TLS == nil || strings.HasPrefix(t.Address, "/") {
		return
	}
	t.TLS = &TLS{CAFile: l.TLS.CAFile, CertFile: l.TLS.CertFile, KeyFile: l.TLS.KeyFile, MinVersion: tls.VersionTLS12}
	switch l.TLS.Mode {
	case "prefer":
		t.TLS.InsecureSkipVerify = true
		t.Options[engine.OptionTLS] = engine.Prefer
	case "require":
		t.TLS.InsecureSkipVerify = l.TLS.CAFile == ""
	}
}

// mostLent is the largest number of servers that an agent samples with one login.
const mostLent = 16

// CheckLent returns an error if an agent must not sample the servers of a login that it was lent.
// foreign: the agent is not the user who lends it. A server may then accept the agent's user at a
// socket, instead of a password. The error wraps ErrNoLogin.
func CheckLent(l rundir.Login, foreign bool) error {
	var lent Config
	if _, err := lent.AddLogin(l); err != nil {
		return err
	}
	if n := len(lent.Targets); n > mostLent {
		return fmt.Errorf("%w by the agent: they are %d, and %d are the most", ErrNoLogin, n, mostLent)
	}
	for i := range lent.Targets {
		if t := &lent.Targets[i]; foreign && strings.HasPrefix(t.Address, "/") && t.password == "" {
			return fmt.Errorf("%w by the agent: it is another user, and %q has no password at the socket %s",
				ErrNoLogin, t.User, t.Address)
		}
	}
	return nil
}

// freeName derives an unused target name from an address: the host, followed by the port if it is
// not the usual one.
func (c *Config) freeName(address, usualPort string) string {
	name := address
	if host, port, err := net.SplitHostPort(address); err == nil && port == usualPort {
		name = host
	}
	if strings.HasPrefix(name, "/") {
		name = "localhost"
	}
	for slices.ContainsFunc(c.Targets, func(t Target) bool { return t.Name == name }) {
		name += "'"
	}
	return name
}

// isLocal reports whether an address means a different server on each machine.
func isLocal(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err != nil || host == "localhost" || ip != nil && ip.IsLoopback()
}

// sockets are where client libraries connect for localhost, at the usual port (MySQL) or without a
// host (PostgreSQL, where {port} is the port). Each distribution has its own path.
var sockets = map[string][]string{
	"mysql":      {"/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock"},
	"postgresql": {"/run/postgresql/.s.PGSQL.{port}", "/tmp/.s.PGSQL.{port}"},
}

// localSocket returns the socket that tools use for localhost; empty if there is no such socket or the
// address is a different one. A password is for the network: sockets recognise the user.
func localSocket(t *Target) string {
	host, port, _ := net.SplitHostPort(t.Address)
	if host != "localhost" || t.Engine == "mysql" && port != "3306" || t.Engine == "postgresql" && t.password != "" {
		return ""
	}
	for _, s := range sockets[t.Engine] {
		s = strings.ReplaceAll(s, "{port}", port)
		if info, err := os.Stat(s); err == nil && info.Mode().Type() == os.ModeSocket {
			return s
		}
	}
	return ""
}
