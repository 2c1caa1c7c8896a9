package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	runsWaiting      = desc("runs_waiting", "Live runs that are not followed because as many as allowed are.")
	markerQueue      = desc("marker_queue_length", "Markers that wait to be sent to Grafana.")
	markerDeliveries = desc("marker_deliveries_total", "Markers by what became of sending them: delivered, retried, rejected.", "result")
	markerTime       = desc("marker_timestamp_seconds", "When something was marked, Unix time.", "run", "text")
)

// Deliveries tell how the sending of markers goes.
type Deliveries struct {
	Queued  int
	Results map[string]uint64 // by result
}

// Point is a marker at an instant.
type Point struct {
	Run  string // empty: of no run
	Text string
	At   time.Time
}

func (c *Collector) markers(ch chan<- prometheus.Metric) {
	if c.sources.Deliveries != nil {
		d := c.sources.Deliveries()
		gauge(ch, markerQueue, float64(d.Queued))
		for result, n := range d.Results {
			counter(ch, markerDeliveries, float64(n), result)
		}
	}
	if c.sources.Points == nil {
		return
	}
	// Two markers of one text are one series: the newest.
	newest := map[[2]string]time.Time{}
	for _, p := range c.sources.Points() {
		key := [2]string{p.Run, label(p.Text)}
		if p.At.After(newest[key]) {
			newest[key] = p.At
		}
	}
	for key, at := range newest {
		gauge(ch, markerTime, seconds(at), key[0], key[1])
	}
}
