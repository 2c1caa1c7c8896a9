package record

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// maxServers bounds the targets that one status.jsonl can name, and keptAnswers the different versions and errors that
// are kept for each.
const (
	maxServers  = 256
	keptAnswers = 20
	// maxColumns bounds the columns of each, and the texts of a Timeline.
	maxColumns = 1024
)

// ServerRows is what one target answered during a part of a run, as columns with one row per tick. It implements
// [measure.Columns]. Besides the values that the engine reported, it has columns for db_up, db_restarts_total and both
// metrics of replication lag.
type ServerRows struct {
	// Elapsed are the ticks. At most the first thousand ticks of a gap are rows.
	series.Table[string]
	// Begin is the first row that was not in the previous part.
	Begin int
	// Asked and Answered are when the server was asked and had answered, on the
	// same axis; unknown if it did not answer.
	Asked, Answered []float64

	*ServerFacts

	// RoleAt and VersionAt are by row; a server that is down keeps its role.
	RoleAt, VersionAt Timeline

	columns  []measure.Column // in the order of the table's
	gaps     []gap            // of this part
	interval float64          // the newest distance of ticks in seconds; 0: unknown
}

// own are the columns that the sampler adds to what an engine reports.
var own = []string{engine.Up.Name, engine.RestartsTotal.Name, engine.ReplicationLagSeconds.Name, engine.ReplicationLagTransactions.Name}

// ServerFacts are a target and what it answered so far.
type ServerFacts struct {
	// Role and Flavour are the last ones that the server reported.
	Target, Engine, Cluster, Role, Flavour string
	// Versions are the different ones seen, Errors the first different ones.
	Versions, Errors []string
}

// gap is a sequence of ticks, one step apart, that the agent missed between two others.
type gap struct{ from, to, step float64 }

// missed returns how many ticks until the tool's end are in the gap, none before 0.
func (g gap) missed(toolEnd float64) int {
	n := 0.0
	if last := math.Ceil((g.to-g.from)/g.step-0.5) - 1; last >= 1 {
		n = min(last, math.Floor((toolEnd-g.from)/g.step)) - max(0, math.Ceil(-g.from/g.step)-1)
	}
	return int(min(max(0, n), math.MaxInt32))
}

// next drops the rows of this part except the last one, from which rates continue.
func (s *ServerRows) next() {
	last := max(0, len(s.Elapsed)-1)
	s.Keep(1)
	s.Asked, s.Answered = append(s.Asked[:0], s.Asked[last:]...), append(s.Answered[:0], s.Answered[last:]...)
	s.RoleAt.keep(last)
	s.VersionAt.keep(last)
	s.Begin, s.gaps = len(s.Elapsed), s.gaps[:0]
}

// column returns the place of a column in the table and begins it if it is new; -1 if there are too many.
func (s *ServerRows) column(c measure.Column) int {
	place := s.Column(c.Name)
	if place == len(s.columns) {
		s.columns = append(s.columns, c)
	}
	return place
}

// Columns returns all columns in the order in which they first appeared.
func (s *ServerRows) Columns() []measure.Column { return s.columns }

// Of implements [measure.Columns].
func (s *ServerRows) Of(metric string) []measure.Column {
	var columns []measure.Column
	for _, c := range s.columns {
		if c.Metric == metric {
			columns = append(columns, c)
		}
	}
	return columns
}

