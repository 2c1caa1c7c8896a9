package rundir

import "github.com/benchwatch/benchwatch/agent/base/clock"

// Running reports whether the tool is alive, or the wrapper that will record its end. The tool and
// its children inherit a lock, which also works across containers. If they closed it, as sudo does,
// the process itself is looked up.
func (d Directory) Running(m *Meta) bool {
	return d.held(wrapperLock) || d.held(ToolLock) || m.ToolAlive()
}

// ToolAlive looks up the process in run.json. The number alone may belong to a later process, and
// in a copy it belongs to another machine.
func (m *Meta) ToolAlive() bool {
	if m.Mirror != nil || m.PID <= 0 || m.PIDStartTicks == 0 || m.BootID != clock.BootID() {
		return false
	}
	ticks, alive := StartTicks(m.PID)
	return alive && ticks == m.PIDStartTicks
}
