package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchmath"
)

// Group is runs that are the same thing repeated, or at several settings.
type Group struct {
	Name string
	Runs []Row
}

// Comparison puts groups side by side, setting by setting. The first group is
// what the others are compared with.
type Comparison struct {
	Groups []string `json:"groups"`
	// Settings are the names of what varies within the groups: one line of the
	// table for each combination of their values.
	Settings []string `json:"settings,omitempty"`
	// Differs are facts that are the same within each group and not between
	// them: what is compared.
	Differs []Difference `json:"differs,omitempty"`
	// ServerSettings are the servers' settings that are the same within each group
	// and not between them.
	ServerSettings []Difference  `json:"server_settings,omitempty"`
	Lines          []CompareLine `json:"lines"`
	// Notes are what the reader should know of the comparison as a whole.
	Notes []string `json:"notes,omitempty"`
}

// Difference is a fact and its value in each group.
type Difference struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// CompareLine is one measure at one setting.
type CompareLine struct {
	Settings []string `json:"settings,omitempty"`
	Measure  string   `json:"measure"`
	// Unit of the samples' values, for people: /s or ms.
	Unit    string   `json:"unit,omitempty"`
	Samples []Sample `json:"samples"`
}

// Sample is one group's values of a measure.
type Sample struct {
	N      int     `json:"n"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// Ratio is to the first group's median; nil for the first group itself and
	// where either is missing.
	Ratio *float64 `json:"ratio,omitempty"`
	// P is the probability of a difference at least as large if there were none
	// (Mann-Whitney U test); nil where a group has one run only.
	P *float64 `json:"p,omitempty"`
	// Verdict says whether the difference is more than noise.
	Verdict Verdict `json:"verdict,omitempty"`
}

// Verdict says what can be told of a difference.
type Verdict string

const (
	// Different: more than noise, at the 5 % level.
	Different Verdict = "different"
	// Same: no more than noise.
	Same Verdict = "noise"
	// TooFew: with so few runs not even the largest difference could be told
	// from noise.
	TooFew Verdict = "too few runs"
	// Single: a group has one run only.
	Single Verdict = "one run"
)

// alpha is the level of the test, benchstat's.
const alpha = 0.05

// bookkeeping are labels that number runs and tell nothing of how they were
// made.
var bookkeeping = []string{"sweep", "step", "repeat"}

// Compare groups. of are the names of facts by which the groups were made.
func Compare(groups []Group, of []string) Comparison {
	c := Comparison{}
	for _, g := range groups {
		c.Groups = append(c.Groups, g.Name)
	}
	c.settings(groups, of)
	keys := c.keys(groups)
	var rows []Row
	for _, g := range groups {
		rows = append(rows, g.Runs...)
	}
	for _, m := range Measures(rows) {
		for _, key := range keys {
			line := CompareLine{Settings: key, Measure: m.Name, Unit: m.Unit}
			some := false
			for _, g := range groups {
				s := c.sample(g, key, m)
				line.Samples = append(line.Samples, s)
				some = some || s.N > 0
			}
			if some {
				c.judge(&line, groups, key, m)
				c.Lines = append(c.Lines, line)
			}
		}
	}
	c.notes(groups)
	c.compareSettings(groups)
	return c
}

// factsOf are what a run is told apart by.
func factsOf(r *Row) map[string]string {
	facts := map[string]string{"tool": r.Tool, "tool_version": r.Version, "workload": r.Workload, "target": r.Target, "database": r.Database}
	if r.Threads > 0 {
		facts["threads"] = strconv.Itoa(r.Threads)
	}
	for name, v := range r.Labels {
		if _, own := facts[name]; !own && !slices.Contains(bookkeeping, name) {
			facts[name] = v
		}
	}
	return facts
}

// settings finds what varies within a group, and what between groups only.
func (c *Comparison) settings(groups []Group, of []string) {
	names := map[string]bool{}
	for _, g := range groups {
		for i := range g.Runs {
			for name := range factsOf(&g.Runs[i]) {
				names[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		within := false
		values := make([]string, len(groups))
		for i, g := range groups {
			for j := range g.Runs {
				v := factsOf(&g.Runs[j])[name]
				within = within || j > 0 && v != values[i]
				values[i] = v
			}
		}
		switch {
		case slices.Contains(of, name):
		case within:
			c.Settings = append(c.Settings, name)
		case slices.ContainsFunc(values, func(v string) bool { return v != values[0] }):
			c.Differs = append(c.Differs, Difference{name, values})
		}
	}
	// The number of threads is what people read a table by.
	slices.SortStableFunc(c.Settings, func(a, b string) int { return rank(a) - rank(b) })
	c.dropEchoes(groups)
}

// dropEchoes leaves out settings that say in every run what one before them says,
// such as a sweep's label beside the tool's own option that it was put in for.
func (c *Comparison) dropEchoes(groups []Group) {
	kept := c.Settings[:0]
	for _, name := range c.Settings {
		if !slices.ContainsFunc(kept, func(other string) bool { return sameFacts(groups, name, other) }) {
			kept = append(kept, name)
		}
	}
	c.Settings = kept
}

func sameFacts(groups []Group, a, b string) bool {
	for _, g := range groups {
		for i := range g.Runs {
			if facts := factsOf(&g.Runs[i]); facts[a] != facts[b] {
				return false
			}
		}
	}
	return true
}

func rank(setting string) int {
	switch setting {
	case "workload":
		return 0
	case "threads":
		return 1
	}
	return 2
}

// keys are the combinations of settings, in order.
func (c *Comparison) keys(groups []Group) [][]string {
	var keys [][]string
	for _, g := range groups {
		for i := range g.Runs {
			key := c.key(&g.Runs[i])
			if !slices.ContainsFunc(keys, func(k []string) bool { return slices.Equal(k, key) }) {
				keys = append(keys, key)
			}
		}
	}
	slices.SortStableFunc(keys, func(a, b []string) int {
		for i := range a {
			if o := compareText(a[i], b[i]); o != 0 {
				return o
			}
		}
		return 0
	})
	return keys
}

func (c *Comparison) key(r *Row) []string {
	facts := factsOf(r)
	key := make([]string, len(c.Settings))
	for i, name := range c.Settings {
		key[i] = facts[name]
	}
	return key
}

// compareText orders numbers by size and other texts by letters.
func compareText(a, b string) int {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX == nil && errY == nil && x != y {
		if x < y {
			return -1
		}
		return 1
	}
	return strings.Compare(a, b)
}

func (c *Comparison) values(g Group, key []string, m Measure) []float64 {
	var values []float64
	for i := range g.Runs {
		if v, ok := m.Value(&g.Runs[i]); ok && !math.IsNaN(v) && slices.Equal(c.key(&g.Runs[i]), key) {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	return values
}

func (c *Comparison) sample(g Group, key []string, m Measure) Sample {
	values := c.values(g, key, m)
	if len(values) == 0 {
		return Sample{}
	}
	return Sample{N: len(values), Median: median(values), Min: values[0], Max: values[len(values)-1]}
}

// judge compares each group's sample with the first one's.
func (c *Comparison) judge(line *CompareLine, groups []Group, key []string, m Measure) {
	base := line.Samples[0]
	if base.N == 0 {
		return
	}
	thresholds := benchmath.DefaultThresholds
	thresholds.CompareAlpha = alpha
	before := benchmath.NewSample(c.values(groups[0], key, m), &thresholds)
	for i := 1; i < len(groups); i++ {
		s := &line.Samples[i]
		if s.N == 0 {
			continue
		}
		if base.Median != 0 {
			s.Ratio = ptr(s.Median / base.Median)
		}
		if s.N < 2 || base.N < 2 {
			s.Verdict = Single
			continue
		}
		result := benchmath.AssumeNothing.Compare(before, benchmath.NewSample(c.values(groups[i], key, m), &thresholds))
		s.P = &result.P
		switch {
		case result.P <= alpha && base.Median != s.Median:
			s.Verdict = Different
		case result.P > alpha && len(result.Warnings) > 0 && base.Median != s.Median:
			s.Verdict = TooFew
		default:
			s.Verdict = Same
		}
	}
}

func (c *Comparison) notes(groups []Group) {
	verdicts := map[Verdict]bool{}
	for _, l := range c.Lines {
		for _, s := range l.Samples {
			verdicts[s.Verdict] = true
		}
	}
	if verdicts[Single] {
		c.Notes = append(c.Notes, "one run says nothing of its spread: where a side has one run, the difference may be noise. Repeat the runs, 4 a side or more")
	}
	if verdicts[TooFew] {
		c.Notes = append(c.Notes, "too few runs: below 4 a side no difference, however large, can be told from noise at the 5 % level")
	}
	if verdicts[Different] || verdicts[Same] {
		c.Notes = append(c.Notes, "p: Mann-Whitney U test, 5 % level; medians, with the smallest and the largest run")
	}
	for _, name := range []string{"workload", "threads", "tool_version"} {
		for _, d := range c.Differs {
			if d.Name == name {
				c.Notes = append(c.Notes, fmt.Sprintf("the groups differ in %s (%s): a difference may come from that", d.Name, joinWords(d.Values)))
			}
		}
	}
}
