package imports

import (
	"context"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// RecordMachine records in a run that began at start and lasted some seconds what logs say of
// its machine, and returns those that had values.
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

// RecordServer records in a run that began at start and lasted some seconds what dumps show of
// a server: its settings, and its counters as of the begin and the end of the run.
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

// AsServers returns the server as the one of its run; nil if there is none.
func (s *Server) AsServers() *rundir.Servers {
	if s == nil {
		return nil
	}
	return &rundir.Servers{Source: rundir.ServersDumped, Targets: []rundir.Server{{Target: s.Name, Engine: record.DumpEngine}}}
}
