package review

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/limits"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// limitsOf returns what limited a run, with evidence only from its own servers and machines. others are runs that may
// have used the same servers. It is unknown while the run is in progress.
func limitsOf(h *record.History, r *Row, others []rundir.Meta) *limits.Verdict {
	if r.Result == "" {
		return nil
	}
	tps := series.Number(r.Values.Of(tool.Throughput))
	e := limits.Evidence{
		Tool: cmp.Or(h.Snapshot.Meta.Tool, "the tool"), Seconds: r.DurationSeconds, Threads: threadsOf(r), Rate: series.Unknown(), Queue: r.queue,
		Throughput: tps, Statements: series.Number(r.Values.Of(tool.QueryRate)) / tps,
		RefusedByServer: messageWith(&h.Snapshot, cause.Connections), NoPort: messageWith(&h.Snapshot, cause.Ports), NoFile: messageWith(&h.Snapshot, cause.Files),
	}
	if rate := h.Snapshot.Meta.RatePerSecond; rate > 0 {
		e.Rate = float64(rate)
	}
	e.OtherLoad, e.ForeignShare = foreignStatements(h, r)
	if lines := otherRuns(h, others); len(lines) > 0 {
		e.OtherLoad = lines[0]
	}
	e.MinLatency = minLatency(r)
	addRoundTrip(&e, h)
	represents := func(s *record.Server) bool {
		if why := s.Silence(); why != "" {
			e.NotRepresented = append(e.NotRepresented, limits.Missing{What: fmt.Sprintf("%s did not answer: %s", s.Target, why), Remedy: reachRemedy(h, s, why)})
			return false
		}
		if !s.Coverage.Represents() {
			e.NotRepresented = append(e.NotRepresented,
				limits.Missing{What: fmt.Sprintf("%s was sampled for only %s", s.Target, s.Coverage)})
			return false
		}
		return true
	}
	for _, one := range h.Hosts {
		if represents(one.Server) {
			e.Machines = append(e.Machines, machineEvidence(h, one))
		}
	}
	stops := standstills(h, r)
	for _, s := range h.Servers {
		server := h.Snapshot.Meta.Servers.Server(s.Target)
		if server != nil && server.Proxy && represents(s) {
			e.Proxies = append(e.Proxies, proxyEvidence(h, s))
		}
		if server != nil && !server.Proxy && represents(s) {
			one := serverEvidence(h, s, e.Threads, stops)
			if r.onlyReads() {
				withoutWrites(&one)
			}
			e.Servers = append(e.Servers, one)
		}
	}
	v := limits.Find(&e)
	if len(v.Findings) == 0 && !series.IsKnown(e.Throughput) {
		return nil // of a run that did nothing, nothing was limited
	}
	v.Explain(views(h, r, &e))
	nameStatement(&v, r.Executed, leastOften*e.Throughput*e.Seconds)
	if v.Unlimited != "" && r.StallEffect != nil {
		v.Unlimited += fmt.Sprintf(", but stalled for %.1f s: see Stalls", r.StallEffect.Seconds)
	}
	return &v
}

// reachRemedy says what to configure if only the proxy of the run reaches a server, whose address is then its name; empty
// for other servers.
func reachRemedy(h *record.History, s *record.Server, why string) string {
	servers := h.Snapshot.Meta.Servers
	if _, _, err := net.SplitHostPort(s.Target); err != nil || servers == nil || servers.Server(s.Target) == nil || !engine.IsSilence(why) {
		return ""
	}
	i := slices.IndexFunc(servers.Targets, func(one rundir.Server) bool { return one.Proxy })
	if i < 0 {
		return ""
	}
	proxy := servers.Targets[i].Target
	return fmt.Sprintf("if it runs, list the servers as targets of one cluster, with addresses that can be reached from here, and set behind: CLUSTER in the target %s", proxy)
}

// mostOfTheTime is the share of the servers' time above which a statement is named.
const mostOfTheTime = 0.2

