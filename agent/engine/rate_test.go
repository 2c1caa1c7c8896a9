package engine

import (
	"testing"
	"time"
)

func TestPerSecond(t *testing.T) {
	at := time.Unix(1000, 0)
	sample := func(after time.Duration, v float64, restarts uint64) *Sample {
		s := &Sample{Answered: at.Add(after), Restarts: restarts, Status: &Status{}}
		s.Status.Set(QueriesTotal, v)
		s.Status.Set(OperationsTotal, 2*v, "select")
		return s
	}
	tests := map[string]struct {
		before, after *Sample
		want          float64
		known         bool
	}{
		"by the times of the answers": {sample(0, 100, 0), sample(1250*time.Millisecond, 350, 0), 200, true},
		"fell":                        {sample(0, 100, 0), sample(time.Second, 99, 0), 0, false},
		"restarted":                   {sample(0, 100, 0), sample(time.Second, 150, 1), 0, false},
		"no time passed":              {sample(0, 100, 0), sample(0, 150, 0), 0, false},
		"down before":                 {&Sample{}, sample(time.Second, 150, 0), 0, false},
		"not reported":                {&Sample{Status: &Status{}, Answered: at}, sample(time.Second, 150, 0), 0, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, known := PerSecond(tt.before, tt.after, "db_queries_total")
			if got != tt.want || known != tt.known {
				t.Errorf("got %v, %v, want %v, %v", got, known, tt.want, tt.known)
			}
		})
	}
	if got, ok := PerSecond(sample(0, 100, 0), sample(time.Second, 150, 0), "db_operations_total", "select"); got != 100 || !ok {
		t.Errorf("with a label: %v, %v", got, ok)
	}
}
