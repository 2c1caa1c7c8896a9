package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/measure"
)

var (
	onsetQueue  = measure.NewGauge("test_onset_queue", "A queue.", "role")
	onsetPaused = measure.NewCounter("test_onset_paused_seconds_total", "Pauses.")

	_ = DeclareOnset(Onset{Metric: onsetQueue, High: 3, Text: "a queue began in %s"})
	_ = DeclareOnset(Onset{Metric: onsetPaused, PerSecond: true, High: 0.3, Text: "flow control began on %s"})
)

// TestOnsets: a state begins if it was not there for five ticks. One that comes and goes, one that was there before, and a
// restarted counter do not.
func TestOnsets(t *testing.T) {
	type tick struct {
		queue, paused float64
		restarts      uint64
		down          bool
	}
	repeat := func(n int, x tick) (all []tick) {
		for range n {
			all = append(all, x)
		}
		return all
	}
	for name, c := range map[string]struct {
		ticks []tick
		began []int
		text  string
	}{
		"calm":                {repeat(10, tick{queue: 2, paused: 7}), nil, ""},
		"a queue":             {append(repeat(6, tick{}), repeat(5, tick{queue: 4})...), []int{6}, "a queue began in n1"},
		"it was there before": {repeat(10, tick{queue: 9}), nil, ""},
		"it comes and goes":   {append(repeat(6, tick{}), tick{queue: 4}, tick{}, tick{queue: 4}, tick{}, tick{queue: 4}), []int{6}, "a queue began in n1"},
		"flow control":        {append(repeat(7, tick{paused: 5}), tick{paused: 5.2}, tick{paused: 5.8}, tick{paused: 6.7}), []int{8}, "flow control began on n1"},
		"a restart":           {append(repeat(7, tick{paused: 5}), tick{paused: 50, restarts: 1}, tick{paused: 50, restarts: 1}), nil, ""},
		"no answer":           {append(repeat(7, tick{}), tick{down: true}, tick{down: true}), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var o Onsets
			var began []int
			for i, x := range c.ticks {
				s := &Status{}
				s.Set(onsetQueue, x.queue/2, "rw")
				s.Set(onsetQueue, x.queue/2, "ro")
				s.Set(onsetPaused, x.paused)
				sample := Sample{Target: &Target{Name: "n1"}, Status: s, Restarts: x.restarts, Answered: time.Unix(int64(i), 0)}
				if x.down {
					sample.Status, sample.Err = nil, errors.New("no connection")
				}
				if text := o.Began(&Frame{Samples: []Sample{sample}}); text != "" {
					began = append(began, i)
					if text != c.text {
						t.Errorf("%q", text)
					}
				}
			}
			if len(began) != len(c.began) || len(began) > 0 && began[0] != c.began[0] {
				t.Errorf("began at %v, expected %v", began, c.began)
			}
		})
	}
}
