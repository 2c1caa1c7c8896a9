// Package config reads benchwatch.yml.
//
// Every key is declared once, in the keys method of its section: its name, type, default, check and
// documentation, and whether a reload applies it. The decoder, Default, NeedRestart and Keys read
// these declarations, and docs/configuration.md is generated from Keys.
package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	commoncfg "github.com/prometheus/common/config"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/many/archive"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	engines "github.com/benchwatch/benchwatch/agent/model/engine/registry"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/pattern"
	tools "github.com/benchwatch/benchwatch/agent/model/tool/registry"
	"github.com/benchwatch/benchwatch/agent/run/live"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/run/topology"
)

// Config is the content of benchwatch.yml. The keys methods of this type and of its sections
// document the fields.
type Config struct {
	DataDir          string
	SampleInterval   time.Duration
	Runs             Runs
	Logs             []Log
	Targets          []Target
	Hosts            []Host
	Proxies          []Proxy
	Tools            []Tool
	Grafana          Grafana
	Prometheus       Prometheus
	Archive          Archive
	Peers            []Peer
	WebhookTokenFile string

	described []*tool.Tool // made from Tools
	files     []string     // named by keys of the file
}

// UnreadableFiles reads all files that keys name and returns an error with the key for each one
// that fails. The declaration of a key includes it here.
func (c *Config) UnreadableFiles() []error {
	_, errs := together(len(c.files), func(i int) ([]byte, error) { return secret.ReadFile(c.files[i]) })
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

func (c *Config) keys() []key {
	return []key{
		{
			name: "data_dir", to: path(&c.DataDir), restart: true,
			initialDoc: "`$BENCHWATCH_DATA_DIR`, else `/var/lib/benchwatch` for root and, while a [shared agent](#users) runs there, for everyone; else `~/.local/share/benchwatch`",
			doc:        "Folder of the runs",
			check:      func() error { return required(c.DataDir, "a folder") },
		},
		{
			name: "sample_interval", to: duration(&c.SampleInterval), initial: "1s", restart: true,
			doc: "How often all targets are sampled, at the same instant; 100ms to 1h",
			check: func() error {
				if c.SampleInterval < 100*time.Millisecond || c.SampleInterval > time.Hour {
					return fmt.Errorf("%s is out of range: expected 100ms to 1h", c.SampleInterval)
				}
				return nil
			},
		},
		{name: "runs", to: subsection{&c.Runs}, doc: "Limits on runs"},
		{
			name: "logs", to: list[Log, *Log]{&c.Logs}, doc: "Log files that benchmark tools write by themselves; the agent follows them",
			check: c.checkLogs,
		},
		{
			name: "targets", to: list[Target, *Target]{&c.Targets}, doc: "Servers to sample",
			check: c.checkTargets,
		},
		{
			name: "hosts", to: list[Host, *Host]{&c.Hosts}, doc: "Machines to sample beside those of `targets` and the agent's own, see [hosts](databases.md#hosts)",
			check: c.checkHosts,
		},
		{
			name: "proxies", to: list[Proxy, *Proxy]{&c.Proxies}, doc: "Other addresses at which clients reach a cluster: proxies, load balancers, virtual addresses. They show [which servers belong to a run](databases.md#which-servers-belong-to-a-run)",
			check: c.checkProxies,
		},
		{
			name: "tools", to: list[Tool, *Tool]{&c.Tools}, doc: "Benchmark tools described by regular expressions, see [patterns.md](patterns.md)",
			check: c.checkTools,
		},
		{name: "grafana", to: subsection{&c.Grafana}, doc: "The Grafana that gets markers as annotations"},
		{name: "prometheus", to: subsection{&c.Prometheus}, doc: "The Prometheus that has the recorded series, for reports and `--abort-when`"},
		{
			name: "archive", to: shorthand{subsection{&c.Archive}, "url", text(&c.Archive.URL)}, doc: "The [archive of the team](archive.md), to which the agent uploads closed runs. The address alone can be written in place of the keys",
		},
		{
			name: "peers", to: list[Peer, *Peer]{&c.Peers}, doc: "Other agents whose runs this one mirrors while they are written, see [groups.md](groups.md#peers)",
			check: c.checkPeers,
		},
		{
			name: "webhook_token_file", to: file(&c.WebhookTokenFile),
			doc: "File with the token with which Alertmanager may POST alerts to `/api/v1/alerts`, where they become markers, and the page may set markers. Without it the agent accepts neither",
		},
	}
}

// checkLogs checks the whole list, since it needs the described tools and the targets.
func (c *Config) checkLogs() error {
	if c.checkTools() != nil {
		return nil // reported with its own key
	}
	for i, l := range c.Logs {
		if set := c.ToolSet(); l.Tool != "" && set.ByName(l.Tool) == nil {
			return &elementError{fmt.Sprintf("[%d].tool", i), fmt.Errorf("unknown tool %q: expected one of %s", l.Tool, set.Names())}
		}
		if chosen := l.selection(); chosen != nil {
			if err := c.Topology(c.Servers()).CheckSelection(chosen); err != nil {
				return &elementError{fmt.Sprintf("[%d]", i), err}
			}
		}
	}
	return nil
}

// checkProxies checks the whole list, since it needs the targets.
func (c *Config) checkProxies() error {
	for i, p := range c.Proxies {
		if !c.hasCluster(p.Behind) {
			return &elementError{fmt.Sprintf("[%d].behind", i), noCluster(p.Behind)}
		}
	}
	return nil
}

func (c *Config) hasCluster(name string) bool {
	return slices.ContainsFunc(c.Targets, func(t Target) bool { return t.Cluster == name })
}

func noCluster(name string) error { return fmt.Errorf("no target has the cluster %q", name) }

// checkTools sets c.described.
func (c *Config) checkTools() error {
	c.described = nil
	for i, t := range c.Tools {
		described, err := pattern.New(t.Config)
		if problem, ok := errors.AsType[*pattern.Error](err); ok {
			return &elementError{strings.TrimSuffix(fmt.Sprintf("[%d].%s", i, problem.Key), "."), errors.New(problem.Problem)}
		}
		if slices.ContainsFunc(c.described, func(other *tool.Tool) bool { return other.Name == t.Name }) {
			return &elementError{fmt.Sprintf("[%d].name", i), fmt.Errorf("%q is used twice", t.Name)}
		}
		c.described = append(c.described, described)
	}
	return nil
}

func (c *Config) checkTargets() error {
	names := map[string]bool{}
	for i, t := range c.Targets {
		if names[t.Name] {
			return &elementError{fmt.Sprintf("[%d].name", i), fmt.Errorf("%q is used twice", t.Name)}
		}
		names[t.Name] = true
		if t.Behind != "" && !c.hasCluster(t.Behind) {
			return &elementError{fmt.Sprintf("[%d].behind", i), noCluster(t.Behind)}
		}
		if err := t.checkEngine(); err != nil {
			return &elementError{fmt.Sprintf("[%d]", i), err}
		}
	}
	return nil
}

// checkEngine returns what the engine rejects about the target, such as an unknown option. It reads
// no files and does not connect.
func (t *Target) checkEngine() error {
	target := t.plain()
	if t.PasswordFile != "" || t.PasswordEnv != "" {
		target.Password = "unknown"
	}
	if t.TLS != nil {
		target.TLS = &tls.Config{}
	}
	prober, err := Open(target, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return prober.Close()
}

// Runs are limits on runs.
type Runs struct {
	MaxLive      int
	MaxKept      int
	DrainTimeout time.Duration
}

func (r *Runs) keys() []key {
	return []key{
		{
			name: "max_live", to: number(&r.MaxLive), initial: "64",
			doc:   "Runs that are followed at the same time, at most three quarters of them of one user other than the agent's; more wait, counted by `benchwatch_runs_waiting`",
			check: func() error { return atLeast(r.MaxLive, 1) },
		},
		{
			name: "max_kept", to: number(&r.MaxKept), initial: "256",
			doc:   "Ended runs whose summary stays in `/metrics`",
			check: func() error { return atLeast(r.MaxKept, 1) },
		},
		{
			name: "drain_timeout", to: duration(&r.DrainTimeout), initial: "5m",
			doc:   "How long to wait after a run until its replicas have caught up; at least 1s",
			check: func() error { return atLeast(r.DrainTimeout, time.Second) },
		},
	}
}

// Log is a set of log files that a tool writes without benchwatch.
type Log struct {
	Path      string
	Tool      string
	Labels    map[string]string
	Cluster   string
	Targets   []string
	Generator string
}

func (l *Log) keys() []key {
	return []key{
		{
			name: "path", to: path(&l.Path), doc: "File name; may contain `*` and `?`. Required",
			check: func() error {
				if _, err := filepath.Match(l.Path, ""); err != nil {
					return fmt.Errorf("%q is not a valid file name pattern", l.Path)
				}
				return required(l.Path, "a file name, which may contain * and ?")
			},
		},
		{
			name: "tool", to: text(&l.Tool), doc: "The tool that writes the file", initialDoc: "recognised from the content",
		},
		{
			name: "labels", to: texts{&l.Labels}, doc: "Labels of the runs in the file",
			check: func() error { return rundir.CheckLabels(l.Labels) },
		},
		{
			name: "cluster", to: text(&l.Cluster), doc: "The cluster that the runs in the file use, see [which servers belong to a run](databases.md#which-servers-belong-to-a-run)",
			initialDoc: "unknown",
		},
		{name: "targets", to: oneOrMore{&l.Targets}, doc: "Names of the targets that the runs in the file use, in addition to those of `cluster`"},
		{
			name: "generator", to: text(&l.Generator), doc: "Machine that makes the load, as `uname -n` prints its name there",
			initialDoc: "unknown",
		},
	}
}

// selection returns the servers of the runs in the files; nil: not configured.
func (l *Log) selection() *rundir.Selection {
	var clusters []string
	if l.Cluster != "" {
		clusters = []string{l.Cluster}
	}
	return rundir.NewSelection(clusters, l.Targets)
}

// Proxy is an address at which clients reach a cluster.
type Proxy struct {
	Address  string
	Behind   string
	Nodename string
}

func (p *Proxy) keys() []key {
	return []key{
		{
			name: "address", to: text(&p.Address), doc: "`host:port`, `host` for all of its ports, or the path of a Unix socket, as benchmark tools are given it. Required",
			check: func() error { return CheckAddress(p.Address) },
		},
		{
			name: "behind", to: text(&p.Behind), doc: "The cluster that is reached there. Required",
			check: func() error { return required(p.Behind, "the cluster of the servers") },
		},
		{name: "nodename", to: text(&p.Nodename), doc: "Its machine, as `uname -n` prints the name there", initialDoc: "unknown"},
	}
}

// Target is a server to sample.
type Target struct {
	Name         string
	Engine       string
	Address      string
	Cluster      string
	Behind       string
	Nodename     string
	NodeExporter string
	Role         string
	User         string
	PasswordFile string
	PasswordEnv  string
	TLS          *TLS // nil: no TLS
	Options      map[string]string

	// password is the target's password if it is not in a file.
	password engine.Secret
}

func (t *Target) keys() []key {
	return []key{
		{
			name: "name", to: text(&t.Name), doc: "Short unique name, the label `target` of its metrics. Required",
			check: func() error { return required(t.Name, "a short name, used as label target") },
		},
		{
			name: "engine", to: text(&t.Engine),
			doc: "One of " + "`" + strings.Join(engines.Names(), "`, `") + "`; `mysql` includes MariaDB, Percona Server, Galera, Aurora and TiDB. Required",
			check: func() error {
				if t.Engine != "" && engines.ByName(t.Engine) == nil {
					return unknownEngine(t.Engine)
				}
				return required(t.Engine, "one of "+strings.Join(engines.Names(), ", "))
			},
		},
		{
			name: "address", to: text(&t.Address), doc: "`host:port`, or `host` for the engine's usual port; for `mysql` also the path of a Unix socket. Required",
			check: func() error { return CheckAddress(t.Address) },
		},
		{name: "cluster", to: text(&t.Cluster), doc: "Targets with the same cluster replicate from each other: lag and drain are measured among them"},
		{name: "behind", to: text(&t.Behind), doc: "Of a proxy: the cluster of the servers behind it. Runs that connect to the proxy use these servers"},
		{
			name: "nodename", to: text(&t.Nodename), doc: "The target's machine, as `uname -n` prints the name there: the label `nodename` of `node_uname_info`",
			initialDoc: "what the server reports",
		},
		{
			name: "node_exporter", to: text(&t.NodeExporter), doc: "URL of the node_exporter of the target's machine, such as `http://db1:9100/metrics`. It is read at each tick while a run lasts, see [hosts](databases.md#hosts)",
			check: func() error { return CheckURL(t.NodeExporter) },
		},
		{name: "role", to: text(&t.Role), doc: "The label `role` of its metrics", initialDoc: "what the server reports"},
		{name: "user", to: text(&t.User), doc: "Database user; [databases.md](databases.md) lists the rights it needs"},
		{name: "password_file", to: file(&t.PasswordFile), doc: "File with the password. It is read again after a failed login"},
		{
			name: "password_env", to: text(&t.PasswordEnv), doc: "Environment variable with the password, instead of `password_file`",
			check: func() error {
				if t.PasswordFile != "" && t.PasswordEnv != "" {
					return errors.New("is set besides password_file: use one of them")
				}
				return nil
			},
		},
		{name: "tls", to: optional[TLS, *TLS]{&t.TLS}, doc: "Connect with TLS; `{}` is enough for a server with a publicly trusted certificate"},
		{name: "options", to: texts{&t.Options}, doc: "Options of the engine, see [databases.md](databases.md)"},
	}
}

// TLS configures the TLS connection to a target.
type TLS struct{ commoncfg.TLSConfig }

func (t *TLS) keys() []key {
	return []key{
		{name: "ca", to: text(&t.CA), doc: "Certificate of the authority, as PEM text"},
		{name: "ca_file", to: file(&t.CAFile), doc: "File with the certificate of the authority", initialDoc: "those of the system"},
		{name: "cert", to: text(&t.Cert), doc: "Client certificate, as PEM text"},
		{name: "cert_file", to: file(&t.CertFile), doc: "File with the client certificate"},
		{
			name: "key_file", to: file(&t.KeyFile), doc: "File with the key of the client certificate",
			check: t.Validate,
		},
		{name: "server_name", to: text(&t.ServerName), doc: "Name that the server's certificate must have", initialDoc: "the host of `address`"},
		{name: "insecure_skip_verify", to: boolean(&t.InsecureSkipVerify), initial: "false", doc: "Accept any certificate"},
		{name: "min_version", to: tlsVersion(&t.MinVersion), initial: "TLS12", doc: "Lowest version of TLS: `TLS10` to `TLS13`"},
		{name: "max_version", to: tlsVersion(&t.MaxVersion), initialDoc: "highest", doc: "Highest version of TLS"},
	}
}

// load returns the settings with certificates read from files. The client's certificate is read
// again for each connection, so that a new one is used at once.
func (t *TLS) load() (*tls.Config, error) {
	settings, err := t.read()
	if err != nil || t.CertFile == "" && t.KeyFile == "" {
		return settings, err
	}
	first := settings.GetClientCertificate
	settings.GetClientCertificate = func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if now, err := t.read(); err == nil {
			return now.GetClientCertificate(request)
		}
		return first(request) // a pipe can be read only once
	}
	return settings, nil
}

func (t *TLS) read() (*tls.Config, error) {
	inline := t.TLSConfig
	for _, f := range []struct {
		name *string
		keep func(string)
	}{
		{&inline.CAFile, func(s string) { inline.CA = s }},
		{&inline.CertFile, func(s string) { inline.Cert = s }},
		{&inline.KeyFile, func(s string) { inline.Key = commoncfg.Secret(s) }},
	} {
		if *f.name == "" {
			continue
		}
		data, err := secret.ReadFile(*f.name)
		if err == nil && len(data) == 0 {
			err = fmt.Errorf("%s is empty", *f.name)
		}
		if err != nil {
			return nil, err
		}
		*f.name = ""
		f.keep(string(data))
	}
	settings, err := commoncfg.NewTLSConfig(&inline)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	return settings, nil
}

// Tool is a benchmark tool that regular expressions describe.
type Tool struct{ pattern.Config }

func (t *Tool) keys() []key {
	return []key{
		{name: "name", to: text(&t.Name), doc: "Name of the tool: lower-case letters, digits, `_` and `-`. Required"},
		{name: "command", to: expression(&t.Command), doc: "Matches the command line of the tool. Required"},
		{name: "interval", to: oneOrMore{&t.Interval}, doc: "Matches the lines that report an interval"},
		{name: "summary", to: oneOrMore{&t.Summary}, doc: "Matches the lines of the final figures. `interval` or `summary` is required"},
		{name: "error", to: oneOrMore{&t.Error}, doc: "Matches messages of failures"},
		{name: "units", to: texts{&t.Units}, doc: "Units of the groups"},
	}
}

// Grafana is the Grafana that receives markers.
type Grafana struct {
	URL       string
	TokenFile string
}

func (g *Grafana) keys() []key {
	return []key{
		{
			name: "url", to: text(&g.URL), doc: "`http://` or `https://` address", initialDoc: "markers are not sent",
			check: func() error {
				if g.TokenFile != "" {
					if err := required(g.URL, "the http:// or https:// address that token_file is for"); err != nil {
						return err
					}
				}
				return CheckURL(g.URL)
			},
		},
		{
			name: "token_file", to: file(&g.TokenFile),
			doc: "File with the token of a service account that may read and write annotations. Required with `url`",
			check: func() error {
				if g.URL == "" {
					return nil
				}
				return required(g.TokenFile, "a file with the token of a service account that may write annotations")
			},
		},
	}
}

// Prometheus is the Prometheus that stores the series.
type Prometheus struct {
	URL string
}

func (p *Prometheus) keys() []key {
	return []key{
		{
			name: "url", to: text(&p.URL), doc: "`http://` or `https://` address",
			check: func() error { return CheckURL(p.URL) },
		},
	}
}

// Archive is where closed runs are kept for the team.
type Archive struct {
	URL             string
	CredentialsFile string
	Upload          bool
	Output          bool
	Compression     string
	Timeout         time.Duration
	CacheDir        string
}

func (a *Archive) keys() []key {
	return []key{
		{
			name: "url", to: text(&a.URL), initialDoc: "`$BENCHWATCH_ARCHIVE`, else no archive",
			doc: "`s3://bucket/prefix`, `gs://bucket/prefix` or the absolute path of a folder",
			check: func() error {
				if a.URL == "" {
					return nil
				}
				return archive.CheckURL(a.URL)
			},
		},
		{
			name: "credentials_file", to: file(&a.CredentialsFile), initialDoc: "the environment, see [archive.md](archive.md#credentials)",
			doc: "File with the keys of the bucket, in the format of `~/.aws/credentials`",
		},
		{name: "upload", to: boolean(&a.Upload), initial: "true", doc: "Whether the agent uploads closed runs by itself. `benchwatch archive push` does so at any time"},
		{name: "output", to: boolean(&a.Output), initial: "true", doc: "Whether the raw output of the tools is uploaded. Without it an archived run has its summary only in lists"},
		{
			name: "compression", to: text(&a.Compression), initial: "zstd", doc: "`zstd` or `none`",
			check: func() error {
				if a.Compression != "zstd" && a.Compression != "none" {
					return fmt.Errorf("expected zstd or none, found %q", a.Compression)
				}
				return nil
			},
		},
		{
			name: "timeout", to: duration(&a.Timeout), initial: "30s", doc: "How long the store may take for one request, which moves at most 4 MiB; at least 1s",
			check: func() error { return atLeast(a.Timeout, time.Second) },
		},
		{name: "cache_dir", to: path(&a.CacheDir), initialDoc: "`benchwatch/archive` below `$XDG_CACHE_HOME` or `~/.cache`", doc: "Folder of what commands have read from the archive"},
	}
}

// ParseAge reads a duration such as 365d or 12h.
func ParseAge(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n < 100_000 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("expected an age such as 365d or 12h, found %q", text)
	}
	return d, nil
}

