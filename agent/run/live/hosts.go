package live

import (
	"errors"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// toolMachine is what a tracker knows of the machine of the tool, if that is this one. The tracker's mu guards it.
type toolMachine struct {
	// toolLimits are the limits of the tool's process; nil until known. limited caches its
	// machine's latest settings, without and with these limits.
	toolLimits engine.Settings
	limited    struct{ read, with *engine.SettingsReading }
	programs   host.Programs
}

// hostFrame records a tick's samples of the run's machines.
func (t *tracker) hostFrame(f engine.Frame) {
	t.mu.Lock()
	f, ok := t.onAxis(f)
	if !ok {
		t.mu.Unlock()
		return
	}
	f = t.ownHosts(f)
	t.addTool(&f)
	id, recorder := t.meta.ID, t.recorder
	t.mu.Unlock()
	if len(f.Samples) == 0 {
		return
	}
	t.opts.Sink.Hosts(id, f)
	if err := recorder.RecordHosts(f); err != nil && !errors.Is(err, record.ErrDiskLow) {
		t.fault("record what the machines did", err)
	}
}

// addTool adds to the sample of the tool's machine: the limits of the tool's process, how long tool
// and servers wait for the CPU, and which programs use it. The caller holds mu.
func (t *tracker) addTool(f *engine.Frame) {
	if t.meta.PID == 0 || t.meta.IsElsewhere() {
		return
	}
	for i := range f.Samples {
		s := &f.Samples[i]
		if s.Target.Engine != host.Procfs && !(s.Up() && s.Status.Nodename != "" && s.Status.Nodename == t.meta.Generator) {
			continue
		}
		running := !t.meta.Ended() && t.dir.Running(&t.meta)
		if running && s.Up() {
			status := *s.Status // other runs share it
			status.Values = slices.Clone(status.Values)
			t.programs.Read(t.meta.PID, t.ports(), f.Tick, &status)
			s.Status = &status
		}
		if s.Settings == nil || s.Settings.Err != nil {
			continue
		}
		if t.toolLimits == nil && running {
			t.toolLimits = host.ProcessLimits(t.meta.PID)
		}
		if t.limited.read != s.Settings { // the recorder identifies a reading by its address
			with := *s.Settings
			with.Settings = maps.Clone(s.Settings.Settings)
			maps.Copy(with.Settings, t.toolLimits)
			t.limited.read, t.limited.with = s.Settings, &with
		}
		s.Settings = t.limited.with
	}
}

// ports of the run's servers and proxies, where they have one. The caller holds mu.
func (t *tracker) ports() (ports []int) {
	if t.meta.Servers == nil {
		return nil
	}
	add := func(address string) {
		if _, port, err := net.SplitHostPort(address); err == nil {
			if n, err := strconv.Atoi(port); err == nil {
				ports = append(ports, n)
			}
		}
	}
	for _, target := range t.opts.Topology().Targets {
		if t.meta.Servers.Server(target.Name) != nil {
			add(target.Address)
		}
	}
	for _, p := range t.meta.Servers.Proxies {
		add(p.Address)
	}
	return ports
}

// ownHosts returns the samples of the run's machines and notes the machines. The caller holds mu.
func (t *tracker) ownHosts(f engine.Frame) engine.Frame {
	own, topology := f, t.opts.Topology()
	own.Samples = nil
	for i := range f.Samples {
		s := &f.Samples[i]
		at := slices.IndexFunc(t.machines, func(m rundir.Machine) bool { return m.Host == s.Target.Name })
		nodename := ""
		switch {
		case s.Up():
			nodename = s.Status.Nodename
		case at >= 0:
			nodename = t.machines[at].Nodename
		}
		m, ok := topology.Machine(&t.meta, s.Target.Name, nodename)
		if !ok {
			continue
		}
		if s.Target.Engine == host.Procfs && slices.ContainsFunc(t.machines,
			func(o rundir.Machine) bool { return o.Host != m.Host && nodename != "" && o.Nodename == nodename }) {
			continue // its node_exporter is sampled too
		}
		own.Samples = append(own.Samples, *s)
		switch {
		case at < 0:
			t.machines = append(t.machines, m)
		case t.machines[at].Equal(m):
			continue
		default:
			t.machines[at] = m
		}
		t.unrecorded = true
	}
	return own
}

// withMachines returns s with the machines added.
func withMachines(s *rundir.Servers, machines []rundir.Machine) *rundir.Servers {
	c := *s
	c.Machines = slices.Clone(s.Machines)
	for _, m := range machines {
		if i := slices.IndexFunc(c.Machines, func(o rundir.Machine) bool { return o.Host == m.Host }); i >= 0 {
			c.Machines[i] = m
		} else {
			c.Machines = append(c.Machines, m)
		}
	}
	slices.SortFunc(c.Machines, func(a, b rundir.Machine) int { return strings.Compare(a.Host, b.Host) })
	return &c
}
