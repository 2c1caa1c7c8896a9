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
	"slices"
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
	// Replace an existing file or, with Keep, the sections of it that the plan has.
	Replace bool
	// Keep what an existing file has, with its comments: it is the configuration of an agent of this
	// machine, which is reloaded and must be able to read the passwords.
	Keep bool
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
	// Problems are failed steps, left to the user. Warnings are values that can't be read.
	Problems []string `json:"problems,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Agent is the address of the agent that was reloaded; empty: none runs with this file.
	Agent string `json:"agent,omitempty"`
	// Start is the command that starts an agent with this file.
	Start string `json:"start"`
	// ScrapeConfig is the configuration for Prometheus.
	ScrapeConfig string `json:"scrape_config"`
}

// ErrExists is returned by Write if the configuration, or a section of it, exists.
var ErrExists = errors.New("exists already")

// Write writes the configuration and the files that it names, tests it, and imports the dashboards.
// Problems contains the steps that failed; the error means that no configuration was written.
func (p *Plan) Write(ctx context.Context) (*Done, error) {
	for _, address := range []string{p.Grafana.URL, p.Prometheus} {
		if err := config.CheckURL(address); err != nil {
			return nil, fmt.Errorf("%s: %w", secret.Text(address), err)
		}
	}
	before, err := secret.ReadFile(p.File)
	if err == nil && !p.Replace && !p.Keep {
		return nil, fmt.Errorf("%s %w", p.File, ErrExists)
	}
	if p.Keep {
		if _, err := p.merge(string(before)); err != nil {
			return nil, err
		}
	}
	done := &Done{File: p.File, DataDir: p.DataDir, ScrapeConfig: scrapeConfig(), Start: start(p.File)}
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
	text, err := p.merge(string(before))
	if err != nil {
		return nil, err
	}
	if err := write(p.File, 0o644, []byte(text)); err != nil {
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
			done.Warnings = append(done.Warnings, fmt.Sprintf("%s: not readable: %s", t.Name, missing))
		}
	}
	p.dashboards(ctx, c, done)
	if p.Keep {
		p.reload(ctx, done)
	}
	return done, nil
}

// secret writes a password or a token beside the configuration, readable only by its owner and, with
// Keep, by the agent.
func (p *Plan) secret(done *Done, name, value string) error {
	path := filepath.Join(filepath.Dir(p.File), name)
	if err := write(path, 0o600, []byte(value+"\n")); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	done.Secrets = append(done.Secrets, path)
	if p.Keep {
		return p.share(path)
	}
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

// section is a key of the configuration with its value.
type section struct {
	key   string
	value any
}

// sections returns what the plan writes.
func (p *Plan) sections() []section {
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
	var all []section
	if p.DataDir != "" && !p.Keep {
		all = append(all, section{"data_dir", p.DataDir})
	}
	var targets []target
	for _, t := range p.Targets {
		targets = append(targets, target{t.Name, t.Engine, t.Address, t.Cluster, t.User, t.PasswordFile})
	}
	if len(targets) > 0 {
		all = append(all, section{"targets", targets})
	}
	if p.Grafana.URL != "" {
		all = append(all, section{"grafana", address{p.Grafana.URL, p.Grafana.TokenFile}})
	}
	if p.Prometheus != "" {
		all = append(all, section{"prometheus", address{URL: p.Prometheus}})
	}
	return all
}

// merge returns the text of the configuration. With Keep it is the text before, with each section
// of the plan below its example in the comments, in its old place, or at the end.
func (p *Plan) merge(before string) (string, error) {
	if !p.Keep {
		before = "# Written by benchwatch init. docs/reference/configuration.md lists all keys.\n"
	}
	lines := strings.SplitAfter(strings.TrimRight(before, "\n")+"\n", "\n")
	lines = lines[:len(lines)-1]
	find := func(prefix string) int {
		return slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, prefix) })
	}
	for _, s := range p.sections() {
		var text strings.Builder
		out := yaml.NewEncoder(&text)
		out.SetIndent(2)
		if err := out.Encode(map[string]any{s.key: s.value}); err != nil {
			return "", fmt.Errorf("write configuration: %w", err)
		}
		at := find(s.key + ":")
		end := at + 1
		switch {
		case at >= 0 && !p.Replace:
			return "", fmt.Errorf("%s of %s %w", s.key, p.File, ErrExists)
		case at >= 0:
			for end < len(lines) && strings.ContainsAny(lines[end][:1], " \t-#\n") {
				end++
			}
			for strings.ContainsAny(lines[end-1][:1], "#\n") { // these belong to the next section
				end--
			}
		default:
			if at = find("#" + s.key + ":"); at < 0 {
				at = len(lines)
			}
			for at < len(lines) && strings.HasPrefix(lines[at], "#") {
				at++
			}
			end = at
		}
		lines = slices.Replace(lines, at, end, text.String())
	}
	return strings.Join(lines, ""), nil
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

// scrapeConfig returns the text for a Prometheus, with the rules where the program is installed.
func scrapeConfig() string {
	rules := ""
	if program, err := os.Executable(); err == nil {
		share := filepath.Join(filepath.Dir(program), "..", "share", "benchwatch")
		if _, err := os.Stat(filepath.Join(share, "prometheus", "rules")); err == nil {
			rules = share + "/"
		}
	}
	return `scrape_configs:
  - job_name: benchwatch
    scrape_interval: 1s
    scrape_timeout: 900ms
    static_configs:
      - targets: ["127.0.0.1:9838"]
rule_files:
  - ` + rules + `prometheus/rules/*.yml
  - ` + rules + `alerts/*.rules.yml
`
}
