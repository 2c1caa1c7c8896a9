package rundir

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/base/secret"
)

// FuzzLoad: whatever is in run.json is refused, or read as a run whose facts survive
// being written, without secrets.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"../../app/cli/testdata/0.1/runs/*/run.json", "../../../internal/recorded/testdata/*/run.json"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatal(pattern, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			m := bytes.Index(data, []byte(`"id": "`)) + len(`"id": "`)
			f.Add(append(append(append([]byte{}, data[:m]...), "one"...), data[m+bytes.IndexByte(data[m:], '"'):]...))
		}
	}
	f.Add([]byte(`{"id":"one","title":"u:hunter2@h","labels":{"password":"x"},"selection":{"targets":["mysql://u:p@h/"]},"log":{"earlier":[{}]},"clock":{"steps":[{"seconds":-1e300}]}}`))
	f.Add([]byte(`{"id":"two"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := At(t.TempDir(), "one")
		if err := os.MkdirAll(string(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir.Path(MetaFile), data, 0o644); err != nil {
			t.Fatal(err)
		}
		m, err := dir.Load()
		if err != nil {
			return
		}
		if m.ID != "one" {
			t.Fatalf("run %q", m.ID)
		}
		_, _, _ = m.Facts(), m.IsElsewhere(), m.Description()
		for _, d := range m.Drain {
			_ = d.String()
		}
		if _, err := dir.Update(func(*Meta) {}); err != nil {
			if strings.Contains(err.Error(), "year outside of range") {
				return
			}
			t.Fatal(err)
		}
		first, err := os.ReadFile(dir.Path(MetaFile))
		if err != nil {
			t.Fatal(err)
		}
		m, err = dir.Update(func(*Meta) {})
		if err != nil {
			t.Fatalf("what was written can't be read: %v\n%s", err, first)
		}
		second, err := os.ReadFile(dir.Path(MetaFile))
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%v\n%s\nbecame\n%s", err, first, second)
		}
		texts := []string{m.Title, m.Tool, m.Workload, m.Target, m.Database, m.Reason}
		for name, value := range m.Labels {
			texts = append(texts, value)
			if secret.Value(name, value) != value {
				t.Errorf("label %q %q", name, value)
			}
		}
		for _, text := range texts {
			if secret.Text(text) != text {
				t.Errorf("a secret in %q", text)
			}
		}
	})
}

// TestLoadIsBounded: in a shared folder anybody can write a run.json.
func TestLoadIsBounded(t *testing.T) {
	dir := At(t.TempDir(), "one")
	if err := os.MkdirAll(string(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	huge := `{"id":"one","title":"` + strings.Repeat("x", maxMeta) + `"}`
	if err := os.WriteFile(dir.Path(MetaFile), []byte(huge), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Load(); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Error(err)
	}
}

// FuzzCheckID: no id leads out of the runs folder.
func FuzzCheckID(f *testing.F) {
	for _, id := range []string{"20261121T021403Z-oltp_read_write-t16", "..", ".", "a/b", "a\x00", ".hidden", "-x", "ä", ""} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		if CheckID(id) != nil {
			return
		}
		dir := At("/data", id)
		if filepath.Dir(string(dir)) != "/data/runs" || dir.ID() != id || strings.HasPrefix(id, ".") || strings.HasPrefix(id, "-") {
			t.Errorf("%q is %q", id, dir)
		}
	})
}
