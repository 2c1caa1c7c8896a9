// Package rundir is the run directory, the interface between all programs that
// take part in a run: its files and their names, run.json with the facts and the
// outcome of the run, and the locks that show which programs are alive.
package rundir

import (
	"time"

	"github.com/benchwatch/benchwatch/agent/series"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// Meta is run.json: the facts about a run, secrets removed. Counters, samples
// and the summary are not in it: they are read from the tool's raw output.
type Meta struct {
	ID     string            `json:"id"`
	Title  string            `json:"title"`
	Labels map[string]string `json:"labels,omitempty"`

	Tool        string `json:"tool,omitempty"`
	ToolVersion string `json:"tool_version,omitempty"`
	// Verb is the tool's own command: run, prepare, load …
	Verb     string `json:"verb,omitempty"`
	Workload string `json:"workload,omitempty"`
	Threads  int    `json:"threads,omitempty"`
	// DurationSeconds is what was asked for, 0 if another condition ends the run.
	DurationSeconds float64 `json:"duration_seconds,omitempty"`
	// ReportIntervalSeconds is what was asked for, 0 if there are no interval
	// reports or it is not known.
	ReportIntervalSeconds float64 `json:"report_interval_seconds,omitempty"`
	// LatencyPercentile is what was asked for, 0 if it was switched off; absent
	// if it was left to the tool.
	LatencyPercentile series.Optional[float64] `json:"latency_percentile,omitzero"`

	Target   string `json:"target,omitempty"`
	Database string `json:"database,omitempty"`

	// Command is the command line with every secret blanked.
	Command   []string `json:"command,omitempty"`
	Generator string   `json:"generator"`

	PID int `json:"pid,omitempty"`
	// PIDStartTicks is the process's start in clock ticks after boot, which
	// with BootID distinguishes it from a later process with the same number.
	PIDStartTicks uint64 `json:"pid_start_ticks,omitempty"`
	BootID        string `json:"boot_id,omitempty"`

	// Log is set for a run whose tool wrote a log file by itself.
	Log *LogSource `json:"log,omitempty"`
	// Import is set for a run that was imported from an old log.
	Import *ImportSource `json:"import,omitempty"`

	StartedAt time.Time `json:"started_at"`
	// StartEstimated: StartedAt was worked out from the first report seen.
	StartEstimated bool `json:"start_estimated,omitempty"`
	// ClockStartedAt is when the tool's own clock began to run, worked out from
	// the first interval report that was seen as it was written. That may be
	// seconds after StartedAt.
	ClockStartedAt *time.Time `json:"clock_started_at,omitempty"`

	EndedAt  *time.Time `json:"ended_at,omitempty"`
	ExitCode *int       `json:"exit_code,omitempty"`
	Signal   string     `json:"signal,omitempty"`
	Outcome  Outcome    `json:"result,omitempty"`
	// Reason is why the run failed or was lost.
	Reason string `json:"reason,omitempty"`

	// DrainTimeoutSeconds is how long to wait for replicas to catch up; unknown:
	// as long as the process that closes the run is configured to.
	DrainTimeoutSeconds series.Optional[float64] `json:"drain_timeout_seconds,omitzero"`
	// Drain is how long each replica took to catch up, by target.
	Drain map[string]Drain `json:"drain,omitempty"`
	// ClosedAt is when drain was over and nothing more will change.
	ClosedAt *time.Time `json:"closed_at,omitempty"`
}

// LogSource is the part of a user's log file that is a run.
type LogSource struct {
	Path   string `json:"path"`
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
	Offset int64  `json:"offset"`
	// End is the offset after the run's last byte, set when it has ended.
	End int64 `json:"end,omitempty"`
}

// ImportSource is the part of an old log that was copied into a run directory.
type ImportSource struct {
	Path   string `json:"path"`
	Offset int64  `json:"offset"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// Start is where StartedAt comes from.
	Start StartSource `json:"start"`
}

// StartSource is where the start of an imported run comes from.
type StartSource string

const (
	StartFromLog    StartSource = "log"    // times in the log's own lines
	StartFromOption StartSource = "option" // --start
	StartFromFile   StartSource = "file"   // the last change of the file minus the length of the run
)

// Drain is how long a replica took to reach the position that the most advanced
// member of its cluster had when the tool ended.
type Drain struct {
	// Seconds from the end of the tool; absent if it was not reached.
	Seconds *float64 `json:"seconds,omitempty"`
	// TimedOut: not reached within the drain timeout.
	TimedOut bool `json:"timed_out,omitempty"`
}

// Description is what a parser may know of the command line. The labels are left
// out, since users add their own.
func (m *Meta) Description() tool.Description {
	d := tool.Description{
		Command: m.Verb, Workload: m.Workload, Threads: m.Threads, Target: m.Target, Database: m.Database,
		Duration:          time.Duration(m.DurationSeconds * float64(time.Second)),
		ReportInterval:    time.Duration(m.ReportIntervalSeconds * float64(time.Second)),
		LatencyPercentile: m.LatencyPercentile,
	}
	return d
}

// Ended reports whether the tool has ended.
func (m *Meta) Ended() bool { return m.EndedAt != nil }

// Closed reports whether the run is over, drain included.
func (m *Meta) Closed() bool { return m.ClosedAt != nil }
