package config

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	engines "github.com/benchwatch/benchwatch/agent/model/engine/registry"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// Target is a server to sample.
type Target struct {
	Name         string            `yaml:"name"`
	Engine       string            `yaml:"engine"`
	Address      string            `yaml:"address"`
	Cluster      string            `yaml:"cluster"`
	Behind       string            `yaml:"behind"`
	Nodename     string            `yaml:"nodename"`
	NodeExporter string            `yaml:"node_exporter"`
	CloudWatch   string            `yaml:"cloudwatch"`
	Role         string            `yaml:"role"`
	User         string            `yaml:"user"`
	PasswordFile string            `yaml:"password_file" text:"file"`
	PasswordEnv  string            `yaml:"password_env"`
	TLS          *TLS              `yaml:"tls"` // nil: no TLS
	Options      map[string]string `yaml:"options"`

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

func unknownEngine(name string) error {
	return fmt.Errorf("unknown engine %q: expected one of %s", name, strings.Join(engines.Names(), ", "))
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

// Target returns a target with its login. Its name must be one of the configuration's.
func (c *Config) Target(name string) (engine.Target, error) {
	for i := range c.Targets {
		if c.Targets[i].Name == name {
			return c.Targets[i].prepare()
		}
	}
	return engine.Target{}, fmt.Errorf("the configuration has no target %s", name)
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
