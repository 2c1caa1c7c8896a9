// Package config reads benchwatch.yml.
//
// Every key is declared once, as a field of its section, with its default and whether a reload applies
// it; the check methods have the conditions for values. docs/reference/configuration.md says what the keys mean.
package config

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	commoncfg "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/many/archive"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	engines "github.com/benchwatch/benchwatch/agent/model/engine/registry"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/pattern"
	tools "github.com/benchwatch/benchwatch/agent/model/tool/registry"
	"github.com/benchwatch/benchwatch/agent/run/cloudwatch"
	"github.com/benchwatch/benchwatch/agent/run/live"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/run/topology"
)

// Config is the content of benchwatch.yml.
type Config struct {
	DataDir          string        `key:"data_dir,path,restart"`
	SampleInterval   time.Duration `key:"sample_interval,restart" default:"1s"`
	Runs             Runs          `key:"runs"`
	Logs             []Log         `key:"logs"`
	Targets          []Target      `key:"targets"`
	Hosts            []Host        `key:"hosts"`
	Proxies          []Proxy       `key:"proxies"`
	Tools            []Tool        `key:"tools"`
	Grafana          Grafana       `key:"grafana"`
	Prometheus       Prometheus    `key:"prometheus"`
	Archive          Archive       `key:"archive,alone=url"`
	Peers            []Peer        `key:"peers"`
	WebhookTokenFile string        `key:"webhook_token_file,file"`

	described []*tool.Tool // made from Tools
	files     []string     // named by keys of the file
}

