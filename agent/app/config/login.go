package config

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	engines "github.com/benchwatch/benchwatch/agent/model/engine/registry"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// ErrNoLogin is wrapped by the errors of AddLogin.
var ErrNoLogin = errors.New("the servers of this command can't be sampled")

// AddLogin adds the servers to which a tool connects as targets, sampled with the tool's own login,
// and returns their names. The password stays in memory. Several servers form a cluster. Existing
// targets stay unchanged. Its errors wrap ErrNoLogin.
func (c *Config) AddLogin(d *tool.Description, place tool.Place, password string) ([]string, error) {
	e := engines.ByName(d.Engine)
	switch {
	case d.Target == "":
		return nil, fmt.Errorf("%w: it does not show where the tool connects to", ErrNoLogin)
	case e == nil:
		return nil, fmt.Errorf("%w: %s is of a kind of database that benchwatch does not sample", ErrNoLogin, d.Target)
	}
	addresses := strings.Split(d.Target, ",")
	cluster := ""
	if len(addresses) > 1 {
		cluster = addresses[0]
	}
	var names []string
	for _, address := range addresses {
		t := Target{Engine: d.Engine, Address: strings.TrimSpace(address), Cluster: cluster, User: d.User, password: engine.Secret(password)}
		t.Address = t.plain().Address
		if place != tool.PlaceHere && isLocal(t.Address) {
			return nil, fmt.Errorf("%w: %s is an address within a container or on another machine", ErrNoLogin, t.Address)
		}
		if i := slices.IndexFunc(c.Targets, func(o Target) bool { return o.plain().Address == t.Address }); i >= 0 {
			if name := c.Targets[i].Name; !slices.Contains(names, name) {
				names = append(names, name)
			}
			continue
		}
		t.Name = c.freeName(t.Address, e.DefaultPort)
		if socket := localSocket(t.Address); socket != "" && d.Engine == "mysql" {
			t.Address = socket
		}
		if err := t.checkEngine(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoLogin, err)
		}
		c.Targets = append(c.Targets, t)
		names = append(names, t.Name)
	}
	return names, nil
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

// sockets are where MySQL's client library connects for localhost. Each distribution has its own
// path.
var sockets = []string{"/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock"}

// localSocket returns the socket that tools use for localhost at the usual port; empty if there is
// no such socket or the address is a different one.
func localSocket(address string) string {
	if address != "localhost:3306" {
		return ""
	}
	for _, s := range sockets {
		if info, err := os.Stat(s); err == nil && info.Mode().Type() == os.ModeSocket {
			return s
		}
	}
	return ""
}
