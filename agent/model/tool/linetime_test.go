package tool_test

import (
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

func TestLineTime(t *testing.T) {
	local := func(text string) time.Time {
		at, err := time.ParseInLocation("2006-01-02 15:04:05", text, time.Local)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for line, want := range map[string]time.Time{
		"2026-11-21 01:38:24:059 0 sec: 11 operations; ": local("2026-11-21 01:38:24.059"), // YCSB
		"2026/11/21 01:38:24 message":                    local("2026-11-21 01:38:24"),
		"[2026-11-21T01:38:24,5] message":                local("2026-11-21 01:38:24.5"),
		"2026-11-21T01:38:24.25Z":                        time.Date(2026, 11, 21, 1, 38, 24, 25e7, time.UTC),
		"2026-11-21 01:38:24 +02:00 message":             time.Date(2026, 11, 20, 23, 38, 24, 0, time.UTC),
		"2026-13-21 01:38:24":                            {},
		"2026-11-21":                                     {},
		"[ 1s ] thds: 4 tps: 10.50 qps: 210.00":          {},
		"at 2026-11-21 01:38:24":                         {},
	} {
		if got, ok := tool.LineTime([]byte(line)); !got.Equal(want) || ok == want.IsZero() {
			t.Errorf("LineTime(%q) = %v, %v, want %v", line, got, ok, want)
		}
	}
}
