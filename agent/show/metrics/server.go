package metrics

import (
	"slices"
	"sync"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// targetLabels are on every series of a server.
var targetLabels = []string{"target", "engine", "cluster", "role"}

var (
	dbDuration  = family("db_sample_duration_seconds", "How long the server took to answer the last sample.", targetLabels...)
	dbSampledAt = family("db_sample_timestamp_seconds", "When the server answered the last sample, Unix time.", targetLabels...)
	dbInfo      = family("db_info", "The server's version and flavour as labels; value 1.", append(targetLabels[:4:4], "version", "flavour")...)
)

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

// sample emits the series of one server. If it did not answer, that is only that
// it is down and how often it restarted.
func (c *Collector) sample(emit emit, s *engine.Sample) {
	labels := []string{s.Target.Name, s.Target.Engine, s.Target.Cluster, c.roles.of(s)}
	for v := range s.All {
		emit(engineFamilies.of(v.Metric), v.V, append(slices.Clip(labels), v.Labels...)...)
	}
	if !s.Up() {
		return
	}
	emit(dbDuration, s.Answered.Sub(s.Asked).Seconds(), labels...)
	emit(dbSampledAt, seconds(s.Answered), labels...)
	emit(dbInfo, 1, append(slices.Clip(labels), label(s.Status.Version), s.Status.Flavour)...)
}
