// Package cloudwatch adds to the history of a run what CloudWatch recorded of its managed servers: one value a minute,
// from the Prometheus that stores the series of an exporter. They are requested when the history is read, since they
// arrive minutes after the run.
package cloudwatch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/run/promql"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Names are the names of an exporter's series, and of their label with the instance. A series with an empty name is not
// requested.
type Names struct {
	Instance                        string
	CPU                             string // percent
	ReadIOPS, WriteIOPS             string // per second
	ReadThroughput, WriteThroughput string // bytes per second
	QueueDepth                      string
}

// Source is a Prometheus with such series.
type Source struct {
	URL   string
	Names Names
	// Instances are the instances of the managed servers, by target.
	Instances map[string]string
}

// ErrNoSeries is matched by the error for an instance without series in Prometheus.
var ErrNoSeries = errors.New("no series of CloudWatch in Prometheus")

const period = time.Minute

// Add adds a machine for each managed server of the run, unless the history has one. The error is about the first
// machine without values; it never contains the address, which may hold a password.
func (s *Source) Add(ctx context.Context, h *record.History) error {
	if s.URL == "" || math.IsInf(h.ToolEnd(), 1) {
		return nil
	}
	var first error
	for _, target := range serversOf(&h.Snapshot.Meta, s.Instances) {
		if slices.ContainsFunc(h.Hosts, func(one *record.Host) bool { return slices.Contains(one.Targets, target) }) {
			continue
		}
		if err := s.add(ctx, h, target); err != nil && first == nil {
			first = fmt.Errorf("CPU and disks of %s: %w", target, err)
		}
	}
	return first
}

// serversOf returns the run's servers that have an instance, in the order of the run or of its user's choice.
func serversOf(m *rundir.Meta, instances map[string]string) []string {
	var all []string
	if m.Servers != nil {
		for _, s := range m.Servers.Targets {
			all = append(all, s.Target)
		}
	}
	if m.Selection != nil {
		all = append(all, m.Selection.Targets...)
	}
	var managed []string
	for _, name := range all {
		if instances[name] != "" && !slices.Contains(managed, name) {
			managed = append(managed, name)
		}
	}
	return managed
}

func (s *Source) add(ctx context.Context, h *record.History, target string) error {
	minutes, err := s.ask(ctx, s.Instances[target], h.Zero, h.At(h.ToolEnd()))
	if err != nil {
		return err
	}
	if len(minutes) == 0 {
		return fmt.Errorf("%w for %s with a whole minute of the run; they arrive minutes later", ErrNoSeries, s.Instances[target])
	}
	t := &engine.Target{Name: target, Engine: record.CloudWatchEngine}
	var frames []engine.Frame
	for _, m := range minutes {
		at := m.begin.Add(period)
		frames = append(frames, engine.Frame{Tick: at, Interval: period, Samples: []engine.Sample{{
			Target: t, Tick: at, Asked: at, Answered: at, Status: s.status(m.values),
		}}})
	}
	h.AddMachine(rundir.Machine{Host: target, Roles: []rundir.HostRole{rundir.ServerHost}, Targets: []string{target}}, frames)
	return nil
}

// status returns the values of a minute.
func (s *Source) status(values map[string]float64) *engine.Status {
	out := &engine.Status{}
	if v, ok := values[s.Names.CPU]; ok {
		out.Set(host.BusyShare, v/100)
	}
	reads, ok := values[s.Names.ReadIOPS]
	if writes, both := values[s.Names.WriteIOPS]; ok && both {
		out.Set(host.DiskOperationRate, reads+writes)
	}
	if v, ok := values[s.Names.ReadThroughput]; ok {
		out.Set(host.DiskReadRate, v)
	}
	if v, ok := values[s.Names.WriteThroughput]; ok {
		out.Set(host.DiskWriteRate, v)
	}
	if v, ok := values[s.Names.QueueDepth]; ok {
		out.Set(host.DiskQueueDepth, v)
	}
	return out
}

// minute has the values by the names of their series.
type minute struct {
	begin  time.Time
	values map[string]float64
}

// ask returns the whole minutes between two times. A sample's time is the beginning of its minute, as in CloudWatch. If
// an exporter repeats a value at each scrape, the first sample of a minute counts.
func (s *Source) ask(ctx context.Context, instance string, from, to time.Time) ([]minute, error) {
	var names []string
	for _, name := range []string{s.Names.CPU, s.Names.ReadIOPS, s.Names.WriteIOPS,
		s.Names.ReadThroughput, s.Names.WriteThroughput, s.Names.QueueDepth} {
		if name != "" {
			names = append(names, regexp.QuoteMeta(name))
		}
	}
	query := fmt.Sprintf("{__name__=~%s, %s=%s}[%ds]", strconv.Quote(strings.Join(names, "|")),
		s.Names.Instance, strconv.Quote(instance), int(to.Sub(from).Seconds())+1)
	result, err := promql.Server{URL: s.URL}.At(ctx, query, to)
	if err != nil {
		return nil, fmt.Errorf("ask Prometheus: %w", err)
	}
	matrix, _ := result.(model.Matrix)
	byTime := map[int64]minute{}
	for _, one := range matrix {
		name := string(one.Metric[model.MetricNameLabel])
		for _, v := range one.Values {
			value, begin := float64(v.Value), v.Timestamp.Time().UTC().Truncate(period)
			if math.IsNaN(value) || begin.Before(from) || begin.Add(period).After(to) {
				continue
			}
			m, known := byTime[begin.Unix()]
			if !known {
				m = minute{begin, map[string]float64{}}
				byTime[begin.Unix()] = m
			}
			if _, set := m.values[name]; !set {
				m.values[name] = value
			}
		}
	}
	var all []minute
	for _, m := range byTime {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b minute) int { return a.begin.Compare(b.begin) })
	return all, nil
}
