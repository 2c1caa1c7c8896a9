package metrics

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/record"
)

// stateEvery is how often values that seldom change are written: often enough for Prometheus not to treat them as gone,
// but not at each report.
const stateEvery = 10 * time.Second

// remains is how long a value remains after its last sample, for a server that is no longer sampled, and for the
// summary of a closed run, so that it can be seen. Live it remains as long as the agent keeps the summary.
const remains = 5 * time.Second

// Run adds what the agent would have exposed about a run, report by report, and about its servers. The error comes from
// a ctx that is done or a file that can't be read.
func (b *Backfill) Run(ctx context.Context, h *record.History) error {
	r := replay{b: b, h: h, lastState: h.Snapshot.Meta.StartedAt.UnixMilli()}
	for _, m := range h.Markers {
		text, at := markerText(&m), m.Start.UnixMilli()
		r.markers = append(r.markers, kept{b.point(markerTime, at, seconds(m.Start), m.Run, text), at, seconds(m.Start)})
	}
	r.repeatMarkers(r.lastState)
	if err := r.run(ctx); err != nil {
		return err
	}
	if h.Snapshot.Meta.EndedAt != nil {
		end := r.lastState + remains.Milliseconds()
		for _, s := range append(r.live, r.kept...) {
			s.end(end)
		}
		for _, m := range r.markers {
			m.end(end)
		}
	}
	servers := map[string]*roleSeries{}
	return h.EachSample(ctx, func(all []*record.ServerRows) error {
		for _, s := range all {
			if servers[s.Target] == nil {
				servers[s.Target] = &roleSeries{series: map[*spans]bool{}}
			}
			b.server(h, s, servers[s.Target])
		}
		return b.samples.err
	})
}

// replay goes through a run from its start to its end. At each instant it builds the snapshot of the run at that time
// and emits it like the Gatherer.
type replay struct {
	b         *Backfill
	h         *record.History
	columns   []ingest.Column
	values    [][]float64
	warmup    []bool
	lastState int64 // when the run's state was emitted last, in milliseconds

	// live are the series of the latest emission, and emissions is the number of emissions so far. A series that is
	// missing in the next emission has ended, as at a scrape. kept and markers are the series that last as long as the
	// run's summary.
	live, kept []*spans
	markers    []kept
	emissions  int
}

// kept is a marker's series, which is repeated with each state after it.
type kept struct {
	*spans
	at    int64
	value float64
}

func (r *replay) run(ctx context.Context) error {
	m, v := &r.h.Snapshot.Meta, &r.h.Intervals
	now := r.begin()
	n := 0
	if err := r.h.EachTotal(ctx, func(rows *ingest.Intervals) error {
		r.setRows(rows)
		for row, elapsed := range rows.Elapsed {
			if n == v.N {
				return nil // written since
			}
			at := r.h.At(elapsed)
			if n == 0 && at.UnixMilli() > r.lastState { // else this report is the state
				r.emitState(&now, m.StartedAt)
			}
			previous := now
			r.endInterval(&previous, at)
			r.repeatState(&previous, at)
			r.read(&now, row)
			now.LastReport = at
			changed := n == 0 || now.Phase != previous.Phase ||
				now.Threads != previous.Threads || now.IntervalSeconds != previous.IntervalSeconds
			n++
			last := n == v.N && m.EndedAt == nil
			r.emit(&now, at.UnixMilli(), changed || last || at.UnixMilli()-r.lastState >= stateEvery.Milliseconds())
		}
		return r.b.samples.err
	}); err != nil {
		return err
	}
	if n == 0 {
		r.emitState(&now, m.StartedAt)
	}
	if m.EndedAt == nil {
		return nil
	}
	r.endInterval(&now, *m.EndedAt)
	r.repeatState(&now, *m.EndedAt)
	end := m.EndedAt.UnixMilli()
	if n > 0 { // the last report may come with the end
		end = max(end, r.h.At(v.Last).UnixMilli()+1)
	}
	now = r.h.Snapshot
	now.Phase, now.Meta.Drain = ingest.Draining, nil
	r.emit(&now, max(end, r.lastState+1), true)
	for target, d := range m.Drain {
		if d.Seconds != nil {
			caughtUp := m.EndedAt.Add(time.Duration(*d.Seconds * float64(time.Second)))
			r.kept = append(r.kept, r.b.point(runDrain, max(end, caughtUp.UnixMilli()), *d.Seconds, m.ID, target))
		}
	}
	if m.ClosedAt != nil {
		r.repeatState(&now, *m.ClosedAt)
		now.Phase = ingest.Over
		r.emit(&now, max(m.ClosedAt.UnixMilli(), r.lastState+1), true)
	}
	return nil
}