// OpenArchive returns the archive, whose address must be set. It does not connect.
func (c *Config) OpenArchive() (*archive.Archive, error) {
	return archive.Open(archive.Options{
		URL: c.Archive.URL, CredentialsFile: c.Archive.CredentialsFile, OmitOutput: !c.Archive.Output, Plain: c.Archive.Compression == "none",
		Timeout: c.Archive.Timeout, CacheDir: c.Archive.CacheDir, Tools: c.ToolSet(),
	})
}

func required(value, expected string) error {
	if value == "" {
		return errors.New("is missing: expected " + expected)
	}
	return nil
}

// CheckAddress reports what is wrong with the address of a server. It refuses user information,
// which would be shown and logged but never used. The path of a socket can contain an @. The error
// does not repeat the address.
func CheckAddress(address string) error {
	if strings.Contains(address, "@") && !strings.HasPrefix(address, "/") {
		return errors.New("contains a user or password; these have their own keys, user and password_file")
	}
	if address == "" || strings.HasPrefix(address, "/") {
		return required(address, "host:port")
	}
	if withoutPort(address) {
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return errors.New("expected host:port")
	}
	return checkPort(port)
}

// withoutPort reports whether an address is only a host.
func withoutPort(address string) bool {
	host := strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
	return address != "" && !strings.HasPrefix(address, "/") && (!strings.Contains(address, ":") || net.ParseIP(host) != nil)
}

