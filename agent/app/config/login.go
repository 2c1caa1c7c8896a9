package config

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"

	commoncfg "github.com/prometheus/common/config"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
	engines "github.com/benchwatch/benchwatch/agent/model/engine/registry"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// ErrNoLogin is wrapped by the errors of AddLogin.
var ErrNoLogin = errors.New("the servers of this command can't be sampled")

// ErrKind is wrapped by the error of AddLogin for a kind of database that is not sampled. It wraps ErrNoLogin.
var ErrKind = fmt.Errorf("%w: benchwatch does not sample this kind of database", ErrNoLogin)

// AddLogin adds the servers to which a tool connects as targets, sampled with the tool's own login,
// and returns their names. The password stays in memory. Several servers form a cluster. Existing
// targets stay unchanged. Its errors wrap ErrNoLogin.
func (c *Config) AddLogin(l rundir.Login) ([]string, error) {
	e := engines.ByName(l.Engine)
	switch {
	case l.Target == "":
		return nil, fmt.Errorf("%w: it does not show where the tool connects to", ErrNoLogin)
	case e == nil:
		return nil, fmt.Errorf("%w (%s)", ErrKind, l.Target)
	}
	addresses := strings.Split(l.Target, ",")
	cluster := ""
	if len(addresses) > 1 {
		cluster = addresses[0]
	}
	var names []string
	for _, address := range addresses {
		t := loginTarget(&l, e, strings.TrimSpace(address))
		t.Cluster, t.discover = cluster, l.Discover
		t.Address = t.plain().Address
		if l.Place != tool.PlaceHere && isLocal(t.Address) {
			return nil, fmt.Errorf("%w: %s is an address within a container or on another machine", ErrNoLogin, t.Address)
		}
		if i := slices.IndexFunc(c.Targets, func(o Target) bool { return o.plain().Address == t.Address || o.isProxyAt(t.Address) }); i >= 0 {
			if name := c.Targets[i].Name; !slices.Contains(names, name) {
				names = append(names, name)
			}
			continue
		}
		t.Name = c.freeName(t.Address, e.DefaultPort)
		if socket := localSocket(&t, e); socket != "" {
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

// isProxyAt reports whether the target is a proxy whose clients connect to an address. The servers behind it are sampled
// instead of the address: a sample through the proxy would take one of its connections, and wait in its queue.
func (t *Target) isProxyAt(address string) bool {
	e := engines.ByName(t.Engine)
	if e == nil || !e.Proxy {
		return false
	}
	own := cmp.Or(t.Options[e.ClientOption], t.plain().Address)
	if own == address {
		return true
	}
	host, port, err := net.SplitHostPort(address)
	ownHost, ownPort, ownErr := net.SplitHostPort(own)
	return err == nil && ownErr == nil && port == ownPort && isLocal(address) && (isLocal(own) || ownHost == "0.0.0.0" || ownHost == "::") && host != ""
}

// ErrProxy is wrapped by the error of CheckProxy. It wraps ErrNoLogin.
var ErrProxy = fmt.Errorf("%w: they are behind a proxy", ErrNoLogin)

// CheckProxy returns an error if a tool connects to a proxy on this machine that is no target. Its text has the line that
// adds it.
func (c *Config) CheckProxy(l rundir.Login) error {
	for address := range strings.SplitSeq(l.Target, ",") {
		if slices.ContainsFunc(c.Targets, func(t Target) bool { return t.isProxyAt(address) }) {
			continue
		}
		if e := proxyAt(address); e != nil {
			return fmt.Errorf("%w: %s is a port of %s, and a sample through it would take one of its connections; "+
				"to sample the proxy and what is behind it, add to targets: {name: proxy, engine: %s, address: ADMIN, options: {%s: %q}}",
				ErrProxy, address, e.Name, e.Name, e.ClientOption, address)
		}
	}
	return nil
}

// proxyAt returns the engine of the proxy that listens on a port of this machine; nil if it is none, or if its process
// can't be read.
func proxyAt(address string) *engine.Engine {
	if !isLocal(address) {
		return nil
	}
	for _, e := range engines.Engines {
		if e.Proxy && slices.ContainsFunc(cause.ProgramsOf(e.Name), func(p string) bool { return proxy.Listens(p, address) }) {
			return e
		}
	}
	return nil
}

// loginTarget returns a target that is sampled with a login.
func loginTarget(l *rundir.Login, e *engine.Engine, address string) Target {
	t := Target{Engine: e.Name, Address: address, User: l.User, Options: maps.Clone(l.Options), password: engine.Secret(l.Password), tls: l.TLS}
	if e.DatabaseOption != "" && l.Database != "" {
		if t.Options == nil {
			t.Options = map[string]string{}
		}
		t.Options[e.DatabaseOption] = l.Database
	}
	return t
}

// loginTLS returns the TLS of a login, nil for none. optional: only if the server offers it.
func loginTLS(t tool.TLS) (c *tls.Config, optional bool, err error) {
	if t.Mode == tool.TLSOff {
		return nil, false, nil
	}
	settings := TLS{CAFile: t.CAFile, CertFile: t.CertFile, KeyFile: t.KeyFile, ServerName: t.ServerName,
		InsecureSkipVerify: t.Mode != tool.TLSVerify, MinVersion: commoncfg.TLSVersions["TLS12"]}
	if t.Mode == tool.TLSPreferred || t.Mode == tool.TLSRequired {
		settings.CAFile = "" // not verified
	}
	if c, err = settings.load(); err != nil {
		return nil, false, err
	}
	if t.Mode == tool.TLSVerifyCA {
		c.VerifyConnection = verifyAuthority(c.RootCAs)
	}
	if t.Mode == tool.TLSPreferred { // what the tool accepts is not known; old servers have only old versions
		c.MinVersion = tls.VersionTLS10
		for _, suite := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
			c.CipherSuites = append(c.CipherSuites, suite.ID)
		}
	}
	return c, t.Mode == tool.TLSPreferred, nil
}

// verifyAuthority returns a check of a certificate's authority, whatever its name.
func verifyAuthority(roots *x509.CertPool) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 {
			return errors.New("the server has no certificate")
		}
		options := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, c := range s.PeerCertificates[1:] {
			options.Intermediates.AddCert(c)
		}
		_, err := s.PeerCertificates[0].Verify(options)
		return err
	}
}

