package record

import (
	"context"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/run/host"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// RecordMonitorLogs records in a run that began at start and lasted some seconds what
// monitor logs say of its machine, and returns those that had values.
func RecordMonitorLogs(ctx context.Context, dir rundir.Directory, start time.Time, seconds float64, logs []host.MonitorLog) ([]host.MonitorLog, error) {
	r := NewRecorder(dir, start)
	defer r.Close()
	machine := engine.Target{Name: "machine", Engine: host.MonitorEngine}
	return host.ReadMonitorLogs(ctx, logs, seconds, func(elapsed, interval float64, s *engine.Status) error {
		if s.Nodename != "" {
			machine.Name = s.Nodename
		}
		at := start.Add(time.Duration(elapsed * float64(time.Second)))
		return r.RecordHosts(engine.Frame{
			Tick: at, Interval: time.Duration(interval * float64(time.Second)),
			Samples: []engine.Sample{{Target: &machine, Tick: at, Asked: at, Answered: at, Status: s}},
		})
	})
}
