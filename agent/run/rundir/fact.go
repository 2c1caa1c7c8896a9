package rundir

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Fact is something by which runs differ: the tool, the number of threads, a user's label. Value is
// empty if unknown.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Facts returns the run's facts: first the facts of every run, always complete and in the same
// order, then the user's labels by name. It omits labels that CheckLabel refuses; an old or edited
// run.json may have them.
//
// This is the only list of a run's facts. Labels of benchwatch_run_info, columns of tables and the
// page are derived from it.
func (m *Meta) Facts() []Fact {
	facts := m.OwnFacts()
	for _, name := range slices.Sorted(maps.Keys(m.Labels)) {
		if CheckLabel(name) == nil {
			facts = append(facts, Fact{name, m.Labels[name]})
		}
	}
	return facts
}

// OwnFacts returns the facts that every run has, without the labels.
func (m *Meta) OwnFacts() []Fact {
	threads := ""
	if m.Threads > 0 {
		threads = strconv.Itoa(m.Threads)
	}
	return []Fact{
		{"tool", m.Tool},
		{"tool_version", m.ToolVersion},
		{"verb", m.Verb},
		{"workload", m.Workload},
		{"threads", threads},
		{"target", m.Target},
		{"database", m.Database},
		{"generator", m.Generator},
		{"group", m.Group.name()},
	}
}

// Fact returns the value of the fact called name; empty if unknown.
func (m *Meta) Fact(name string) string {
	for _, f := range m.Facts() {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// IsPreparation reports whether the run fills, checks or empties tables.
func (m *Meta) IsPreparation() bool {
	return m.Verb == "prepare" || m.Verb == "check" || m.Verb == "cleanup" || m.Verb == "load"
}

// FactNames returns the names of the facts that every run has, in the order of
// Facts.
func FactNames() []string {
	var names []string
	for _, f := range new(Meta).OwnFacts() {
		names = append(names, f.Name)
	}
	return names
}

// ErrReservedLabel is returned for a label with the name of a fact, or of another label of a run's
// metrics.
var ErrReservedLabel = errors.New("is benchwatch's own: choose another name")

// reservedLabels are the labels of a run's metrics that a user's label would hide.
var reservedLabels = append(FactNames(), "run", "title", "op", "stat", "phase", "result")

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// CheckLabel returns an error if name can't be a user's label, ErrReservedLabel if benchwatch uses
// it itself.
func CheckLabel(name string) error {
	switch {
	case !labelName.MatchString(name) || strings.HasPrefix(name, "__"):
		return fmt.Errorf("label %q: use letters, digits and _, not beginning with a digit or __", name)
	case slices.Contains(reservedLabels, name):
		return fmt.Errorf("label %q %w", name, ErrReservedLabel)
	}
	return nil
}

// CheckLabels returns the error of the first label, by name, that CheckLabel
// refuses.
func CheckLabels(labels map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if err := CheckLabel(name); err != nil {
			return err
		}
	}
	return nil
}

// SizeOf parses the value of a fact or setting that is a number, such as 16, 0.5, 8G, 512mb or 128
// MiB; false otherwise. Units are powers of 1024.
func SizeOf(value string) (float64, bool) {
	digits := strings.TrimRight(value, "KMGTkmgtiIbB")
	v, err := strconv.ParseFloat(strings.TrimSuffix(digits, " "), 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, false
	}
	switch unit := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(value[len(digits):]), "B"), "I"); unit {
	case "":
		return v, true
	case "K", "M", "G", "T":
		return v * math.Pow(1024, float64(strings.Index("KMGT", unit)+1)), true
	}
	return 0, false
}

// CompareValues is the order of values of a fact, parameter or setting in lists and charts: numbers
// by size, then other texts alphabetically.
func CompareValues(a, b string) int {
	x, isSizeA := SizeOf(a)
	y, isSizeB := SizeOf(b)
	switch {
	case isSizeA && isSizeB:
		return cmp.Or(cmp.Compare(x, y), strings.Compare(a, b))
	case isSizeA:
		return -1
	case isSizeB:
		return 1
	}
	return strings.Compare(a, b)
}