// nameStatement names the statement that took the most time in the servers, in the findings about statements whose cause
// is not known, unless it was executed less often than the run's statements are.
func nameStatement(v *limits.Verdict, s *Statements, least float64) {
	if s == nil || len(s.Kinds) == 0 || s.Kinds[0].Share < mostOfTheTime || s.Kinds[0].of != oneStatement || s.Kinds[0].Executions < least {
		return
	}
	k := &s.Kinds[0]
	for i := range v.Findings {
		f := &v.Findings[i]
		if len(f.Causes) > 0 {
			continue
		}
		switch f.Limit {
		case cause.RowLocks, cause.Locks, cause.Latches, cause.ServerCPU,
			cause.SharedCPU, cause.ProcessCPU, cause.Disk, cause.Pool, cause.Commit:
			f.Evidence += fmt.Sprintf("; %s of the statements' time in the servers was in %s, %s on average",
				table.Share(k.Share), table.Clip(k.Text, longestStatement), table.Milliseconds.Signed(k.MeanSeconds))
		}
	}
}

// longestStatement bounds a statement within a sentence.
const longestStatement = 80

func threadsOf(r *Row) float64 {
	if r.Threads == 0 {
		return series.Unknown()
	}
	return float64(r.Threads)
}

// messageWith returns the tool's message that shows a limit; empty if it printed none.
func messageWith(s *ingest.Snapshot, limit cause.Limit) string {
	texts := cause.Messages(limit)
	for _, m := range slices.Concat(s.Messages, []string{s.LastMessage}) {
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(m, text) }) {
			return table.Clip(table.Plain(m), longestMessage)
		}
	}
	return ""
}

// levelOf returns a mean, and how long the values were high.
func levelOf(t series.Tally, high float64) limits.Level {
	return limits.Level{Mean: t.Mean(), High: t.Share(high)}
}

// minLatency returns the least time that a transaction took.
func minLatency(r *Row) float64 {
	if v, known := r.Latency["min"]; known && r.headline.Known && r.headline.Value.Operation == tool.Transaction {
		return v
	}
	return series.Unknown()
}

// addRoundTrip adds the least and the mean time to the server or proxy that the tool connects to, the
// farthest one if it connects to several. If that is not known, the nearest server counts: no
// statement takes less.
func addRoundTrip(e *limits.Evidence, h *record.History) {
	e.RoundTrip, e.MeanRoundTrip = series.Unknown(), series.Unknown()
	connected := false
	for _, s := range h.Servers {
		server := h.Snapshot.Meta.Servers.Server(s.Target)
		if server == nil || connected && !server.Connected || !s.Coverage.Represents() {
			continue
		}
		t := h.Samples.Tally(record.ServerMeasure{Target: s.Target, Measure: engine.RoundTrip})
		switch least := t.Min; {
		case !series.IsKnown(least):
		case server.Connected && (!connected || least > e.RoundTrip), !server.Connected && !(least >= e.RoundTrip):
			e.RoundTrip, e.MeanRoundTrip, e.RoundTrips, e.RoundTripTo, connected = least, t.Mean(), t.Whole(), s.Target, server.Connected
		}
	}
}

