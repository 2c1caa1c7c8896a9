package metrics

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/history"
	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/measure"
	"github.com/benchwatch/benchwatch/agent/series"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// stateEvery is how often what seldom changes is written: as often as a
// Prometheus looks, not at each report.
const stateEvery = 10 * time.Second

// Run adds what a run would have exposed, report by report, and what its
// servers did. Names and labels are those of the Collector.
func (b *Backfill) Run(h *history.History) {
	id := h.Snapshot.Meta.ID
	b.reports(h, id)
	b.state(h, id)
	b.end(h, id)
	for _, s := range h.Servers {
		b.server(h, s)
	}
}

// reports adds what changes with each interval report.
func (b *Backfill) reports(h *history.History, id string) {
	v := &h.Intervals
	times := make([]int64, len(v.Elapsed))
	stamps := make([]float64, len(times))
	elapsed := make([]float64, len(times))
	for i, e := range v.Elapsed {
		at := h.At(e)
		times[i], stamps[i] = at.UnixMilli(), seconds(at)
		elapsed[i] = max(0, at.Sub(h.Snapshot.Meta.StartedAt).Seconds())
	}
	b.add("run_last_report_timestamp_seconds", times, stamps, "run", id)
	b.add("run_elapsed_seconds", times, elapsed, "run", id)
	for _, c := range v.Keys() {
		if f, ok := intervalFamilies[c.Kind]; ok {
			labels := []string{"run", id}
			for i, value := range []string{c.Operation, c.Stat}[:len(f.labels)] {
				labels = append(labels, f.labels[i], value)
			}
			b.add(f.name, times, v.Values(c), labels...)
		}
	}
}

// intervalFamilies are the families that change with each interval report.
var intervalFamilies = map[ingest.Kind]struct {
	name   string
	labels []string // beside run
}{
	ingest.Rate:            {"run_operations_per_second", []string{"op"}},
	ingest.Latency:         {"run_latency_seconds", []string{"op", "stat"}},
	ingest.QueueLength:     {"run_queue_length", nil},
	ingest.Concurrency:     {"run_concurrency", nil},
	ingest.OperationsTotal: {"run_operations_total", []string{"op"}},
	ingest.ErrorsTotal:     {"run_errors_total", nil},
	ingest.ReconnectsTotal: {"run_reconnects_total", nil},
	ingest.MessagesTotal:   {"run_error_messages_total", nil},
	ingest.LinesTotal:      {"run_lines_total", []string{"result"}},
}

// moment is an instant at which a run's state is told.
type moment struct {
	at       int64 // milliseconds
	phase    ingest.Phase
	threads  float64
	interval float64
}

// state adds what says where the run stands: at its start, when that changes,
// and often enough in between that a Prometheus does not take it for gone.
func (b *Backfill) state(h *history.History, id string) {
	moments := moments(h)
	times := make([]int64, len(moments))
	ones := make([]float64, len(moments))
	active := make([]float64, len(moments))
	start := make([]float64, len(moments))
	threads := make([]float64, len(moments))
	interval := make([]float64, len(moments))
	phases := map[ingest.Phase]*span{}
	for i, m := range moments {
		times[i], ones[i], start[i] = m.at, 1, seconds(h.Snapshot.Meta.StartedAt)
		active[i], threads[i], interval[i] = math.NaN(), math.NaN(), math.NaN()
		if m.phase == ingest.Over {
			continue
		}
		active[i] = truth(m.phase != ingest.Draining)
		if m.phase != ingest.Draining {
			threads[i], interval[i] = m.threads, m.interval
		}
		p := phases[m.phase]
		if p == nil {
			p = &span{}
			phases[m.phase] = p
		}
		p.times, p.values = append(p.times, m.at), append(p.values, 1)
	}
	names, values := infoLabels(&h.Snapshot.Meta)
	info := make([]string, 0, 2*len(names))
	for i := range names {
		info = append(info, names[i], values[i])
	}
	b.add(runInfoName, times, ones, info...)
	b.add("run_start_timestamp_seconds", times, start, "run", id)
	b.add("run_active", times, active, "run", id)
	b.add("run_threads", times, threads, "run", id)
	b.add("run_report_interval_seconds", times, interval, "run", id)
	for phase, p := range phases {
		b.add("run_phase", p.times, p.values, "run", id, "phase", string(phase))
	}
	b.marks(h, times)
}

// marks adds the points on the time axis from when they were set on.
func (b *Backfill) marks(h *history.History, times []int64) {
	for _, m := range h.Markers {
		at := m.Start.UnixMilli()
		shown, values := []int64{at}, []float64{seconds(m.Start)}
		for _, t := range times {
			if t > at {
				shown, values = append(shown, t), append(values, seconds(m.Start))
			}
		}
		b.add("marker_timestamp_seconds", shown, values, "run", m.Run, "text", markerText(&m))
	}
}

