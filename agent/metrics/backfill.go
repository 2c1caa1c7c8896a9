package metrics

import (
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/history"
	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/measure"
	"github.com/benchwatch/benchwatch/agent/series"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// stateEvery is how often what seldom changes is written: often enough that a
// Prometheus does not take it for gone, and not at each report.
const stateEvery = 10 * time.Second

// Run adds what the Collector would have exposed of a run, report by report, and
// of its servers.
func (b *Backfill) Run(h *history.History) {
	r := replay{b: b, h: h, columns: h.Intervals.Keys()}
	for _, c := range r.columns {
		r.values = append(r.values, h.Intervals.Values(c))
	}
	r.run()
	for _, m := range h.Markers {
		text, at := markerText(&m), m.Start.UnixMilli()
		b.point(markerTime, at, seconds(m.Start), m.Run, text)
		for _, t := range r.states {
			if t > at {
				b.point(markerTime, t, seconds(m.Start), m.Run, text)
			}
		}
	}
	for _, s := range h.Servers {
		b.server(h, s)
	}
}

// replay goes through a run from its start to its end. At each instant it builds
// the snapshot that the run had then and emits it as the Collector does.
type replay struct {
	b       *Backfill
	h       *history.History
	columns []ingest.Column
	values  [][]float64
	states  []int64 // when the run's state was emitted, in milliseconds
}

func (r *replay) run() {
	m, v := &r.h.Snapshot.Meta, &r.h.Intervals
	now := r.begin()
	r.states = []int64{m.StartedAt.UnixMilli()}
	if len(v.Elapsed) == 0 || r.h.At(v.Elapsed[0]).UnixMilli() > r.states[0] { // else the first report is the state
		r.emitState(&now, m.StartedAt)
	}
	for row, elapsed := range v.Elapsed {
		previous := now
		at := r.h.At(elapsed)
		r.repeatState(&previous, at)
		r.read(&now, row)
		now.LastReport = at
		changed := row == 0 || now.Phase != previous.Phase || now.Threads != previous.Threads || now.IntervalSeconds != previous.IntervalSeconds
		last := row == len(v.Elapsed)-1 && m.EndedAt == nil
		r.emit(&now, at.UnixMilli(), changed || last || at.UnixMilli()-r.lastState() >= stateEvery.Milliseconds())
	}
	if m.EndedAt == nil {
		return
	}
	r.repeatState(&now, *m.EndedAt)
	end := m.EndedAt.UnixMilli()
	if n := len(v.Elapsed); n > 0 { // the last report may come with the end
		end = max(end, r.h.At(v.Elapsed[n-1]).UnixMilli()+1)
	}
	now = r.h.Snapshot
	now.Phase, now.Meta.Drain = ingest.Draining, nil
	r.emit(&now, max(end, r.lastState()+1), true)
	for target, d := range m.Drain {
		if d.Seconds != nil {
			caughtUp := m.EndedAt.Add(time.Duration(*d.Seconds * float64(time.Second)))
			r.b.point(runDrain, max(end, caughtUp.UnixMilli()), *d.Seconds, m.ID, target)
		}
	}
	if m.ClosedAt != nil {
		r.repeatState(&now, *m.ClosedAt)
		now.Phase = ingest.Over
		r.emit(&now, max(m.ClosedAt.UnixMilli(), r.lastState()+1), true)
	}
}

// begin returns the snapshot of the run before its first report.
func (r *replay) begin() ingest.Snapshot {
	s := ingest.Snapshot{Meta: r.h.Snapshot.Meta, Phase: ingest.Starting, Totals: map[string]float64{}}
	s.Meta.EndedAt, s.Meta.ClosedAt = nil, nil
	if r.h.Intervals.QuietWarmup {
		s.Phase = ingest.Warmup
	}
	if s.Meta.Threads > 0 {
		s.Threads = series.Some(s.Meta.Threads)
	}
	if s.Meta.ReportIntervalSeconds > 0 {
		s.IntervalSeconds = series.Some(s.Meta.ReportIntervalSeconds)
	}
	return s
}

// read puts a row of the intervals into a snapshot.
func (r *replay) read(s *ingest.Snapshot, row int) {
	s.Phase = ingest.Measuring
	if r.h.Intervals.Warmup[row] {
		s.Phase = ingest.Warmup
	}
	s.Interval = &tool.Report{Kind: tool.Interval}
	for i, c := range r.columns {
		x := r.values[i][row]
		if !series.IsKnown(x) {
			continue
		}
		switch c.Kind {
		case ingest.Rate:
			s.Interval.AddRate(c.Operation, x)
		case ingest.Latency:
			s.Interval.AddLatency(c.Operation, c.Stat, x)
		case ingest.QueueLength:
			s.Interval.QueueLength = series.Some(int(x))
		case ingest.Concurrency:
			s.Interval.Concurrency = series.Some(int(x))
		case ingest.Threads:
			s.Threads = series.Some(int(x))
		case ingest.Length:
			if s.Meta.ReportIntervalSeconds <= 0 {
				s.IntervalSeconds = series.Some(x)
			}
		case ingest.OperationsTotal:
			s.Totals[c.Operation] = x
		case ingest.ErrorsTotal:
			s.Errors = x
		case ingest.ReconnectsTotal:
			s.Reconnects = x
		case ingest.MessagesTotal:
			s.MessageCount = uint64(x)
		case ingest.LinesTotal:
			switch c.Operation {
			case "report":
				s.Lines.Reported = uint64(x)
			case "ignored":
				s.Lines.Ignored = uint64(x)
			case "malformed":
				s.Lines.Malformed = uint64(x)
			}
		}
	}
}

// emit adds a snapshot at an instant, its state only if that is due.
func (r *replay) emit(s *ingest.Snapshot, at int64, state bool) {
	if state {
		r.states = append(r.states, at)
	}
	emitRun(func(f *Family, v float64, labels ...string) {
		if f != runFaults && (state || !f.state) { // failures to record are not in the record
			r.b.point(f, at, v, labels...)
		}
	}, s, time.UnixMilli(at))
}

// emitState adds only the state of a snapshot.
func (r *replay) emitState(s *ingest.Snapshot, at time.Time) {
	r.states = append(r.states, at.UnixMilli())
	emitRun(func(f *Family, v float64, labels ...string) {
		if f.state {
			r.b.point(f, at.UnixMilli(), v, labels...)
		}
	}, s, at)
}

// repeatState adds the state again until an instant, as it was all that time.
func (r *replay) repeatState(s *ingest.Snapshot, until time.Time) {
	for until.UnixMilli()-r.lastState() > stateEvery.Milliseconds() {
		r.emitState(s, time.UnixMilli(r.lastState()).Add(stateEvery))
	}
}

func (r *replay) lastState() int64 { return r.states[len(r.states)-1] }

// server adds what one server answered, at the times when it did.
func (b *Backfill) server(h *history.History, s *history.ServerHistory) {
	for from := 0; from < len(s.Elapsed); {
		to := from + 1
		for to < len(s.Elapsed) && s.RoleAt.At(to) == s.RoleAt.At(from) {
			to++
		}
		b.serverRows(h, s, from, to)
		from = to
	}
}

// serverRows adds the ticks from up to to, in which the role does not change. The
// columns of the history are shared, not copied: they are most of what there is.
func (b *Backfill) serverRows(h *history.History, s *history.ServerHistory, from, to int) {
	target := []string{s.Target, s.Engine, s.Cluster, s.RoleAt.At(from)}
	times := make([]int64, to-from)
	for i := range times {
		row := from + i
		if !s.Up(row) {
			times[i] = h.At(s.Elapsed[row]).UnixMilli()
			continue
		}
		answered := h.At(s.Answered[row])
		times[i] = answered.UnixMilli()
		if took := s.Answered[row] - s.Asked[row]; series.IsKnown(took) {
			b.point(dbDuration, times[i], took, target...)
		}
		b.point(dbSampledAt, times[i], seconds(answered), target...)
		b.point(dbInfo, times[i], 1, append(slices.Clip(target), label(s.VersionAt.At(row)), s.Flavour)...)
	}
	for _, name := range s.Keys() {
		metric, labels, ok := measure.ParseColumn(name)
		if !ok {
			continue
		}
		names, values := slices.Clone(targetLabels), slices.Clone(target)
		for i := 0; i < len(labels); i += 2 {
			names, values = append(names, labels[i]), append(values, labels[i+1])
		}
		all := b.series(b.serverFamily(metric), names, values)
		all.pieces = append(all.pieces, span{times: times, values: s.Values(name)[from:to], shared: true})
	}
}

// serverFamily returns the family of a metric in a record, which an engine of this
// version may not declare any more.
func (b *Backfill) serverFamily(metric string) *Family {
	if f := b.servers[metric]; f != nil {
		return f
	}
	f := newFamily(metric, "", nil)
	for _, m := range measure.Metrics() {
		if m.Name == metric {
			f = engineFamilies.of(m)
		}
	}
	b.servers[metric] = f
	return f
}
