package replay

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// Source gives out recorded frames as an [engine.Sampler] does.
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

// Latest returns the newest frame, none when it is older than two ticks: what was
// recorded has come to its end.
func (s *Source) Latest() engine.Frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clock.Clock().Wall().Sub(s.last.Tick) > 2*s.last.Interval {
		return engine.Frame{}
	}
	return s.last
}

// MissedTicks is 0: ticks that were missed while the run was recorded are gaps of it.
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

// Update does nothing: the targets are those of the record.
func (s *Source) Update([]engine.Target) {}
