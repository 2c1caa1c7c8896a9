package rundir

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
)

// Group is a run's role in a group of generators that produce one load. The group has its own run
// directory with Name as id, whose output is the journal described in package group. Each generator
// has a run directory too.
type Group struct {
	// Name is the id of the group's own run directory.
	Name string `json:"name"`
	// Generators is their number.
	Generators int `json:"generators"`
	// Generator is the number of this run's generator, from 1; 0 in the group's own directory.
	Generator int `json:"generator,omitempty"`

	// StartAt is when all generators were to start, by the clock of this run's machine; absent
	// without a common start.
	StartAt *time.Time `json:"start_at,omitempty"`
	// Ready: the generator waits for its start.
	Ready bool `json:"ready,omitempty"`
	// Wrapper is the `benchwatch run` of a generator.
	Wrapper *ProcessID `json:"wrapper,omitempty"`
	// OnFailure is what happens to the other generators if one fails.
	OnFailure OnFailure `json:"on_failure,omitempty"`
	// Members are the generators, in the group's own directory.
	Members []Member `json:"members,omitempty"`
}

// Leave records a generator whose run was not seen, or can't be read because of problem.
func (o *Member) Leave(problem string) {
	if o.Absent = problem == ""; o.Absent {
		return
	}
	var own Meta
	own.Conclude(Output{Missing: problem})
	o.Outcome, o.Reason = own.Outcome, own.Reason
}

// OnFailure is what happens to the other generators of a group if one fails.
type OnFailure string

const (
	StopOthers OnFailure = "stop"
	Continue   OnFailure = "continue"
)

// ProcessID identifies a process of this machine, even after its number has been reused.
type ProcessID struct {
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"start_ticks"`
	BootID     string `json:"boot_id"`
}

// Member is one generator of a group.
type Member struct {
	// Host is where it was started, as the user named the machine; empty for this machine.
	Host string `json:"host,omitempty"`
	// Log is the file from which it was imported. Such a generator has no run directory.
	Log string `json:"log,omitempty"`
	// ClockOffsetSeconds is how far its clock is ahead of this machine's, and
	// ClockUncertaintySeconds half of the shortest round trip of the measurement. Both are absent
	// without a measurement.
	ClockOffsetSeconds      *float64 `json:"clock_offset_seconds,omitempty"`
	ClockUncertaintySeconds *float64 `json:"clock_uncertainty_seconds,omitempty"`
	// StartSeconds is the time between the starts of the group and of its tool, by this machine's
	// clock; absent until the tool starts.
	StartSeconds *float64 `json:"start_seconds,omitempty"`
	// Outcome and Reason of the generator; empty until it has ended. Absent: it never started.
	Outcome Outcome `json:"result,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	Absent  bool    `json:"absent,omitempty"`
}

// Mirror is the origin of a copied run.
type Mirror struct {
	// Host is the machine that records the run, as the user named it.
	Host string `json:"host"`
	// Scraped: an agent follows the run there and serves its metrics.
	Scraped bool `json:"scraped,omitempty"`
	// Peer: Host is a peer of the agent, which mirrors all of its runs, with their
	// markers.
	Peer bool `json:"peer,omitempty"`
	// NoOutput: the tool's output is not copied.
	NoOutput bool `json:"no_output,omitempty"`
	// Log identifies the part of a log file, if the run is read from one there.
	Log string `json:"log,omitempty"`
}

// GeneratorID returns the id of a generator's run, so that a group's runs are found without a list.
func GeneratorID(group string, number int) string { return group + "-g" + strconv.Itoa(number) }

// maxGenerators bounds a group.
const maxGenerators = 1000

// CheckGroup returns an error if name can't be the name of a group with this number of generators.
func CheckGroup(name string, generators int) error {
	if generators < 1 || generators > maxGenerators {
		return fmt.Errorf("a group has 1 to %d generators, not %d", maxGenerators, generators)
	}
	if err := CheckID(GeneratorID(name, generators)); name == "" || err != nil {
		if err = CheckID(name); err == nil {
			err = fmt.Errorf("it has %d characters, at most %d are allowed", len(name), maxID-len(GeneratorID("", generators)))
		}
		return fmt.Errorf("group %q: %s", name, strings.Replace(err.Error(), "run id", "its name", 1))
	}
	return nil
}

// check returns an error if the run id can't have this role in a group. The names of the
// generators' folders are derived from it.
func (g *Group) check(id string) error {
	if g == nil {
		return nil
	}
	if err := CheckGroup(g.Name, g.Generators); err != nil {
		return err
	}
	own := g.Name
	if g.Generator != 0 {
		own = GeneratorID(g.Name, g.Generator)
	}
	if g.Generator < 0 || g.Generator > g.Generators || len(g.Members) > g.Generators || own != id {
		return fmt.Errorf("it is not the run of generator %d of %d in group %q", g.Generator, g.Generators, g.Name)
	}
	return nil
}

