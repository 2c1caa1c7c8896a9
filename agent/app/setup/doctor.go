package setup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v4"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/alerts"
	"github.com/benchwatch/benchwatch/prometheus"
)

// Level is the result of a check.
type Level string

const (
	OK      Level = "ok"
	Warning Level = "warning"
	Failed  Level = "failed"
	Skipped Level = "skipped"
)

// Check is one thing that was checked.
type Check struct {
	Name  string `json:"name"`
	Level Level  `json:"level"`
	Text  string `json:"text"`
	// Hint is a remedy.
	Hint string `json:"hint,omitempty"`
}

// Diagnosis contains all checks of a set-up.
type Diagnosis struct {
	Checks []Check `json:"checks"`
	// Failed and Warnings are the numbers of such checks.
	Failed   int `json:"failed"`
	Warnings int `json:"warnings"`
}

var discard = slog.New(slog.DiscardHandler)

// doctor collects checks.
type doctor struct {
	c     *config.Config
	file  string           // of c; empty: none
	agent rundir.AgentInfo // on its data directory
	runs  bool             // there is such an agent
	// servers are those that the agent samples; nil: it was not asked, since it has another
	// configuration, or it did not answer.
	servers map[string]server
	mu      sync.Mutex
	found   map[string][]Check
}

func (d *doctor) add(part string, level Level, name, text, hint string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.found[part] = append(d.found[part], Check{name, level, text, hint})
}

// Diagnose checks everything that belongs to a configuration, all parts concurrently. file is where
// the configuration was read; empty: nowhere.
func Diagnose(ctx context.Context, c *config.Config, file string) Diagnosis {
	d := &doctor{c: c, found: map[string][]Check{}}
	if file != "" {
		d.file, _ = filepath.Abs(file) // without a working directory it is no agent's
	}
	if d.agent, d.runs = rundir.Agent(c.DataDir); d.runs && d.agent.Config == d.file {
		d.servers, _ = sampled(ctx, d.agent) // the check of the agent reports why it does not answer
	}
	parts := []struct {
		name  string
		check func(context.Context)
	}{{"data", d.data}, {"files", d.files}, {"agent", d.process},
		{"targets", d.targets}, {"prometheus", d.prometheus}, {"grafana", d.grafana}}
	var checking sync.WaitGroup
	for _, p := range parts {
		checking.Go(func() { p.check(ctx) })
	}
	checking.Wait()
	var all Diagnosis
	for _, p := range parts {
		all.Checks = append(all.Checks, d.found[p.name]...)
	}
	for _, check := range all.Checks {
		switch check.Level {
		case Failed:
			all.Failed++
		case Warning:
			all.Warnings++
		}
	}
	return all
}

func (d *doctor) data(context.Context) {
	root := rundir.Root(d.c.DataDir)
	if err := Writable(root); err != nil {
		d.add("data", Failed, "data directory", secret.Error(err),
			"choose another data_dir, or let an agent share it: docs/run-directory.md, Users")
		return
	}
	ids, err := rundir.List(d.c.DataDir)
	if err != nil {
		d.add("data", Failed, "data directory", secret.Error(err), "")
		return
	}
	d.add("data", OK, "data directory", fmt.Sprintf("%s has %s", d.c.DataDir, table.Plural(len(ids), "run")), "")
}

func (d *doctor) files(context.Context) {
	for _, err := range d.c.UnreadableFiles() {
		if d.runs && d.agent.Foreign && errors.Is(err, fs.ErrPermission) {
			continue // the agent reads it as another user
		}
		d.add("files", Failed, "configuration", secret.Error(err), "")
	}
}

