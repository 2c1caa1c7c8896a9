package imports

import (
	"context"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// RecordMachine adds the machine's logs to the record of a run that began at start and lasted some
// seconds. It returns the logs that had values.
func RecordMachine(ctx context.Context, dir rundir.Directory, start time.Time, seconds float64, logs []MachineLog) ([]MachineLog, error) {
	r := record.NewRecorder(dir, start)
	defer r.Close()
	machine := engine.Target{Name: "machine", Engine: record.MachineLogEngine}
	return readMachine(ctx, logs, seconds, func(elapsed, interval float64, s *engine.Status) error {
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

// RecordServer adds a server's dumps to the record of a run that began at start and lasted some
// seconds: its settings, and its counters at the begin and the end of the run.
func RecordServer(dir rundir.Directory, start time.Time, seconds float64, s *Server) error {
	r := record.NewRecorder(dir, start)
	defer r.Close()
	target := engine.Target{Name: s.Name, Engine: record.DumpEngine}
	length := time.Duration(seconds * float64(time.Second))
	settings := &engine.SettingsReading{At: start, Settings: s.Settings}
	if s.Before == nil {
		if s.Settings == nil {
			return nil
		}
		return r.RecordSettings(engine.Frame{Tick: start, Samples: []engine.Sample{{
			Target: &target, Tick: start, Status: &engine.Status{Version: s.Version, Flavour: s.Flavour}, Settings: settings,
		}}})
	}
	for i, status := range []*engine.Status{s.Before, s.After} {
		at := start.Add(time.Duration(i) * length)
		sample := engine.Sample{Target: &target, Tick: at, Asked: at, Answered: at, Status: status}
		if s.Settings != nil {
			sample.Settings = settings
		}
		if err := r.Record(engine.Frame{Tick: at, Interval: length, Samples: []engine.Sample{sample}}); err != nil {
			return err
		}
	}
	return nil
}

// AsServers returns the server as the only one of its run; nil for a nil s.
func (s *Server) AsServers() *rundir.Servers {
	if s == nil {
		return nil
	}
	return &rundir.Servers{Source: rundir.ServersDumped, Targets: []rundir.Server{{Target: s.Name, Engine: record.DumpEngine}}}
}
