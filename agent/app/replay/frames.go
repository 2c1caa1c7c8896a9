package replay

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/run/host"
	"github.com/benchwatch/benchwatch/agent/run/record"
)

// frames adds the servers' answers, and what the generator did meanwhile.
func (p *Player) frames(ctx context.Context, h *record.History) error {
	all, cpu, err := h.AllSamples(ctx)
	if err != nil {
		return err
	}
	zero := h.Zero.Sub(p.recorded.StartedAt)
	rows := map[float64]map[*server]int{}
	var servers []*server
	for _, s := range all {
		one := newServer(s, h)
		servers = append(servers, one)
		for row, elapsed := range s.Elapsed {
			if !s.Sampled(row) {
				continue
			}
			if rows[elapsed] == nil {
				rows[elapsed] = map[*server]int{}
			}
			rows[elapsed][one] = row
		}
	}
	ticks := slices.Sorted(maps.Keys(rows))
	interval := time.Second
	if d := median(ticks); d > 0 {
		interval = time.Duration(math.Round(d*10)) * time.Second / 10
	}
	offset := func(elapsed float64) time.Duration { return zero + time.Duration(elapsed*float64(time.Second)) }
	for _, tick := range ticks {
		p.add(offset(tick), func(p *Player, now time.Time) error {
			f := engine.Frame{Tick: now, Interval: interval}
			for _, s := range servers {
				if row, ok := rows[tick][s]; ok {
					f.Samples = append(f.Samples, s.sample(row, tick, now))
				}
			}
			p.publish(f, machine(cpu, tick, interval))
			return nil
		})
	}
	return nil
}

// median is that of the distances between ticks; 0 if there are none.
func median(ticks []float64) float64 {
	var distances []float64
	for i := 1; i < len(ticks); i++ {
		distances = append(distances, ticks[i]-ticks[i-1])
	}
	if len(distances) == 0 {
		return 0
	}
	slices.Sort(distances)
	return distances[len(distances)/2]
}

// machine is what the generator did at a tick; nil if that was not recorded.
func machine(h *host.History, tick float64, interval time.Duration) *host.Sample {
	if h == nil {
		return nil // not recorded
	}
	i, found := slices.BinarySearch(h.Elapsed, tick-interval.Seconds()/2)
	if !found && i == len(h.Elapsed) || h.Elapsed[i] > tick+interval.Seconds()/2 {
		return nil
	}
	busy := host.Busy.Values(h)[i]
	if !series.IsKnown(busy) {
		return nil
	}
	return &host.Sample{Cores: h.Cores, Busy: busy, IOWait: host.IOWait.Values(h)[i], Steal: host.Steal.Values(h)[i], Interval: interval.Seconds()}
}

// server gives out what one server answered.
type server struct {
	*record.ServerRows
	target   engine.Target
	values   []column
	settings []reading
	last     *engine.SettingsReading
}

// column is a column of the record and the metric that it holds.
type column struct {
	metric *measure.Metric
	labels []string
	values []float64
}

// reading is a server's settings from a time on.
type reading struct {
	elapsed  float64
	settings engine.Settings
}

// added are the metrics that the sampler adds to what a server answers.
var added = []*measure.Metric{
	engine.Up, engine.RestartsTotal, engine.ReplicationLagSeconds, engine.ReplicationLagTransactions, engine.ReplicationPosition,
}

func newServer(s *record.ServerRows, h *record.History) *server {
	one := &server{ServerRows: s, target: engine.Target{Name: s.Target, Engine: s.Engine, Cluster: s.Cluster}}
	known := map[string]*measure.Metric{}
	for _, m := range measure.Metrics() {
		known[m.Name] = m
	}
	for _, name := range s.Names() {
		metric, pairs, ok := measure.ParseColumn(name)
		m := known[metric]
		if !ok || m == nil || slices.Contains(added, m) || len(pairs) != 2*len(m.Labels) {
			continue // of another version
		}
		c := column{metric: m, values: s.Values(name)}
		for i := 1; i < len(pairs); i += 2 {
			c.labels = append(c.labels, pairs[i])
		}
		one.values = append(one.values, c)
	}
	for _, t := range h.Settings {
		if t.Target != s.Target || t.Error != "" {
			continue
		}
		now := maps.Clone(t.Settings)
		one.settings = append(one.settings, reading{h.Elapsed(t.At), now})
		for _, c := range t.Changes {
			now = maps.Clone(now)
			if c.After == "" {
				delete(now, c.Name)
			} else if c.Name != record.VersionSetting {
				now[c.Name] = c.After
			}
			one.settings = append(one.settings, reading{h.Elapsed(c.At), now})
		}
	}
	return one
}

