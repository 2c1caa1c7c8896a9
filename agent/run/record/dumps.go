package record

import (
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/run/dump"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// RecordDumps records in a run that began at start and lasted some seconds what dumps show of
// a server: its settings, and its counters as of the begin and the end of the run.
func RecordDumps(dir rundir.Directory, start time.Time, seconds float64, s *dump.Server) error {
	r := NewRecorder(dir, start)
	defer r.Close()
	target := engine.Target{Name: s.Name, Engine: dump.Engine}
	length := time.Duration(seconds * float64(time.Second))
	settings := &engine.SettingsReading{At: start, Settings: s.Settings}
	if s.Before == nil {
		if s.Settings == nil {
			return nil
		}
		return r.settings.record(engine.Frame{Tick: start, Samples: []engine.Sample{{
			Target: &target, Tick: start, Status: &engine.Status{Version: s.Version, Flavour: s.Flavour}, Settings: settings,
		}}})
	}
	for i, status := range []*engine.Status{s.Before, s.After} {
		at := start.Add(time.Duration(i) * length)
		sample := engine.Sample{Target: &target, Tick: at, Asked: at, Answered: at, Status: status}
		if s.Settings != nil {
			sample.Settings = settings
		}
		if err := r.Record(engine.Frame{Tick: at, Interval: length, Samples: []engine.Sample{sample}}, nil); err != nil {
			return err
		}
	}
	return nil
}
