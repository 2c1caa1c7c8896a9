package web

import "github.com/benchwatch/benchwatch/agent/history"

// cpu is the kind of series about the machine that the agent runs on: shares of
// all CPUs' time.
const cpu = "cpu"

// hostTable is what was recorded of the machine's CPU during a run.
func hostTable(h *history.HostHistory) table {
	t := table{x: h.Elapsed}
	t.column(name{cpu, "busy", ""}, h.Busy)
	t.column(name{cpu, "iowait", ""}, h.IOWait)
	t.column(name{cpu, "steal", ""}, h.Steal)
	return t
}

// hostRow is one line of that.
func hostRow(h *history.Host) []cell {
	return []cell{
		{name{cpu, "busy", ""}, h.Busy},
		{name{cpu, "iowait", ""}, h.IOWait},
		{name{cpu, "steal", ""}, h.Steal},
	}
}
