// Package report makes tables and documents of ended runs.
package report

import (
	"fmt"
	"io"
	"sort"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/rundir"
)

// Table prints what a run came to, a line each.
func Table(w io.Writer, s *ingest.Snapshot) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	defer t.Flush()
	line := func(name, format string, args ...any) {
		fmt.Fprintf(t, "  %s\t"+format+"\n", append([]any{name}, args...)...)
	}

	result := string(s.Meta.Outcome)
	if s.Meta.Reason != "" {
		result += ": " + s.Meta.Reason
	}
	line("result", "%s", result)
	duration := s.ElapsedSeconds(time.Now())
	if s.Summary != nil && s.Summary.ElapsedSeconds.Known {
		duration = s.Summary.ElapsedSeconds.Value
	}
	line("duration", "%.1f s", duration)
	if s.Threads.Known {
		line("threads", "%d", s.Threads.Value)
	}
	if s.Summary != nil {
		summaryLines(line, s.Summary)
	}
	drainLines(line, s.Meta.Drain)
}

func summaryLines(line func(name, format string, args ...any), m *ingest.Summary) {
	if v, ok := m.Rate("transaction"); ok {
		line("tps", "%.2f", v)
	}
	if v, ok := m.Rate("query"); ok {
		line("qps", "%.2f", v)
	}
	if m.TpmC.Known {
		line("tpmC", "%.2f", m.TpmC.Value)
	}
	var stats, values []string
	for _, l := range m.Latencies {
		if l.Operation == "transaction" {
			stats = append(stats, l.Stat)
			values = append(values, fmt.Sprintf("%.2f", l.Seconds*1000))
		}
	}
	if len(stats) > 0 {
		line("latency "+strings.Join(stats, "/"), "%s ms", strings.Join(values, " / "))
	}
	if n, ok := m.Count("error"); ok {
		line("errors", "%d", n)
	}
	if m.FromIntervals {
		line("note", "the tool printed no summary: from its interval reports")
	}
}

func drainLines(line func(name, format string, args ...any), drained map[string]rundir.Drain) {
	names := make([]string, 0, len(drained))
	for name := range drained {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if d := drained[name]; d.Seconds != nil {
			line("drain "+name, "%.1f s", *d.Seconds)
		} else {
			line("drain "+name, "not caught up")
		}
	}
}
