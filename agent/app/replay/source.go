package replay

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Source provides recorded frames like an [engine.Sampler].
type Source struct {
	run   func(context.Context) error
	clock *scaled
	size  int // of the subscriptions: for all frames

	mu          sync.Mutex
	last        engine.Frame
	subscribers []chan engine.Frame
}

// Servers returns the source of the servers' samples. Its Run plays the run.
func (p *Player) Servers() *Source { return p.servers }

// Machines returns the source of the machines' samples, whose Run only waits.
func (p *Player) Machines() *Source { return p.machines }

// Run plays until ctx is done.
func (s *Source) Run(ctx context.Context) error { return s.run(ctx) }

// publish gives a frame to the subscribers.
func (s *Source) publish(f engine.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = f
	for _, to := range s.subscribers {
		to <- f // there is room for all
	}
}

// close ends the subscriptions.
func (s *Source) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, to := range s.subscribers {
		close(to)
	}
	s.subscribers = nil
}

// Subscribe returns a channel that gets each frame once, and a function that ends the
// subscription.
func (s *Source) Subscribe(buffer int) (<-chan engine.Frame, func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := make(chan engine.Frame, max(buffer, s.size))
	s.subscribers = append(s.subscribers, to)
	return to, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if i := slices.Index(s.subscribers, to); i >= 0 {
			s.subscribers = slices.Delete(s.subscribers, i, i+1)
			close(to)
		}
	}
}

// Latest returns the newest frame, none when it is older than two ticks, because the record has ended.
func (s *Source) Latest() engine.Frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clock.Clock().Wall().Sub(s.last.Tick) > 2*s.last.Interval {
		return engine.Frame{}
	}
	return s.last
}

// MissedTicks is 0: ticks that were missed while the run was recorded are gaps in the record.
func (s *Source) MissedTicks() uint64 { return 0 }

// Late is 0: how late the samples were is in the record.
func (s *Source) Late() time.Duration { return 0 }

// ReadSettings does nothing: settings come when they were read.
func (s *Source) ReadSettings() {}

// ReadStatements returns nothing: what a run's servers executed is in its record.
func (s *Source) ReadStatements(context.Context, map[string]*engine.StatementReading) map[string]engine.StatementsAnswer {
	return nil
}

// SampleNow does nothing.
func (s *Source) SampleNow() {}

// Update does nothing: the record has the targets.
func (s *Source) Update([]engine.Target) {}

// chunk is lines of an output that are written together.
type chunk struct {
	lines   []byte
	elapsed float64 // on the tool's clock
	last    bool    // what the tool printed at its end
}

// chunks splits an output after each line that completes an interval. Without a tool
// that is known, all of it comes at the end.
func chunks(output []byte, stream tool.Stream, t *tool.Tool, m *rundir.Meta) []chunk {
	var all []chunk
	begin := 0
	cut := func(to int, elapsed float64, last bool) {
		if to > begin {
			all = append(all, chunk{output[begin:to], elapsed, last})
			begin = to
		}
	}
	if t != nil {
		parser := t.NewFront(m.Description()).Parser()
		for at := 0; at < len(output); {
			next := len(output)
			if i := bytes.IndexByte(output[at:], '\n'); i >= 0 {
				next = at + i + 1
			}
			line := tool.Line{Stream: stream, Text: bytes.TrimRight(output[at:next], "\n")}
			parser.Parse(line, func(r *tool.Report) {
				if r.Kind != tool.Interval || !r.ElapsedSeconds.Known {
					return
				}
				if begin == 0 {
					cut(at, 0, false) // the head
				}
				cut(next, r.ElapsedSeconds.Value, false)
			})
			at = next
		}
	}
	cut(len(output), 0, true)
	return all
}

// scaled is a clock that is stopped until start and then runs at a multiple of another clock's speed.
type scaled struct {
	of      *clock.Clock
	speed   float64
	base    time.Duration // of's Boot when it was made
	wall    time.Time     // its own Wall then
	id      string
	mu      sync.Mutex
	started time.Duration // of's Boot at start; 0: not started
}

// newScaled returns a clock whose wall clock is ahead of another clock's.
func newScaled(of *clock.Clock, speed float64, ahead time.Duration) *scaled {
	s := &scaled{of: of, speed: speed, base: of.Boot(), wall: of.Wall().Add(ahead).UTC().Truncate(time.Millisecond)}
	s.id = fmt.Sprintf("replay %s %d", of.ID, s.base)
	return s
}

func (s *scaled) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = s.of.Boot()
}

// spent is how long the clock has run, by the other clock.
func (s *scaled) spent() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started == 0 {
		return 0
	}
	return s.of.Boot() - s.started
}

// replayedTime is how long the clock has run, by its own time.
func (s *scaled) replayedTime() time.Duration { return time.Duration(float64(s.spent()) * s.speed) }

// until is how long it takes, by the other clock, until this clock has run for d.
func (s *scaled) until(d time.Duration) time.Duration {
	return time.Duration(float64(d)/s.speed) - s.spent()
}

// Clock returns s as a clock.
func (s *scaled) Clock() *clock.Clock {
	return &clock.Clock{
		Wall: func() time.Time { return s.wall.Add(s.replayedTime()) },
		Boot: func() time.Duration { return s.base + s.replayedTime() },
		ID:   s.id,
	}
}
