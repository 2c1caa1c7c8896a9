package history

import (
	"slices"
	"sort"
	"time"

	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/series"
)

// maxServers bounds the targets that one status.jsonl can name, and
// keptAnswers the different versions and errors kept of each.
const (
	maxServers  = 256
	keptAnswers = 20
	maxTexts    = 1024
)

// ServerHistory is what one target answered during a run, as columns, one row a
// tick. It is [measure.Columns]: beside the values that the engine reported there
// are columns of db_up, db_restarts_total and the two of replication lag.
type ServerHistory struct {
	// Elapsed are the ticks.
	series.Table[string]
	// Asked and Answered are when the server was asked and had answered, on the
	// same axis; unknown if it did not answer. Asked is also unknown in the records
	// of version 0.1.
	Asked, Answered []float64

	// Role and Flavour are the last ones that the server reported.
	Target, Engine, Cluster, Role, Flavour string
	// Versions are the different ones seen, Errors the first different ones.
	Versions, Errors []string
	// Position is the last one, in the server's own notation.
	Position string

	// RoleAt and VersionAt are by row; a server that is down keeps its role.
	RoleAt, VersionAt Timeline
}

// own are the columns that the sampler adds to what an engine reports.
var own = []string{engine.Up.Name, engine.RestartsTotal.Name, engine.ReplicationLagSeconds.Name, engine.ReplicationLagTransactions.Name}

// Names returns the names of the values that the engine reported, sorted, with
// their labels in braces.
func (s *ServerHistory) Names() []string {
	names := slices.DeleteFunc(slices.Clone(s.Keys()), func(name string) bool { return slices.Contains(own, name) })
	slices.Sort(names)
	return names
}

// Rate returns how much a counter grew per second, each tick against the previous
// one by the times of the answers. It is nil if the server never reported it.
func (s *ServerHistory) Rate(name string) []float64 {
	values := s.Values(name)
	if values == nil {
		return nil
	}
	return series.Rates(values, s.Answered, s.Restarts())
}

// Restarts returns how often the server had restarted since the agent began to
// sample it, by row.
func (s *ServerHistory) Restarts() []float64 { return s.Values(engine.RestartsTotal.Name) }

// Up reports whether the server answered at a row's tick.
func (s *ServerHistory) Up(row int) bool { return series.IsKnown(s.Answered[row]) }

// row begins a tick with what is known of it beside the values; false if it does
// not lie after the previous tick.
func (s *ServerHistory) row(line *Status, zero time.Time) bool {
	elapsed := line.Tick.Sub(zero).Seconds()
	if !s.IsNext(elapsed) || !s.Row(elapsed) {
		return false
	}
	asked, answered, up := series.Unknown(), series.Unknown(), 0.0
	if line.Up {
		answered, up = line.Answered.Sub(zero).Seconds(), 1
		if line.Asked != nil {
			asked = line.Asked.Sub(zero).Seconds()
		}
	}
	s.Asked = append(s.Asked, asked)
	s.Answered = append(s.Answered, answered)
	s.Set(engine.Up.Name, up)
	s.Set(engine.RestartsTotal.Name, float64(line.Restarts))
	s.Set(engine.ReplicationLagSeconds.Name, series.Number(line.LagSeconds))
	s.Set(engine.ReplicationLagTransactions.Name, series.Number(line.LagTransactions))
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
	if n := len(t.texts); text != "" && (n == 0 || t.texts[n-1] != text) && n < maxTexts {
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
		s.Set(name, v)
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
	s := &ServerHistory{Target: line.Target, Engine: line.Engine, Cluster: line.Cluster}
	h.Servers = append(h.Servers, s)
	return s
}
