package archive

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// For any index object with a correct checksum: no panic, and an accepted index names only files
// within a run's folder, made of its parts.
func FuzzIndex(f *testing.F) {
	hash := strings.Repeat("0a", 32)
	row, err := json.Marshal(&review.Row{})
	if err != nil {
		f.Fatal(err)
	}
	run := `{"id":"20261121T021403Z-x","tool":"sysbench","started_at":"2026-11-21T02:14:03Z","ended_at":"2026-11-21T02:15:03Z","closed_at":"2026-11-21T02:15:03Z"}`
	f.Add(run, string(row), `[{"name":"stdout.log","size":7,"sha256":"`+hash+`","parts":[{"sha256":"`+hash+`","size":7,"stored":9,"zstd":true}]}]`)
	f.Add(run, `{"latency":[{"op":"transaction","stat":"p95","seconds":1e999}]}`, `[{"name":"../x","size":-1}]`)
	e := Entry{ID: "20261121T021403Z-x", Origin: hash[:hashLength], Content: hash[:hashLength]}
	f.Fuzz(func(t *testing.T, run, row, files string) {
		inner := []byte(`{"format":1,"run":` + run + `,"row":` + row + `,"files":` + files + `}`)
		data, err := json.Marshal(sealed{digest(inner), inner})
		if err != nil {
			return // not JSON
		}
		x, err := decodeIndex(e, data)
		if err != nil {
			return
		}
		for _, file := range x.Files {
			if filepath.Base(file.Name) != file.Name || file.Name[0] == '.' || file.Size < 0 {
				t.Errorf("file %+v", file)
			}
			for _, p := range file.Parts {
				if object := p.object(e); !strings.HasPrefix(object, e.folder()) || strings.Contains(object, "..") {
					t.Errorf("object %s", object)
				}
			}
		}
		if x.Stored() < 0 || x.Meta.ID != e.ID {
			t.Errorf("%d bytes of %s", x.Stored(), x.Meta.ID)
		}
	})
}

// The name of an index object is accepted only in exactly the form that benchwatch writes.
func FuzzEntry(f *testing.F) {
	f.Add("index/20261121T021403Z-x~0123456789abcdef~fedcba9876543210.json")
	f.Add("20261121T021403Z-x~0123456789abcdef~../../../etc.json")
	f.Fuzz(func(t *testing.T, name string) {
		e, ok := entryOf(object{name: name, changed: time.Unix(0, 0)})
		if ok && (e.object() != name && strings.TrimPrefix(e.object(), indexFolder) != name || rundir.CheckID(e.ID) != nil) {
			t.Errorf("%q is taken for %q", name, e.object())
		}
	})
}