// moments are the instants of state, in order.
func moments(h *history.History) []moment {
	m, v := &h.Snapshot.Meta, &h.Intervals
	phase := ingest.Starting
	if v.QuietWarmup {
		phase = ingest.Warmup
	}
	now := moment{at: m.StartedAt.UnixMilli(), phase: phase, threads: math.NaN(), interval: math.NaN()}
	if m.Threads > 0 {
		now.threads = float64(m.Threads)
	}
	if m.ReportIntervalSeconds > 0 {
		now.interval = m.ReportIntervalSeconds
	}
	all := []moment{now}
	every := stateEvery.Milliseconds()
	reach := func(at int64) { // what has not changed is told again
		for last := all[len(all)-1].at; at-last > every; last += every {
			again := now
			again.at = last + every
			all = append(all, again)
		}
	}
	tell := func() { // what is told twice for one instant is what came last
		if last := &all[len(all)-1]; now.at > last.at {
			all = append(all, now)
		} else {
			*last = now
		}
	}
	for i, e := range v.Elapsed {
		next := now
		next.at, next.phase = h.At(e).UnixMilli(), ingest.Measuring
		if v.Warmup[i] {
			next.phase = ingest.Warmup
		}
		if threads := v.At(ingest.Column{Kind: ingest.Threads}, i); series.IsKnown(threads) {
			next.threads = threads
		}
		if m.ReportIntervalSeconds <= 0 {
			next.interval = v.At(ingest.Column{Kind: ingest.Length}, i)
		}
		reach(next.at)
		changed := next.phase != now.phase || next.threads != now.threads || next.interval != now.interval && !math.IsNaN(next.interval)
		now = next
		if changed || now.at-all[len(all)-1].at >= every {
			tell()
		}
	}
	if m.EndedAt == nil {
		tell()
		return all
	}
	reach(m.EndedAt.UnixMilli())
	now.at, now.phase = m.EndedAt.UnixMilli(), ingest.Draining
	if last := all[len(all)-1].at; now.at <= last { // the last report came with the end
		now.at = last + 1
	}
	tell()
	if m.ClosedAt != nil {
		reach(m.ClosedAt.UnixMilli())
		now.at, now.phase = max(m.ClosedAt.UnixMilli(), now.at+1), ingest.Over
		tell()
	}
	return all
}

// end adds the result and the summary, and the counters as the summary set
// them right.
func (b *Backfill) end(h *history.History, id string) {
	s := &h.Snapshot
	m := &s.Meta
	if m.EndedAt == nil {
		return
	}
	at := m.EndedAt.UnixMilli()
	if n := len(h.Intervals.Elapsed); n > 0 {
		at = max(at, h.At(h.Intervals.Elapsed[n-1]).UnixMilli()+1)
	}
	for op, n := range s.Totals {
		b.point("run_operations_total", at, n, "run", id, "op", op)
	}
	b.point("run_errors_total", at, s.Errors, "run", id)
	b.point("run_reconnects_total", at, s.Reconnects, "run", id)
	b.point("run_error_messages_total", at, float64(s.MessageCount), "run", id)
	b.point("run_lines_total", at, float64(s.Lines.Reported), "run", id, "result", "report")
	b.point("run_lines_total", at, float64(s.Lines.Ignored), "run", id, "result", "ignored")
	b.point("run_lines_total", at, float64(s.Lines.Malformed), "run", id, "result", "malformed")
	b.point("run_elapsed_seconds", at, s.ElapsedSeconds(*m.EndedAt), "run", id)
	b.point("run_end_timestamp_seconds", at, seconds(*m.EndedAt), "run", id)
	if m.ExitCode != nil {
		b.point("run_exit_code", at, float64(*m.ExitCode), "run", id)
	}
	if m.Outcome != "" {
		b.point("run_result", at, 1, "run", id, "result", string(m.Outcome))
	}
	for target, d := range m.Drain {
		if d.Seconds != nil {
			caughtUp := m.EndedAt.Add(time.Duration(*d.Seconds * float64(time.Second)))
			b.point("run_drain_seconds", max(at, caughtUp.UnixMilli()), *d.Seconds, "run", id, "target", target)
		}
	}
	b.summary(h, id, at)
}