func checkPort(port string) error {
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return errors.New("expected a port from 1 to 65535")
	}
	return nil
}

func atLeast[T int | time.Duration](value, least T) error {
	if value < least {
		return fmt.Errorf("%v is too small: expected at least %v", value, least)
	}
	return nil
}

// CheckURL reports what is wrong with the address of a Grafana or a Prometheus. An empty address is
// valid.
func CheckURL(s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("expected an http:// or https:// address")
	case u.User != nil:
		return errors.New("contains a user or password; use a token file")
	case strings.HasSuffix(u.Host, ":") || u.Port() != "":
		return checkPort(u.Port())
	}
	return nil
}

func unknownEngine(name string) error {
	return fmt.Errorf("unknown engine %q: expected one of %s", name, strings.Join(engines.Names(), ", "))
}

// Default returns the configuration used without a file.
func Default() *Config {
	c := &Config{DataDir: rundir.DefaultDataDir()}
	setDefaults(c)
	c.Archive.URL = os.Getenv("BENCHWATCH_ARCHIVE")
	return c
}

// Load reads and checks a file. Relative paths in it are relative to the file. A mistake in the
// file gives an *Error. If the file can't be read, the error wraps the file system's error, such as
// fs.ErrNotExist.
func Load(path string) (*Config, error) {
	data, err := secret.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	c := Default()
	if err := decode(data, path, c); err != nil {
		return nil, err
	}
	return c, nil
}

