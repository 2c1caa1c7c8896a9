package history

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/analysis"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Trend is a measure of runs over months: one series for each kind of run.
type Trend struct {
	Measure string `json:"measure"`
	// Unit is the unit of all values. Latencies are in milliseconds, shares in percent.
	Unit   string        `json:"unit,omitempty"`
	Series []TrendSeries `json:"series"`
	// Notes are remarks for readers of the result.
	Notes []string `json:"notes,omitempty"`
	// Link returns the address of a run's page; nil: there is none.
	Link func(id string) string `json:"-"`

	unit table.Unit
}

// TrendSeries are the runs of one kind, oldest first.
type TrendSeries struct {
	// Facts are common to all runs of the series, and no other series has the same.
	Facts []rundir.Fact `json:"facts"`
	Runs  []TrendRun    `json:"runs"`
	// Levels are stretches of consecutive runs around the same level.
	Levels  []TrendLevel  `json:"levels"`
	Changes []TrendChange `json:"changes"`
	// Factor is the largest value divided by the smallest one within a level; absent for single runs.
	Factor float64 `json:"factor,omitempty"`
	// Disturbed is what disturbed the runs: other programs on the tools' machine.
	Disturbed string `json:"disturbed,omitempty"`
}

// TrendRun is the value of one run.
type TrendRun struct {
	ID        string    `json:"id"`
	StartedAt time.Time `json:"started_at"`
	Value     float64   `json:"value"`
	// Low and High are the interval of a ratio; absent for other measures.
	Low  series.Optional[float64] `json:"low,omitzero"`
	High series.Optional[float64] `json:"high,omitzero"`

	Facts map[string]string `json:"-"`
}

// TrendLevel is a stretch of consecutive runs in a series.
type TrendLevel struct {
	From string  `json:"from_run"`
	To   string  `json:"to_run"`
	Runs int     `json:"runs"`
	Mean float64 `json:"mean"`

	Begin, End int `json:"-"`
}

// TrendChange is the end of one level and the beginning of the next.
type TrendChange struct {
	// Before is the last run of the earlier level, After the first run of the next one.
	Before string `json:"before_run"`
	After  string `json:"after_run"`
	// At is when After began.
	At            time.Time `json:"at"`
	ChangePercent float64   `json:"change_percent"`
	From          float64   `json:"from"`
	To            float64   `json:"to"`
	// Differs is what differs between the two runs and does not vary within a level.
	Differs []FactChange `json:"differs"`

	Index int `json:"-"`
}