func machineEvidence(h *record.History, one *record.Host) limits.MachineEvidence {
	of := func(m *measure.Measure, high float64) limits.Level { return levelOf(one.Tally(m), high) }
	mean := func(m *measure.Measure) float64 { t := one.Tally(m); return t.Mean() }
	last := func(m *measure.Measure) float64 { return one.Tally(m).Last }
	samples := one.Tally(host.Busy)
	m := limits.MachineEvidence{
		Name: one.Host, Samples: samples.Whole(), Cores: one.Cores, Generator: one.Has(rundir.GeneratorHost), Server: one.Has(rundir.ServerHost), Servers: one.Targets,
		CPU: of(host.Busy, limits.BusyCPU), BusiestCore: of(host.BusiestCore, limits.BusyCore), Steal: of(host.Steal, limits.HighSteal), Kernel: mean(host.SoftIRQ),
		Tool:    limits.ThreadsEvidence{Running: mean(host.ToolRunning), Waiting: mean(host.ToolWaiting), Held: mean(host.ToolHeld), Cores: last(host.ToolCores)},
		Local:   limits.ThreadsEvidence{Running: mean(host.ServersRunning), Waiting: mean(host.ServersWaiting), Held: mean(host.ServersHeld), Cores: last(host.ServersCores)},
		Waiting: mean(host.Waiting), Disk: of(host.DiskBusy, limits.BusyDisk), Network: of(host.NetworkBusy, limits.BusyNetwork),
		DiskWait: mean(host.DiskWait), DiskReadWait: mean(host.DiskReadWait),
	}
	if servers := h.Snapshot.Meta.Servers; servers != nil && one.Nodename != "" {
		for _, s := range servers.Targets { // its name may have become known after the machine's last sample
			if s.Nodename == one.Nodename && !s.Proxy && !slices.Contains(m.Servers, s.Target) {
				m.Server, m.Servers = true, append(slices.Clip(m.Servers), s.Target)
			}
		}
	}
	m.ToolCPU, m.ServersCPU, m.OthersCPU = one.Increase(host.ToolCPU), one.Increase(host.ServersCPU), one.Increase(host.OthersCPU)
	for name, used := range one.IncreaseBy(host.OthersCPU, host.Program) {
		if name != host.OtherPrograms {
			m.OtherPrograms = append(m.OtherPrograms, limits.ProgramEvidence{Name: name, CPU: used})
		}
	}
	slices.SortFunc(m.OtherPrograms, func(a, b limits.ProgramEvidence) int {
		return cmp.Or(cmp.Compare(b.CPU, a.CPU), strings.Compare(a.Name, b.Name))
	})
	if m.Name == "" {
		m.Name = one.Nodename
	}
	if m.Name == "" {
		m.Name = "the generator"
	}
	return m
}

func serverEvidence(h *record.History, s *record.Server, threads float64, stops []standstill) limits.ServerEvidence {
	tally := func(m *measure.Measure) series.Tally {
		return h.Samples.Tally(record.ServerMeasure{Target: s.Target, Measure: m})
	}
	largest := func(m *measure.Measure) float64 { t := tally(m); return t.Max }
	mean := func(m *measure.Measure) float64 { t := tally(m); return t.Mean() }
	samples := tally(engine.OpenConnections)
	out := limits.ServerEvidence{
		Name: s.Target, Engine: s.Engine, Samples: samples.Whole(), FlowControl: levelOf(tally(engine.FlowControl), limits.Paused), FlowControlSent: s.Increase(engine.FlowControlSent),
		CPU: levelOf(tally(engine.MachineCPU), limits.BusyCPU), LagSeconds: largest(engine.LagSeconds), ConnectionLimit: settingOf(h, s.Target, cause.Setting(s.Engine, cause.Connections)),
		Refused: s.Increase(engine.RefusedConnections), PoolReads: mean(engine.PagesRead), PoolMisses: mean(engine.PageMisses),
	}
	if s.Engine == record.DumpEngine { // one difference, of all of the run
		out.Samples = limits.LeastSamples
	}
	view := newView(h, s)
	out.Reports = view.Reports
	out.Stalls = stallsOf(h, view, threads, stops)
	out.Meanings = map[cause.Limit]string{}
	for _, w := range cause.WaitsOf(s.Engine, view.Reports) {
		if meaning := cause.MeaningOf(view, w.Limit); meaning != nil {
			out.Meanings[w.Limit] = meaning.Test
		}
	}
	// No estimate is needed for servers that report at each tick which sessions flow control holds back.
	observed := meanSessions(h, s.Target, engine.FlowControlSessions) > 0
	for _, m := range engine.SessionMeasures() {
		t := tally(m)
		v := meanSessions(h, s.Target, m)
		if !series.IsKnown(v) {
			continue
		}
		if out.Sessions == nil {
			out.Sessions, out.HeldBack, out.Stopped = map[string]float64{}, map[string]float64{}, map[string]limits.Standstill{}
		}
		class := engine.SessionClass(m)
		out.Samples = max(out.Samples, t.Whole())
		stop, excess := stoppedBy(h, s.Target, m, threads, stops)
		if out.Stopped[class] = stop; v > 0 {
			v = max(0, v-excess)
		}
		if slices.Contains(ofWriters, m) && (!observed || m == engine.RowLockSessions) {
			held := v * heldBack(h, s.Target, m)
			out.Sessions[flowControlled] += held
			out.HeldBack[class] = held
			v -= held
		}
		out.Sessions[class] += v
		for name, share := range s.ShareBy(m, engine.SessionEvent) {
			out.States = append(out.States, limits.StateEvidence{Class: class, Name: name, Sessions: v * share})
		}
	}
	countRowLocks(&out, mean(engine.LockWaits))
	return out
}

