package metrics

import (
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/marker"
)

var (
	runsWaiting      = family("runs_waiting", "Live runs that are not followed because the limit is reached.")
	missedTicks      = family("agent_missed_ticks_total", "Ticks at which the agent sampled no server because it, or its machine, stood still. The servers' series have gaps there.")
	dataFree         = family("data_free_bytes", "Free space of the file system with the data directory. Below 64 MiB, or 5 % of a small one, only the output of tools is recorded.")
	dataSize         = family("data_size_bytes", "Size of the file system with the data directory.")
	markerQueue      = family("marker_queue_length", "Markers that wait for delivery to Grafana.")
	markerDeliveries = family("marker_deliveries_total", "Markers by the result of their delivery: delivered, retried, rejected.", "result")
	markerTime       = family("marker_timestamp_seconds", "Time of a marker, as Unix time.", "run", "text")
)

func (c *Collector) markers(emit emit) {
	if c.sources.Deliveries != nil {
		d := c.sources.Deliveries()
		emit(markerQueue, float64(d.Queued))
		emit(markerDeliveries, float64(d.Delivered), "delivered")
		emit(markerDeliveries, float64(d.Retried), "retried")
		emit(markerDeliveries, float64(d.Rejected), "rejected")
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
		emit(markerTime, seconds(at), key[0], key[1])
	}
}

// markerText is a marker's text as a label: one line.
func markerText(m *marker.Marker) string { return label(strings.Join(strings.Fields(m.Text), " ")) }