// IsGroup reports whether the run is a group, not one of its generators.
func (m *Meta) IsGroup() bool { return m.Group != nil && m.Group.Generator == 0 }

// IsGenerator reports whether the run is one of a group's.
func (m *Meta) IsGenerator() bool { return m.Group != nil && m.Group.Generator > 0 }

// EndedBeforeStart reports whether a generator's run was interrupted while it waited for
// its start.
func (m *Meta) EndedBeforeStart() bool {
	return m.IsGenerator() && m.PID == 0 && m.Outcome == Interrupted
}

// IsCopy reports whether the run is recorded by a peer, which also marks and ends it.
func (m *Meta) IsCopy() bool { return m.Mirror != nil && m.Mirror.Peer }

// SameRun reports whether two records of the same id can be of one run: what identifies
// it, as far as both know that already, is equal.
func (m *Meta) SameRun(o *Meta) bool {
	a, b := m.identity(), o.identity()
	for i := range a {
		if a[i] != "" && b[i] != "" && a[i] != b[i] {
			return false
		}
	}
	return true
}

// identity is what distinguishes a run from others of the same id; empty if it is not
// known, or not yet.
func (m *Meta) identity() []string {
	number := func(n uint64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatUint(n, 10)
	}
	own := []string{m.Generator, m.BootID, number(uint64(m.PID)), number(m.PIDStartTicks), m.Tool, "", "", "", ""}
	if m.Import != nil {
		own[5] = m.Import.SHA256
	}
	if m.Log != nil {
		own[6] = m.Log.Identity()
	} else if m.Mirror != nil {
		own[6] = m.Mirror.Log
	}
	if m.Group != nil {
		own[7] = fmt.Sprint(m.Group.Name, " ", m.Group.Generators, " ", m.Group.Generator)
		if at := m.Group.StartAt; at != nil && m.IsGroup() {
			own[8] = at.UTC().Format(time.RFC3339Nano)
		}
	}
	return own
}

func (g *Group) name() string {
	if g == nil {
		return ""
	}
	return g.Name
}

// interrupted reports whether a generator was interrupted and none failed.
func (g *Group) interrupted() bool {
	return g != nil && g.failure() == "" && slices.ContainsFunc(g.Members, func(o Member) bool { return o.Outcome == Interrupted })
}

// failure is why a group failed: the generators that failed or were lost; empty if there are none. Interrupted
// generators are left out: they may have been interrupted because of the failure.
func (g *Group) failure() string {
	if g == nil {
		return ""
	}
	var texts []string
	for i := range g.Members {
		if o := &g.Members[i]; o.Absent || o.Outcome == Failed || o.Outcome == Lost {
			texts = append(texts, o.Describe(i+1))
		}
	}
	const listed = 3
	if more := len(texts) - listed; more > 0 {
		texts = append(texts[:listed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

// Describe returns how a generator ended.
func (o *Member) Describe(number int) string {
	text := GeneratorName(number, o.Host)
	switch {
	case o.Absent:
		text += " never started"
	case o.Outcome == Interrupted || o.Outcome == Lost:
		text += " was " + string(o.Outcome)
	default:
		text += " " + string(o.Outcome)
	}
	if o.Reason != "" {
		text += ": " + o.Reason
	}
	return text
}

// GeneratorName returns "generator 2 (gen2)", or without a host "generator 2".
func GeneratorName(number int, host string) string {
	if host == "" {
		return fmt.Sprintf("generator %d", number)
	}
	return fmt.Sprintf("generator %d (%s)", number, host)
}

// Skew returns the largest difference in seconds between the starts of two
// generators; false if fewer than two have started.
func (g *Group) Skew() (float64, bool) {
	first, last, n := 0.0, 0.0, 0
	for i := range g.Members {
		if s := g.Members[i].StartSeconds; s != nil {
			if n == 0 {
				first, last = *s, *s
			}
			first, last, n = min(first, *s), max(last, *s), n+1
		}
	}
	return last - first, n > 1
}

// ThisProcess identifies this process.
func ThisProcess(pid int) *ProcessID {
	ticks, _ := StartTicks(pid)
	return &ProcessID{PID: pid, StartTicks: ticks, BootID: clock.BootID()}
}

// Alive reports whether the process runs on this machine.
func (p *ProcessID) Alive() bool {
	if p == nil || p.PID <= 0 || p.StartTicks == 0 || p.BootID != clock.BootID() {
		return false
	}
	ticks, alive := StartTicks(p.PID)
	return alive && ticks == p.StartTicks
}

// FillPlaceholders returns a command line with {i} replaced by the number of a
// generator and {n} by how many there are.
func FillPlaceholders(args []string, number, generators int) []string {
	with := strings.NewReplacer("{i}", strconv.Itoa(number), "{n}", strconv.Itoa(generators))
	filled := make([]string, len(args))
	for i, a := range args {
		filled[i] = with.Replace(a)
	}
	return filled
}