// process checks the agent.
func (d *doctor) process(ctx context.Context) {
	info := d.agent
	if !d.runs {
		d.add("agent", Warning, "agent", "no agent runs on "+d.c.DataDir,
			strings.TrimSuffix(start(d.file), " --config.file=")+"; benchwatch run also works without one")
		return
	}
	if info.Config != d.file {
		d.add("agent", Warning, "agent", "uses another configuration: "+cmp.Or(info.Config, "none"),
			"restart it with --config.file="+d.file+", or leave out --config.file here")
	}
	if info.URL == "" {
		info.URL = "http://" + info.Address + "/"
	}
	at, err := get(ctx, info.URL+"-/healthy", nil)
	switch {
	case errors.Is(err, errNoLogin):
		d.add("agent", OK, "agent", "answers at "+info.URL+" and asks for a login", "")
	case err != nil:
		d.add("agent", Failed, "agent", secret.Error(err), "look at the agent's log")
	default:
		d.add("agent", OK, "agent", "answers at "+info.URL, "")
		d.clock("agent", "clock of the agent", at)
	}
}

// largestOffset is the largest difference between two clocks that is ignored, since dates in HTTP
// have a resolution of one second.
const largestOffset = 2 * time.Second

// clock compares the date of an answer with this machine's clock.
func (d *doctor) clock(part, name string, at time.Time) {
	if at.IsZero() {
		return
	}
	offset := time.Since(at)
	if offset.Abs() > largestOffset {
		d.add(part, Warning, name, fmt.Sprintf("differs from this machine's by %s", offset.Abs().Round(time.Second)),
			"synchronise the clocks, for example with chrony")
		return
	}
	d.add(part, OK, name, "agrees with this machine's within 2 s", "")
}

func (d *doctor) targets(ctx context.Context) {
	if len(d.c.Targets) == 0 {
		d.add("targets", Skipped, "targets", "the configuration has none", "add targets, or use benchwatch run --sample")
		return
	}
	tested := map[string]Tested{}
	for _, t := range TestTargets(ctx, d.c.EngineTargets(discard)) {
		tested[t.Name] = t
	}
	for i := range d.c.Targets {
		t := &d.c.Targets[i]
		name := "target " + t.Name
		own, readable := tested[t.Name]
		now, found := d.servers[t.Name]
		switch {
		case now.Up:
			d.add("targets", OK, name, strings.TrimRight(fmt.Sprintf("the agent samples %s: %s %s", t.Address, now.Version, now.Role), " "), "")
		case found:
			d.add("targets", Failed, name, fmt.Sprintf("the agent does not sample %s: %s", t.Address, secret.Text(now.State)), remedy(now.State))
		case d.servers != nil:
			d.add("targets", Failed, name, "the agent does not sample it: its log has the reason",
				"let the agent read password_file and the files of tls, then reload it")
		case !readable:
			d.add("targets", Failed, name, "its password or certificate can't be read", "check password_file and tls")
		case !own.Answers:
			d.add("targets", Failed, name, reason(own.Address, own.Error), remedy(own.Error))
		default:
			d.add("targets", OK, name, strings.TrimRight(fmt.Sprintf("%s answers: %s %s", own.Address, own.Version, own.Role), " "), "")
		}
		for _, missing := range own.Missing {
			d.add("targets", Warning, name, "not readable: "+missing, "docs/databases.md has the statements")
		}
	}
}

// reason is why a server does not answer, with its address.
func reason(address, text string) string {
	if strings.Contains(text, address) {
		return text
	}
	return address + ": " + text
}

// remedy is what helps with a server that does not answer.
func remedy(text string) string {
	if strings.Contains(text, syscall.ECONNREFUSED.Error()) {
		return "start the server, or correct the address"
	}
	return "check address, user and password; docs/databases.md has the privileges"
}

// query returns Prometheus's current values for an expression, one for each series, and the date of
// the answer.
func (d *doctor) query(ctx context.Context, expression string) (values []string, at time.Time, err error) {
	var answer struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	at, err = get(ctx, d.c.Prometheus.URL+"/api/v1/query?query="+url.QueryEscape(expression), &answer)
	for _, r := range answer.Data.Result {
		values = append(values, fmt.Sprint(r.Value[1]))
	}
	return values, at, err
}

// fewScrapes is the number of scrapes in 10 seconds that is too few for one scrape per second.
const fewScrapes = 8

