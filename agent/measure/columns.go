package measure

// Columns are the values of one server's metrics over time, all of one length.
// A metric with labels has a column for each set of label values, named as in
// Prometheus' text format without the prefix: name{label="value"}.
type Columns interface {
	// Names returns the names of all columns with labels; others may be left out.
	Names() []string
	// Values returns one column, nil if the server never reported it.
	Values(name string) []float64
	// Rate returns how much a column grew per second, each row against the
	// previous one, as [series.PerSecond]; nil if there is no such column.
	Rate(name string) []float64
}

// Values computes m over columns by the first of its sources that they have. It
// returns nil if they have none. The slice may be one of the columns: callers
// must not change it.
func (m *Measure) Values(c Columns) []float64 {
	for i := range m.sources {
		if values := m.sources[i].values(c); values != nil {
			return values
		}
	}
	return nil
}

// Used returns the source by which Values computes m; false if there is none.
func (m *Measure) Used(c Columns) (Source, bool) {
	for i := range m.sources {
		if m.sources[i].values(c) != nil {
			return m.sources[i], true
		}
	}
	return Source{}, false
}
