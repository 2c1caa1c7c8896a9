// Package config reads benchwatch.yml.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	commoncfg "github.com/prometheus/common/config"
	"go.yaml.in/yaml/v3"

	"github.com/benchwatch/benchwatch/agent/engine"
	engines "github.com/benchwatch/benchwatch/agent/engine/registry"
	"github.com/benchwatch/benchwatch/agent/live"
	"github.com/benchwatch/benchwatch/agent/rundir"

	"github.com/benchwatch/benchwatch/agent/tool"
	"github.com/benchwatch/benchwatch/agent/tool/pattern"
	tools "github.com/benchwatch/benchwatch/agent/tool/registry"
)

// Config is benchwatch.yml.
type Config struct {
	DataDir        string        `yaml:"data_dir"`
	SampleInterval time.Duration `yaml:"sample_interval"`
	Runs           Runs          `yaml:"runs"`
	Logs           []Log         `yaml:"logs"`
	Targets        []Target      `yaml:"targets"`
	Tools          pattern.Tools `yaml:"tools"`
	Grafana        Grafana       `yaml:"grafana"`
	Prometheus     Prometheus    `yaml:"prometheus"`
	// WebhookTokenFile holds the token with which Alertmanager may send alerts;
	// without it none are taken.
	WebhookTokenFile string `yaml:"webhook_token_file"`

	tools tool.Set
}

// Runs are limits on runs.
type Runs struct {
	MaxLive      int           `yaml:"max_live"`
	MaxKept      int           `yaml:"max_kept"`
	DrainTimeout time.Duration `yaml:"drain_timeout"`
}

// Log is files that a tool writes by itself.
type Log struct {
	Path   string            `yaml:"path"` // may hold * and ?
	Tool   string            `yaml:"tool"`
	Labels map[string]string `yaml:"labels"`
}

// Target is a server to sample.
type Target struct {
	Name         string               `yaml:"name"`
	Engine       string               `yaml:"engine"`
	Address      string               `yaml:"address"`
	Cluster      string               `yaml:"cluster"`
	Role         string               `yaml:"role"`
	User         string               `yaml:"user"`
	PasswordFile string               `yaml:"password_file"`
	PasswordEnv  string               `yaml:"password_env"`
	TLS          *commoncfg.TLSConfig `yaml:"tls"`
	Options      map[string]string    `yaml:"options"`
}

// Grafana is where markers go.
type Grafana struct {
	URL       string `yaml:"url"`
	TokenFile string `yaml:"token_file"`
}

// Prometheus is where recorded series can be read.
type Prometheus struct {
	URL string `yaml:"url"`
}

// Default is the configuration without a file.
func Default() *Config {
	return &Config{
		DataDir:        rundir.DefaultDataDir(),
		SampleInterval: time.Second,
		Runs:           Runs{MaxLive: 64, MaxKept: 256, DrainTimeout: 5 * time.Minute},
	}
}

// Load reads and checks a file. Relative paths in it are relative to it.
// Errors name the file, the line, the key and what was expected.
func Load(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	c, err := parse(data, filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("%s%w", path, err)
	}
	return c, nil
}

// parse returns errors that begin with ":<line>: ".
func parse(data []byte, dir string) (*Config, error) {
	c := Default()
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(c); err != nil && !errors.Is(err, io.EOF) {
		return nil, yamlError(err)
	}
	var err error
	if c.tools, err = c.Tools.New(); err != nil {
		return nil, yamlError(err)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, yamlError(err)
	}
	c.resolve(dir)
	if err := c.check(&root); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Config) resolve(dir string) {
	paths := []*string{&c.DataDir, &c.Grafana.TokenFile, &c.WebhookTokenFile}
	for i := range c.Logs {
		paths = append(paths, &c.Logs[i].Path)
	}
	for i := range c.Targets {
		paths = append(paths, &c.Targets[i].PasswordFile)
		if c.Targets[i].TLS != nil {
			c.Targets[i].TLS.SetDirectory(dir)
		}
	}
	for _, p := range paths {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(dir, *p)
		}
	}
}

// EngineTargets builds what the sampler takes: names, passwords and TLS
// settings read. A target that can't be prepared is an error of its own and
// does not keep the others from being sampled.
func (c *Config) EngineTargets(log *slog.Logger) []engine.Target {
	var targets []engine.Target
	for i := range c.Targets {
		t, err := c.Targets[i].prepare()
		if err != nil {
			log.Error("target left out", "target", c.Targets[i].Name, "err", err)
			continue
		}
		targets = append(targets, t)
	}
	return targets
}

func (t *Target) prepare() (engine.Target, error) {
	target := engine.Target{
		Name: t.Name, Engine: t.Engine, Address: t.Address, Cluster: t.Cluster, Role: t.Role,
		User: t.User, Options: t.Options,
	}
	switch {
	case t.PasswordFile != "":
		data, err := os.ReadFile(t.PasswordFile)
		if err != nil {
			return target, fmt.Errorf("read password file: %w", err)
		}
		target.Password = engine.Secret(strings.TrimRight(string(data), "\r\n"))
	case t.PasswordEnv != "":
		target.Password = engine.Secret(os.Getenv(t.PasswordEnv))
	}
	if t.TLS != nil {
		tlsConfig, err := commoncfg.NewTLSConfig(t.TLS)
		if err != nil {
			return target, fmt.Errorf("tls: %w", err)
		}
		if tlsConfig.ServerName == "" {
			if host, _, err := net.SplitHostPort(t.Address); err == nil {
				tlsConfig.ServerName = host
			}
		}
		target.TLS = tlsConfig
	}
	return target, nil
}

// Open returns a prober for a target, by its engine.
func Open(t engine.Target, log *slog.Logger) (engine.Prober, error) {
	e := engines.ByName(t.Engine)
	if e == nil {
		return nil, fmt.Errorf("unknown engine %q: use one of %s", t.Engine, strings.Join(engines.Names(), ", "))
	}
	return e.Open(t, log.With("target", t.Name))
}

// RunLogs are the log files to follow.
func (c *Config) RunLogs() []live.Log {
	logs := make([]live.Log, len(c.Logs))
	for i, l := range c.Logs {
		logs[i] = live.Log{Glob: l.Path, Tool: l.Tool, Labels: l.Labels}
	}
	return logs
}

// ToolSet is the tools that benchwatch knows and those that the user describes.
func (c *Config) ToolSet() tool.Set {
	return slices.Concat(tools.Tools, c.tools)
}
