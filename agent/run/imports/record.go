package imports

import (
	"context"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Began returns when the first of these programs began according to what it printed; zero if none shows it. onlyDay: it
// printed no time of day. A time without a zone is local, and a date without a year is the last one before written.
func Began(ctx context.Context, logs []MachineLog, written time.Time) (began time.Time, onlyDay bool) {
	for _, log := range logs {
		s, err := readMachineLog(ctx, log, 0)
		if err != nil || len(s.times) == 0 {
			continue // the import says so
		}
		at, day := s.began(written)
		if !at.IsZero() && (began.IsZero() || onlyDay && !day || onlyDay == day && at.Before(began)) {
			began, onlyDay = at, day
		}
	}
	return began, onlyDay
}

// began returns when the program began.
func (s *sheet) began(written time.Time) (at time.Time, onlyDay bool) {
	first, day := s.times[0], s.started
	switch {
	case first.Year() > 1:
		at = first
	case !first.IsZero() && (first.Month() > time.January || first.Day() > 1): // dstat prints a day without its year
		at = first.AddDate(written.Year(), 0, 0)
		if at.After(written.Add(24 * time.Hour)) {
			at = at.AddDate(-1, 0, 0)
		}
	case !first.IsZero() && !day.IsZero():
		at = day.Add(first.Sub(first.Truncate(24 * time.Hour)))
	default:
		at, onlyDay = day, !day.IsZero() && day.Equal(day.Truncate(24*time.Hour))
	}
	if at.IsZero() || at.Location() == time.Local {
		return at, onlyDay
	}
	return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.Local), onlyDay
}

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