func (d *doctor) prometheus(ctx context.Context) {
	if d.c.Prometheus.URL == "" {
		d.add("prometheus", Skipped, "prometheus", "the configuration names none", "add url under prometheus")
		return
	}
	found, at, err := d.query(ctx, "count_over_time(benchwatch_build_info[10s])")
	if err != nil {
		d.add("prometheus", Failed, "prometheus", secret.Error(err), "check url under prometheus")
		return
	}
	d.clock("prometheus", "clock of Prometheus", at)
	rarest := ""
	for _, scrapes := range found {
		if n, err := strconv.Atoi(scrapes); err == nil && n < fewScrapes {
			rarest = scrapes
		}
	}
	switch {
	case len(found) == 0:
		d.add("prometheus", Failed, "scrape", d.c.Prometheus.URL+" does not scrape an agent",
			"add the job benchwatch, which benchwatch init prints, to its scrape_configs")
	case rarest != "":
		d.add("prometheus", Warning, "scrape", fmt.Sprintf("an agent was scraped %s times in 10 s", rarest),
			"set scrape_interval: 1s for the job benchwatch")
	default:
		d.add("prometheus", OK, "scrape",
			fmt.Sprintf("%s scrapes %s each second", d.c.Prometheus.URL, table.Plural(len(found), "agent")), "")
	}
	d.scraped(ctx)
	d.rules(ctx)
	d.webhooks(ctx, len(found))
}

// scraped checks whether Prometheus can scrape all of its targets.
func (d *doctor) scraped(ctx context.Context) {
	var answer struct {
		Data struct {
			Targets []struct {
				Labels            map[string]string
				Health, LastError string
			} `json:"activeTargets"`
		}
	}
	if _, err := get(ctx, d.c.Prometheus.URL+"/api/v1/targets?state=active", &answer); err != nil {
		d.add("prometheus", Failed, "scraped targets", secret.Error(err), "")
		return
	}
	down := false
	for _, t := range answer.Data.Targets {
		if t.Health == "down" {
			down = true
			d.add("prometheus", Warning, "scraped targets", fmt.Sprintf("%s of job %s: %s", t.Labels["instance"],
				t.Labels["job"], secret.Text(t.LastError)), "start it, or remove it from scrape_configs")
		}
	}
	if !down {
		d.add("prometheus", OK, "scraped targets", fmt.Sprintf("none of %d is down", len(answer.Data.Targets)), "")
	}
}

// ruleGroup is a group of rules in a file or in Prometheus.
type ruleGroup struct {
	Name  string
	Rules []struct {
		Record, Alert string // in a file
		For           model.Duration
		Name          string // in Prometheus
		Duration      float64
		LastError     string
	}
}

// rules checks whether all groups of rules are loaded and current, and whether Prometheus can
// evaluate them. It does not compare the expressions, which Prometheus rewrites.
func (d *doctor) rules(ctx context.Context) {
	var answer struct {
		Data struct{ Groups []ruleGroup }
	}
	if _, err := get(ctx, d.c.Prometheus.URL+"/api/v1/rules", &answer); err != nil {
		d.add("prometheus", Failed, "rules", secret.Error(err), "")
		return
	}
	wanted, err := ruleGroups()
	if err != nil {
		d.add("prometheus", Failed, "rules", secret.Error(err), "")
		return
	}
	var missing, different []string
	for _, want := range wanted {
		i := slices.IndexFunc(answer.Data.Groups, func(g ruleGroup) bool { return g.Name == want.Name })
		switch {
		case i < 0:
			missing = append(missing, want.Name)
			continue
		case !slices.Equal(want.loaded(), answer.Data.Groups[i].loaded()):
			different = append(different, want.Name)
		}
		for _, r := range answer.Data.Groups[i].Rules {
			if r.LastError != "" {
				d.add("prometheus", Failed, "rules", fmt.Sprintf("%s can't be evaluated: %s", r.Name,
					secret.Text(r.LastError)), "two rules or exporters may give the same series")
			}
		}
	}
	const files = "prometheus/rules/*.yml and alerts/*.rules.yml"
	if len(missing) > 0 {
		d.add("prometheus", Warning, "rules",
			fmt.Sprintf("%d of %s missing: %s", len(missing), table.Plural(len(wanted), "group"), table.Join(missing)),
			"add "+files+" to rule_files")
	}
	if len(different) > 0 {
		d.add("prometheus", Warning, "rules", "of another version, or changed: "+table.Join(different), "load "+files+" of this version")
	}
	if len(missing)+len(different) == 0 {
		d.add("prometheus", OK, "rules", fmt.Sprintf("all %d groups are loaded", len(wanted)), "")
	}
}

