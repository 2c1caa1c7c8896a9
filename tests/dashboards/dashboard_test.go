// Package dashboards tests Grafana's dashboards, their queries, and the metric names in
// rules. It needs no Grafana. With PROMETHEUS_URL set it also runs the queries.
package dashboards

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Dashboard is the part of a dashboard's JSON that the tests read.
type Dashboard struct {
	Name          string `json:"-"` // of the file, without .json
	UID           string `json:"uid"`
	Title         string `json:"title"`
	Description   string `json:"description"`
	Editable      bool   `json:"editable"`
	SchemaVersion int    `json:"schemaVersion"`
	Tags          []string
	Links         []struct {
		IncludeVars bool `json:"includeVars"`
		KeepTime    bool `json:"keepTime"`
	} `json:"links"`
	Templating struct {
		List []Variable `json:"list"`
	} `json:"templating"`
	Annotations struct {
		List []Annotation `json:"list"`
	} `json:"annotations"`
	Panels []Panel `json:"panels"`
}

// Variable is a template variable.
type Variable struct {
	Name        string          `json:"name"`
	Label       string          `json:"label"`
	Type        string          `json:"type"`
	Query       json.RawMessage `json:"query"`
	Refresh     int             `json:"refresh"`
	IncludeAll  bool            `json:"includeAll"`
	Multi       bool            `json:"multi"`
	AllValue    string          `json:"allValue"`
	Description string          `json:"description"`
}

// Text returns the variable's query, which Grafana keeps as text or in an object.
func (v *Variable) Text() string {
	var text string
	if json.Unmarshal(v.Query, &text) == nil {
		return text
	}
	var object struct {
		Query string `json:"query"`
	}
	_ = json.Unmarshal(v.Query, &object)
	return object.Query
}

// Annotation is a query for markers on the time axis.
type Annotation struct {
	Name       string     `json:"name"`
	Datasource Datasource `json:"datasource"`
	Enable     bool       `json:"enable"`
	Expr       string     `json:"expr"`
	Title      string     `json:"titleFormat"`
	Text       string     `json:"textFormat"`
}

// Datasource names one by its type and uid.
type Datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// Panel is a panel or a row.
type Panel struct {
	ID          int        `json:"id"`
	Type        string     `json:"type"`
	Title       string     `json:"title"`
	Description string     `json:"description"`
	Datasource  Datasource `json:"datasource"`
	Targets     []Target   `json:"targets"`
	Panels      []Panel    `json:"panels"`
	GridPos     struct{ X, Y, W, H int }
	Options     struct {
		Legend struct {
			DisplayMode string   `json:"displayMode"`
			Calcs       []string `json:"calcs"`
		} `json:"legend"`
	} `json:"options"`
	FieldConfig struct {
		Defaults struct {
			Unit     string   `json:"unit"`
			NoValue  string   `json:"noValue"`
			Min      *float64 `json:"min"`
			Max      *float64 `json:"max"`
			Decimals *float64 `json:"decimals"`
			Custom   struct {
				AxisWidth   int      `json:"axisWidth"`
				AxisSoftMax *float64 `json:"axisSoftMax"`

				ScaleDistribution struct{ Type string } `json:"scaleDistribution"`
			} `json:"custom"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
}

// Target is one query of a panel.
type Target struct {
	RefID        string     `json:"refId"`
	Expr         string     `json:"expr"`
	LegendFormat string     `json:"legendFormat"`
	Interval     string     `json:"interval"`
	Instant      bool       `json:"instant"`
	Range        bool       `json:"range"`
	Format       string     `json:"format"`
	Datasource   Datasource `json:"datasource"`
}

// Load reads all dashboards below the project's root.
func Load(root string) ([]Dashboard, error) {
	paths, err := filepath.Glob(filepath.Join(root, "dashboards/*.json"))
	if err != nil {
		return nil, fmt.Errorf("list dashboards: %w", err)
	}
	var found []Dashboard
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read dashboard: %w", err)
		}
		d := Dashboard{Name: strings.TrimSuffix(filepath.Base(path), ".json")}
		if err := json.Unmarshal(text, &d); err != nil {
			return nil, fmt.Errorf("read dashboard %s: %w", d.Name, err)
		}
		found = append(found, d)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no dashboards below %s", root)
	}
	return found, nil
}

// Graphs returns all panels except rows.
func (d *Dashboard) Graphs() []Panel {
	var found []Panel
	for _, p := range d.Panels {
		if p.Type == "row" {
			found = append(found, p.Panels...)
		} else {
			found = append(found, p)
		}
	}
	return found
}

// Queries returns what Grafana queries when it opens the dashboard: the panels of open rows, the
// annotations that are on, and the variables.
func (d *Dashboard) Queries() (targets []Target, annotations []Annotation, variables []Variable) {
	for _, panel := range d.Panels { // those of closed rows are within these
		targets = append(targets, panel.Targets...)
	}
	for _, a := range d.Annotations.List {
		if a.Enable && a.Expr != "" {
			annotations = append(annotations, a)
		}
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			variables = append(variables, v)
		}
	}
	return targets, annotations, variables
}
