package observer

import (
	"context"

	"github.com/benchwatch/benchwatch/agent/run/abort"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// awaitCondition waits until one of the conditions of --capture-when holds for a run, and returns it with its value. It
// returns an empty text when ctx is done. Queries are left out if the configuration names no Prometheus.
func (o *Observer) awaitCondition(ctx context.Context, dir rundir.Directory, meta *rundir.Meta) string {
	c := o.current()
	watch := &abort.Watch{Dir: dir, Meta: *meta, Tool: c.ToolSet().ByName(meta.Tool)}
	if c.Prometheus.URL != "" {
		watch.Prometheus = abort.NewPrometheus(c.Prometheus.URL)
	}
	for _, text := range meta.CaptureWhen {
		condition, err := abort.Parse(text)
		if err == nil && (!condition.IsQuery() || watch.Prometheus != nil) {
			watch.Conditions = append(watch.Conditions, condition)
		}
	}
	if len(watch.Conditions) == 0 {
		<-ctx.Done()
		return ""
	}
	return watch.Wait(ctx)
}
