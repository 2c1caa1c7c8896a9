package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/measure"
)

// targetLabels are on every series of a server.
var targetLabels = []string{"target", "engine", "cluster", "role"}

var (
	dbUp          = desc("db_up", "1 if the server answered the last sample, 0 if it did not.", targetLabels...)
	dbDuration    = desc("db_sample_duration_seconds", "How long the server took to answer the last sample.", targetLabels...)
	dbSampledAt   = desc("db_sample_timestamp_seconds", "When the server answered the last sample, Unix time.", targetLabels...)
	dbInfo        = desc("db_info", "The server's version and flavour as labels; value 1.", append(targetLabels[:4:4], "version", "flavour")...)
	dbRestarts    = desc("db_restarts_total", "Restarts of the server seen since the agent began to sample it.", targetLabels...)
	lagSeconds    = desc(engine.ReplicationLagSeconds.Name, engine.ReplicationLagSeconds.Help, targetLabels...)
	lagTrx        = desc(engine.ReplicationLagTransactions.Name, engine.ReplicationLagTransactions.Help, targetLabels...)
	replicaAt     = desc(engine.ReplicationPosition.Name, engine.ReplicationPosition.Help, targetLabels...)
	engineMetrics = descriptions{known: map[*measure.Metric]*prometheus.Desc{}}
)

// descriptions are those of the engines' metrics, made once each.
type descriptions struct {
	mu    sync.RWMutex
	known map[*measure.Metric]*prometheus.Desc
}

func (d *descriptions) of(m *measure.Metric) *prometheus.Desc {
	d.mu.RLock()
	made := d.known[m]
	d.mu.RUnlock()
	if made != nil {
		return made
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known[m] == nil {
		labels := append(targetLabels[:4:4], m.Labels...)
		d.known[m] = prometheus.NewDesc(prefix+m.Name, m.Help, labels, nil)
	}
	return d.known[m]
}

// roles remember what a server called itself, so that its label does not
// change because it is down.
type roles struct {
	mu   sync.Mutex
	last map[string]string // by target
}

func (r *roles) of(s *engine.Sample) string {
	if s.Target.Role != "" {
		return s.Target.Role
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.Up() {
		r.last[s.Target.Name] = s.Status.Role
	}
	return r.last[s.Target.Name]
}

// sample writes the series of one server; of one that did not answer, only
// that it is down.
func (c *Collector) sample(ch chan<- prometheus.Metric, s *engine.Sample) {
	t := s.Target
	role := c.roles.of(s)
	labels := []string{t.Name, t.Engine, t.Cluster, role}
	gauge(ch, dbUp, truth(s.Up()), labels...)
	counter(ch, dbRestarts, float64(s.Restarts), labels...)
	if !s.Up() {
		return
	}
	gauge(ch, dbDuration, s.Answered.Sub(s.Asked).Seconds(), labels...)
	gauge(ch, dbSampledAt, seconds(s.Answered), labels...)
	gauge(ch, dbInfo, 1, append(labels[:4:4], label(s.Status.Version), s.Status.Flavour)...)
	if s.LagSeconds.Known {
		gauge(ch, lagSeconds, s.LagSeconds.Value, labels...)
	}
	if s.LagTransactions.Known {
		gauge(ch, lagTrx, s.LagTransactions.Value, labels...)
	}
	if s.Status.Position != nil {
		gauge(ch, replicaAt, s.Status.Position.Scalar(), labels...)
	}
	for i := range s.Status.Values {
		v := &s.Status.Values[i]
		kind := prometheus.GaugeValue
		if v.Metric.Kind == measure.Counter {
			kind = prometheus.CounterValue
		}
		send(ch, engineMetrics.of(v.Metric), kind, v.V, append(labels[:4:4], v.Labels...))
	}
}
