package cli

import (
	"runtime/debug"
	"testing"
)

// TestRecordedVersion guards what --version prints of a program that was built
// without the Makefile.
func TestRecordedVersion(t *testing.T) {
	for _, c := range []struct{ module, want string }{
		{"v0.1.0", "0.1.0"},
		{"v0.1.1-0.20261122110000-1f2a7ca00000+dirty", "0.1.1-0.20261122110000-1f2a7ca00000+dirty"},
		{"(devel)", "devel"},
		{"", "devel"},
	} {
		info := &debug.BuildInfo{Main: debug.Module{Version: c.module}, Settings: []debug.BuildSetting{{Key: "vcs.time", Value: "2026-11-22T11:00:00Z"}}}
		if release, date := recorded(info); release != c.want || date != "2026-11-22T11:00:00Z" {
			t.Errorf("module version %q: %q, %q; want %q and the commit's date", c.module, release, date, c.want)
		}
	}
}