// UnreadableFiles reads all files that keys name and returns an error with the key for each one
// that fails. The declaration of a key includes it here.
func (c *Config) UnreadableFiles() []error {
	_, errs := together(len(c.files), func(i int) ([]byte, error) { return secret.ReadFile(c.files[i]) })
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

func (c *Config) check() error {
	var interval error
	if c.SampleInterval < 100*time.Millisecond || c.SampleInterval > time.Hour {
		interval = fmt.Errorf("%s is out of range: expected 100ms to 1h", c.SampleInterval)
	}
	return cmp.Or(in("data_dir", required(c.DataDir, "a folder")), in("sample_interval", interval),
		c.checkLogs(), c.checkTargets(), c.checkHosts(), c.checkProxies(), c.checkTools(), c.checkPeers())
}

// checkLogs needs the described tools and the targets.
func (c *Config) checkLogs() error {
	if c.checkTools() != nil {
		return nil // reported with its own key
	}
	for i, l := range c.Logs {
		if set := c.ToolSet(); l.Tool != "" && set.ByName(l.Tool) == nil {
			return in(fmt.Sprintf("logs[%d].tool", i), fmt.Errorf("unknown tool %q: expected one of %s", l.Tool, set.Names()))
		}
		if chosen := l.selection(); chosen != nil {
			if err := c.Topology(c.Servers()).CheckSelection(chosen); err != nil {
				return in(fmt.Sprintf("logs[%d]", i), err)
			}
		}
	}
	return nil
}

// checkProxies needs the targets.
func (c *Config) checkProxies() error {
	for i, p := range c.Proxies {
		if !c.hasCluster(p.Behind) {
			return in(fmt.Sprintf("proxies[%d].behind", i), noCluster(p.Behind))
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
		described, err := pattern.New(pattern.Config(t))
		if problem, ok := errors.AsType[*pattern.Error](err); ok {
			return in(strings.TrimSuffix(fmt.Sprintf("tools[%d].%s", i, problem.Key), "."), errors.New(problem.Problem))
		}
		if slices.ContainsFunc(c.described, func(other *tool.Tool) bool { return other.Name == t.Name }) {
			return in(fmt.Sprintf("tools[%d].name", i), fmt.Errorf("%q is used twice", t.Name))
		}
		c.described = append(c.described, described)
	}
	return nil
}

func (c *Config) checkTargets() error {
	names := map[string]bool{}
	for i, t := range c.Targets {
		if names[t.Name] {
			return in(fmt.Sprintf("targets[%d].name", i), fmt.Errorf("%q is used twice", t.Name))
		}
		names[t.Name] = true
		if t.Behind != "" && !c.hasCluster(t.Behind) {
			return in(fmt.Sprintf("targets[%d].behind", i), noCluster(t.Behind))
		}
		if err := t.checkEngine(); err != nil {
			return in(fmt.Sprintf("targets[%d]", i), err)
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
	MaxLive      int           `key:"max_live" default:"64"`
	MaxKept      int           `key:"max_kept" default:"256"`
	DrainTimeout time.Duration `key:"drain_timeout" default:"5m"`
}

func (r *Runs) check() error {
	return cmp.Or(in("max_live", atLeast(r.MaxLive, 1)), in("max_kept", atLeast(r.MaxKept, 1)),
		in("drain_timeout", atLeast(r.DrainTimeout, time.Second)))
}

// Log is a set of log files that a tool writes without benchwatch.
type Log struct {
	Path      string            `key:"path,path"`
	Tool      string            `key:"tool"`
	Labels    map[string]string `key:"labels"`
	Cluster   string            `key:"cluster"`
	Targets   []string          `key:"targets"`
	Generator string            `key:"generator"`
}

func (l *Log) check() error {
	path := required(l.Path, "a file name, which may contain * and ?")
	if _, err := filepath.Match(l.Path, ""); err != nil {
		path = fmt.Errorf("%q is not a valid file name pattern", l.Path)
	}
	return cmp.Or(in("path", path), in("labels", rundir.CheckLabels(l.Labels)))
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
	Address  string `key:"address"`
	Behind   string `key:"behind"`
	Nodename string `key:"nodename"`
}

func (p *Proxy) check() error {
	return cmp.Or(in("address", CheckAddress(p.Address)), in("behind", required(p.Behind, "the cluster of the servers")))
}

// Target is a server to sample.
type Target struct {
	Name         string            `key:"name"`
	Engine       string            `key:"engine"`
	Address      string            `key:"address"`
	Cluster      string            `key:"cluster"`
	Behind       string            `key:"behind"`
	Nodename     string            `key:"nodename"`
	NodeExporter string            `key:"node_exporter"`
	CloudWatch   string            `key:"cloudwatch"`
	Role         string            `key:"role"`
	User         string            `key:"user"`
	PasswordFile string            `key:"password_file,file"`
	PasswordEnv  string            `key:"password_env"`
	TLS          *TLS              `key:"tls"` // nil: no TLS
	Options      map[string]string `key:"options"`

	// password is the target's password if it is not in a file.
	password engine.Secret
	// tls is the login's, if the target has one from a tool.
	tls tool.TLS
	// discover and hearsay are as in engine.Target.
	discover, hearsay bool
}

func (t *Target) check() error {
	known := required(t.Engine, "one of "+strings.Join(engines.Names(), ", "))
	if t.Engine != "" && engines.ByName(t.Engine) == nil {
		known = unknownEngine(t.Engine)
	}
	var twice error
	if t.PasswordFile != "" && t.PasswordEnv != "" {
		twice = errors.New("is set besides password_file: use one of them")
	}
	return cmp.Or(in("name", required(t.Name, "a short name, used as label target")),
		in("engine", known), in("address", CheckAddress(t.Address)),
		in("node_exporter", CheckURL(t.NodeExporter)), in("password_env", twice))
}

// TLS configures the TLS connection to a target.
type TLS struct {
	CA                 string               `key:"ca"`
	CAFile             string               `key:"ca_file,file"`
	Cert               string               `key:"cert"`
	CertFile           string               `key:"cert_file,file"`
	KeyFile            string               `key:"key_file,file"`
	ServerName         string               `key:"server_name"`
	InsecureSkipVerify bool                 `key:"insecure_skip_verify" default:"false"`
	MinVersion         commoncfg.TLSVersion `key:"min_version" default:"TLS12"`
	MaxVersion         commoncfg.TLSVersion `key:"max_version"`
}

func (t *TLS) check() error {
	settings := t.settings()
	return in("key_file", settings.Validate())
}

func (t *TLS) settings() commoncfg.TLSConfig {
	return commoncfg.TLSConfig{
		CA: t.CA, CAFile: t.CAFile, Cert: t.Cert, CertFile: t.CertFile, KeyFile: t.KeyFile, ServerName: t.ServerName,
		InsecureSkipVerify: t.InsecureSkipVerify, MinVersion: t.MinVersion, MaxVersion: t.MaxVersion,
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
	inline := t.settings()
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
type Tool struct {
	Name     string            `key:"name"`
	Command  string            `key:"command,expression"`
	Interval []string          `key:"interval"`
	Summary  []string          `key:"summary"`
	Error    []string          `key:"error"`
	Units    map[string]string `key:"units"`
}

// Grafana is the Grafana that receives markers.
type Grafana struct {
	URL       string `key:"url"`
	TokenFile string `key:"token_file,file"`
}

func (g *Grafana) check() error {
	var address, token error
	if g.TokenFile != "" {
		address = required(g.URL, "the http:// or https:// address that token_file is for")
	}
	if g.URL != "" {
		token = required(g.TokenFile, "a file with the token of a service account that may write annotations")
	}
	return cmp.Or(in("url", cmp.Or(address, CheckURL(g.URL))), in("token_file", token))
}

// Prometheus is the Prometheus that stores the series.
type Prometheus struct {
	URL        string     `key:"url"`
	CloudWatch CloudWatch `key:"cloudwatch"`
}

// CloudWatch names the series of an exporter of CloudWatch's metrics.
type CloudWatch struct {
	InstanceLabel   string `key:"instance_label" default:"dimension_DBInstanceIdentifier"`
	CPU             string `key:"cpu" default:"aws_rds_cpuutilization_average"`
	ReadIOPS        string `key:"read_iops" default:"aws_rds_read_iops_average"`
	WriteIOPS       string `key:"write_iops" default:"aws_rds_write_iops_average"`
	ReadThroughput  string `key:"read_throughput" default:"aws_rds_read_throughput_average"`
	WriteThroughput string `key:"write_throughput" default:"aws_rds_write_throughput_average"`
	QueueDepth      string `key:"queue_depth" default:"aws_rds_disk_queue_depth_average"`
}

func (c *CloudWatch) check() error {
	if !model.LegacyValidation.IsValidLabelName(c.InstanceLabel) {
		return in("instance_label", fmt.Errorf("%q is not the name of a label", c.InstanceLabel))
	}
	return nil
}

// ManagedServers returns where CloudWatch's values of the targets with an instance are.
func (c *Config) ManagedServers() *cloudwatch.Source {
	n := &c.Prometheus.CloudWatch
	s := &cloudwatch.Source{URL: c.Prometheus.URL, Instances: map[string]string{}, Names: cloudwatch.Names{
		Instance: n.InstanceLabel, CPU: n.CPU, ReadIOPS: n.ReadIOPS, WriteIOPS: n.WriteIOPS,
		ReadThroughput: n.ReadThroughput, WriteThroughput: n.WriteThroughput, QueueDepth: n.QueueDepth,
	}}
	for _, t := range c.Targets {
		s.Instances[t.Name] = t.CloudWatch
	}
	return s
}

func (p *Prometheus) check() error { return in("url", CheckURL(p.URL)) }

// Archive is where closed runs are kept for the team.
type Archive struct {
	URL             string        `key:"url"`
	CredentialsFile string        `key:"credentials_file,file"`
	Upload          bool          `key:"upload" default:"true"`
	Output          bool          `key:"output" default:"true"`
	Compression     string        `key:"compression" default:"zstd"`
	Timeout         time.Duration `key:"timeout" default:"30s"`
	CacheDir        string        `key:"cache_dir,path"`
}

func (a *Archive) check() error {
	var address, compression error
	if a.URL != "" {
		address = archive.CheckURL(a.URL)
	}
	if a.Compression != "zstd" && a.Compression != "none" {
		compression = fmt.Errorf("expected zstd or none, found %q", a.Compression)
	}
	return cmp.Or(in("url", address), in("compression", compression), in("timeout", atLeast(a.Timeout, time.Second)))
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
	setDefaults(reflect.ValueOf(c).Elem())
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

// NeedRestart returns the keys whose change from c to next needs a restart of the agent.
func (c *Config) NeedRestart(next *Config) []string {
	var names []string
	after := fieldsOf(reflect.ValueOf(next).Elem())
	for i, f := range fieldsOf(reflect.ValueOf(c).Elem()) {
		if f.restart && !f.to.Equal(after[i].to) {
			names = append(names, f.name)
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

// Target returns a target with its login. Its name must be one of the configuration's.
func (c *Config) Target(name string) (engine.Target, error) {
	for i := range c.Targets {
		if c.Targets[i].Name == name {
			return c.Targets[i].prepare()
		}
	}
	return engine.Target{}, fmt.Errorf("the configuration has no target %s", name)
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
		User: t.User, Options: t.Options, Discover: t.discover, Hearsay: t.hearsay,
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
	tlsConfig, optional, err := loginTLS(t.tls)
	if t.TLS != nil {
		tlsConfig, err = t.TLS.load()
	}
	if err != nil {
		return target, err
	}
	if tlsConfig != nil {
		if tlsConfig.ServerName == "" {
			if host, _, err := net.SplitHostPort(target.Address); err == nil {
				tlsConfig.ServerName = host
			}
		}
		target.TLS, target.TLSOptional = tlsConfig, optional
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
