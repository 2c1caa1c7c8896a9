package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The kinds of proxies.
const (
	HAProxy     Kind = "haproxy"
	PgBouncer   Kind = "pgbouncer"
	MySQLRouter Kind = "mysqlrouter"
)

// ProxyVersions are the versions that need not be installed. The installed version has the empty name.
var ProxyVersions = map[Kind][]string{
	HAProxy:     {"3.0", "3.2"},
	PgBouncer:   {"1.24", "1.26"},
	MySQLRouter: {"9"},
}

// ProxyOptions are the options for starting a proxy.
type ProxyOptions struct {
	// Backends are the addresses of the servers behind it.
	Backends []string
	// Version is one of ProxyVersions, or empty.
	Version string
	// Global are additional lines for the proxy's own section of its configuration file, Server additional words for
	// each server line of HAProxy, Section additional lines for the section of the servers.
	Global, Section []string
	Server          string
	// User and Password are the login that PgBouncer accepts and uses at the servers.
	User, Password string
	// Attached: the kernel ends the proxy when the caller dies.
	Attached bool
}

// Proxy is a proxy in front of servers, in its own folder. It listens on 127.0.0.1.
type Proxy struct {
	Dir     string
	Kind    Kind
	Port    int // for clients
	options ProxyOptions
	root    unpacked
}

// Clients is the address for clients.
func (p *Proxy) Clients() string { return address(p.Port) }

// Admin is the address of the administrator's interface: HAProxy's runtime socket, PgBouncer's console or the REST
// interface of MySQL Router.
func (p *Proxy) Admin() string {
	switch p.Kind {
	case HAProxy:
		return filepath.Join(p.Dir, "admin.sock")
	case PgBouncer:
		return p.Clients()
	}
	return p.HTTP()
}

// HTTP is the address of HAProxy's page (path /stats) and metrics (path /metrics), or of MySQL Router's REST interface.
func (p *Proxy) HTTP() string { return address(p.Port + 1) }

// Password returns the password of the administrator, whose name is admin.
func (p *Proxy) Password() (string, error) { return password(p.Dir, "admin") }

// PID is the process id, 0 if the proxy does not run.
func (p *Proxy) PID() int { return p.process().pid() }

func (p *Proxy) process() process { return process(filepath.Join(p.Dir, "proxy.pid")) }

// PIDFile is a file that contains only the process id.
func (p *Proxy) PIDFile() (string, error) {
	file := filepath.Join(p.Dir, "only.pid")
	return file, writeFile(file, strconv.Itoa(p.PID())+"\n", 0o644)
}

// Stop stops the proxy.
func (p *Proxy) Stop() error { return p.process().stop(5 * time.Second) }

// Signal sends a signal to the proxy.
func (p *Proxy) Signal(s syscall.Signal) error { return p.process().signal(s) }