// Names returns the names of the columns that the engine reported, sorted.
func (s *ServerRows) Names() []string {
	var names []string
	for _, c := range s.columns {
		if !slices.Contains(own, c.Metric) {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Rate returns how much a counter grew per second, each tick against the previous
// one by the times of the answers. It is nil if the server never reported it.
func (s *ServerRows) Rate(name string) []float64 {
	values := s.Values(name)
	if values == nil {
		return nil
	}
	return series.Rates(values, s.Answered, s.Restarts())
}

// Restarts returns how often the server had restarted since the agent began to
// sample it, by row.
func (s *ServerRows) Restarts() []float64 { return s.Values(engine.RestartsTotal.Name) }

// Up reports whether the server answered at a row's tick.
func (s *ServerRows) Up(row int) bool { return series.IsKnown(s.Answered[row]) }

// tickAnswer is what a row of status.jsonl holds beside the values.
type tickAnswer struct {
	tick            time.Time
	asked, answered time.Time // zero: unknown
	up              bool
	err             string
	restarts        float64
	interval        float64 // the distance of ticks in seconds; 0: unknown
	// role, version and flavour are empty if unknown.
	role, version, flavour string
}

// Sampled reports whether the server was asked at a row's tick. The other rows are
// ticks that the agent missed: all of their values are unknown.
func (s *ServerRows) Sampled(row int) bool { return series.IsKnown(s.At(engine.Up.Name, row)) }

// row begins a tick; false if it does not lie after the previous one. Ticks that
// were missed before it are rows too.
func (s *ServerRows) row(a *tickAnswer, zero time.Time) bool {
	elapsed := a.tick.Sub(zero).Seconds()
	if !s.IsNext(elapsed) {
		return false
	}
	s.interval = cmp.Or(a.interval, s.interval)
	if n := len(s.Elapsed); n > 0 {
		breaks := series.Breaks([]float64{s.Elapsed[n-1], elapsed}, a.interval)
		if len(breaks) > 0 {
			s.gaps = append(s.gaps, gap{s.Elapsed[n-1], elapsed, a.interval})
		}
		for _, missed := range breaks {
			s.Row(missed)
			s.Asked, s.Answered = append(s.Asked, series.Unknown()), append(s.Answered, series.Unknown())
		}
	}
	if !s.Row(elapsed) {
		return false
	}
	asked, answered, up := series.Unknown(), series.Unknown(), 0.0
	if a.up {
		answered, up = a.answered.Sub(zero).Seconds(), 1
		if !a.asked.IsZero() {
			asked = a.asked.Sub(zero).Seconds()
		}
	}
	s.Asked = append(s.Asked, asked)
	s.Answered = append(s.Answered, answered)
	s.Set(engine.Up.Name, up)
	s.Set(engine.RestartsTotal.Name, a.restarts)
	if a.role != "" {
		s.Role = a.role
	}
	if a.flavour != "" {
		s.Flavour = a.flavour
	}
	s.RoleAt.add(len(s.Elapsed)-1, s.Role)
	s.VersionAt.add(len(s.Elapsed)-1, a.version)
	s.Versions = remember(s.Versions, a.version)
	s.Errors = remember(s.Errors, a.err)
	return true
}

// Timeline is a text by row that seldom changes.
type Timeline struct {
	rows  []int // where each text begins
	texts []string
}

func (t *Timeline) add(row int, text string) {
	if n := len(t.texts); text != "" && (n == 0 || t.texts[n-1] != text) && n < maxColumns {
		t.rows, t.texts = append(t.rows, row), append(t.texts, text)
	}
}

// At returns the text of a row, empty before the first one.
func (t *Timeline) At(row int) string {
	i := sort.SearchInts(t.rows, row+1)
	if i == 0 {
		return ""
	}
	return t.texts[i-1]
}

// keep drops the rows before from, which becomes row 0.
func (t *Timeline) keep(from int) {
	for i := len(t.rows) - 1; i >= 0; i-- {
		if t.rows[i] = max(0, t.rows[i]-from); t.rows[i] == 0 {
			t.rows, t.texts = t.rows[i:], t.texts[i:]
			return
		}
	}
}

// remember adds a text if it is new and fewer than keptAnswers are kept.
func remember(kept []string, text string) []string {
	if text == "" || len(kept) >= keptAnswers || slices.Contains(kept, text) {
		return kept
	}
	return append(kept, text)
}
