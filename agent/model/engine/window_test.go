package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

func TestWindow(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	sample := func(second float64, queries float64) *Sample {
		s := &Status{}
		s.Set(QueriesTotal, queries)
		s.Set(OperationsTotal, queries, "select")
		s.Set(Connections, 7)
		return &Sample{Target: &Target{}, Answered: start.Add(time.Duration(second * float64(time.Second))), Status: s}
	}
	restarted := sample(2, 400)
	restarted.Restarts = 1
	down := &Sample{Target: &Target{}, Err: errors.New("down")}
	lagging := sample(2, 400)
	lagging.LagSeconds = series.Some(1.5)

	for _, test := range []struct {
		name              string
		previous, current *Sample
		measure           *measure.Measure
		want              series.Optional[float64]
	}{
		{"rate by the times of the answers", sample(0, 100), sample(2, 400), QueryRate, series.Some(150.)},
		{"no previous sample", nil, sample(2, 400), QueryRate, series.Optional[float64]{}},
		{"previous sample unanswered", down, sample(2, 400), QueryRate, series.Optional[float64]{}},
		{"a counter fell", sample(0, 500), sample(2, 400), QueryRate, series.Optional[float64]{}},
		{"a restart", sample(0, 100), restarted, QueryRate, series.Optional[float64]{}},
		{"same answer", sample(2, 100), sample(2, 400), QueryRate, series.Optional[float64]{}},
		{"a gauge needs one sample", nil, sample(2, 400), OpenConnections, series.Some(7.)},
		{"lag", sample(0, 100), lagging, LagSeconds, series.Some(1.5)},
		{"lag unknown now", lagging, sample(3, 500), LagSeconds, series.Optional[float64]{}},
		{"not reported", sample(0, 100), sample(2, 400), RunningThreads, series.Optional[float64]{}},
		{"down", sample(0, 100), down, OpenConnections, series.Optional[float64]{}},
		{"answered", nil, sample(2, 400), Answered, series.Some(1.)},
		{"unanswered", sample(0, 100), down, Answered, series.Some(0.)},
		{"restarts", sample(0, 100), restarted, Restarts, series.Some(1.)},
		{"labels", sample(0, 100), sample(2, 400), (&measure.Measure{}).Or(measure.RateOf(OperationsTotal)), series.Some(150.)},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := NewWindow(test.previous, test.current).Now(test.measure); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
	v := Value{Metric: BytesTotal, Labels: []string{"sent"}}
	if got := v.Name(); got != `db_bytes_total{direction="sent"}` {
		t.Error("name of a value with a label:", got)
	}
}
