package retention

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const (
	// smallStep is by how much the wall clock may be set without doubt about the age of runs.
	smallStep = time.Hour
	// longAway is how long nobody may have looked at the clock, since a jump while the machine was off can't be
	// distinguished from that.
	longAway = 7 * 24 * time.Hour
	// doubtTime is how long no run is removed for its age after a jump: somebody notices a wrong clock.
	doubtTime = 24 * time.Hour
)

// sighting is what the clocks showed when a rule was last applied to a data directory.
type sighting struct {
	At time.Time `json:"at"`
	// Boot is the id of the clock, and SinceBoot its time since the boot.
	Boot      string        `json:"boot"`
	SinceBoot time.Duration `json:"since_boot_ns"`
	// Doubt is for how much longer the wall clock is doubted after a jump, by Jump.
	Doubt time.Duration `json:"doubt_ns,omitempty"`
	Jump  time.Duration `json:"jump_ns,omitempty"`
}

// sightingFile is in the data directory.
const sightingFile = "retention.json"

// ErrClock is the reason why no run is removed for its age: the wall clock jumped.
var ErrClock = errors.New("the clock jumped")

// CheckClock reads the clocks and returns an error that matches ErrClock for a day after the wall clock jumped: it was
// set by more than an hour since the last check, of this or another process, or, unless a user asks now, it is a week
// ahead after a reboot. The age of a run is not trusted then.
func CheckClock(dataDir string, c *clock.Clock, asked bool) error {
	file := filepath.Join(dataDir, sightingFile)
	now := sighting{At: c.Wall().UTC(), Boot: c.ID, SinceBoot: c.Boot()}
	if last, ok := readSighting(file); ok {
		now.follow(&last, asked)
	}
	// A disk that is full must not keep runs from being removed: without the file, the next check only knows less.
	_ = rundir.Replace(file, 0o644, func(w io.Writer) error { return json.NewEncoder(w).Encode(now) })
	if now.Doubt > 0 {
		return fmt.Errorf("%w by %s: no run is removed for its age in the next %s, unless it is set back",
			ErrClock, spell(now.Jump), now.Doubt.Round(time.Minute))
	}
	return nil
}

// spell returns a duration in days, if it has several.
func spell(d time.Duration) string {
	if days := int(d.Abs() / (24 * time.Hour)); days > 1 {
		return fmt.Sprintf("%d days", days)
	}
	return d.Abs().Round(time.Minute).String()
}

func readSighting(file string) (s sighting, ok bool) {
	f, err := rundir.Open(file)
	if err != nil {
		return s, false
	}
	defer f.Close()
	err = json.NewDecoder(io.LimitReader(f, 4<<10)).Decode(&s)
	return s, err == nil
}

// follow compares a sighting with the last one.
func (s *sighting) follow(last *sighting, asked bool) {
	passed := s.At.Sub(last.At) // by the wall clock
	jump := passed
	if s.Boot == last.Boot && s.Boot != "" {
		passed = s.SinceBoot - last.SinceBoot
		jump -= passed
	} else if jump > 0 && (asked || jump < longAway) {
		jump = 0 // the machine was off
	}
	if jump.Abs() > smallStep {
		if back := last.Jump + jump; last.Doubt > 0 && back.Abs() <= smallStep {
			return // it was set back
		}
		s.Jump, s.Doubt = last.Jump+jump, doubtTime
		return
	}
	if s.Doubt = last.Doubt - max(0, passed); s.Doubt > 0 {
		s.Jump = last.Jump
	} else {
		s.Doubt = 0
	}
}
