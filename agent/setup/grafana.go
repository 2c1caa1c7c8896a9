package setup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/config"
	"github.com/benchwatch/benchwatch/agent/secret"
	"github.com/benchwatch/benchwatch/dashboards"
)

// Grafana is a client for what a set-up needs of a Grafana.
type Grafana struct {
	url    string
	header http.Header
	client http.Client
}

// requestTime bounds one request, maxAnswer its answer in bytes.
const (
	requestTime = 15 * time.Second
	maxAnswer   = 16 << 20
)

// newClient returns an HTTP client that sends secrets only where the user said.
func newClient() http.Client {
	return http.Client{
		Timeout:       requestTime,
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// NewGrafana returns a client that uses the token in a file.
func NewGrafana(address, tokenFile string) (*Grafana, error) {
	if err := config.CheckURL(address); err != nil {
		return nil, fmt.Errorf("grafana: %w", err)
	}
	token, err := secret.ReadToken(tokenFile)
	if err != nil {
		return nil, fmt.Errorf("grafana: %w", err)
	}
	return &Grafana{strings.TrimRight(address, "/"), http.Header{"Authorization": {"Bearer " + token}}, newClient()}, nil
}

// NewGrafanaAdmin returns a client that logs in as a user.
func NewGrafanaAdmin(address, user, password string) (*Grafana, error) {
	if err := config.CheckURL(address); err != nil {
		return nil, fmt.Errorf("grafana: %w", err)
	}
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(user, password)
	return &Grafana{strings.TrimRight(address, "/"), r.Header, newClient()}, nil
}

// statusError is an answer of Grafana that is no success.
type statusError struct {
	status  int
	message string
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("answers %d %s", e.status, http.StatusText(e.status))
	if e.message != "" {
		text += ": " + e.message
	}
	return text
}

func isStatus(err error, status int) bool {
	var s *statusError
	return errors.As(err, &s) && s.status == status
}

// call makes one request; out, if not nil, gets the answer.
func (g *Grafana) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, g.url+path, body)
	if err != nil {
		return fmt.Errorf("grafana: %w", err)
	}
	request.Header = g.header.Clone()
	request.Header.Set("Content-Type", "application/json")
	response, err := g.client.Do(request)
	if err != nil {
		return fmt.Errorf("grafana: %w", err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("grafana: %w", err)
	}
	if response.StatusCode/100 != 2 {
		var problem struct{ Message string }
		_ = json.Unmarshal(data, &problem) // then the status alone
		return fmt.Errorf("grafana at %s %w", g.url, &statusError{response.StatusCode, problem.Message})
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("grafana at %s does not answer as a Grafana does: %w", g.url, err)
	}
	return nil
}

// account is the name of the service account that CreateToken makes.
const account = "benchwatch"

// CreateToken makes a token of the service account benchwatch, which it makes if there
// is none; that may edit dashboards and annotations.
func (g *Grafana) CreateToken(ctx context.Context) (string, error) {
	var found struct {
		ServiceAccounts []struct {
			ID   int
			Name string
		}
	}
	if err := g.call(ctx, http.MethodGet, "/api/serviceaccounts/search?query="+account, nil, &found); err != nil {
		return "", err
	}
	id := 0
	for _, a := range found.ServiceAccounts {
		if a.Name == account {
			id = a.ID
		}
	}
	if id == 0 {
		var made struct{ ID int }
		if err := g.call(ctx, http.MethodPost, "/api/serviceaccounts", map[string]any{"name": account, "role": "Editor"}, &made); err != nil {
			return "", err
		}
		id = made.ID
	}
	var token struct{ Key string }
	name := account + " " + time.Now().UTC().Format("20060102T150405.000Z")
	err := g.call(ctx, http.MethodPost, fmt.Sprintf("/api/serviceaccounts/%d/tokens", id), map[string]any{"name": name}, &token)
	if err == nil && token.Key == "" {
		err = errors.New("grafana made no token")
	}
	return token.Key, err
}

// folderUID is that of the folder of imported dashboards.
const folderUID = "benchwatch"

// Dashboard is one dashboard that the program has.
type Dashboard struct {
	UID   string `json:"uid"`
	Title string `json:"title"`
	// State is what a Grafana has of it: same, different or missing.
	State DashboardState `json:"state"`

	model map[string]any
}

// DashboardState is what a Grafana has of a dashboard.
type DashboardState string

const (
	Same      DashboardState = "same"
	Different DashboardState = "different"
	Missing   DashboardState = "missing"
)

// Dashboards returns those that the program has.
func Dashboards() ([]Dashboard, error) {
	names, err := fs.Glob(dashboards.Files, "*.json")
	if err != nil {
		return nil, err
	}
	var all []Dashboard
	for _, name := range names {
		data, err := dashboards.Files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var d Dashboard
		if err := errors.Join(json.Unmarshal(data, &d), json.Unmarshal(data, &d.model)); err != nil {
			return nil, fmt.Errorf("dashboard %s: %w", name, err)
		}
		all = append(all, d)
	}
	return all, nil
}

// ImportDashboards puts the dashboards into a folder, over what was imported before,
// and returns them with what was there before.
func (g *Grafana) ImportDashboards(ctx context.Context, folder string) ([]Dashboard, error) {
	all, err := g.CompareDashboards(ctx)
	if err != nil {
		return nil, err
	}
	err = g.call(ctx, http.MethodPost, "/api/folders", map[string]any{"uid": folderUID, "title": folder}, nil)
	if err != nil && !isStatus(err, http.StatusConflict) && !isStatus(err, http.StatusPreconditionFailed) {
		return nil, fmt.Errorf("make the folder of the dashboards: %w", err)
	}
	for _, d := range all {
		if d.State == Same {
			continue
		}
		in := map[string]any{"folderUid": folderUID, "overwrite": true, "dashboard": d.model, "message": "benchwatch dashboards import"}
		if err := g.call(ctx, http.MethodPost, "/api/dashboards/db", in, nil); err != nil {
			return nil, fmt.Errorf("import dashboard %s: %w", d.Title, err)
		}
	}
	return all, nil
}

// CompareDashboards returns the dashboards with what the Grafana has of them.
func (g *Grafana) CompareDashboards(ctx context.Context) ([]Dashboard, error) {
	all, err := Dashboards()
	if err != nil {
		return nil, err
	}
	for i := range all {
		var there struct{ Dashboard map[string]any }
		err := g.call(ctx, http.MethodGet, "/api/dashboards/uid/"+all[i].UID, nil, &there)
		switch {
		case isStatus(err, http.StatusNotFound):
			all[i].State = Missing
		case err != nil:
			return nil, err
		default:
			all[i].State = Different
			delete(there.Dashboard, "id")
			delete(there.Dashboard, "version")
			if reflect.DeepEqual(there.Dashboard, all[i].model) {
				all[i].State = Same
			}
		}
	}
	return all, nil
}

// CanMark returns an error unless the token may read annotations.
func (g *Grafana) CanMark(ctx context.Context) error {
	var found []any
	if err := g.call(ctx, http.MethodGet, "/api/annotations?limit=1", nil, &found); err != nil {
		return err
	}
	var rights map[string][]string
	if err := g.call(ctx, http.MethodGet, "/api/access-control/user/permissions", nil, &rights); err != nil {
		return nil // of an old Grafana it is not known
	}
	if _, ok := rights["annotations:create"]; !ok {
		return errors.New("the token may not write annotations: give its service account the role Editor")
	}
	return nil
}
