// Package metrics turns runs, server samples and the agent's own state into Prometheus series. All series are built at
// scrape time from the current state: values that are over or unknown are not exposed. Names and help texts of run and
// agent series are here; the engines declare the series of servers.
package metrics

import (
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/benchwatch/benchwatch/agent/many/archive"
	"github.com/benchwatch/benchwatch/agent/many/peer"
	"github.com/benchwatch/benchwatch/agent/many/retention"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const (
	prefix = "benchwatch_"
	// longestLabel bounds what a command line can put into a label value.
	longestLabel = 200
)

// Sources are what the collector reads at each scrape. Each function returns immediately, from memory. A nil function
// provides nothing.
type Sources struct {
	Runs        func() []ingest.Snapshot
	WaitingRuns func() int
	Samples     func() engine.Frame
	MissedTicks func() uint64
	SamplerLate func() time.Duration
	// Space is the space on the file system of the data directory.
	Space      func() (rundir.Space, error)
	Deliveries func() marker.Stats
	// Uploads are the uploads to the archive.
	Uploads func() archive.Stats
	// Removals are the removals of old run directories.
	Removals func() retention.Stats
	// Peers are the peers whose runs are mirrored.
	Peers  func() []peer.Stats
	Points func() []marker.Marker
	// Process is the agent's own.
	Process *Process
	// Now is the clock of the runs; nil: time.Now.
	Now func() time.Time
}

// collect emits the current series.
func (g *Gatherer) collect() {
	now := g.now()
	if g.sources.Runs != nil {
		snaps := g.sources.Runs()
		for i := range snaps {
			g.run(&snaps[i], now)
		}
		maps.DeleteFunc(g.ended, func(_ string, e *endedRun) bool { return e.scrape != g.scrape })
	}
	if g.sources.WaitingRuns != nil {
		g.emit(runsWaiting, float64(g.sources.WaitingRuns()))
	}
	if g.sources.Samples != nil {
		frame := g.sources.Samples()
		for i := range frame.Samples {
			g.sample(&frame.Samples[i])
		}
	}
	if g.sources.Space != nil {
		if space, err := g.sources.Space(); err == nil { // an unknown value is absent
			g.emit(dataFree, float64(space.Free))
			g.emit(dataSize, float64(space.Size))
		}
	}
	if g.sources.MissedTicks != nil {
		g.emit(missedTicks, float64(g.sources.MissedTicks()))
	}
	if g.sources.SamplerLate != nil {
		g.emit(samplerLate, g.sources.SamplerLate().Seconds())
	}
	g.uploads()
	g.removals()
	g.peers()
	g.markers()
	if g.sources.Process != nil {
		g.sources.Process.emit(g.emit)
	}
}

var runInfo = stateFamily("run_info", "Facts about a run as labels, including the user's own labels; value 1. Kept as long as the run's summary.",
	append([]string{"run", "title"}, rundir.FactNames()...)...)

// emitInfo emits the facts about a run as labels. The user's own labels are labels
// too, so the family is made for each run.
func emitInfo(emit emit, m *rundir.Meta) {
	names, values := []string{"run", "title"}, []string{label(m.ID), label(m.Title)}
	for _, f := range m.Facts() {
		names, values = append(names, f.Name), append(values, label(f.Value))
	}
	f := newFamily(strings.TrimPrefix(runInfo.Name, prefix), runInfo.Help, names)
	f.state, f.varies = true, true
	emit(f, 1, values...)
}

// label makes any bytes a label value of bounded length.
func label(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if utf8.RuneCountInString(s) <= longestLabel {
		return s
	}
	r := []rune(s)
	return string(r[:longestLabel-1]) + "…"
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// targetLabels are on every series of a server.
var targetLabels = []string{"target", "engine", "cluster", "role"}

var (
	dbDuration  = family("db_sample_duration_seconds", "How long the server took to answer the last sample.", targetLabels...)
	dbSampledAt = family("db_sample_timestamp_seconds", "When the server answered the last sample, Unix time.", targetLabels...)
	dbInfo      = family("db_info", "The server's version and flavour as labels; value 1.", append(targetLabels[:4:4], "version", "flavour")...)
)

// role returns the role of a server. What the server called itself stays its label
// while it is down.
func (g *Gatherer) role(s *engine.Sample) string {
	if s.Target.Role != "" {
		return s.Target.Role
	}
	if s.Up() {
		g.roles[s.Target.Name] = s.Status.Role
	}
	return g.roles[s.Target.Name]
}

// sample emits the series of one server. For a server that did not answer, only up=0
// and the restarts.
func (g *Gatherer) sample(s *engine.Sample) {
	g.values = append(g.values[:0], s.Target.Name, s.Target.Engine, s.Target.Cluster, g.role(s))
	own := len(g.values)
	for v := range s.All {
		g.values = append(g.values[:own], v.Labels...)
		g.emit(engineFamilies.of(v.Metric), v.V, g.values...)
	}
	if !s.Up() {
		return
	}
	labels := g.values[:own]
	g.emit(dbDuration, s.Answered.Sub(s.Asked).Seconds(), labels...)
	g.emit(dbSampledAt, seconds(s.Answered), labels...)
	g.emit(dbInfo, 1, append(labels, label(s.Status.Version), s.Status.Flavour)...)
}
