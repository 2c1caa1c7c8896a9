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

	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/marker"
	"github.com/benchwatch/benchwatch/agent/rundir"
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
	Deliveries  func() marker.Stats
	Points      func() []marker.Marker
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
	return &Collector{sources: sources, now: time.Now, roles: roles{last: map[string]string{}}}
}

// Describe sends nothing, which makes the collector unchecked.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

// Collect writes the series that are true now.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	now := c.now()
	if c.sources.Runs != nil {
		snaps := c.sources.Runs()
		for i := range snaps {
			c.run(ch, &snaps[i], now)
		}
	}
	if c.sources.WaitingRuns != nil {
		gauge(ch, runsWaiting, float64(c.sources.WaitingRuns()))
	}
	if c.sources.Samples != nil {
		frame := c.sources.Samples()
		for i := range frame.Samples {
			c.sample(ch, &frame.Samples[i])
		}
	}
	c.markers(ch)
}

// runInfo writes the facts about a run as labels. The user's own labels are
// labels too, so the description is made for each run.
func (c *Collector) runInfo(ch chan<- prometheus.Metric, s *ingest.Snapshot) {
	names, values := infoLabels(&s.Meta)
	d := prometheus.NewDesc(prefix+runInfoName, runInfoHelp, names, nil)
	gauge(ch, d, 1, values...)
}

func infoLabels(m *rundir.Meta) (names, values []string) {
	names, values = []string{"run", "title"}, []string{label(m.ID), label(m.Title)}
	for _, f := range m.Facts() {
		names, values = append(names, f.Name), append(values, label(f.Value))
	}
	return names, values
}

const (
	runInfoName = "run_info"
	runInfoHelp = "Facts about a run as labels, the user's own labels among them; value 1. Kept as long as the run's summary."
)

// runInfo without the user's labels, for the list of families.
var _ = desc(runInfoName, runInfoHelp, append([]string{"run", "title"}, rundir.FactNames()...)...)

// label makes any bytes a label value of bounded length.
func label(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if utf8.RuneCountInString(s) <= longestLabel {
		return s
	}
	r := []rune(s)
	return string(r[:longestLabel-1]) + "…"
}

// desc declares a family of this package.
func desc(name, help string, labels ...string) *prometheus.Desc {
	declared = append(declared, Family{prefix + name, typeOf(name), labels, help})
	return prometheus.NewDesc(prefix+name, help, labels, nil)
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	send(ch, d, prometheus.GaugeValue, v, labels)
}

func counter(ch chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	send(ch, d, prometheus.CounterValue, v, labels)
}

// send reports a series that can't be made as an error of the scrape, which
// serves all other series and logs the error.
func send(ch chan<- prometheus.Metric, d *prometheus.Desc, kind prometheus.ValueType, v float64, labels []string) {
	m, err := prometheus.NewConstMetric(d, kind, v, labels...)
	if err != nil {
		m = prometheus.NewInvalidMetric(d, err)
	}
	ch <- m
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