// proxyEvidence returns what a proxy reported. Its count of waits that ended is exact for short waits, and the samples of
// its queue for long ones: the larger one counts.
func proxyEvidence(h *record.History, s *record.Server) limits.ProxyEvidence {
	tally := func(m *measure.Measure) series.Tally {
		return h.Samples.Tally(record.ServerMeasure{Target: s.Target, Measure: m})
	}
	mean := func(m *measure.Measure) float64 { t := tally(m); return t.Mean() }
	samples := tally(engine.Answered)
	p := limits.ProxyEvidence{
		Name: s.Target, Engine: s.Engine, Samples: samples.Whole(), Queue: mean(proxy.Queue), Limit: tally(proxy.Limit).Last,
		Thread: levelOf(tally(proxy.ThreadUse), limits.BusyCore), Busy: levelOf(tally(proxy.Busy), limits.BusyCore), Cores: mean(engine.ServerCPU),
	}
	if waited := mean(proxy.Waited); waited > p.Queue || !series.IsKnown(p.Queue) {
		p.Queue = waited
	}
	return p
}

// countRowLocks raises the number of sessions that waited for row locks to the number that the server counted. The
// count is a lower bound: it has only waits that ended, in whole milliseconds. On a full machine samples miss waits,
// since the agent and the sessions take turns; the missing sessions are taken from those that ran. If the samples
// show less than half of the count, the waits may be those of appliers, and the count is ignored.
func countRowLocks(s *limits.ServerEvidence, counted float64) {
	class, running := engine.SessionClass(engine.RowLockSessions), engine.SessionClass(engine.RunningSessions)
	sampled := s.Sessions[class]
	if !(counted > sampled) || sampled < counted/2 || s.HeldBack[class] > 0 || s.Stopped[class].Seconds > 0 {
		return
	}
	s.Sessions[class] = counted
	s.Sessions[running] = max(0, s.Sessions[running]-(counted-sampled))
}

// withoutWrites leaves out what holds back only writes: sessions in it belong to another load.
func withoutWrites(s *limits.ServerEvidence) {
	s.FlowControl = limits.Level{Mean: series.Unknown(), High: series.Unknown()}
	for _, m := range []*measure.Measure{engine.CommitSessions, engine.ReplicationSessions, engine.FlowControlSessions} {
		class := engine.SessionClass(m)
		delete(s.Sessions, class)
		delete(s.HeldBack, class)
		delete(s.Stopped, class)
		s.States = slices.DeleteFunc(s.States, func(state limits.StateEvidence) bool { return state.Class == class })
	}
}

// onlyReads reports whether the tool counted reads and no writes.
func (r *Row) onlyReads() bool {
	reads, writes := false, true
	for _, c := range r.counts {
		switch c.Operation {
		case tool.Read:
			reads = c.N > 0
		case tool.Write:
			writes = c.N > 0
		}
	}
	return reads && !writes
}

// ofWriters are the classes in which writers, and sessions that wait for them, are while writes are held back.
var ofWriters = []*measure.Measure{engine.ReplicationSessions, engine.CommitSessions, engine.RowLockSessions}

// flowControlled is the class of sessions that wait because writes are held back.
var flowControlled = engine.SessionClass(engine.FlowControlSessions)

// heldBack returns the share of a class's sessions that waited while writes were held back, from the
// share of each second in which they were: a pause and its waits come together.
func heldBack(h *record.History, target string, m *measure.Measure) float64 {
	sessions := h.Samples.Values(record.ServerMeasure{Target: target, Measure: m})
	paused := h.Samples.Values(record.ServerMeasure{Target: target, Measure: engine.FlowControl})
	held, all := 0.0, 0.0
	for i := range min(len(sessions), len(paused)) {
		if series.IsKnown(sessions[i]) && series.IsKnown(paused[i]) && h.Samples.Elapsed[i] <= h.Samples.ToolEnd {
			held, all = held+sessions[i]*paused[i], all+sessions[i]
		}
	}
	if all == 0 {
		return 0
	}
	return held / all
}

