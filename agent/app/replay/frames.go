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
	"github.com/benchwatch/benchwatch/agent/run/record"
)

// frames adds the answers of the servers and the machines.
func (p *Player) frames(ctx context.Context, h *record.History) error {
	servers, machines, err := h.AllSamples(ctx)
	if err != nil {
		return err
	}
	p.play(h, servers, p.servers, "")
	p.play(h, machines, p.machines, record.MachineSettings)
	return nil
}

// play adds the frames of recorded targets, whose settings are recorded with a prefix of their names.
func (p *Player) play(h *record.History, all []*record.ServerRows, to *Source, prefix string) {
	zero := h.Zero.Sub(p.recorded.StartedAt)
	rows := map[float64]map[*target]int{}
	var targets []*target
	for _, s := range all {
		one := p.newTarget(s, h, prefix)
		targets = append(targets, one)
		for row, elapsed := range s.Elapsed {
			if !s.Sampled(row) {
				continue
			}
			if rows[elapsed] == nil {
				rows[elapsed] = map[*target]int{}
			}
			rows[elapsed][one] = row
		}
	}
	ticks := slices.Sorted(maps.Keys(rows))
	interval := time.Second
	if d := series.Step(ticks); d > 0 {
		interval = time.Duration(math.Round(d*10)) * time.Second / 10
	}
	for _, tick := range ticks {
		p.add(zero+time.Duration(tick*float64(time.Second)), func(_ *Player, now time.Time) error {
			f := engine.Frame{Tick: now, Interval: interval}
			for _, t := range targets {
				if row, ok := rows[tick][t]; ok {
					f.Samples = append(f.Samples, t.sample(row, tick, now))
				}
			}
			to.publish(f)
			return nil
		})
	}
}

// target returns the recorded answers of one server or machine.
type target struct {
	*record.ServerRows
	target   engine.Target
	nodename string
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

// reading is a target's settings from a time on.
type reading struct {
	elapsed  float64
	settings engine.Settings
}

// added are the metrics that the sampler adds to the answer of a server.
var added = []*measure.Metric{
	engine.Up, engine.RestartsTotal, engine.ReplicationLagSeconds, engine.ReplicationLagTransactions, engine.ReplicationPosition,
}

// knownMetrics returns the metrics of servers and machines by name.
func knownMetrics() map[string]*measure.Metric {
	known := map[string]*measure.Metric{}
	for _, m := range measure.Metrics() {
		known[m.Name] = m
	}
	for _, m := range measure.All(measure.Host) {
		for _, s := range m.Sources() {
			for _, metric := range s.Metrics() {
				known[metric.Name] = metric
			}
		}
	}
	return known
}

func (p *Player) newTarget(s *record.ServerRows, h *record.History, prefix string) *target {
	one := &target{ServerRows: s, target: engine.Target{Name: s.Target, Engine: s.Engine, Cluster: s.Cluster}}
	for _, m := range p.machinesOfRun() {
		if prefix != "" && m.Host == s.Target {
			one.nodename = m.Nodename
		}
	}
	known := knownMetrics()
	for _, recorded := range s.Columns() {
		m := known[recorded.Metric]
		if m == nil || slices.Contains(added, m) || len(recorded.Labels) != 2*len(m.Labels) {
			continue // of another version
		}
		c := column{metric: m, values: s.Values(recorded.Name)}
		for i := 1; i < len(recorded.Labels); i += 2 {
			c.labels = append(c.labels, recorded.Labels[i])
		}
		one.values = append(one.values, c)
	}
	for _, t := range h.Settings {
		if t.Target != prefix+s.Target || t.Error != "" {
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
func (s *target) sample(row int, tick float64, now time.Time) engine.Sample {
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
	status := &engine.Status{Version: s.VersionAt.At(row), Flavour: s.Flavour, Role: s.RoleAt.At(row), Nodename: s.nodename}
	for _, c := range s.values {
		if v := c.values[row]; series.IsKnown(v) {
			status.Set(c.metric, v, c.labels...)
		}
	}
	status.NoData = s.Values(engine.ReplicationPosition.Name) == nil
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
func (s *target) at(m *measure.Metric, row int) series.Optional[float64] {
	values := s.Values(m.Name)
	if values == nil || !series.IsKnown(values[row]) {
		return series.Optional[float64]{}
	}
	return series.Some(values[row])
}

// position is a recorded position. Only its number is known.
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
