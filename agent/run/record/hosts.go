package record

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math"
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Host is what a machine did during a run, summed up. The zero Host has no values.
type Host struct {
	*Server
	rundir.Machine
	Cores int

	samples *series.Thinned[ServerMeasure]
}

// Tally returns the tally of all values of a measure.
func (h *Host) Tally(m *measure.Measure) series.Tally {
	if h.samples == nil {
		return series.NewTally(false)
	}
	return h.samples.Tally(h.key(m))
}

// Has reports whether the machine has a role in the run.
func (h *Host) Has(role rundir.HostRole) bool { return slices.Contains(h.Roles, role) }

func (h *Host) key(m *measure.Measure) ServerMeasure { return ServerMeasure{h.Target, m} }

// hasSpread are the columns whose time above a limit is reported.
func hasSpread(k ServerMeasure) bool { return k.Measure.Spread }

// readHosts reads what the machines did.
func (h *History) readHosts(ctx context.Context) error {
	h.HostSamples.ToolEnd, h.HostSamples.Sorted = h.ToolEnd(), hasSpread
	h.HostSamples.MaxColumns = maxServers * len(measure.All(measure.Host))
	var servers []*Server
	_, err := readStatus(ctx, h.dir.Path(host.File), h.Zero, h.within, partRows, nil, func(rows []*ServerRows) error {
		servers = addServers(measure.Host, servers, &h.HostSamples, rows, h.part)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	h.HostSamples.Settle()
	cover(servers, h.HostSamples.ToolEnd)
	h.HostSamples.KeepExtents(unrepresented(servers))
	for _, s := range servers {
		one := &Host{Server: s, Machine: h.machine(s.Target), samples: &h.HostSamples}
		if t := h.HostSamples.Tally(one.key(host.Cores)); t.Count > 0 {
			one.Cores = int(t.Last)
		}
		h.Hosts = append(h.Hosts, one)
	}
	for _, one := range h.Hosts {
		if one.Has(rundir.GeneratorHost) {
			h.Host = *one
			break
		}
	}
	return err
}

// AddMachine adds a machine with values from another source, as frames in the order of their ticks. It has its own
// axis, so nothing is drawn between its values.
func (h *History) AddMachine(m rundir.Machine, frames []engine.Frame) {
	samples := &series.Thinned[ServerMeasure]{}
	samples.ToolEnd, samples.Sorted, samples.MaxColumns = h.ToolEnd(), hasSpread, maxServers*len(measure.All(measure.Host))
	d := statusReader{zero: h.Zero, within: Whole, rows: math.MaxInt, targets: map[string]*readTarget{}}
	var w statusWriter
	for _, f := range frames {
		for line := range bytes.Lines(w.append(nil, f)) {
			d.add(bytes.TrimSpace(line))
		}
	}
	servers := addServers(measure.Host, nil, samples, d.servers, h.part)
	samples.Settle()
	cover(servers, samples.ToolEnd)
	for _, s := range servers {
		h.Hosts = append(h.Hosts, &Host{Server: s, Machine: m, samples: samples})
	}
}

// machine returns what a machine is in the run.
func (h *History) machine(name string) rundir.Machine {
	if s := h.Snapshot.Meta.Servers; s != nil {
		for _, m := range s.Machines {
			if m.Host == name {
				return m
			}
		}
	}
	return rundir.Machine{Host: name}
}
