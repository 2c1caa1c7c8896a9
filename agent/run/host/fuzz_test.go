package host

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// FuzzRead: of a host.jsonl that is cut anywhere the rows before the cut are those of
// the whole file, and columns are as long as the axis.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("../../app/cli/testdata/0.1/runs/*/" + File)
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[:min(len(data), 4000)], 1000)
	}
	f.Add([]byte(`{"at":"2026-11-21T02:14:05Z","cores":2,"busy":-1e300}`+"\n"+`{"at":"2026-11-21T02:14:04Z"}`+"\nnull\n[]\n"), 60)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		path := filepath.Join(t.TempDir(), File)
		read := func(data []byte) (axis []float64) {
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
			err := Read(path, time.Date(2026, 11, 22, 4, 21, 27, 0, time.UTC), 8, func(h *History) {
				axis = append(axis, h.Elapsed[h.Begin:]...)
				for _, key := range h.Keys() {
					if len(h.Values(key)) != len(h.Elapsed) {
						t.Fatalf("%s has %d of %d values", key, len(h.Values(key)), len(h.Elapsed))
					}
				}
			})
			if err != nil && len(data) < 64<<10 {
				t.Fatal(err)
			}
			return axis
		}
		all := read(data)
		part := read(data[:bytes.LastIndexByte(data[:min(max(cut, 0), len(data))], '\n')+1])
		if len(part) > len(all) {
			t.Fatalf("%d rows of a part, %d of all", len(part), len(all))
		}
		for i, x := range part {
			if x != all[i] || i > 0 && x <= part[i-1] {
				t.Fatalf("row %d at %v, of the whole %v", i, part, all)
			}
		}
	})
}