// loaded describes the rules of a group in order, for a comparison.
func (g *ruleGroup) loaded() []string {
	var all []string
	for _, r := range g.Rules {
		// Only one of the names and one of the durations is set.
		all = append(all, fmt.Sprintf("%s%s%s for %g s", r.Record, r.Alert, r.Name, time.Duration(r.For).Seconds()+r.Duration))
	}
	return all
}

// ruleGroups returns the groups of rules in this program.
func ruleGroups() ([]ruleGroup, error) {
	var groups []ruleGroup
	for _, files := range []fs.FS{alerts.Files, prometheus.Files} {
		err := fs.WalkDir(files, ".", func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			data, err := fs.ReadFile(files, path)
			if err != nil {
				return err
			}
			var file struct{ Groups []ruleGroup }
			if err := yaml.Unmarshal(data, &file); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			groups = append(groups, file.Groups...)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return groups, nil
}

func (d *doctor) grafana(ctx context.Context) {
	if d.c.Grafana.URL == "" {
		d.add("grafana", Skipped, "grafana", "the configuration names none: markers are not sent",
			"add url and token_file under grafana, or run benchwatch init")
		return
	}
	g, err := NewGrafana(d.c.Grafana.URL, d.c.Grafana.TokenFile)
	if err != nil {
		d.add("grafana", Failed, "grafana", secret.Error(err), "check url and token_file under grafana")
		return
	}
	defer g.Close()
	at, err := get(ctx, g.Address()+"/api/health", nil)
	if err != nil {
		d.add("grafana", Failed, "grafana", secret.Error(err), "check url under grafana")
		return
	}
	d.clock("grafana", "clock of Grafana", at)
	if err := g.CanMark(ctx); err != nil {
		d.add("grafana", Failed, "grafana token", secret.Error(err),
			"create a token for a service account with the role Editor, for example with benchwatch init")
		return
	}
	d.add("grafana", OK, "grafana token", "may read and write annotations", "")
	all, err := g.CompareDashboards(ctx)
	if err != nil {
		d.add("grafana", Warning, "dashboards", secret.Error(err), "")
		return
	}
	states := map[DashboardState][]string{}
	for _, b := range all {
		states[b.State] = append(states[b.State], b.Title)
	}
	const hint = "benchwatch dashboards import"
	switch {
	case len(states[Missing]) > 0:
		d.add("grafana", Warning, "dashboards", "missing: "+table.Join(states[Missing]), hint)
	case len(states[Different]) > 0:
		d.add("grafana", Warning, "dashboards", "of another version, or changed: "+table.Join(states[Different]), hint)
	default:
		d.add("grafana", OK, "dashboards", fmt.Sprintf("all %d are from this version", len(all)), "")
	}
}

// getClient follows no redirect, since the configuration names the address.
var getClient = http.Client{
	Timeout:       15 * time.Second,
	Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// maxAnswer limits an answer in bytes.
const maxAnswer = 16 << 20

// errNoLogin is returned by get for a server that requires a login.
var errNoLogin = errors.New("a login is required")

// get reads JSON from an address, or only sends the request if into is nil. It returns the date of
// the answer by the other side's clock, zero if there is none. The error is errNoLogin if a login
// is required.
func get(ctx context.Context, address string, into any) (at time.Time, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return at, err
	}
	response, err := getClient.Do(request)
	if err != nil {
		return at, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return at, err
	}
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized:
		return at, fmt.Errorf("%s: %w", address, errNoLogin)
	default:
		return at, fmt.Errorf("%s answers %s", address, response.Status)
	}
	at, _ = http.ParseTime(response.Header.Get("Date")) // zero if missing
	if into == nil {
		return at, nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return at, fmt.Errorf("%s: %w", address, err)
	}
	return at, nil
}
