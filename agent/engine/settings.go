package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"
)

// Settings are how a server is configured, as far as that bears on what a
// benchmark measures: the server's own names and values, sizes in bytes. Each
// engine names those that it reads; no other is ever in it, so no secret is.
type Settings map[string]string

// Configured is a Prober that can tell its server's settings.
type Configured interface {
	// Settings reads them, with few and cheap statements on the connection of the
	// probes. It is called between two probes, on the same goroutine, and fails
	// if there is no connection.
	Settings(ctx context.Context) (Settings, error)
}

// SettingsReading is what a target said of its settings when it was asked last.
type SettingsReading struct {
	// At is when it was asked.
	At       time.Time
	Settings Settings
	Err      error // nil: Settings are known
}

// Same reports whether two readings say the same at different times.
func (r *SettingsReading) Same(other *SettingsReading) bool {
	if (r.Err == nil) != (other.Err == nil) || r.Err != nil && r.Err.Error() != other.Err.Error() {
		return false
	}
	return maps.Equal(r.Settings, other.Settings)
}

// errNoSettings is the reading of a target whose engine knows no settings.
var errNoSettings = errors.New("this engine's settings are not read")

// settingsShare is the part of an interval that has to be left to read settings
// in. A server that is slower than that is not bothered.
const settingsShare = 0.3

// ReadSettings has the settings of all targets read once, behind the answers to
// the next tick; a target that does not answer is asked when it does. They are in
// the samples after that.
func (s *Sampler) ReadSettings() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.members {
		m.settingsDue = true
	}
}

// readSettings asks for the settings if they are due. It runs on the member's own
// goroutine, behind a probe that succeeded.
func (m *member) readSettings(ctx context.Context, tick time.Time) {
	deadline := tick.Add(share(m.sampler.interval, probeShare))
	if time.Until(deadline) < share(m.sampler.interval, settingsShare) {
		return
	}
	m.sampler.mu.Lock()
	due := m.settingsDue
	m.settingsDue = false
	m.sampler.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	r := &SettingsReading{At: time.Now()}
	r.Settings, r.Err = m.askSettings(ctx)
	if r.Err != nil && !errors.Is(r.Err, errNoSettings) {
		m.log.Debug("settings not read", "err", r.Err)
	}
	m.sampler.mu.Lock()
	m.settings = r
	m.sampler.mu.Unlock()
}

func (m *member) askSettings(ctx context.Context) (s Settings, err error) {
	defer func() { // as in ask
		if r := recover(); r != nil {
			s, err = nil, fmt.Errorf("internal error: %v", r)
		}
	}()
	if p, ok := m.prober.(Configured); ok {
		return p.Settings(ctx)
	}
	return nil, errNoSettings
}
