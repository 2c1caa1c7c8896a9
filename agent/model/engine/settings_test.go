package engine

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// configured is a fake with settings.
type configured struct {
	*fake
	settings func(ctx context.Context) (Settings, error)
}

func (c *configured) Settings(ctx context.Context) (Settings, error) { return c.settings(ctx) }

// settingsOf runs a sampler of one target for some ticks, starting with ReadSettings, and returns
// the frames.
func settingsOf(t *testing.T, p Prober, ticks int) []Frame {
	t.Helper()
	var frames []Frame
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		s := NewSampler([]Target{{Name: "n1"}}, func(Target) (Prober, error) { return p, nil }, time.Second, Options{Logger: slog.New(slog.DiscardHandler)})
		out, cancel := s.Subscribe(ticks)
		defer cancel()
		s.ReadSettings()
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		for range ticks {
			frames = append(frames, <-out)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return frames
}

// TestReadSettings guards that settings are read once when requested, after the answer to a tick,
// and are in the samples after it.
func TestReadSettings(t *testing.T) {
	reads := 0
	p := &configured{&fake{answer: after(10*time.Millisecond, &Status{})}, func(context.Context) (Settings, error) {
		reads++
		return Settings{"a": "1"}, nil
	}}
	frames := settingsOf(t, p, 4)
	if reads != 1 {
		t.Errorf("read %d times", reads)
	}
	if s := frames[0].Samples[0]; s.Settings != nil || s.Answered.Sub(s.Tick) > 20*time.Millisecond {
		t.Errorf("the tick waited for it: %+v", s)
	}
	for _, f := range frames[1:] {
		r := f.Samples[0].Settings
		if r == nil || r.Err != nil || r.Settings["a"] != "1" || r != frames[1].Samples[0].Settings || !r.At.Equal(frames[0].Samples[0].Answered) {
			t.Errorf("%v: %+v", f.Tick, r)
		}
	}
}

// TestSettingsAreNoBurden guards that settings that can't be read, or take long, cost no sample,
// and that a slow server is not asked.
func TestSettingsAreNoBurden(t *testing.T) {
	forever := func(ctx context.Context) (Settings, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for name, c := range map[string]struct {
		answer   time.Duration
		settings func(context.Context) (Settings, error)
		asked    bool
	}{
		"hangs":   {10 * time.Millisecond, forever, true},
		"refuses": {10 * time.Millisecond, func(context.Context) (Settings, error) { return nil, errors.New("denied") }, true},
		"panics":  {10 * time.Millisecond, func(context.Context) (Settings, error) { panic("no") }, true},
		"slow":    {800 * time.Millisecond, forever, false},
	} {
		t.Run(name, func(t *testing.T) {
			frames := settingsOf(t, &configured{&fake{answer: after(c.answer, &Status{})}, c.settings}, 4)
			for _, f := range frames {
				if !f.Samples[0].Up() {
					t.Errorf("%v: %v", f.Tick, f.Samples[0].Err)
				}
			}
			r := frames[3].Samples[0].Settings
			if asked := r != nil; asked != c.asked || asked && r.Err == nil {
				t.Errorf("%+v", r)
			}
		})
	}
	frames := settingsOf(t, &fake{answer: after(time.Millisecond, &Status{})}, 3)
	if r := frames[2].Samples[0].Settings; r == nil || !errors.Is(r.Err, errNoSettings) {
		t.Errorf("an engine without: %+v", r)
	}
}