// Key is a key of benchwatch.yml, for its documentation.
type Key struct {
	Path    string // such as targets[].tls.ca_file
	Kind    string // kind of its value, such as "a path"
	Default string // Markdown; empty: none
	Doc     string // Markdown, without a period at its end
	Restart bool   // a change needs a restart of the agent
}

// Keys returns all keys in the order of the documentation. Sections and lists
// come before their keys.
func Keys() []Key {
	return keysBelow(Default(), "")
}

func keysBelow(s section, path string) []Key {
	var all []Key
	for _, k := range s.keys() {
		documented := Key{Path: join(path, k.name), Kind: k.to.kind(), Default: k.initialDoc, Doc: k.doc, Restart: k.restart}
		if k.initial != "" {
			documented.Default = "`" + k.initial + "`"
		}
		all = append(all, documented)
		if outer, ok := k.to.(nested); ok {
			inner, suffix := outer.element()
			all = append(all, keysBelow(inner, documented.Path+suffix)...)
		}
	}
	return all
}

// NeedRestart returns the keys whose change from c to next needs a restart of the agent.
func (c *Config) NeedRestart(next *Config) []string {
	var names []string
	after := next.keys()
	for i, k := range c.keys() {
		if before, ok := k.to.(interface{ equal(value) bool }); ok && k.restart && !before.equal(after[i].to) {
			names = append(names, k.name)
		}
	}
	return names
}

