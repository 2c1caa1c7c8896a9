package measure

import (
	"strconv"
	"strings"
)

// Column identifies one series of a server: a metric and a set of label values.
type Column struct {
	// Name is the column in Prometheus' text format, without the prefix: name{label="value"}. Files
	// and heads of tables use it; only [ParseColumn] reads it.
	Name string
	// Metric is the metric's name. A record may hold metrics that this version does not declare.
	Metric string
	// Labels are pairs of name and value.
	Labels []string
}

// Columns are the values of one server's metrics over time. All columns have the same length.
type Columns interface {
	// Of returns the columns of a metric, one for each set of label values that the server reported.
	Of(metric string) []Column
	// Values returns the column of that name, nil if the server never reported it.
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

// NewColumn returns a column; labels are pairs of name and value.
func NewColumn(metric string, labels ...string) Column {
	if len(labels) == 0 {
		return Column{Name: metric, Metric: metric}
	}
	b := append(make([]byte, 0, 64), metric...)
	for i := 0; i < len(labels); i += 2 {
		b = append(b, "{,"[min(i, 1)])
		b = append(append(b, labels[i]...), '=')
		b = strconv.AppendQuote(b, labels[i+1])
	}
	return Column{Name: string(append(b, '}')), Metric: metric, Labels: labels}
}

// ParseColumn returns the column of that name. It returns false if the text is not the name of a
// column, as in a damaged file.
func ParseColumn(name string) (Column, bool) {
	metric, rest, labelled := strings.Cut(name, "{")
	if !isName(metric) {
		return Column{}, false
	}
	var labels []string
	for labelled {
		label, quoted, _ := strings.Cut(rest, "=")
		text, err := strconv.QuotedPrefix(quoted)
		if err != nil || !isName(label) {
			return Column{}, false
		}
		value, err := strconv.Unquote(text)
		if err != nil {
			return Column{}, false
		}
		labels = append(labels, label, value)
		rest = quoted[len(text):]
		if rest == "}" {
			break
		}
		if !strings.HasPrefix(rest, ",") {
			return Column{}, false
		}
		rest = rest[1:]
	}
	return Column{Name: name, Metric: metric, Labels: labels}, true
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

// Label returns the value of a label; false if the column lacks it.
func (c *Column) Label(name string) (string, bool) {
	for i := 0; i+1 < len(c.Labels); i += 2 {
		if c.Labels[i] == name {
			return c.Labels[i+1], true
		}
	}
	return "", false
}
