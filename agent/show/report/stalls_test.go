package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// TestRecordedStalls explains runs that were stalled on real servers by make limits-test: each for about five seconds, by
// what its folder is named after. testdata/stalls.txt has the reasons, all of which are right. Copy further run directories
// from there, without samples.
func TestRecordedStalls(t *testing.T) {
	folders, err := filepath.Glob("testdata/stalls/*")
	if err != nil || len(folders) < 30 {
		t.Fatalf("%d recordings, %v", len(folders), err)
	}
	var b strings.Builder
	for _, folder := range folders {
		h, err := record.Read(t.Context(), rundir.Directory(folder), registry.Tools)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", filepath.Base(folder))
		one := New(h)
		fmt.Fprintf(&b, "  %s; %s\n", one.StallEffect, one.Limits.Unlimited)
		for i := range one.Stalls {
			s := &one.Stalls[i]
			fmt.Fprintf(&b, "  %.1f s from %.1f, %s: %s\n", s.Seconds, s.Start, s.Reason, s.Evidence)
		}
	}
	const golden = "testdata/stalls.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || b.String() != string(want) {
		t.Errorf("go test ./agent/show/report -run RecordedStalls -update, and look at each line: %v\n%s", err, b.String())
	}
}