func (b *Backfill) summary(h *history.History, id string, at int64) {
	s := &h.Snapshot
	duration := s.ElapsedSeconds(*s.Meta.EndedAt)
	if sum := s.Summary; sum != nil {
		if sum.ElapsedSeconds.Known {
			duration = sum.ElapsedSeconds.Value
		}
		for _, v := range sum.Rates {
			b.point("run_summary_operations_per_second", at, v.PerSecond, "run", id, "op", v.Operation)
		}
		for _, v := range sum.Latencies {
			b.point("run_summary_latency_seconds", at, v.Seconds, "run", id, "op", v.Operation, "stat", v.Stat)
		}
		b.summaryCounts(sum.Counts, id, at)
		if sum.TpmC.Known {
			b.point("run_summary_tpmc", at, sum.TpmC.Value, "run", id)
		}
	}
	b.point("run_summary_duration_seconds", at, duration, "run", id)
}

func (b *Backfill) summaryCounts(counts []tool.Count, id string, at int64) {
	for _, v := range counts {
		switch v.Operation {
		case "error":
			b.point("run_summary_errors_total", at, float64(v.N), "run", id)
		case "reconnect":
			b.point("run_summary_reconnects_total", at, float64(v.N), "run", id)
		default:
			b.point("run_summary_operations_total", at, float64(v.N), "run", id, "op", v.Operation)
		}
	}
}

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

// serverRows adds the ticks from up to to, in which the role does not change.
func (b *Backfill) serverRows(h *history.History, s *history.ServerHistory, from, to int) {
	labels := []string{"target", s.Target, "engine", s.Engine, "cluster", s.Cluster, "role", s.RoleAt.At(from)}
	n := to - from
	times := make([]int64, n)
	up, took, stamps := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range n {
		row := from + i
		at := s.Answered[row]
		if !s.Up(row) {
			at = s.Elapsed[row]
		}
		times[i], up[i] = h.At(at).UnixMilli(), truth(s.Up(row))
		took[i], stamps[i] = math.NaN(), math.NaN()
		if s.Up(row) {
			took[i], stamps[i] = s.Answered[row]-s.Asked[row], seconds(h.At(at))
		}
	}
	b.add("db_up", times, up, labels...)
	b.add("db_restarts_total", times, s.Restarts()[from:to], labels...)
	b.add("db_sample_duration_seconds", times, took, labels...)
	b.add("db_sample_timestamp_seconds", times, stamps, labels...)
	for _, m := range []*measure.Metric{engine.ReplicationLagSeconds, engine.ReplicationLagTransactions} {
		if values := s.Values(m.Name); values != nil {
			b.add(m.Name, times, values[from:to], labels...)
		}
	}
	b.serverInfo(s, from, times, up, labels)
	rendered := strings.TrimSuffix(renderLabels(labels), "}")
	for _, name := range s.Names() {
		metric, rest, ok := splitName(name)
		if ok {
			b.addRendered(metric, times, s.Values(name)[from:to], rendered+rest+"}")
		}
	}
}

// serverInfo adds the server's version, which may change with a restart.
func (b *Backfill) serverInfo(s *history.ServerHistory, from int, times []int64, up []float64, labels []string) {
	versions := map[string]*span{}
	for i, t := range times {
		if up[i] == 0 {
			continue
		}
		v := s.VersionAt.At(from + i)
		if versions[v] == nil {
			versions[v] = &span{}
		}
		versions[v].times, versions[v].values = append(versions[v].times, t), append(versions[v].values, 1)
	}
	for version, p := range versions {
		b.add("db_info", p.times, p.values, append(slices.Clip(labels), "version", label(version), "flavour", s.Flavour)...)
	}
}

// splitName takes a name as in status.jsonl apart: the metric, and its labels
// as `,name="value"` in OpenMetrics' way. It is false for what is neither.
func splitName(name string) (metric, labels string, ok bool) {
	metric, rest, labelled := strings.Cut(name, "{")
	if !validName(metric) {
		return "", "", false
	}
	if !labelled {
		return metric, "", true
	}
	var b strings.Builder
	for {
		key, quoted, found := strings.Cut(rest, "=")
		if !found || !validName(key) {
			return "", "", false
		}
		text, err := strconv.QuotedPrefix(quoted)
		if err != nil {
			return "", "", false
		}
		value, err := strconv.Unquote(text)
		if err != nil {
			return "", "", false
		}
		b.WriteString("," + key + `="` + escapeLabel.Replace(strings.ToValidUTF8(value, "\uFFFD")) + `"`)
		switch rest = quoted[len(text):]; {
		case rest == "}":
			return metric, b.String(), true
		case strings.HasPrefix(rest, ","):
			rest = rest[1:]
		default:
			return "", "", false
		}
	}
}

// validName reports whether s can be the name of a metric or a label.
func validName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
