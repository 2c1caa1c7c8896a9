// Package setup writes a first configuration, imports dashboards, and checks whether the parts of a
// set-up work: servers and rights, the agent, Prometheus with its rules, Grafana with its token and
// dashboards.
package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/run/grafana"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Plan contains the choices for a configuration.
type Plan struct {
	// File is the path of the configuration. Passwords and tokens go into files beside it.
	File    string
	DataDir string
	Targets []PlannedTarget
	Grafana PlannedGrafana
	// Prometheus is its URL; empty: none.
	Prometheus string
	// Replace an existing file.
	Replace bool
}

// PlannedTarget is a server with its password or the file that contains it.
type PlannedTarget struct {
	config.Target
	Password string
}

// PlannedGrafana is a Grafana with a token, or with a user who may create one.
type PlannedGrafana struct {
	URL            string
	TokenFile      string
	User, Password string
	// Folder for the dashboards; empty: import none.
	Folder string
}

// Done is what was created, and the answers of the servers.
type Done struct {
	// File is the configuration.
	File    string   `json:"file"`
	DataDir string   `json:"data_dir"`
	Targets []Tested `json:"targets,omitempty"`
	// Secrets are the files with passwords and tokens that were written.
	Secrets []string `json:"secrets,omitempty"`
	// Dashboards are Grafana's dashboards before the import.
	Dashboards []Dashboard `json:"dashboards,omitempty"`
	// Problems are failed steps, left to the user.
	Problems []string `json:"problems,omitempty"`
	// ScrapeConfig is the configuration for Prometheus.
	ScrapeConfig string `json:"scrape_config"`
}

// ErrExists is returned by Write if the configuration exists.
var ErrExists = errors.New("the file exists")

// Write writes the configuration and the files that it names, tests it, and imports the dashboards.
// Problems contains the steps that failed; the error means that no configuration was written.
func (p *Plan) Write(ctx context.Context) (*Done, error) {
	for _, address := range []string{p.Grafana.URL, p.Prometheus} {
		if err := config.CheckURL(address); err != nil {
			return nil, fmt.Errorf("%s: %w", secret.Text(address), err)
		}
	}
	if _, err := os.Stat(p.File); err == nil && !p.Replace {
		return nil, fmt.Errorf("write %s: %w", p.File, ErrExists)
	}
	done := &Done{File: p.File, DataDir: p.DataDir, ScrapeConfig: ScrapeConfig}
	if err := os.MkdirAll(filepath.Dir(p.File), 0o755); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	for i := range p.Targets {
		t := &p.Targets[i]
		if t.Password == "" {
			continue
		}
		t.PasswordFile = plain(t.Name) + ".password"
		if err := p.secret(done, t.PasswordFile, t.Password); err != nil {
			return nil, err
		}
	}
	if err := p.grafana(ctx, done); err != nil {
		return nil, err
	}
	text, err := p.yaml()
	if err != nil {
		return nil, err
	}
	if err := write(p.File, 0o644, text); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	c, err := config.Load(p.File)
	if err != nil {
		return nil, err
	}
	done.Targets = TestTargets(ctx, c.EngineTargets(discard))
	for _, t := range done.Targets {
		if !t.Answers {
			done.Problems = append(done.Problems, fmt.Sprintf("%s (%s) does not answer: %s", t.Name, t.Address, t.Error))
		}
		for _, missing := range t.Missing {
			done.Problems = append(done.Problems, fmt.Sprintf("%s: a right is missing: %s", t.Name, missing))
		}
	}
	p.dashboards(ctx, c, done)
	return done, nil
}

// secret writes a password or a token beside the configuration, readable only by its owner.
func (p *Plan) secret(done *Done, name, value string) error {
	path := filepath.Join(filepath.Dir(p.File), name)
	if err := write(path, 0o600, []byte(value+"\n")); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	done.Secrets = append(done.Secrets, path)
	return nil
}

// grafana creates a token if there is none.
func (p *Plan) grafana(ctx context.Context, done *Done) error {
	g := &p.Grafana
	if g.URL == "" || g.TokenFile != "" || g.User == "" {
		if g.URL != "" && g.TokenFile == "" {
			done.Problems = append(done.Problems, "grafana has no token: create a service account with the role Editor, save its token in a file and set url and token_file under grafana")
			g.URL = ""
		}
		return nil
	}
	admin, err := grafana.NewLogin(g.URL, g.User, g.Password)
	if err != nil {
		return err
	}
	defer admin.Close()
	token, err := Grafana{admin}.CreateToken(ctx)
	if err != nil {
		done.Problems = append(done.Problems, "create a service account: "+secret.Error(err))
		g.URL = ""
		return nil
	}
	g.TokenFile = "grafana.token"
	return p.secret(done, g.TokenFile, token)
}

func (p *Plan) dashboards(ctx context.Context, c *config.Config, done *Done) {
	if c.Grafana.URL == "" || p.Grafana.Folder == "" {
		return
	}
	g, err := NewGrafana(c.Grafana.URL, c.Grafana.TokenFile)
	if err == nil {
		defer g.Close()
		done.Dashboards, err = g.ImportDashboards(ctx, p.Grafana.Folder)
	}
	if err != nil {
		done.Problems = append(done.Problems, "import the dashboards: "+secret.Error(err))
	}
}

// yaml returns the text of the configuration.
func (p *Plan) yaml() ([]byte, error) {
	type target struct {
		Name         string `yaml:"name"`
		Engine       string `yaml:"engine"`
		Address      string `yaml:"address"`
		Cluster      string `yaml:"cluster,omitempty"`
		User         string `yaml:"user,omitempty"`
		PasswordFile string `yaml:"password_file,omitempty"`
	}
	type address struct {
		URL       string `yaml:"url"`
		TokenFile string `yaml:"token_file,omitempty"`
	}
	var file struct {
		DataDir    string   `yaml:"data_dir,omitempty"`
		Targets    []target `yaml:"targets,omitempty"`
		Grafana    *address `yaml:"grafana,omitempty"`
		Prometheus *address `yaml:"prometheus,omitempty"`
	}
	file.DataDir = p.DataDir
	for _, t := range p.Targets {
		file.Targets = append(file.Targets, target{t.Name, t.Engine, t.Address, t.Cluster, t.User, t.PasswordFile})
	}
	if p.Grafana.URL != "" {
		file.Grafana = &address{p.Grafana.URL, p.Grafana.TokenFile}
	}
	if p.Prometheus != "" {
		file.Prometheus = &address{URL: p.Prometheus}
	}
	text, err := yaml.Marshal(file)
	if err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	return append([]byte("# Written by benchwatch init. docs/configuration.md lists all keys.\n"), text...), nil
}

// write replaces a file.
func write(path string, mode fs.FileMode, data []byte) error {
	return rundir.Replace(path, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// plain turns a name into the name of a file.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
}

// Writable reports why a folder, which may not exist yet, can't be written; nil if it can.
func Writable(dir string) error {
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		var f *os.File
		if f, err = os.CreateTemp(dir, ".benchwatch-"); err == nil {
			f.Close()
			err = os.Remove(f.Name())
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s can't be written: %w", dir, fs.ErrPermission)
	}
	return err
}

// ScrapeConfig is the text for a Prometheus, below scrape_configs.
const ScrapeConfig = `scrape_configs:
  - job_name: benchwatch
    scrape_interval: 1s
    scrape_timeout: 900ms
    static_configs:
      - targets: ["127.0.0.1:9838"]
rule_files:
  - prometheus/rules/*.yml
  - alerts/*.rules.yml
`