// StartProxy starts a proxy in a new folder.
func StartProxy(ctx context.Context, dir string, kind Kind, o ProxyOptions) (_ *Proxy, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	release, err := claim(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer release()
	p := &Proxy{Dir: dir, Kind: kind, options: o}
	if name := p.release(); name != "" {
		if p.root, err = unpack(ctx, name); err != nil {
			return nil, err
		}
	}
	if p.Port, err = FreePorts(2); err != nil {
		return nil, err
	}
	p.Port++
	return p, p.Start(ctx)
}

// release is the release of Debian with the proxy; empty: it is installed.
func (p *Proxy) release() string {
	switch {
	case p.Kind == MySQLRouter:
		return "mysqlrouter"
	case p.options.Version != "":
		return string(p.Kind) + "-" + p.options.Version
	}
	return ""
}

// Start starts the proxy again with changed options: its configuration file is written anew.
func (p *Proxy) Start(ctx context.Context) error {
	as, err := serverUser()
	if err != nil {
		return err
	}
	args, err := p.configure(as)
	if err != nil {
		return err
	}
	log := filepath.Join(p.Dir, "proxy.log")
	if err := errors.Join(os.WriteFile(log, nil, 0o644), give(as, log, p.Dir)); err != nil {
		return err
	}
	env := []string{"HOME=/nonexistent"}
	if err := p.process().start(program{args: args, env: env, user: as, log: log, attached: p.options.Attached}); err != nil {
		return err
	}
	return p.process().await(ctx, startLimit, log, func(ctx context.Context) bool {
		for _, to := range []string{p.Clients(), p.HTTP()} {
			if p.Kind == PgBouncer {
				to = p.Clients()
			}
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
			if err != nil {
				return false
			}
			conn.Close()
		}
		return true
	})
}

// Reconfigure writes the configuration file with other options; the proxy reads it when it is reloaded.
func (p *Proxy) Reconfigure(change func(*ProxyOptions)) error {
	change(&p.options)
	as, err := serverUser()
	if err != nil {
		return err
	}
	_, err = p.configure(as)
	return err
}

// configure writes the configuration file and returns the command line.
func (p *Proxy) configure(as *syscall.Credential) ([]string, error) {
	secret, err := p.Password()
	if err != nil {
		return nil, err
	}
	switch p.Kind {
	case HAProxy:
		file := filepath.Join(p.Dir, "haproxy.cfg")
		return append(p.root.command("usr/sbin/haproxy"), "-db", "-f", file), writeFile(file, p.haproxy(secret), 0o644)
	case PgBouncer:
		file, users := filepath.Join(p.Dir, "pgbouncer.ini"), filepath.Join(p.Dir, "users.txt")
		logins := fmt.Sprintf("\"admin\" \"%s\"\n\"%s\" \"%s\"\n", secret, p.options.User, p.options.Password)
		err := errors.Join(writeFile(users, logins, 0o600), give(as, users), writeFile(file, p.pgbouncer(users), 0o644))
		return append(p.root.command("usr/sbin/pgbouncer"), file), err
	case MySQLRouter:
		file, users := filepath.Join(p.Dir, "mysqlrouter.conf"), filepath.Join(p.Dir, "users")
		set := p.root.command("usr/bin/mysqlrouter_passwd")
		cmd := exec.Command(set[0], append(set[1:], "set", users, "admin")...)
		cmd.Stdin = strings.NewReader(secret + "\n")
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("mysqlrouter_passwd: %w: %s", err, out)
		}
		err := errors.Join(give(as, users), writeFile(file, p.mysqlrouter(users), 0o644))
		return append(p.root.command("usr/bin/mysqlrouter"), "--config", file), err
	}
	return nil, fmt.Errorf("unknown kind %q of proxies", p.Kind)
}

func (p *Proxy) haproxy(secret string) string {
	lines := append([]string{"global", "stats socket " + p.Admin() + " mode 660 level operator"}, p.options.Global...)
	lines = append(lines, "defaults", "mode tcp", "timeout connect 5s", "timeout client 1m", "timeout server 1m", "timeout queue 1m",
		"frontend stats", "mode http", "bind "+p.HTTP(), "stats enable", "stats uri /stats", "stats auth admin:"+secret,
		"http-request use-service prometheus-exporter if { path /metrics }",
		"frontend db", "bind "+p.Clients(), "default_backend servers", "backend servers")
	lines = append(lines, p.options.Section...)
	for i, to := range p.options.Backends {
		lines = append(lines, fmt.Sprintf("server s%d %s %s", i+1, to, p.options.Server))
	}
	return strings.Join(lines, "\n") + "\n"
}

func (p *Proxy) pgbouncer(users string) string {
	lines := []string{"[databases]"}
	for _, to := range p.options.Backends {
		host, port, _ := net.SplitHostPort(to)
		lines = append(lines, fmt.Sprintf("sbtest = host=%s port=%s dbname=sbtest", host, port))
	}
	lines = append(lines, p.options.Section...)
	lines = append(lines, "[pgbouncer]", "listen_addr = 127.0.0.1", "listen_port = "+strconv.Itoa(p.Port), "unix_socket_dir =",
		"auth_type = plain", "auth_file = "+users, "admin_users = admin", "ignore_startup_parameters = extra_float_digits")
	return strings.Join(append(lines, p.options.Global...), "\n") + "\n"
}

func (p *Proxy) mysqlrouter(users string) string {
	lines := append([]string{"[DEFAULT]", "plugin_folder = " + p.root.path("usr/lib/mysqlrouter/plugin"),
		"runtime_folder = " + p.Dir, "data_folder = " + p.Dir, "logging_folder ="}, p.options.Global...)
	lines = append(lines, "[logger]", "level = warning", "[http_server]", "port = "+strconv.Itoa(p.Port+1), "bind_address = 127.0.0.1",
		"[http_auth_realm:admin]", "backend = file", "method = basic", "name = Router", "[http_auth_backend:file]", "backend = file",
		"filename = "+users, "[rest_api]", "[rest_router]", "require_realm = admin", "[rest_routing]", "require_realm = admin",
		"[rest_connection_pool]", "require_realm = admin", "[connection_pool]",
		"[routing:db]", "bind_address = 127.0.0.1", "bind_port = "+strconv.Itoa(p.Port), "protocol = classic",
		"destinations = "+strings.Join(p.options.Backends, ","))
	lines = append(lines, p.options.Section...)
	return strings.Join(lines, "\n") + "\n"
}
