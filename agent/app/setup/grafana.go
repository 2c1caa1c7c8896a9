package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"reflect"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/run/grafana"
	"github.com/benchwatch/benchwatch/dashboards"
)

// Grafana is a client with the requests that a set-up needs.
type Grafana struct{ *grafana.Client }

// NewGrafana returns a client that uses the token in a file.
func NewGrafana(address, tokenFile string) (Grafana, error) {
	if _, err := secret.ReadToken(tokenFile); err != nil {
		return Grafana{}, fmt.Errorf("grafana: %w", err)
	}
	client, err := grafana.New(address, tokenFile)
	return Grafana{client}, err
}

// account is the service account for which CreateToken creates a token.
const account = "benchwatch"

// CreateToken creates a token of the service account benchwatch, which may edit dashboards and
// annotations. It creates the account if necessary.
func (g Grafana) CreateToken(ctx context.Context) (string, error) {
	var found struct {
		ServiceAccounts []struct {
			ID   int
			Name string
		}
	}
	if err := g.Do(ctx, http.MethodGet, "/api/serviceaccounts/search?query="+account, nil, &found); err != nil {
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
		if err := g.Do(ctx, http.MethodPost, "/api/serviceaccounts",
			map[string]any{"name": account, "role": "Editor"}, &made); err != nil {
			return "", err
		}
		id = made.ID
	}
	var token struct{ Key string }
	name := account + " " + time.Now().UTC().Format("20060102T150405.000Z")
	err := g.Do(ctx, http.MethodPost, fmt.Sprintf("/api/serviceaccounts/%d/tokens", id), map[string]any{"name": name}, &token)
	if err == nil && token.Key == "" {
		err = errors.New("grafana made no token")
	}
	if err == nil {
		err = secret.CheckToken(token.Key)
	}
	return token.Key, err
}

// folderUID is the UID of the folder for imported dashboards.
const folderUID = "benchwatch"

// Dashboard is a dashboard of this program.
type Dashboard struct {
	UID   string `json:"uid"`
	Title string `json:"title"`
	// State is the state of this dashboard in Grafana: same, different or missing.
	State DashboardState `json:"state"`

	model map[string]any
}

// DashboardState is the state of a dashboard in Grafana.
type DashboardState string

const (
	Same      DashboardState = "same"
	Different DashboardState = "different"
	Missing   DashboardState = "missing"
)

// Dashboards returns the dashboards of this program.
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

// ImportDashboards imports the dashboards into a folder, replacing earlier imports, and returns
// them with their state before the import.
func (g Grafana) ImportDashboards(ctx context.Context, folder string) ([]Dashboard, error) {
	all, err := g.CompareDashboards(ctx)
	if err != nil {
		return nil, err
	}
	err = g.Do(ctx, http.MethodPost, "/api/folders", map[string]any{"uid": folderUID, "title": folder}, nil)
	if err != nil && !grafana.IsStatus(err, http.StatusConflict) && !grafana.IsStatus(err, http.StatusPreconditionFailed) {
		return nil, fmt.Errorf("make the folder of the dashboards: %w", err)
	}
	for _, d := range all {
		if d.State == Same {
			continue
		}
		in := map[string]any{"folderUid": folderUID, "overwrite": true, "dashboard": d.model, "message": "benchwatch dashboards import"}
		if err := g.Do(ctx, http.MethodPost, "/api/dashboards/db", in, nil); err != nil {
			return nil, fmt.Errorf("import dashboard %s: %w", d.Title, err)
		}
	}
	return all, nil
}

// CompareDashboards returns the dashboards with their state in Grafana.
func (g Grafana) CompareDashboards(ctx context.Context) ([]Dashboard, error) {
	all, err := Dashboards()
	if err != nil {
		return nil, err
	}
	for i := range all {
		var there struct{ Dashboard map[string]any }
		err := g.Do(ctx, http.MethodGet, "/api/dashboards/uid/"+all[i].UID, nil, &there)
		switch {
		case grafana.IsStatus(err, http.StatusNotFound):
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

// CanMark returns an error if the token may not read annotations.
func (g Grafana) CanMark(ctx context.Context) error {
	var found []any
	if err := g.Do(ctx, http.MethodGet, "/api/annotations?limit=1", nil, &found); err != nil {
		return err
	}
	var rights map[string][]string
	if err := g.Do(ctx, http.MethodGet, "/api/access-control/user/permissions", nil, &rights); err != nil {
		return nil // an old Grafana does not report it
	}
	if _, ok := rights["annotations:create"]; !ok {
		return errors.New("the token may not write annotations: give its service account the role Editor")
	}
	return nil
}