// AddMember adds a server that only another server named as a target, sampled with the same login as that
// one, and returns its name. It returns false for a login that has enough targets, and for an address that
// is already one.
//
// encrypted: the connection to that one has TLS, so that this one must have it.
func (c *Config) AddMember(l rundir.Login, e *engine.Engine, address string, encrypted bool) (string, bool) {
	t := loginTarget(&l, e, address)
	t.hearsay = true
	if encrypted && t.tls.Mode == tool.TLSPreferred {
		t.tls.Mode = tool.TLSRequired
	}
	lent := 0
	for i := range c.Targets {
		if c.Targets[i].plain().Address == address {
			return "", false
		}
		if c.Targets[i].discover || c.Targets[i].hearsay {
			lent++
		}
	}
	if lent >= mostLent {
		return "", false
	}
	t.Name = c.freeName(address, e.DefaultPort)
	if CheckAddress(address) != nil || t.checkEngine() != nil {
		return "", false
	}
	c.Targets = append(c.Targets, t)
	return t.Name, true
}

// mostLent is the largest number of servers that are sampled with one login that an agent was lent, and of
// those that are found with a login.
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

// localSocket returns the socket that tools use for localhost; empty if there is no such socket or the address is a
// different one.
func localSocket(t *Target, e *engine.Engine) string {
	host, port, _ := net.SplitHostPort(t.Address)
	if host != "localhost" || e.Socket == nil {
		return ""
	}
	for _, s := range e.Socket(port, t.password != "") {
		if info, err := os.Stat(s); err == nil && info.Mode().Type() == os.ModeSocket {
			return s
		}
	}
	return ""
}
