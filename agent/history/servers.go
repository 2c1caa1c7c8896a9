package history

import (
	"math"
	"slices"
	"sort"
	"time"

	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/series"
)

// maxServers bounds the targets that one status.jsonl can name, and
// keptAnswers the different versions and errors kept of each.
const (
	maxServers  = 256
	keptAnswers = 20
)

// ServerHistory is what one target answered during a run, as columns of equal
// length, one row a tick. What it did not answer is NaN.
type ServerHistory struct {
	// Role and Flavour are the last ones that were told.
	Target, Engine, Cluster, Role, Flavour string
	// Versions are the different ones seen, Errors the first different ones.
	Versions, Errors []string
	// Position is the last one, in the server's own notation.
	Position string

	// RoleAt and VersionAt are by row; a server that is down keeps its role.
	RoleAt, VersionAt Timeline

	// Elapsed are the ticks and Answered the times of the answers, in seconds
	// on the history's axis. Asked is NaN in records of older versions.
	Elapsed, Asked, Answered []float64
	Up                       []bool
	// Restarts counts them since the agent began to sample.
	Restarts                    []float64
	LagSeconds, LagTransactions []float64

	names  []string
	values [][]float64
	index  map[string]int
}

// Names returns the names of the values, sorted, as in Status.Values: labels in
// braces behind the metric.
func (s *ServerHistory) Names() []string {
	names := slices.Clone(s.names)
	slices.Sort(names)
	return names
}

// Values returns one value over all ticks, nil if the server never told it.
func (s *ServerHistory) Values(name string) []float64 {
	switch name { // columns that are not among a status' values
	case engine.ReplicationLagSeconds.Name:
		return anyKnown(s.LagSeconds)
	case engine.ReplicationLagTransactions.Name:
		return anyKnown(s.LagTransactions)
	case engine.RestartsTotal.Name:
		return s.Restarts
	case engine.Up.Name:
		answered := make([]float64, len(s.Up))
		for i, up := range s.Up {
			if up {
				answered[i] = 1
			}
		}
		return answered
	}
	i, ok := s.index[name]
	if !ok {
		return nil
	}
	s.values[i] = ingest.Pad(s.values[i], len(s.Elapsed))
	return s.values[i]
}

// Rate returns how much a counter grew per second, each tick against the
// answer before it; nil if the server never told it. It is NaN where either is
// missing and where the counter fell.
func (s *ServerHistory) Rate(name string) []float64 {
	values := s.Values(name)
	if values == nil {
		return nil
	}
	rates := make([]float64, len(values))
	for i := range rates {
		rates[i] = math.NaN()
		if i == 0 || s.Restarts[i] != s.Restarts[i-1] {
			continue
		}
		grown, seconds := values[i]-values[i-1], s.Answered[i]-s.Answered[i-1]
		if grown >= 0 && seconds > 0 {
			rates[i] = grown / seconds
		}
	}
	return rates
}

func anyKnown(values []float64) []float64 {
	if slices.ContainsFunc(values, series.IsKnown) {
		return values
	}
	return nil
}

// column is the place of a value's name; false if there are too many.
func (s *ServerHistory) column(name string) (int, bool) {
	if i, ok := s.index[name]; ok {
		return i, true
	}
	if len(s.names) >= ingest.MaxSeries {
		return 0, false
	}
	s.index[name] = len(s.names)
	s.names = append(s.names, name)
	s.values = append(s.values, nil)
	return len(s.names) - 1, true
}

// set puts a value into the last row.
func (s *ServerHistory) set(column int, v float64) {
	values := ingest.Pad(s.values[column], len(s.Elapsed)-1)
	if len(values) < len(s.Elapsed) {
		values = append(values, v)
	}
	s.values[column] = values
}

// row begins a tick with what is known of it beside the values; false if it
// does not come behind the one before.
func (s *ServerHistory) row(line *Status, zero time.Time) bool {
	elapsed := line.Tick.Sub(zero).Seconds()
	if n := len(s.Elapsed); n > 0 && elapsed <= s.Elapsed[n-1] {
		return false
	}
	asked, answered := math.NaN(), math.NaN()
	if line.Up {
		answered = line.Answered.Sub(zero).Seconds()
		if line.Asked != nil {
			asked = line.Asked.Sub(zero).Seconds()
		}
	}
	s.Elapsed = append(s.Elapsed, elapsed)
	s.Asked = append(s.Asked, asked)
	s.Answered = append(s.Answered, answered)
	s.Up = append(s.Up, line.Up)
	s.Restarts = append(s.Restarts, float64(line.Restarts))
	s.LagSeconds = append(s.LagSeconds, series.Number(line.LagSeconds))
	s.LagTransactions = append(s.LagTransactions, series.Number(line.LagTransactions))
	if line.Role != "" {
		s.Role = line.Role
	}
	s.RoleAt.add(len(s.Elapsed)-1, s.Role)
	s.VersionAt.add(len(s.Elapsed)-1, line.Version)
	if line.Flavour != "" {
		s.Flavour = line.Flavour
	}
	if line.Position != "" {
		s.Position = line.Position
	}
	s.Versions = remember(s.Versions, line.Version)
	s.Errors = remember(s.Errors, line.Error)
	return true
}

// Timeline is a text that seldom changes from row to row.
type Timeline struct {
	rows  []int // where each text begins
	texts []string
}

func (t *Timeline) add(row int, text string) {
	if n := len(t.texts); text != "" && (n == 0 || t.texts[n-1] != text) && n < ingest.MaxSeries {
		t.rows, t.texts = append(t.rows, row), append(t.texts, text)
	}
}

// At is the text of a row; empty before the first.
func (t *Timeline) At(row int) string {
	i := sort.SearchInts(t.rows, row+1)
	if i == 0 {
		return ""
	}
	return t.texts[i-1]
}

// remember adds a text that is new to a few that are kept.
func remember(kept []string, text string) []string {
	if text == "" || len(kept) >= keptAnswers || slices.Contains(kept, text) {
		return kept
	}
	return append(kept, text)
}

// AddStatus appends what one target answered at one tick, as recorded in
// status.jsonl. One that does not come behind the tick before it is left out.
func (h *History) AddStatus(line *Status) {
	s := h.server(line)
	if s == nil || !s.row(line, h.Zero) {
		h.Damage.MisplacedStatus++
		return
	}
	for name, v := range line.Values {
		if h.keep != nil && !h.keep(name) {
			continue
		}
		if i, ok := s.column(name); ok {
			s.set(i, v)
		}
	}
}

// server finds the history of a line's target or begins it; nil if there are
// too many.
func (h *History) server(line *Status) *ServerHistory {
	if s := h.Server(line.Target); s != nil {
		return s
	}
	if len(h.Servers) >= maxServers {
		return nil
	}
	s := &ServerHistory{Target: line.Target, Engine: line.Engine, Cluster: line.Cluster, index: map[string]int{}}
	h.Servers = append(h.Servers, s)
	return s
}
