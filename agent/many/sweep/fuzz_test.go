package sweep

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// FuzzLoad guards that any sweep.json is either refused, or read as a sweep that stays the same
// when written and read again.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"id":"one","created_at":"2026-11-21T02:14:03Z","sets":[{"name":"threads","values":["1","2"]}],"repeat":2,"order":"given","command":["sysbench","--threads={threads}","run"],
		"steps":[{"number":1,"values":{"threads":"1"},"repeat":1,"state":"done","run_id":"one-001","attempt":1,"seconds":61.5},{"number":2,"values":{"threads":"2"},"repeat":1,"state":"pending"}]}`))
	f.Add([]byte(`{"id":"one","sets":[{}],"steps":[{"state":"running","seconds":-1e308}],"cooldown_seconds":1e308}`))
	f.Add([]byte(`{"id":"../one","sets":[{}],"steps":[{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		root := t.TempDir()
		dir := filepath.Join(Root(root), "one")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, stateFile), data, 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := Load(root, "one")
		if err != nil {
			return
		}
		if s.ID != "one" || s.Left(1) < 0 && s.CooldownSeconds >= 0 {
			t.Fatalf("%+v, %s left", s, s.Left(1))
		}
		if next := s.Next(); next != nil && next.Over() {
			t.Fatalf("the next step is over: %+v", next)
		}
		if s.Save() != nil {
			return // a year that JSON can't represent
		}
		again, err := Load(root, "one")
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Save(); err != nil {
			t.Fatal(err)
		}
		third, err := Load(root, "one")
		if err != nil || !reflect.DeepEqual(third, again) {
			t.Fatalf("%v\n%+v\n%+v", err, again, third)
		}
	})
}
