package engine

import (
	"context"
	"errors"
	"maps"
	"time"
)

// Settings are the configuration variables that matter for a benchmark, under the server's own
// names, with sizes in bytes. Each engine lists the variables that it reads, so secrets are never
// among them.
type Settings map[string]string

// Configured is a Prober that can read its server's settings.
type Configured interface {
	// Settings reads the settings with a few cheap statements on the prober's connection. It is
	// called between two probes, on the same goroutine, and fails if there is no connection.
	Settings(ctx context.Context) (Settings, error)
}

// SettingsReading is a target's last answer to the question for its settings.
type SettingsReading struct {
	// At is when the target was asked.
	At       time.Time
	Settings Settings
	Err      error // nil: Settings are known
}

// Same reports whether two readings have the same result, at any time.
func (r *SettingsReading) Same(other *SettingsReading) bool {
	if (r.Err == nil) != (other.Err == nil) || r.Err != nil && r.Err.Error() != other.Err.Error() {
		return false
	}
	return maps.Equal(r.Settings, other.Settings)
}

// errNoSettings is the reading of a target whose engine has no settings.
var errNoSettings = errors.New("this engine's settings are not read")

// settingsShare is the share of an interval that has to remain for reading settings. A slower
// server is not asked.
const settingsShare = 0.3

// ReadSettings requests the settings of all targets once, after their answer to the next tick. A
// target that is down is asked when it answers again. Later samples contain the result.
func (s *Sampler) ReadSettings() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.members {
		m.settingsDue = true
	}
}

// readSettings reads the settings if they are due. It runs on the member's goroutine, after a
// successful probe.
func (m *member) readSettings(ctx context.Context, tick time.Time) {
	left := share(m.sampler.interval, probeShare) - m.sampler.now().Sub(tick)
	if left < share(m.sampler.interval, settingsShare) {
		return
	}
	m.sampler.mu.Lock()
	due := m.settingsDue
	m.settingsDue = false
	m.sampler.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	r := &SettingsReading{At: m.sampler.now()}
	r.Settings, r.Err = m.askSettings(ctx)
	if r.Err != nil && !errors.Is(r.Err, errNoSettings) {
		m.log.Debug("settings not read", "err", r.Err)
	}
	m.sampler.mu.Lock()
	m.settings = r
	m.sampler.mu.Unlock()
}

func (m *member) askSettings(ctx context.Context) (s Settings, err error) {
	defer m.recoverAs(&err)
	if p, ok := m.prober.(Configured); ok {
		s, err = p.Settings(ctx)
		for name, value := range s {
			s[name] = fit(value)
		}
		return s, err
	}
	return nil, errNoSettings
}