// EngineTargets returns the targets for the sampler, with passwords and certificates read from
// files. It logs and leaves out targets whose files can't be read.
func (c *Config) EngineTargets(log *slog.Logger) []engine.Target {
	prepared, errs := together(len(c.Targets), func(i int) (engine.Target, error) { return c.Targets[i].prepare() })
	var targets []engine.Target
	for i, err := range errs {
		if err != nil {
			log.Error("target left out", "target", c.Targets[i].Name, "err", err)
			continue
		}
		targets = append(targets, prepared[i])
	}
	return targets
}

// together calls f for 0 to n-1 concurrently, so that several files that hang take only as long as
// one.
func together[T any](n int, f func(i int) (T, error)) ([]T, []error) {
	values, errs := make([]T, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { values[i], errs[i] = f(i) })
	}
	all.Wait()
	return values, errs
}

// Topology returns the given targets, all or some of EngineTargets, with the proxies and machines.
func (c *Config) Topology(targets []engine.Target) *topology.Topology {
	servers := &topology.Topology{Targets: targets, Engine: engines.ByName}
	for _, m := range c.machines() {
		servers.Hosts = append(servers.Hosts, m.Host)
	}
	for _, p := range c.Proxies {
		servers.Proxies = append(servers.Proxies, topology.Proxy(p))
	}
	return servers
}

