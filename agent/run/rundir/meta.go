// Package rundir is the run directory, the interface between all programs that take part in a run:
// its files and their names, run.json with the facts and the outcome of the run, and the locks that
// show which programs are alive.
package rundir

import (
	"fmt"
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// Meta is run.json: the facts about a run. Text that looks like a secret is blanked before writing.
// Counters, samples and the summary are not included: they are read from the tool's raw output.
//
// The parts are embedded, so that run.json has one level.
type Meta struct {
	ID     string            `json:"id"`
	Title  string            `json:"title"`
	Labels map[string]string `json:"labels,omitempty"`
	// Parameters are the names of the labels that are options of the tool rather than the user's
	// labels.
	Parameters []string `json:"parameters,omitempty"`

	Benchmark
	Placement
	Conditions
	Process
	Origin
	Timing
	End
	Closing
}

// Benchmark is what the tool was started to do, from its command line and its output.
type Benchmark struct {
	Tool        string `json:"tool,omitempty"`
	ToolVersion string `json:"tool_version,omitempty"`
	// Verb is the tool's own command: run, prepare, load …
	Verb     string `json:"verb,omitempty"`
	Workload string `json:"workload,omitempty"`
	Threads  int    `json:"threads,omitempty"`
	// DurationSeconds is the configured duration, 0 if another condition ends the run.
	DurationSeconds float64 `json:"duration_seconds,omitempty"`
	// RatePerSecond is the configured rate of operations, 0 for a closed loop.
	RatePerSecond int `json:"rate_per_second,omitempty"`
	// ReportIntervalSeconds is the configured value, 0 if there are no interval reports or it is
	// unknown.
	ReportIntervalSeconds float64 `json:"report_interval_seconds,omitempty"`
	// LatencyPercentile is the configured value, 0 if switched off; absent: the tool's default.
	LatencyPercentile series.Optional[float64] `json:"latency_percentile,omitzero"`

	Target   string `json:"target,omitempty"`
	Database string `json:"database,omitempty"`
}

// Placement is where the tool and the run's servers are.
type Placement struct {
	// Place is where the command runs the tool.
	Place tool.Place `json:"place,omitempty"`
	// Selection is the user's choice of the run's servers; nil: Target decides.
	Selection *Selection `json:"selection,omitempty"`
	// Servers that take part in the run; nil until the process that observes the run has determined
	// them.
	Servers *Servers `json:"servers,omitempty"`
}

// Conditions are what the user demands of a run.
type Conditions struct {
	// Required are the conditions of --require.
	Required []string `json:"required,omitempty"`
	// CaptureWhen are the conditions of --capture-when.
	CaptureWhen []string `json:"capture_when,omitempty"`
}

// Process is the process of the tool, and its machine.
type Process struct {
	// Command is the command line, with every secret blanked.
	Command []string `json:"command,omitempty"`
	// Generator is the machine that produces the load, as named by `uname -n`; empty if unknown.
	Generator string `json:"generator"`

	PID int `json:"pid,omitempty"`
	// PIDStartTicks is the process's start as StartTicks returns it. With BootID it distinguishes
	// the process from a later one with the same number.
	PIDStartTicks uint64 `json:"pid_start_ticks,omitempty"`
	BootID        string `json:"boot_id,omitempty"`
}

// Origin is where a run comes from, unless `benchwatch run` started a single tool on this machine.
type Origin struct {
	// Log is set for a run whose tool wrote a log file by itself.
	Log *LogSource `json:"log,omitempty"`
	// Import is set for a run that was imported from an old log.
	Import *ImportSource `json:"import,omitempty"`
	// Replay is set for a run that replays the record of another one.
	Replay *ReplaySource `json:"replay,omitempty"`
	// Group is set for a group, and for the run of one of its generators.
	Group *Group `json:"group,omitempty"`
	// Mirror is set for a copy of a run that another machine records. That machine decides its
	// facts and outcome.
	Mirror *Mirror `json:"mirror,omitempty"`
}

// Timing is the start of a run, and the clocks of its times.
type Timing struct {
	// Clock is the clock of the run's times; absent if it was only the wall clock, as in a log
	// file.
	Clock *Clock `json:"clock,omitempty"`

	// SamplerLateSeconds is for how long samples of the agent were due but not started during the
	// run: the agent had no core, or its machine was suspended.
	SamplerLateSeconds series.Optional[float64] `json:"sampler_late_seconds,omitzero"`

	StartedAt time.Time `json:"started_at"`
	// StartEstimated: StartedAt was derived from the first report seen.
	StartEstimated bool `json:"start_estimated,omitempty"`
	// ClockStartedAt is when the tool's own clock started, derived from the first interval report
	// that was read as it was written. It may be seconds after StartedAt.
	ClockStartedAt *time.Time `json:"clock_started_at,omitempty"`
}

// End is how and why the tool ended. It is empty before.
type End struct {
	EndedAt  *time.Time `json:"ended_at,omitempty"`
	ExitCode *int       `json:"exit_code,omitempty"`
	Signal   string     `json:"signal,omitempty"`
	// OutputLost: the disk was full, so a part of the tool's output may be missing.
	OutputLost bool    `json:"output_lost,omitempty"`
	Outcome    Outcome `json:"result,omitempty"`
	// Aborted is the condition of --abort-when that held, with its value; empty if none held.
	Aborted string `json:"aborted,omitempty"`
	// Reason is why the run failed or was lost: the exit status or signal, and the tool's message
	// about it.
	Reason string `json:"reason,omitempty"`
}

// Closing is what happens after the tool's end.
type Closing struct {
	// DrainTimeoutSeconds is how long to wait for replicas to catch up; unknown: the configuration
	// of the process that closes the run decides.
	DrainTimeoutSeconds series.Optional[float64] `json:"drain_timeout_seconds,omitzero"`
	// Drain is how long each replica took to catch up, by target.
	Drain map[string]Drain `json:"drain,omitempty"`
	// ClosedAt is when the drain was over. Nothing changes afterwards.
	ClosedAt *time.Time `json:"closed_at,omitempty"`
}

// LogSource is the log file, written by the tool itself, from which a run's output was read. The
// run's directory has a copy.
type LogSource struct {
	Path   string `json:"path"`
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
	// Head is the SHA-256 of the file's first HeadSize bytes.
	Head     string `json:"head,omitempty"`
	HeadSize int64  `json:"head_size,omitempty"`
	// Offset is where the run's bytes begin in the file, and End where they end. End is set after
	// the run has ended.
	Offset int64 `json:"offset"`
	End    int64 `json:"end,omitempty"`
	// Copied is how many bytes of the copy come from Earlier, the files that previously had this
	// name during the run.
	Copied int64 `json:"copied,omitempty"`
	// Gap is why lines between Earlier and this file may be missing; empty if they are complete.
	Gap     string      `json:"gap,omitempty"`
	Earlier []LogSource `json:"earlier,omitempty"`
}

// ImportSource is the part of an old log that was copied into a run directory.
type ImportSource struct {
	Path string `json:"path"`
	// Stderr is the log of the tool's standard error if it is a separate file. Offset, Size and
	// SHA256 describe Path.
	Stderr string `json:"stderr,omitempty"`
	Offset int64  `json:"offset"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// Start is the source of StartedAt.
	Start StartSource `json:"start"`
}

// ReplaySource is the run that a replay repeats.
type ReplaySource struct {
	Run       string    `json:"run"`
	StartedAt time.Time `json:"started_at"`
	// Speed is how many seconds of the record are replayed per second.
	Speed float64 `json:"speed"`
}

// StartSource is how the start of an imported run was determined.
type StartSource string

// IsEstimated reports whether the run may have begun at another time.
func (s StartSource) IsEstimated() bool { return s == StartFromFile || s == StartFromDay }

const (
	StartFromLog    StartSource = "log"    // times in the log's own lines
	StartFromOption StartSource = "option" // --start
	StartFromName   StartSource = "name"   // a time in the file's name
	StartFromBeside StartSource = "beside" // a time that a monitoring program beside the log printed
	StartFromDay    StartSource = "day"    // the day that it printed, at midnight
	StartFromFile   StartSource = "file"   // the last change of the file minus the length of the run
)

// Clock is the axis of all times of a run: the wall clock at its start, continued by the time since
// boot.
type Clock struct {
	// ID is the ID of [clock.Clock], BootedAt the axis'.
	ID       string    `json:"id"`
	BootedAt time.Time `json:"booted_at"`
	// Steps are the changes of the wall clock during the run. Times before and after a step are on
	// the same axis; the wall clock is ahead of it by the sum of the steps.
	Steps []ClockStep `json:"steps,omitempty"`
}

// ClockStep is by how many seconds the wall clock was set forward; negative: back.
type ClockStep struct {
	At      time.Time `json:"at"`
	Seconds float64   `json:"seconds"`
}

// NewClock returns the clock of a run that begins now.
func NewClock(c *clock.Clock) *Clock { return &Clock{ID: c.ID, BootedAt: c.BootedAt()} }

// Ahead is how far the wall clock is ahead of the run's axis, as far as recorded.
func (c *Clock) Ahead() (sum time.Duration) {
	if c == nil {
		return 0
	}
	for _, step := range c.Steps {
		sum += time.Duration(step.Seconds * float64(time.Second))
	}
	return sum
}

// Axis returns the run's axis for the clock of this process. If the clocks can't be compared, after
// a reboot, the wall clock is assumed to be as far ahead as before.
func (m *Meta) Axis(c *clock.Clock) clock.Axis {
	if m.Clock != nil && m.Clock.ID == c.ID && c.ID != "" {
		return c.Continue(m.Clock.BootedAt)
	}
	return c.Continue(c.BootedAt().Add(-m.Clock.Ahead()))
}

// OnAxis converts a wall clock time to the run's axis, unless the run is closed.
func (d Directory) OnAxis(at time.Time) time.Time {
	meta, err := d.Load()
	if err != nil || meta.Closed() {
		return at
	}
	return at.Add(-meta.Axis(clock.System).Ahead())
}

// Drain is how long a replica took to reach the position that the most advanced
// member of its cluster had when the tool ended.
type Drain struct {
	// Seconds from the end of the tool to the first sample that showed it; 0 if that was the first
	// sample after the end. Absent if the position was not reached.
	Seconds *float64 `json:"seconds,omitempty"`
	// ResolutionSeconds is the time since the previous sample or the end: the drain may be shorter
	// by up to this much.
	ResolutionSeconds float64 `json:"resolution_seconds,omitempty"`
	// TimedOut: not reached within the drain timeout.
	TimedOut bool `json:"timed_out,omitempty"`
}

// String formats the drain: "0 s", "4.9 to 5.8 s" if it ended between two samples, "not caught up".
func (d Drain) String() string {
	switch {
	case d.Seconds == nil:
		return "not caught up"
	case *d.Seconds == 0 && d.ResolutionSeconds < 0.05:
		return "0 s"
	case d.ResolutionSeconds < 0.05:
		return fmt.Sprintf("%.1f s", *d.Seconds)
	case *d.Seconds == 0:
		return fmt.Sprintf("under %.1f s", d.ResolutionSeconds)
	}
	return fmt.Sprintf("%.1f to %.1f s", max(0, *d.Seconds-d.ResolutionSeconds), *d.Seconds)
}

// Description is what a parser needs to know about the command line. Labels are not included, since
// users add their own.
func (m *Meta) Description() tool.Description {
	d := tool.Description{
		Command: m.Verb, Workload: m.Workload, Threads: m.Threads, Target: m.Target, Database: m.Database, Rate: m.RatePerSecond,
		Duration:          time.Duration(m.DurationSeconds * float64(time.Second)),
		ReportInterval:    time.Duration(m.ReportIntervalSeconds * float64(time.Second)),
		LatencyPercentile: m.LatencyPercentile,
	}
	return d
}

// IsElsewhere reports whether the tool may run on another machine than the agent.
func (m *Meta) IsElsewhere() bool { return m.Log != nil || m.Place == tool.PlaceElsewhere }

// redact blanks secrets in the texts from users, command lines and tools.
func (m *Meta) redact() { m.change(secret.Value) }

// plain makes these texts printable: in a shared folder they can come from another user.
func (m *Meta) plain() {
	m.change(func(_, text string) string { return table.Plain(text) })
}

// change replaces each text; labels have a name.
func (m *Meta) change(with func(name, text string) string) {
	for _, text := range []*string{&m.Title, &m.Tool, &m.ToolVersion, &m.Verb, &m.Workload,
		&m.Target, &m.Database, &m.Generator, &m.Signal, &m.Aborted, &m.Reason} {
		*text = with("", *text)
	}
	if len(m.Labels) > 0 {
		labels := make(map[string]string, len(m.Labels)) // the map may be shared
		for name, value := range m.Labels {
			labels[name] = with(name, value)
		}
		m.Labels = labels
	}
	if g := m.Group; g != nil {
		own := *g
		own.Members = slices.Clone(g.Members)
		for i := range own.Members {
			o := &own.Members[i]
			for _, text := range []*string{&o.Host, &o.Reason} {
				*text = with("", *text)
			}
		}
		m.Group = &own
	}
	all := func(texts []string) (changed []string) {
		for _, text := range texts {
			changed = append(changed, with("", text))
		}
		return changed
	}
	if s := m.Selection; s != nil {
		m.Selection = &Selection{Targets: all(s.Targets), Clusters: all(s.Clusters)}
	}
}

// Ended reports whether the tool has ended.
func (m *Meta) Ended() bool { return m.EndedAt != nil }

// Closed reports whether the run is over, drain included.
func (m *Meta) Closed() bool { return m.ClosedAt != nil }
