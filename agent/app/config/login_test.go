package config

import (
	"errors"
	"fmt"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// TestAddLogin guards that the servers of a tool become targets once, that several form a cluster,
// and that the password reaches the engine but no text.
func TestAddLogin(t *testing.T) {
	c := Default()
	c.Targets = []Target{{Name: "own", Engine: "mysql", Address: "db1", User: "monitor"}}
	names, err := c.AddLogin(rundir.Login{Target: "db1:3306,db2:3306,db2:3306,db3:3307", Engine: "mysql", User: "app", Password: "geheim"})
	if err != nil || len(names) != 3 || names[0] != "own" || names[1] != "db2" || names[2] != "db3:3307" {
		t.Fatal(names, err)
	}
	if c.Targets[0].User != "monitor" || c.Targets[1].Cluster != c.Targets[2].Cluster || c.Targets[1].Cluster == "" {
		t.Errorf("%+v", c.Targets)
	}
	target, err := c.Targets[1].prepare()
	if err != nil || string(target.Password) != "geheim" || target.User != "app" || target.Address != "db2:3306" {
		t.Error(target, err)
	}
	for _, l := range []rundir.Login{{Engine: "mysql"}, {Target: "db1:5432"}, {Target: "localhost:3306", Engine: "mysql", Place: tool.PlaceContainer}} {
		if _, err := c.AddLogin(l); !errors.Is(err, ErrNoLogin) {
			t.Errorf("%+v: %v", l, err)
		}
	}
}

// TestCheckLent guards that an agent does not log in as its own user for another one, and that one
// login has few servers.
func TestCheckLent(t *testing.T) {
	socket := rundir.Login{Target: "/run/mysqld/mysqld.sock", Engine: "mysql", User: "root"}
	many := rundir.Login{Target: "db0", Engine: "mysql"}
	for i := range mostLent {
		many.Target += fmt.Sprintf(",db%d", i+1)
	}
	for _, test := range []struct {
		login   rundir.Login
		foreign bool
		ok      bool
	}{
		{socket, false, true},
		{socket, true, false},
		{rundir.Login{Target: socket.Target, Engine: "mysql", User: "app", Password: "geheim"}, true, true},
		{rundir.Login{Target: "db1", Engine: "mysql"}, true, true},
		{rundir.Login{Target: "db1:port", Engine: "mysql"}, false, false},
		{many, false, false},
	} {
		if err := CheckLent(test.login, test.foreign); (err == nil) != test.ok || err != nil && !errors.Is(err, ErrNoLogin) {
			t.Errorf("%+v, foreign %t: %v", test.login, test.foreign, err)
		}
	}
}

// TestDefaultPort guards that an address without a port gets the engine's port.
func TestDefaultPort(t *testing.T) {
	for address, want := range map[string]string{
		"db1": "db1:27017", "db1:1": "db1:1", "::1": "[::1]:27017", "[::1]": "[::1]:27017",
	} {
		target := Target{Engine: "mongodb", Address: address}
		if err := CheckAddress(address); err != nil {
			t.Error(err)
		}
		if got := target.plain().Address; got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

// TestLoginThroughProxy guards that a tool that connects to a proxy samples the proxy, not a server through it.
func TestLoginThroughProxy(t *testing.T) {
	for address, through := range map[string]bool{
		"127.0.0.1:6033": true, "localhost:6033": true, "127.0.0.1:6034": false, "10.0.0.1:6033": false, "db:7000": true,
	} {
		c := Default()
		c.Targets = []Target{
			{Name: "px", Engine: "haproxy", Address: "/run/haproxy/admin.sock", Options: map[string]string{"proxy_address": "0.0.0.0:6033"}},
			{Name: "far", Engine: "pgbouncer", Address: "db:7000", User: "monitor"},
		}
		names, err := c.AddLogin(rundir.Login{Target: address, Engine: "mysql", User: "app"})
		if err != nil || len(names) != 1 || (len(c.Targets) == 2) != through {
			t.Errorf("%s: %q, %v", address, names, err)
		}
		if err := c.CheckProxy(rundir.Login{Target: address}); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}
