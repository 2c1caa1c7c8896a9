package measure

import "testing"

// TestFields guards the names in documented JSON and CSV.
func TestFields(t *testing.T) {
	for _, c := range []struct {
		m                    Measure
		field, summary, name string
	}{
		{Measure{ID: "write_sets", Unit: PerSecond, Summary: Mean}, "write_sets_per_second", "write_sets_per_second", "write sets"},
		{Measure{ID: "deadlocks", Unit: PerSecond, Summary: Increase}, "deadlocks_per_second", "deadlocks", "deadlocks"},
		{Measure{ID: "lag_seconds", Unit: Seconds, Summary: Max}, "lag_seconds", "lag_seconds_max", "lag"},
		{Measure{ID: "threads_running", Unit: Count, Summary: Max}, "threads_running", "threads_running_max", "threads running"},
		{Measure{ID: "flow_control", Unit: Ratio, Summary: Mean}, "flow_control_ratio", "flow_control_ratio", "flow control"},
	} {
		if f, s, n := c.m.Field(), c.m.SummaryField(), c.m.Name(); f != c.field || s != c.summary || n != c.name {
			t.Errorf("%s: %s, %s, %s", c.m.ID, f, s, n)
		}
	}
}
