package live

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/tool"
	"github.com/benchwatch/benchwatch/agent/tool/gotpc"
	"github.com/benchwatch/benchwatch/agent/tool/sysbench"
	"github.com/benchwatch/benchwatch/agent/tool/tpccmysql"
	"github.com/benchwatch/benchwatch/agent/tool/ycsb"
)

// captures are the outputs that a tool's own tests read.
func captures(t *testing.T, name string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir("../tool/"+strings.ReplaceAll(name, "-", "")+"/testdata", func(path string, d os.DirEntry, err error) error {
		if err == nil && (d.Name() == "stdout.txt" || name == "sysbench" && strings.HasSuffix(d.Name(), ".txt")) {
			found = append(found, path)
		}
		return err
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("captures of %s: %v, %d found", name, err, len(found))
	}
	return found
}

// TestLogPartsAreRuns guards that the parts of a log that holds everything a
// tool ever printed say, each alone, what they say within the log.
func TestLogPartsAreRuns(t *testing.T) {
	for _, tl := range []*tool.Tool{sysbench.Tool, ycsb.Tool, tpccmysql.Tool, gotpc.Tool} {
		t.Run(tl.Name, func(t *testing.T) {
			var all []byte
			for _, path := range captures(t, tl.Name) {
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				// As 2>&1 gives it, for a tool that says on stderr when it begins.
				stderr, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "stderr.txt"))
				all = append(append(append(all, stderr...), text...), '\n')
			}
			log := filepath.Join(t.TempDir(), "all.log")
			write(t, log, string(all))
			parts, err := ingest.ReadLog(context.Background(), log, tl)
			if err != nil || len(parts) < 2 {
				t.Fatalf("%d parts, %v", len(parts), err)
			}
			at, begin := time.Unix(1e9, 0), int64(0)
			for i, part := range parts {
				if part.Offset != begin || part.End < part.Offset {
					t.Fatalf("part %d is from %d to %d, the one before ends at %d", i, part.Offset, part.End, begin)
				}
				begin = part.End
				meta := rundir.Meta{ID: "r", Tool: tl.Name, StartedAt: at, EndedAt: &at, ClosedAt: &at}
				data := t.TempDir()
				dir, err := ingest.Import(data, meta, log, part)
				if err != nil {
					t.Fatal(err)
				}
				snap, err := ingest.Read(context.Background(), dir, tl)
				if err != nil {
					t.Fatal(err)
				}
				ignore := cmpopts.IgnoreFields(ingest.Snapshot{}, "Meta", "Lines", "LastReport")
				if d := cmp.Diff(part.Snapshot, snap, ignore, cmpopts.EquateEmpty()); d != "" {
					t.Errorf("part %d, bytes %d to %d:\n%s", i, part.Offset, part.End, d)
				}
			}
			if begin != int64(len(all)) {
				t.Errorf("the last part ends at %d of %d", begin, len(all))
			}
		})
	}
}

func TestImported(t *testing.T) {
	data, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	text := banner + intervalLine(1, 100) + summaryText(100, 1)
	write(t, log, text)
	part := ingest.LogPart{End: int64(len(text))}
	sum, err := ingest.Fingerprint(log, part)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1e9, 0)
	meta := rundir.Meta{ID: "r", StartedAt: at, EndedAt: &at, ClosedAt: &at, Import: &rundir.ImportSource{Path: log, Size: part.End, SHA256: sum}}
	if _, err := ingest.Import(data, meta, log, part); err != nil {
		t.Fatal(err)
	}
	if _, err := ingest.Import(data, meta, log, part); !errors.Is(err, rundir.ErrExists) {
		t.Errorf("error %v", err)
	}
	if id, whole, err := ingest.Imported(data, log, part, sum); id != "r" || !whole || err != nil {
		t.Errorf("found %q, whole %v, %v", id, whole, err)
	}
	write(t, log, text+"more\n")
	if id, whole, err := ingest.Imported(data, log, ingest.LogPart{End: part.End + 5}, "other"); id != "r" || whole || err != nil {
		t.Errorf("of a log that has grown: %q, whole %v, %v", id, whole, err)
	}
	write(t, log, "x"+text+"more\n")
	if id, _, err := ingest.Imported(data, log, ingest.LogPart{End: part.End + 5}, "other"); id != "" || err != nil {
		t.Errorf("of another log: %q, %v", id, err)
	}
	left, err := os.ReadDir(rundir.Root(data))
	if err != nil || len(left) != 1 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}

func TestLineTime(t *testing.T) {
	local := func(ms int) time.Time { return time.Date(2026, 11, 21, 2, 14, 3, ms*1e6, time.Local) }
	for line, want := range map[string]time.Time{
		"2026-11-21 02:14:03:123 10 sec: 99 operations": local(123),
		"2026/11/21 02:14:03 line":                      local(0),
		"[2026-11-21 02:14:03.123] line":                local(123),
		"2026-11-21T02:14:03.123+02:00 line":            time.Date(2026, 11, 21, 0, 14, 3, 123e6, time.UTC),
		"2026-11-21T02:14:03Z line":                     time.Date(2026, 11, 21, 2, 14, 3, 0, time.UTC),
		"2026-13-21 02:14:03 no such month":             {},
		"at 2026-11-21 02:14:03":                        {},
		"[ 10s ] thds: 4 tps: 1.00":                     {},
	} {
		got, ok := ingest.LineTime([]byte(line))
		if ok == want.IsZero() || !got.Equal(want) {
			t.Errorf("%s: %v, %v", line, got, ok)
		}
	}
}

// FuzzReadLog guards that the parts of any log follow each other and are bytes
// of it.
func FuzzReadLog(f *testing.F) {
	run := banner + intervalLine(1, 100) + summaryText(100, 1)
	f.Add(run + run)
	f.Add("2026-11-21 02:14:03\n" + run[:200])
	f.Add("[2026-99-21 02:14:03:1] [ 1s ] thds: 1\x00\r\n")
	path := filepath.Join(f.TempDir(), "log")
	f.Fuzz(func(t *testing.T, text string) {
		write(t, path, text)
		parts, err := ingest.ReadLog(context.Background(), path, sysbench.Tool)
		if err != nil {
			t.Fatal(err)
		}
		end := int64(0)
		for _, p := range parts {
			if p.Offset != end || p.End < p.Offset || p.End > int64(len(text)) {
				t.Fatalf("part from %d to %d of %d, the one before ends at %d", p.Offset, p.End, len(text), end)
			}
			end = p.End
		}
	})
}