// settingOf returns the number of a setting that was read from a server during the run. It is unknown if the setting is
// not a number or was not read, as in a short run: settings in samples can be a minute old.
func settingOf(h *record.History, target, name string) float64 {
	for i := range h.Settings {
		if s := &h.Settings[i]; s.Target == target {
			if v, err := strconv.ParseFloat(s.Settings[name], 64); err == nil {
				return v
			}
		}
	}
	return series.Unknown()
}

// leastHigh is the least number of intervals with a high value: fewer are a passing state. One interval with a lower
// value is enough for the comparison, since a log that is full after a second stays full.
const leastHigh = 2

// slowdown compares the throughput of the intervals in which a server's value was high, in the samples before and after
// their middle, with the throughput of the others. It skips intervals in which many clients waited for a lock, since
// the lock stopped them.
func slowdown(h *record.History, target string, m *measure.Measure, high, threads float64, stops []standstill) limits.Slowdown {
	out := limits.Slowdown{Held: series.Unknown(), During: series.Unknown(), Otherwise: series.Unknown(), Stopped: series.Unknown()}
	values := h.Samples.Values(record.ServerMeasure{Target: target, Measure: m})
	if values == nil {
		return out
	}
	locks := h.Samples.Values(record.ServerMeasure{Target: target, Measure: engine.LockSessions})
	locked := func(i int) bool { return i >= 0 && i < len(locks) && locks[i] >= math.Max(1, threads/4) }
	var tps [2][]float64 // of the intervals with a lower value, and of those with a high one
	stopped, all := 0.0, 0.0
	for _, level := range h.Intervals.Throughput.All(h.Intervals.Lengths.Median()) {
		i, _ := slices.BinarySearch(h.Samples.Elapsed, (level.From+level.To)/2)
		if i >= len(values) || !series.IsKnown(values[i]) {
			continue
		}
		all++
		if locked(i) || locked(i-1) {
			continue
		}
		in := 0
		if values[i] >= high && (i == 0 || values[i-1] >= high) {
			in = 1
		}
		tps[in] = append(tps[in], level.Mean)
		if in == 1 && level.Mean == 0 && slices.ContainsFunc(stops, func(s standstill) bool { return s.From < level.To && s.To > level.From }) {
			stopped++
		}
	}
	if len(tps[1]) < leastHigh {
		return out
	}
	out.Held, out.Stopped = float64(len(tps[1]))/all, stopped/all
	if isSlower(tps[1], tps[0]) {
		out.During, out.Otherwise = meanOf(tps[1]), meanOf(tps[0])
	}
	return out
}

// beyondSpread is how many standard errors the throughput must differ by: what else runs on the machine varies for
// seconds at a time.
const beyondSpread = 3

// isSlower reports whether the throughput during a state was lower than otherwise by more than its spread. With one
// interval otherwise, the spread during the state counts for both.
func isSlower(during, otherwise []float64) bool {
	if len(otherwise) == 0 {
		return false
	}
	within, outside := varianceOf(during), varianceOf(otherwise)
	if len(otherwise) == 1 {
		outside = within
	}
	deviation := math.Sqrt(within/float64(len(during)) + outside/float64(len(otherwise)))
	return meanOf(otherwise)-meanOf(during) > beyondSpread*deviation
}

func meanOf(values []float64) (mean float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	return mean
}

// varianceOf returns the variance of the values, 0 for a single one.
func varianceOf(values []float64) (variance float64) {
	mean := meanOf(values)
	for _, v := range values {
		variance += (v - mean) * (v - mean) / max(1, float64(len(values)-1))
	}
	return variance
}

// MadeRate reports whether the run reached a rate of transactions, see [limits.MadeRate].
func (r *Row) MadeRate(rate float64) (made, sure bool) {
	return limits.MadeRate(r.Values.Of(tool.Throughput).Value, rate, r.DurationSeconds, r.queue)
}