// FactChange is a fact, label or setting with its values before and after; empty if a run has no
// value.
type FactChange struct {
	Name   string `json:"name"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Setting: it is a setting of the servers.
	Setting bool `json:"setting,omitempty"`
}

// TrendOptions configure a Trend.
type TrendOptions struct {
	// Measure is the name of a measure as in conditions: tps, p95, lag …
	Measure string
	// By are facts that separate runs into series, in addition to the tool's options and the
	// parameters of sweeps.
	By []string
	// Settings returns the settings of a run's servers; nil: unknown.
	Settings func(id string) map[string]string
	// Others returns the share of the CPU of its tool's machine that other programs took during a run, unknown if that was
	// not recorded. It is called for a few runs of a series. nil: unknown.
	Others func(id string) float64
}

// KindFacts are the facts in which runs must agree to be comparable.
var KindFacts = []string{"tool", "workload", "threads", "verb"}

// leastRuns is the number of runs below which a series has no changes.
const leastRuns = 8

// NewTrend returns the trend of runs. It fails if no run has the measure.
func NewTrend(rows []review.Row, o TrendOptions) (*Trend, error) {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b review.Row) int { return a.StartedAt.Compare(b.StartedAt) })
	condition, err := review.ParseName(o.Measure)
	if err != nil {
		return nil, err
	}
	m, ok := condition.Measure(rows)
	if !ok {
		return nil, fmt.Errorf("no run has the measure %s", o.Measure)
	}
	t := &Trend{Measure: m.Name, Unit: m.Unit.Sign, Series: []TrendSeries{}, unit: m.Unit}
	var runs []TrendRun
	for i := range rows {
		r := &rows[i]
		v := m.Value(r)
		if !series.IsKnown(v) || math.IsInf(v, 0) {
			continue
		}
		facts := map[string]string{}
		for _, f := range compare.DistinguishingFacts(r) {
			facts[f.Name] = f.Value
		}
		runs = append(runs, TrendRun{ID: r.ID, StartedAt: r.StartedAt, Value: v * m.Unit.Factor, Facts: facts})
	}
	t.add(runs, slices.Concat(o.By, variedParameters(rows, o.By)), &o)
	return t, nil
}

// Ratio is the name of the measure of A/B comparisons.
const Ratio = "ratio"

// NewRatioTrend returns the trend of the ratios of A/B comparisons, oldest first, in the place of runs.
func NewRatioTrend(ratios []TrendRun, by []string) *Trend {
	t := &Trend{Measure: Ratio, Series: []TrendSeries{}}
	t.add(ratios, by, &TrendOptions{})
	return t
}

// add separates runs into series by facts.
func (t *Trend) add(runs []TrendRun, by []string, o *TrendOptions) {
	keys := map[string]int{}
	for i := range runs {
		r := &runs[i]
		var own []rundir.Fact
		key := ""
		for _, name := range by {
			own = append(own, rundir.Fact{Name: name, Value: r.Facts[name]})
			key += fmt.Sprintf("%q", r.Facts[name])
		}
		at, ok := keys[key]
		if !ok {
			at = len(t.Series)
			keys[key] = at
			t.Series = append(t.Series, TrendSeries{Facts: own, Levels: []TrendLevel{}, Changes: []TrendChange{}})
		}
		t.Series[at].Runs = append(t.Series[at].Runs, *r)
	}
	for i := range t.Series {
		t.Series[i].find(o)
	}
	t.dropCommonFacts()
	slices.SortStableFunc(t.Series, func(a, b TrendSeries) int {
		if c := cmp.Compare(a.rank(), b.rank()); c != 0 {
			return c
		}
		for i := range a.Facts {
			if c := rundir.CompareValues(a.Facts[i].Value, b.Facts[i].Value); c != 0 {
				return c
			}
		}
		return 0
	})
	t.noteShort()
}

// rank is the place of a series among the others: series with a change come first, series too short to
// have one later, single runs last.
func (s *TrendSeries) rank() int {
	switch {
	case len(s.Changes) > 0:
		return 0
	case len(s.Runs) >= leastRuns:
		return 1
	case len(s.Runs) > 1:
		return 2
	}
	return 3
}

// noteShort counts the series with too few runs.
func (t *Trend) noteShort() {
	if short := t.short(); short > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%d series with fewer than %d runs: too few to find a change in", short, leastRuns))
	}
}

func (t *Trend) short() int {
	short := 0
	for i := range t.Series {
		if len(t.Series[i].Runs) < leastRuns {
			short++
		}
	}
	return short
}

// Verdict counts the changes of all series; empty if every series is too short to have one.
func (t *Trend) Verdict() string {
	changes, changed := 0, 0
	for i := range t.Series {
		if n := len(t.Series[i].Changes); n > 0 {
			changes += n
			changed++
		}
	}
	long := len(t.Series) - t.short()
	switch {
	case long == 0:
		return ""
	case changes == 0:
		return fmt.Sprintf("no change in %d series", long)
	}
	return fmt.Sprintf("%s in %d of %d series", table.Plural(changes, "change"), changed, long)
}

// variedParameters returns the names of parameters that were varied on purpose and are not in
// known: the tool's options, and the parameters of a sweep.
func variedParameters(rows []review.Row, known []string) []string {
	values, sweeps := map[string]map[string]bool{}, map[string]map[string]string{}
	note := func(name, value string) {
		if values[name] == nil {
			values[name] = map[string]bool{}
		}
		values[name][value] = true
	}
	options, varied := map[string]bool{}, map[string]bool{}
	for i := range rows {
		r := &rows[i]
		for _, name := range r.Options {
			options[name] = true
		}
		first := sweeps[r.Labels["sweep"]]
		if first == nil && r.Labels["sweep"] != "" {
			sweeps[r.Labels["sweep"]] = r.Labels
		}
		for name, value := range first {
			if r.Labels[name] != value {
				varied[name] = true
			}
		}
	}
	for i := range rows {
		for name := range options {
			note(name, rows[i].Labels[name])
		}
	}
	for name := range options {
		if len(values[name]) > 1 {
			varied[name] = true
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(varied)), func(name string) bool {
		return slices.Contains(known, name) || slices.Contains(compare.Bookkeeping, name)
	})
}

// TrendMeasures returns the names of the measures that can have a trend: measures of the tool that
// at least one run has, and measures of servers.
func TrendMeasures(rows []review.Row) []string {
	var names []string
	add := func(all []review.Measure) {
		for _, m := range all {
			if m.Condition != "" && !slices.Contains(names, m.Condition) {
				names = append(names, m.Condition)
			}
		}
	}
	add(slices.DeleteFunc(review.Measures(rows), func(m review.Measure) bool { return m.Server }))
	add(review.ServerMeasures(nil))
	return names
}

// dropCommonFacts removes facts that all series have in common from their names.
func (t *Trend) dropCommonFacts() {
	if len(t.Series) < 2 {
		return
	}
	for i, v := range slices.Backward(t.Series[0].Facts) {
		if !slices.ContainsFunc(t.Series, func(s TrendSeries) bool { return s.Facts[i].Value != v.Value }) {
			for j := range t.Series {
				t.Series[j].Facts = slices.Delete(t.Series[j].Facts, i, i+1)
			}
		}
	}
}

// find finds the levels of a series and the differences between them.
func (s *TrendSeries) find(o *TrendOptions) {
	values := make([]float64, len(s.Runs))
	for i := range s.Runs {
		values[i] = s.Runs[i].Value
	}
	parts := []analysis.Part{{Begin: 0, End: len(values), Mean: compare.NewSpread(values).Mean}}
	if len(values) >= leastRuns {
		parts = analysis.Levels(values)
	}
	for i, p := range parts {
		s.Levels = append(s.Levels, TrendLevel{From: s.Runs[p.Begin].ID, To: s.Runs[p.End-1].ID,
			Runs: p.End - p.Begin, Mean: p.Mean, Begin: p.Begin, End: p.End})
		if i == 0 {
			continue
		}
		before, after := &s.Runs[p.Begin-1], &s.Runs[p.Begin]
		c := TrendChange{Before: before.ID, After: after.ID, At: after.StartedAt, From: parts[i-1].Mean, To: p.Mean, Index: p.Begin}
		if c.From != 0 {
			c.ChangePercent = 100 * (c.To/c.From - 1)
		}
		c.Differs = append(s.changedOthers(p.Begin, o.Others), s.differences(parts[i-1], p)...)
		if o.Settings != nil {
			for _, d := range changedSettings(o.Settings(before.ID), o.Settings(after.ID)) {
				// The version of the server may also be a label.
				if !slices.ContainsFunc(c.Differs,
					func(f FactChange) bool { return f.Name == d.Name && f.Before == d.Before && f.After == d.After }) {
					c.Differs = append(c.Differs, d)
				}
			}
		}
		s.Changes = append(s.Changes, c)
	}
	s.addSpread(o.Others)
}

// differences returns the facts in which the runs before and after a change differ, and which do
// not vary within one of the levels.
func (s *TrendSeries) differences(a, b analysis.Part) []FactChange {
	before, after := s.Runs[a.End-1].Facts, s.Runs[b.Begin].Facts
	names := map[string]bool{}
	for _, facts := range []map[string]string{before, after} {
		for name := range facts {
			names[name] = true
		}
	}
	differ := []FactChange{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if before[name] == after[name] {
			continue
		}
		varies := func(runs []TrendRun, value string) bool {
			return slices.ContainsFunc(runs, func(r TrendRun) bool { return r.Facts[name] != value })
		}
		if varies(s.Runs[max(a.Begin, a.End-leastRuns):a.End], before[name]) &&
			varies(s.Runs[b.Begin:min(b.End, b.Begin+leastRuns)], after[name]) {
			continue
		}
		differ = append(differ, FactChange{Name: name, Before: before[name], After: after[name]})
	}
	return differ
}

func changedSettings(before, after map[string]string) []FactChange {
	if before == nil || after == nil { // not recorded: unknown, not removed
		return nil
	}
	var changed []FactChange
	names := maps.Clone(before)
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if before[name] != after[name] {
			changed = append(changed, FactChange{Name: name, Before: before[name], After: after[name], Setting: true})
		}
	}
	return changed
}

// Title names a series by its facts.
func (s *TrendSeries) Title() string {
	var words []string
	for _, f := range s.Facts {
		switch {
		case f.Value == "":
		case f.Name == "workload" || f.Name == "tool" || f.Name == "verb":
			words = append(words, f.Value)
		case f.Name == "threads":
			n, _ := strconv.Atoi(f.Value) // a fact of a run is a number
			words = append(words, table.Plural(n, "thread"))
		default:
			words = append(words, f.Name+" "+f.Value)
		}
	}
	return cmp.Or(strings.Join(words, ", "), "all runs")
}

// Text returns the differences as text.
func (c *TrendChange) Text() string {
	words := make([]string, len(c.Differs))
	for i, d := range c.Differs {
		words[i] = d.Name + " " + table.Dash(d.Before) + " → " + table.Dash(d.After)
	}
	return cmp.Or(strings.Join(words, "; "), "nothing that was recorded")
}

// Head returns the name of the measure with its unit.
func (t *Trend) Head() string {
	m := review.Measure{Name: t.Measure, Unit: t.unit}
	return m.Head()
}

// ChangeTable returns a table with a row for each change of a series.
func (t *Trend) ChangeTable(s *TrendSeries) *table.Table {
	out := table.New(table.Named("since", "first run", "runs before",
		"runs after", t.Head()+" before", "after", "change", "what differs")...)
	for i := range s.Changes {
		c := &s.Changes[i]
		out.Add(table.Text(table.Instant(c.At)), table.Text(c.After), table.Whole(s.Levels[i].Runs), table.Whole(s.Levels[i+1].Runs),
			table.Number(c.From, table.Digits), table.Number(c.To, table.Digits),
			table.Text(fmt.Sprintf("%+.1f %%", c.ChangePercent)), table.Text(c.Text()))
	}
	return out
}

// RatioTable returns a table with the newest ratios of a series, empty for other measures.
func (t *Trend) RatioTable(s *TrendSeries) *table.Table {
	const most = 20
	out := table.New(table.Named("start", "comparison", "difference", "from", "to", "a", "other arm")...)
	if t.Measure != Ratio {
		return out
	}
	percent := func(v series.Optional[float64]) table.Cell {
		if !v.Known {
			return table.Text("")
		}
		return table.Text(fmt.Sprintf("%+.1f %%", 100*(v.Value-1)))
	}
	for _, r := range s.Runs[max(0, len(s.Runs)-most):] {
		out.Add(table.Text(table.Instant(r.StartedAt)), table.Text(r.ID), percent(series.Some(r.Value)),
			percent(r.Low), percent(r.High), table.Text(r.Facts["a"]), table.Text(r.Facts[r.Facts["arm"]]))
	}
	return out
}

// ChangeText describes the size of a change.
func (t *Trend) ChangeText(s *TrendSeries, i int) string {
	c := &s.Changes[i]
	return fmt.Sprintf("%s: %+.1f %%, from %s in %s to %s %s in %s", table.Instant(c.At),
		c.ChangePercent, table.Digits.Format(c.From), table.Plural(s.Levels[i].Runs, "run"),
		table.Digits.Format(c.To), t.Head(), table.Plural(s.Levels[i+1].Runs, "run"))
}

// LevelText describes a series without changes, or its current level.
func (t *Trend) LevelText(s *TrendSeries) string {
	last := s.Levels[len(s.Levels)-1]
	text := fmt.Sprintf("%s, %s to %s", table.Plural(len(s.Runs), "run"),
		table.Instant(s.Runs[0].StartedAt), table.Instant(s.Runs[len(s.Runs)-1].StartedAt))
	switch {
	case len(s.Runs) == 1:
		return fmt.Sprintf("1 run, %s: %s %s", table.Instant(s.Runs[0].StartedAt), table.Digits.Format(last.Mean), t.Head())
	case len(s.Runs) < leastRuns:
		return s.said() + fmt.Sprintf("%s: mean %s %s; too few to find a change in", text, table.Digits.Format(last.Mean), t.Head())
	case len(s.Changes) == 0:
		return s.said() + fmt.Sprintf("%s: no change%s, mean %s %s", text, s.unseen(), table.Digits.Format(last.Mean), t.Head())
	}
	return s.said() + fmt.Sprintf("%s: %s, now %s %s in the last %s", text, table.Plural(len(s.Changes), "change"),
		table.Digits.Format(last.Mean), t.Head(), table.Plural(last.Runs, "run"))
}

// CSV writes a line for each run.
func (t *Trend) CSV(w io.Writer) error {
	out := table.New(table.Named("series", "run", "started_at", "measure", "unit", "value", "level", "mean", "changed")...)
	for i := range t.Series {
		s := &t.Series[i]
		for j, l := range s.Levels {
			for k := l.Begin; k < l.End; k++ {
				changed := ""
				if j > 0 && k == l.Begin {
					changed = s.Changes[j-1].Text()
				}
				r := &s.Runs[k]
				out.Add(table.Text(s.Title()), table.Text(r.ID),
					table.Text(r.StartedAt.UTC().Format(time.RFC3339)), table.Text(t.Measure), table.Text(t.Unit),
					table.Number(r.Value, table.Digits), table.Whole(j+1), table.Number(l.Mean, table.Digits), table.Text(changed))
			}
		}
	}
	return out.CSV(w)
}
