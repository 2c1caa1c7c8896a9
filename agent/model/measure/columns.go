package measure

import (
	"strconv"
	"strings"
)

// Columns are the values of one server's metrics over time. All columns have the same length. A
// metric with labels has one column for each set of label values, see ColumnName.
type Columns interface {
	// Names returns the names of all columns with labels. It may leave out the others.
	Names() []string
	// Values returns one column, nil if the server never reported it.
	Values(name string) []float64
	// Rate returns the growth of a column per second between each row and the previous one, as
	// [series.PerSecond] defines it; nil if there is no such column.
	Rate(name string) []float64
}

// Values computes m from the first of its sources that the columns contain, nil if they contain
// none. The slice may be one of the columns: callers must not change it.
func (m *Measure) Values(c Columns) []float64 {
	for i := range m.sources {
		if values := m.sources[i].values(c); values != nil {
			return values
		}
	}
	return nil
}

// Used returns the source that Values uses; false if there is none.
func (m *Measure) Used(c Columns) (Source, bool) {
	for i := range m.sources {
		if m.sources[i].values(c) != nil {
			return m.sources[i], true
		}
	}
	return Source{}, false
}

// ColumnName returns the name of a column in Prometheus' text format, without the prefix:
// name{label="value"}. labels are pairs of name and value.
func ColumnName(metric string, labels ...string) string {
	if len(labels) == 0 {
		return metric
	}
	b := append(make([]byte, 0, 64), metric...)
	for i := 0; i < len(labels); i += 2 {
		b = append(b, "{,"[min(i, 1)])
		b = append(append(b, labels[i]...), '=')
		b = strconv.AppendQuote(b, labels[i+1])
	}
	return string(append(b, '}'))
}

// ParseColumn is the inverse of ColumnName. It returns false if the text is not the name of a
// column, as in a damaged file.
func ParseColumn(name string) (metric string, labels []string, ok bool) {
	metric, rest, labelled := strings.Cut(name, "{")
	if !isName(metric) {
		return "", nil, false
	}
	for labelled {
		label, quoted, _ := strings.Cut(rest, "=")
		text, err := strconv.QuotedPrefix(quoted)
		if err != nil || !isName(label) {
			return "", nil, false
		}
		value, err := strconv.Unquote(text)
		if err != nil {
			return "", nil, false
		}
		labels = append(labels, label, value)
		rest = quoted[len(text):]
		if rest == "}" {
			break
		}
		if !strings.HasPrefix(rest, ",") {
			return "", nil, false
		}
		rest = rest[1:]
	}
	return metric, labels, true
}

// isName reports whether s can be the name of a metric or a label.
func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// LabelOf returns the value of a label in a column's name; false if the name lacks the label.
func LabelOf(column, label string) (string, bool) {
	_, labels, ok := ParseColumn(column)
	for i := 0; ok && i+1 < len(labels); i += 2 {
		if labels[i] == label {
			return labels[i+1], true
		}
	}
	return "", false
}
