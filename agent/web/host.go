package web

import "github.com/benchwatch/benchwatch/agent/host"

// cpu is the kind of series about the machine that the agent runs on: shares of
// all CPUs' time.
const cpu = "cpu"

// hostTable is what was recorded of the machine's CPU during a run.
func hostTable(v *host.History) table {
	t := table{x: v.Elapsed}
	t.column(name{cpu, "busy", ""}, host.Busy.Values(v))
	t.column(name{cpu, "iowait", ""}, host.IOWait.Values(v))
	t.column(name{cpu, "steal", ""}, host.Steal.Values(v))
	return t
}

// hostRow is one line of that.
func hostRow(h *host.Sample) []cell {
	return []cell{
		{name{cpu, "busy", ""}, h.Busy},
		{name{cpu, "iowait", ""}, h.IOWait},
		{name{cpu, "steal", ""}, h.Steal},
	}
}