// sample returns the answer of a row, at a tick of the replay.
func (s *server) sample(row int, tick float64, now time.Time) engine.Sample {
	sample := engine.Sample{Target: &s.target, Tick: now, Restarts: uint64(s.Restarts()[row])}
	if !s.Up(row) {
		reason := "did not answer"
		if len(s.Errors) > 0 {
			reason = s.Errors[len(s.Errors)-1]
		}
		sample.Err = errors.New(reason)
		return sample
	}
	after := func(elapsed float64) time.Time {
		if !series.IsKnown(elapsed) {
			return time.Time{}
		}
		return now.Add(time.Duration((elapsed - tick) * float64(time.Second)))
	}
	sample.Asked, sample.Answered = after(s.Asked[row]), after(s.ServerRows.Answered[row])
	status := &engine.Status{Version: s.VersionAt.At(row), Flavour: s.Flavour, Role: s.RoleAt.At(row)}
	for _, c := range s.values {
		if v := c.values[row]; series.IsKnown(v) {
			status.Set(c.metric, v, c.labels...)
		}
	}
	if v := s.at(engine.ReplicationPosition, row); v.Known {
		status.Position, status.Replicating = position(v.Value), true
	}
	sample.Status = status
	sample.LagSeconds, sample.LagTransactions = s.at(engine.ReplicationLagSeconds, row), s.at(engine.ReplicationLagTransactions, row)
	sample.Source = status.Position != nil && !sample.LagSeconds.Known && !sample.LagTransactions.Known
	for len(s.settings) > 0 && s.settings[0].elapsed <= tick {
		s.last = &engine.SettingsReading{At: now, Settings: s.settings[0].settings}
		s.settings = s.settings[1:]
	}
	sample.Settings = s.last
	return sample
}

// at returns a value of a row.
func (s *server) at(m *measure.Metric, row int) series.Optional[float64] {
	values := s.Values(m.Name)
	if values == nil || !series.IsKnown(values[row]) {
		return series.Optional[float64]{}
	}
	return series.Some(values[row])
}

// position is a recorded position, of which only the number is known.
type position float64

// Behind implements engine.Position.
func (p position) Behind(other engine.Position) (uint64, bool) {
	o, ok := other.(position)
	if !ok {
		return 0, false
	}
	return uint64(max(0, float64(o-p))), true
}

// Scalar implements engine.Position.
func (p position) Scalar() float64 { return float64(p) }

// String implements engine.Position.
func (p position) String() string { return strconv.FormatFloat(float64(p), 'f', -1, 64) }

// publish gives a frame to the subscribers.
func (p *Player) publish(f engine.Frame, machine *host.Sample) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = f
	if machine != nil {
		machine.At = f.Tick
	}
	p.machines = append(p.machines, machine)
	for _, s := range p.subscribers {
		s <- f // there is room for all
	}
}

// close ends the subscriptions.
func (p *Player) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.subscribers {
		close(s)
	}
	p.subscribers = nil
}

// Subscribe returns a channel that gets each frame once, and a function that ends the
// subscription.
func (p *Player) Subscribe(buffer int) (<-chan engine.Frame, func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := make(chan engine.Frame, max(buffer, len(p.events)))
	p.subscribers = append(p.subscribers, s)
	return s, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if i := slices.Index(p.subscribers, s); i >= 0 {
			p.subscribers = slices.Delete(p.subscribers, i, i+1)
			close(s)
		}
	}
}

// Latest returns the newest frame, none when it is older than two ticks: what was
// recorded has come to its end.
func (p *Player) Latest() engine.Frame {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.clock.Clock().Wall().Sub(p.last.Tick) > 2*p.last.Interval {
		return engine.Frame{}
	}
	return p.last
}

// Host returns what the recorded generator did at a tick, one after the other: it is
// asked once for each frame. It is nil if that is unknown.
func (p *Player) Host(time.Time) *host.Sample {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.machines) == 0 {
		return nil
	}
	first := p.machines[0]
	p.machines = p.machines[1:]
	return first
}

// MissedTicks is 0: ticks that were missed while the run was recorded are gaps of it.
func (p *Player) MissedTicks() uint64 { return 0 }

// Late is 0: how late the samples were is in the record.
func (p *Player) Late() time.Duration { return 0 }

// ReadSettings does nothing: settings come when they were read.
func (p *Player) ReadSettings() {}

// ReadStatements returns nothing: what a run's servers executed is in its record.
func (p *Player) ReadStatements(context.Context, map[string]*engine.StatementReading) map[string]engine.StatementsAnswer {
	return nil
}

// SampleNow does nothing.
func (p *Player) SampleNow() {}

// Update does nothing: the targets are those of the record.
func (p *Player) Update([]engine.Target) {}
