// Package config reads benchwatch.yml.
//
// Every key is declared once, as a field of its section, with its default and whether a reload applies
// it; the check methods have the conditions for values. docs/reference/configuration.md says what the keys mean.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/many/archive"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	engines "github.com/benchwatch/benchwatch/agent/model/engine/registry"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/pattern"
	tools "github.com/benchwatch/benchwatch/agent/model/tool/registry"
	"github.com/benchwatch/benchwatch/agent/run/cloudwatch"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/run/toollog"
	"github.com/benchwatch/benchwatch/agent/run/topology"
)

// Config is the content of benchwatch.yml.
type Config struct {
	DataDir          string        `yaml:"data_dir" text:"path" reload:"restart"`
	SampleInterval   time.Duration `yaml:"sample_interval" reload:"restart" default:"1s"`
	Runs             Runs          `yaml:"runs"`
	Logs             []Log         `yaml:"logs"`
	Targets          []Target      `yaml:"targets"`
	Hosts            []Host        `yaml:"hosts"`
	Proxies          []Proxy       `yaml:"proxies"`
	Tools            []Tool        `yaml:"tools"`
	Grafana          Grafana       `yaml:"grafana"`
	Prometheus       Prometheus    `yaml:"prometheus"`
	Archive          Archive       `yaml:"archive" alone:"url"`
	Peers            []Peer        `yaml:"peers"`
	WebhookTokenFile string        `yaml:"webhook_token_file" text:"file"`

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

// Runs are limits on runs.
type Runs struct {
	MaxLive      int           `yaml:"max_live" default:"64"`
	MaxKept      int           `yaml:"max_kept" default:"256"`
	DrainTimeout time.Duration `yaml:"drain_timeout" default:"5m"`
	Keep         Keep          `yaml:"keep"`
}

func (r *Runs) check() error {
	return cmp.Or(in("max_live", atLeast(r.MaxLive, 1)), in("max_kept", atLeast(r.MaxKept, 1)),
		in("drain_timeout", atLeast(r.DrainTimeout, time.Second)))
}

// Log is a set of log files that a tool writes without benchwatch.
type Log struct {
	Path      string            `yaml:"path" text:"path"`
	Tool      string            `yaml:"tool"`
	Labels    map[string]string `yaml:"labels"`
	Cluster   string            `yaml:"cluster"`
	Targets   []string          `yaml:"targets"`
	Generator string            `yaml:"generator"`
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
	Address  string `yaml:"address"`
	Behind   string `yaml:"behind"`
	Nodename string `yaml:"nodename"`
}

func (p *Proxy) check() error {
	return cmp.Or(in("address", CheckAddress(p.Address)), in("behind", required(p.Behind, "the cluster of the servers")))
}

// Tool is a benchmark tool that regular expressions describe.
type Tool struct {
	Name     string            `yaml:"name"`
	Command  string            `yaml:"command" text:"expression"`
	Interval []string          `yaml:"interval"`
	Summary  []string          `yaml:"summary"`
	Error    []string          `yaml:"error"`
	Units    map[string]string `yaml:"units"`
}

// Grafana is the Grafana that receives markers.
type Grafana struct {
	URL       string `yaml:"url"`
	TokenFile string `yaml:"token_file" text:"file"`
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
	URL        string     `yaml:"url"`
	CloudWatch CloudWatch `yaml:"cloudwatch"`
}

// CloudWatch names the series of an exporter of CloudWatch's metrics.
type CloudWatch struct {
	InstanceLabel   string `yaml:"instance_label" default:"dimension_DBInstanceIdentifier"`
	CPU             string `yaml:"cpu" default:"aws_rds_cpuutilization_average"`
	ReadIOPS        string `yaml:"read_iops" default:"aws_rds_read_iops_average"`
	WriteIOPS       string `yaml:"write_iops" default:"aws_rds_write_iops_average"`
	ReadThroughput  string `yaml:"read_throughput" default:"aws_rds_read_throughput_average"`
	WriteThroughput string `yaml:"write_throughput" default:"aws_rds_write_throughput_average"`
	QueueDepth      string `yaml:"queue_depth" default:"aws_rds_disk_queue_depth_average"`
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
	URL             string        `yaml:"url"`
	CredentialsFile string        `yaml:"credentials_file" text:"file"`
	Upload          bool          `yaml:"upload" default:"true"`
	Output          bool          `yaml:"output" default:"true"`
	Compression     string        `yaml:"compression" default:"zstd"`
	Timeout         time.Duration `yaml:"timeout" default:"30s"`
	CacheDir        string        `yaml:"cache_dir" text:"path"`
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

func atLeast[T int | time.Duration](value, least T) error {
	if value < least {
		return fmt.Errorf("%v is too small: expected at least %v", value, least)
	}
	return nil
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

// RunLogs returns the log files to follow.
func (c *Config) RunLogs() []toollog.Log {
	logs := make([]toollog.Log, len(c.Logs))
	for i, l := range c.Logs {
		logs[i] = toollog.Log{Glob: l.Path, Tool: l.Tool, Labels: l.Labels, Selection: l.selection(), Generator: l.Generator}
	}
	return logs
}

// ToolSet returns the built-in tools and those that the configuration describes.
func (c *Config) ToolSet() tool.Set {
	return slices.Concat(tools.Tools, c.described)
}
