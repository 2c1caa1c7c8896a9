package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/benchwatch/benchwatch/agent/marker"
)

var (
	runsWaiting      = desc("runs_waiting", "Live runs that are not followed because as many as allowed are.")
	markerQueue      = desc("marker_queue_length", "Markers that wait to be sent to Grafana.")
	markerDeliveries = desc("marker_deliveries_total", "Markers by what became of sending them: delivered, retried, rejected.", "result")
	markerTime       = desc("marker_timestamp_seconds", "When something was marked, Unix time.", "run", "text")
)

func (c *Collector) markers(ch chan<- prometheus.Metric) {
	if c.sources.Deliveries != nil {
		d := c.sources.Deliveries()
		gauge(ch, markerQueue, float64(d.Queued))
		counter(ch, markerDeliveries, float64(d.Delivered), "delivered")
		counter(ch, markerDeliveries, float64(d.Retried), "retried")
		counter(ch, markerDeliveries, float64(d.Rejected), "rejected")
	}
	if c.sources.Points == nil {
		return
	}
	// Two markers of one text are one series: the newest.
	newest := map[[2]string]time.Time{}
	for _, p := range c.sources.Points() {
		key := [2]string{p.Run, markerText(&p)}
		if p.Start.After(newest[key]) {
			newest[key] = p.Start
		}
	}
	for key, at := range newest {
		gauge(ch, markerTime, seconds(at), key[0], key[1])
	}
}

// markerText is a marker's text as a label: one line.
func markerText(m *marker.Marker) string { return label(strings.Join(strings.Fields(m.Text), " ")) }
