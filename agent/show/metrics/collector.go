// Package metrics turns runs, server samples and the agent's own state into
// Prometheus series. All series are made at scrape time from what is true now:
// what is over or unknown is not exposed. Names and help texts of run and agent
// series are here; those of servers are declared by their engines.
package metrics

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/many/archive"
	"github.com/benchwatch/benchwatch/agent/many/peer"
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

// Sources are what the collector reads at each scrape. Each function returns at
// once, from memory. A nil function has nothing to say.
type Sources struct {
	Runs        func() []ingest.Snapshot
	WaitingRuns func() int
	Samples     func() engine.Frame
	MissedTicks func() uint64
	SamplerLate func() time.Duration
	// Space is the room on the file system of the data directory.
	Space      func() (rundir.Space, error)
	Deliveries func() marker.Stats
	// Uploads are those to the archive.
	Uploads func() archive.Stats
	// Peers are those whose runs are mirrored.
	Peers  func() []peer.Stats
	Points func() []marker.Marker
	// Now is the clock of the runs; nil: time.Now.
	Now func() time.Time
}

// Collector is an unchecked prometheus.Collector: which series there are
// depends on the runs and servers.
type Collector struct {
	sources Sources
	now     func() time.Time
	roles   roles
}

// NewCollector returns a collector of sources.
func NewCollector(sources Sources) *Collector {
	now := sources.Now
	if now == nil {
		now = time.Now
	}
	return &Collector{sources: sources, now: now, roles: roles{last: map[string]string{}}}
}

// Describe sends nothing, which makes the collector unchecked.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

// Collect writes the series that are true now. A series that can't be made is an
// error of the scrape, which serves all others and logs the error.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	now := c.now()
	emit := func(f *Family, v float64, labels ...string) {
		m, err := prometheus.NewConstMetric(f.desc, valueTypes[f.Type], v, labels...)
		if err != nil {
			m = prometheus.NewInvalidMetric(f.desc, err)
		}
		ch <- m
	}
	distribution := func(f *Family, h *histogram.Histogram, sum float64, labels ...string) {
		buckets := make(map[float64]uint64, len(histogram.Ladder))
		for _, bound := range histogram.Ladder {
			buckets[bound] = h.CountUpTo(bound)
		}
		m, err := prometheus.NewConstHistogram(f.desc, h.Count(), sum, buckets, labels...)
		if err != nil {
			m = prometheus.NewInvalidMetric(f.desc, err)
		}
		ch <- m
	}
	if c.sources.Runs != nil {
		snaps := c.sources.Runs()
		for i := range snaps {
			emitRun(emit, distribution, &snaps[i], now)
		}
	}
	if c.sources.WaitingRuns != nil {
		emit(runsWaiting, float64(c.sources.WaitingRuns()))
	}
	if c.sources.Samples != nil {
		frame := c.sources.Samples()
		for i := range frame.Samples {
			c.sample(emit, &frame.Samples[i])
		}
	}
	if c.sources.Space != nil {
		if space, err := c.sources.Space(); err == nil { // an unknown value is absent
			emit(dataFree, float64(space.Free))
			emit(dataSize, float64(space.Size))
		}
	}
	if c.sources.MissedTicks != nil {
		emit(missedTicks, float64(c.sources.MissedTicks()))
	}
	if c.sources.SamplerLate != nil {
		emit(samplerLate, c.sources.SamplerLate().Seconds())
	}
	c.uploads(emit)
	c.peers(emit)
	c.markers(emit)
}

var runInfo = stateFamily("run_info", "Facts about a run as labels, the user's own labels among them; value 1. Kept as long as the run's summary.",
	append([]string{"run", "title"}, rundir.FactNames()...)...)

// emitInfo emits the facts about a run as labels. The user's own labels are labels
// too, so the family is made for each run.
func emitInfo(emit emit, m *rundir.Meta) {
	names, values := []string{"run", "title"}, []string{label(m.ID), label(m.Title)}
	for _, f := range m.Facts() {
		names, values = append(names, f.Name), append(values, label(f.Value))
	}
	f := newFamily(strings.TrimPrefix(runInfo.Name, prefix), runInfo.Help, names)
	f.state = true
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
