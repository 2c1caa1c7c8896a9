package web

import (
	"net/http"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// agentView is the current state of the agent, its servers and their alerts.
type agentView struct {
	Health  Health       `json:"health"`
	Servers []serverView `json:"servers"`
	// Alerts are the alerts that fire on live runs.
	Alerts []alertView `json:"alerts"`
}

// Health is the state of the agent itself.
type Health struct {
	// Started is when it began, in milliseconds since 1970.
	Started     int64  `json:"started"`
	MissedTicks uint64 `json:"missed_ticks"`
	// WaitingRuns is the number of live runs that are not followed because there are too many.
	WaitingRuns int `json:"waiting_runs"`
	// QueuedMarkers is the number of markers that wait for Grafana, RejectedMarkers of those that it refused.
	QueuedMarkers   int    `json:"queued_markers"`
	RejectedMarkers uint64 `json:"rejected_markers"`
	// Grafana is whether a Grafana is configured.
	Grafana bool `json:"grafana"`
	// Token is whether a token is configured, with which Alertmanager posts alerts
	// and the page sets markers.
	Token bool `json:"token"`
}

// serverView is a server and what it answered last.
type serverView struct {
	Name    string `json:"name"`
	Engine  string `json:"engine"`
	Cluster string `json:"cluster,omitempty"`
	State   string `json:"state"` // up, or down and why
	Version string `json:"version,omitempty"`
	Up      bool   `json:"up"`
	Role    string `json:"role,omitempty"`
	// LagSeconds and LagTransactions are unknown for a primary.
	LagSeconds      series.Optional[float64] `json:"lag_seconds,omitzero"`
	LagTransactions series.Optional[float64] `json:"lag_transactions,omitzero"`
}

// alertView is an alert that fires on a live run.
type alertView struct {
	Run    string     `json:"run"`
	Title  string     `json:"title"`
	Marker markerView `json:"marker"`
}

// serveAgent answers with the agent's health, the servers that were sampled last
// and the alerts that fire.
func (p *Page) serveAgent(w http.ResponseWriter, r *http.Request) {
	v := agentView{Health: p.opts.Health(), Servers: p.serverRows(), Alerts: []alertView{}}
	v.Health.Started, v.Health.Token = p.started.UnixMilli(), p.opts.TokenFile() != ""
	for _, s := range p.opts.Runs() {
		if s.Phase == ingest.Over {
			continue
		}
		markers, _ := marker.Read(rundir.At(p.opts.DataDir, s.Meta.ID)) // the deliverer logs what is damaged
		for _, m := range markers {
			if m.Kind == marker.Alert && m.End.IsZero() {
				v.Alerts = append(v.Alerts, alertView{s.Meta.ID, s.Meta.Title, markerViews([]marker.Marker{m})[0]})
			}
		}
	}
	answer(w, r, encode(v))
}

func (p *Page) serverRows() []serverView {
	p.mu.Lock()
	frame := p.frame
	p.mu.Unlock()
	rows := []serverView{}
	for i := range frame.Samples {
		s := &frame.Samples[i]
		row := serverView{Name: s.Target.Name, Engine: s.Target.Engine, Cluster: s.Target.Cluster}
		switch {
		case s.Up():
			now := engine.NewWindow(&engine.Sample{}, s)
			row.State, row.Version, row.Up, row.Role = "up", s.Status.Version, true, s.Status.Role
			row.LagSeconds, row.LagTransactions = now.Now(engine.LagSeconds), now.Now(engine.LagTransactions)
		case s.Err != nil:
			row.State = "down: " + s.Err.Error()
		default:
			row.State = "down"
		}
		rows = append(rows, row)
	}
	return rows
}
