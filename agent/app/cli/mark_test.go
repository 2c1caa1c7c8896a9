package cli

import (
	"testing"
	"time"
)

// TestParseTime: a time without a day is the latest such time, also across midnight.
func TestParseTime(t *testing.T) {
	zone := time.FixedZone("", 2*60*60)
	now := time.Date(2026, 11, 21, 0, 5, 0, 0, zone)
	for _, c := range []struct{ in, want string }{
		{"", "2026-11-21T00:05:00+02:00"},
		{"now", "2026-11-21T00:05:00+02:00"},
		{"-90s", "2026-11-21T00:03:30+02:00"},
		{"2026-11-20T22:00:00Z", "2026-11-21T00:00:00+02:00"},
		{"2026-11-20T22:00:00.25Z", "2026-11-21T00:00:00+02:00"},
		{"2026-11-20 22:00:00", "2026-11-20T22:00:00+02:00"},
		{"2026-11-20T22:00:00", "2026-11-20T22:00:00+02:00"},
		{"00:04", "2026-11-21T00:04:00+02:00"},
		{"00:04:30", "2026-11-21T00:04:30+02:00"},
		{"23:58", "2026-11-20T23:58:00+02:00"},
	} {
		got, err := parseTime(c.in, now)
		if err != nil || got.In(zone).Format(time.RFC3339) != c.want {
			t.Errorf("parseTime(%q) = %v, %v; want %s", c.in, got, err, c.want)
		}
	}
	for _, in := range []string{"25:00", "yesterday", "-90", "1", "--5s"} {
		if got, err := parseTime(in, now); err == nil {
			t.Errorf("parseTime(%q) = %v, want an error", in, got)
		}
	}
}
