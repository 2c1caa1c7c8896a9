package servers

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Grafana is a Grafana that receives markers and, with Fill, a data source and the dashboards.
type Grafana struct {
	URL   string
	Token string // of a service account: Editor, or Admin with Fill
	Fill  bool

	own bool // started by us
}

// FindGrafana returns the Grafana of GRAFANA_URL and GRAFANA_TOKEN, or one that is started with the
// monitoring if Grafana is installed, or none.
func FindGrafana() (Grafana, error) {
	url, token := os.Getenv("GRAFANA_URL"), os.Getenv("GRAFANA_TOKEN")
	if url != "" {
		if token == "" {
			return Grafana{}, errors.New("GRAFANA_URL is set but GRAFANA_TOKEN is not: the token of a service account with the role Admin is needed")
		}
		return Grafana{URL: strings.TrimSuffix(url, "/"), Token: token, Fill: true}, nil
	}
	if _, err := lookPath("grafana-server"); err != nil {
		return Grafana{}, nil
	}
	return Grafana{own: true, Fill: true}, nil
}

func (m *Monitoring) grafanaToken() string { return filepath.Join(m.Dir, "grafana.token") }

// startGrafana starts a server with its own data folder, without touching the installed one. It
// creates a service account for g.
func (m *Monitoring) startGrafana(ctx context.Context, g *Grafana) error {
	g.URL = "http://" + m.port(4)
	secret, file := rand.Text(), filepath.Join(m.Dir, "grafana.password")
	if err := writeFile(file, secret, 0o600); err != nil {
		return err
	}
	home := os.Getenv("GRAFANA_HOME")
	if home == "" {
		home = "/usr/share/grafana"
	}
	data := filepath.Join(m.Dir, "grafana")
	err := m.daemonWith(ctx, "grafana", m.port(4), "/api/health", []string{
		"GF_PATHS_DATA=" + data, "GF_PATHS_LOGS=" + data, "GF_PATHS_PLUGINS=" + data + "/plugins",
		"GF_SERVER_HTTP_ADDR=127.0.0.1", fmt.Sprintf("GF_SERVER_HTTP_PORT=%d", m.Port+4),
		"GF_SECURITY_ADMIN_PASSWORD__FILE=" + file,
		"GF_AUTH_ANONYMOUS_ENABLED=true", "GF_AUTH_ANONYMOUS_ORG_ROLE=Viewer",
		"GF_ANALYTICS_REPORTING_ENABLED=false", "GF_ANALYTICS_CHECK_FOR_UPDATES=false",
	}, "grafana-server", "--homepath", home)
	if err != nil {
		return err
	}
	admin := func(r *http.Request) { r.SetBasicAuth("admin", secret) }
	var account struct{ ID int }
	if err := grafanaCall(ctx, g.URL, admin, http.MethodPost, "/api/serviceaccounts",
		object{"name": "benchwatch", "role": "Admin"}, &account); err != nil {
		return err
	}
	var token struct{ Key string }
	if err := grafanaCall(ctx, g.URL, admin, http.MethodPost,
		fmt.Sprintf("/api/serviceaccounts/%d/tokens", account.ID), object{"name": "benchwatch"}, &token); err != nil {
		return err
	}
	g.Token = token.Key
	return writeFile(m.grafanaToken(), g.Token+"\n", 0o600)
}

type object = map[string]any

// names of objects created in Grafana.
const (
	grafanaName   = "benchwatch demo"
	grafanaUID    = "benchwatch-demo"
	grafanaPrefix = "demo-" // of the dashboards' uids
)

// call sends a request to Grafana with g's token.
func (g Grafana) call(ctx context.Context, method, path string, body any) error {
	return grafanaCall(ctx, g.URL, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+g.Token) }, method, path, body, nil)
}

func grafanaCall(ctx context.Context, url string, authorize func(*http.Request), method, path string, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, url+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	authorize(req)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusCreated {
		return fmt.Errorf("grafana: %s %s: %s", method, path, res.Status)
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(res.Body).Decode(answer)
}

// expectNoDemo returns an error if Grafana contains objects of another demo, which may still be
// running, so nothing is replaced.
func (g Grafana) expectNoDemo(ctx context.Context) error {
	if g.call(ctx, http.MethodGet, "/api/datasources/uid/"+grafanaUID, nil) != nil {
		return nil
	}
	return fmt.Errorf("grafana has the data source %q of another demo: stop that demo, or delete the data source and the folder %[1]q", grafanaName)
}

// fillGrafana creates a data source, and the dashboards in their own folder.
func (m *Monitoring) fillGrafana(ctx context.Context, g Grafana) error {
	err := g.call(ctx, http.MethodPost, "/api/datasources", object{"uid": grafanaUID, "name": grafanaName, "type": "prometheus",
		"access": "proxy", "url": "http://" + m.Prometheus(), "jsonData": object{"timeInterval": "1s"}})
	if err != nil {
		return fmt.Errorf("add a data source, for which the role Admin is needed: %w", err)
	}
	if err := g.call(ctx, http.MethodPost, "/api/folders", object{"uid": grafanaUID, "title": grafanaName}); err != nil {
		return err
	}
	root, err := Repository()
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(root, "dashboards/*.json"))
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		dashboard, err := demoDashboard(text)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := g.call(ctx, http.MethodPost, "/api/dashboards/db",
			object{"folderUid": grafanaUID, "overwrite": true, "dashboard": dashboard}); err != nil {
			return err
		}
	}
	return nil
}

// demoDashboard gives a dashboard and its links separate names, and the data source.
func demoDashboard(text []byte) (object, error) {
	var d struct {
		UID, Title string
		Templating object
	}
	text = bytes.ReplaceAll(text, []byte("/d/benchwatch-"), []byte("/d/"+grafanaPrefix+"benchwatch-"))
	var dashboard object
	if err := errors.Join(json.Unmarshal(text, &dashboard), json.Unmarshal(text, &d)); err != nil {
		return nil, err
	}
	dashboard["id"], dashboard["uid"], dashboard["title"] = nil, grafanaPrefix+d.UID, d.Title+" (demo)"
	variables, _ := d.Templating["list"].([]any)
	for _, v := range variables {
		if v, ok := v.(object); ok && v["type"] == "datasource" {
			v["current"] = object{"text": grafanaName, "value": grafanaUID}
		}
	}
	dashboard["templating"] = d.Templating
	return dashboard, nil
}

// Dashboard returns the URL of the dashboard "Live run" in the filled Grafana, or an empty text.
func (m *Monitoring) Dashboard() string {
	var state monitoringState
	switch err := readState(m.Dir, &state); {
	case err != nil:
		return ""
	case m.process("grafana").pid() != 0:
		state.Grafana = "http://" + m.port(4)
	case state.Grafana == "":
		return ""
	}
	return state.Grafana + "/d/" + grafanaPrefix + "benchwatch-live-run?refresh=5s&from=now-5m&to=now"
}

// emptyGrafana removes from a foreign Grafana what fillGrafana created there.
func (m *Monitoring) emptyGrafana(ctx context.Context) error {
	var state monitoringState
	if err := readState(m.Dir, &state); err != nil || !state.Filled {
		return err
	}
	token, err := os.ReadFile(m.grafanaToken())
	if err != nil {
		return err
	}
	g := Grafana{URL: state.Grafana, Token: strings.TrimSpace(string(token))}
	return errors.Join(g.call(ctx, http.MethodDelete, "/api/folders/"+grafanaUID, nil),
		g.call(ctx, http.MethodDelete, "/api/datasources/uid/"+grafanaUID, nil))
}