// setRows sets the rows for read.
func (r *replay) setRows(rows *ingest.Intervals) {
	r.columns, r.values, r.warmup = rows.Keys(), r.values[:0], rows.Warmup
	for _, c := range r.columns {
		r.values = append(r.values, rows.Values(c))
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
	if r.warmup[row] {
		s.Phase = ingest.Warmup
	}
	s.Interval = &tool.Report{Kind: tool.Interval}
	for i, c := range r.columns {
		x := r.values[i][row]
		if !series.IsKnown(x) {
			continue
		}
		switch c.Measure {
		case nil:
		case tool.Throughput:
			s.Interval.AddRate(c.Operation, x)
		case tool.HeadlineLatency:
			s.Interval.AddLatency(c.Operation, c.Stat, x)
		case tool.Threads:
			s.Threads = series.Some(int(x))
		default:
			s.Interval.Set(c.Measure, x)
		}
		switch c.Kind {
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
func (r *replay) emit(s *ingest.Snapshot, at int64, state bool) { r.emitSome(s, at, true, state) }

// emitState adds only the state of a snapshot.
func (r *replay) emitState(s *ingest.Snapshot, at time.Time) {
	r.emitSome(s, at.UnixMilli(), false, true)
}

// emitSome adds the values of a snapshot, its state or both. Series that only the previous snapshot had end.
func (r *replay) emitSome(s *ingest.Snapshot, at int64, values, state bool) {
	if state {
		r.lastState = at
		r.repeatMarkers(at)
	}
	r.emissions++
	due := func(isState bool) bool { return isState && state || !isState && values }
	point := func(f *Family, v float64, labels ...string) {
		if f == runFaults || !due(f.state) { // failures to record are not in the record
			return
		}
		series := r.b.point(f, at, v, labels...)
		if series.emission == 0 {
			series.state = f.state
			r.live = append(r.live, series)
		}
		series.emission = r.emissions
	}
	emitRun(point, func(f *Family, h *histogram.Histogram, sum float64, labels ...string) {
		bucket := f.member(bucketSuffix, "le")
		for _, bound := range histogram.Ladder {
			point(bucket, float64(h.CountUpTo(bound)), append(slices.Clip(labels), strconv.FormatFloat(bound, 'g', -1, 64))...)
		}
		point(bucket, float64(h.Count()), append(slices.Clip(labels), "+Inf")...)
		point(f.member(countSuffix), float64(h.Count()), labels...)
		if series.IsKnown(sum) {
			point(f.member(sumSuffix), sum, labels...)
		}
	}, s, time.UnixMilli(at))
	r.live = slices.DeleteFunc(r.live, func(series *spans) bool {
		gone := due(series.state) && series.emission != r.emissions
		if gone {
			series.end(at)
			series.emission = 0
		}
		return gone
	})
}

// endInterval ends the series of the last report if the next report is late, at the time when the agent would end them.
func (r *replay) endInterval(s *ingest.Snapshot, next time.Time) {
	if s.Interval == nil {
		return
	}
	late := s.LastReport.Add(ingest.StaleAfter(s.IntervalSeconds.Value))
	if next.After(late) {
		gone := *s
		gone.Interval = nil
		r.emit(&gone, late.UnixMilli(), false)
	}
}

// repeatState adds the unchanged state again until an instant.
func (r *replay) repeatState(s *ingest.Snapshot, until time.Time) {
	for until.UnixMilli()-r.lastState > stateEvery.Milliseconds() {
		r.emitState(s, time.UnixMilli(r.lastState).Add(stateEvery))
	}
}

// repeatMarkers adds the markers before an instant again.
func (r *replay) repeatMarkers(at int64) {
	for _, m := range r.markers {
		if at > m.at {
			m.add(at, m.value)
		}
	}
}

// roleSeries are the series of a server while its role does not change: with another role, it has other series.
type roleSeries struct {
	role   string
	series map[*spans]bool
}

// server adds the answers of one server, at the times of the answers.
func (b *Backfill) server(h *record.History, s *record.ServerRows, current *roleSeries) {
	for from := s.Begin; from < len(s.Elapsed); {
		to := from + 1
		for to < len(s.Elapsed) && s.RoleAt.At(to) == s.RoleAt.At(from) {
			to++
		}
		if role := s.RoleAt.At(from); role != current.role {
			for one := range current.series {
				one.end(h.At(s.Elapsed[from]).UnixMilli())
			}
			current.role = role
			clear(current.series)
		}
		b.serverRows(h, s, from, to, current.series)
		from = to
	}
}

// serverRows adds the ticks from up to to, in which the role does not change.
func (b *Backfill) serverRows(h *record.History, s *record.ServerRows, from, to int, all map[*spans]bool) {
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
			all[b.point(dbDuration, times[i], took, target...)] = true
		}
		all[b.point(dbSampledAt, times[i], seconds(answered), target...)] = true
		all[b.point(dbInfo, times[i], 1, append(slices.Clip(target), label(s.VersionAt.At(row)), s.Flavour)...)] = true
	}
	for _, c := range s.Columns() {
		names, values := slices.Clone(targetLabels), slices.Clone(target)
		for i := 0; i < len(c.Labels); i += 2 {
			names, values = append(names, c.Labels[i]), append(values, c.Labels[i+1])
		}
		column := b.series(b.serverFamily(c.Metric), names, values)
		for i, v := range s.Values(c.Name)[from:to] {
			column.add(times[i], v)
		}
		all[column] = true
	}
	valid := remains.Milliseconds()
	if tick := series.Step(s.Elapsed); series.IsKnown(tick) {
		valid = max(valid, int64(3000*tick))
	}
	for one := range all {
		one.valid = max(one.valid, valid)
	}
}

// serverFamily returns the family of a metric in a record. Engines of this version may no longer declare it.
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