// Servers returns all targets without their secrets, for callers that do not connect.
func (c *Config) Servers() []engine.Target {
	targets := make([]engine.Target, len(c.Targets))
	for i := range c.Targets {
		targets[i] = c.Targets[i].plain()
	}
	return targets
}

// plain returns the target without its secrets, with a port in its address.
func (t *Target) plain() engine.Target {
	address := t.Address
	if e := engines.ByName(t.Engine); e != nil && e.DefaultPort != "" && withoutPort(address) {
		address = net.JoinHostPort(strings.Trim(address, "[]"), e.DefaultPort)
	}
	return engine.Target{
		Name: t.Name, Engine: t.Engine, Address: address, Cluster: t.Cluster, Behind: t.Behind, Nodename: t.Nodename, Role: t.Role,
		User: t.User, Options: t.Options,
	}
}

func (t *Target) prepare() (engine.Target, error) {
	target := t.plain()
	target.Password = t.password
	switch {
	case t.PasswordFile != "":
		file := t.PasswordFile
		target.ReadPassword = func() (engine.Secret, error) {
			password, err := secret.ReadPassword(file)
			return engine.Secret(password), err
		}
		var err error
		if target.Password, err = target.ReadPassword(); err != nil {
			return target, err
		}
	case t.PasswordEnv != "":
		password, set := os.LookupEnv(t.PasswordEnv)
		if !set {
			return target, fmt.Errorf("the environment has no variable %s, which password_env names", t.PasswordEnv)
		}
		target.Password = engine.Secret(password)
	}
	if t.TLS != nil {
		tlsConfig, err := t.TLS.load()
		if err != nil {
			return target, err
		}
		if tlsConfig.ServerName == "" {
			if host, _, err := net.SplitHostPort(target.Address); err == nil {
				tlsConfig.ServerName = host
			}
		}
		target.TLS = tlsConfig
	}
	return target, nil
}

// Open returns a prober of the target's engine. It does not connect.
func Open(t engine.Target, log *slog.Logger) (engine.Prober, error) {
	e := engines.ByName(t.Engine)
	if e == nil {
		return nil, unknownEngine(t.Engine)
	}
	return e.Open(t, log.With("target", t.Name))
}

// RunLogs returns the log files to follow.
func (c *Config) RunLogs() []live.Log {
	logs := make([]live.Log, len(c.Logs))
	for i, l := range c.Logs {
		logs[i] = live.Log{Glob: l.Path, Tool: l.Tool, Labels: l.Labels, Selection: l.selection(), Generator: l.Generator}
	}
	return logs
}

// ToolSet returns the built-in tools and those that the configuration describes.
func (c *Config) ToolSet() tool.Set {
	return slices.Concat(tools.Tools, c.described)
}
