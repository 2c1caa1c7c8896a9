package record

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// released returns the beginnings of files that released versions have written.
func released(f *testing.F, name string, size int) (all [][]byte) {
	f.Helper()
	for _, pattern := range []string{"../../app/cli/testdata/0.1/runs/*/" + name, "../../../internal/recorded/testdata/*/" + name} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatal(pattern, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			all = append(all, data[:min(len(data), size)])
		}
	}
	return all
}

// FuzzStatusCut: if a status file of any version is cut anywhere, as by a crash, the rows before the cut are read as in
// the whole file.
func FuzzStatusCut(f *testing.F) {
	for _, data := range released(f, "status.jsonl", 12000) {
		f.Add(data, 5000)
	}
	f.Add([]byte(`{"target":"n1","columns":["a_total"]}`+"\n"+`["n1",1,0,0,0,"",1]`+"\n"+`{"target":"n1","columns":["b"]}`+"\n"+`["n1",2,0,0,0,"",2]`+"\n"), 60)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		cut = min(max(cut, 0), len(data))
		whole, part := readLines(data, nil), readLines(data[:bytes.LastIndexByte(data[:cut], '\n')+1], nil)
		if part.Damage.UnreadableStatus > whole.Damage.UnreadableStatus || len(part.Servers) > len(whole.Servers) {
			t.Fatalf("%d servers, %d unreadable; of the whole %d, %d", len(part.Servers), part.Damage.UnreadableStatus, len(whole.Servers), whole.Damage.UnreadableStatus)
		}
		for i, s := range part.Servers {
			w := whole.Servers[i]
			if n := len(s.Elapsed); len(w.Elapsed) < n || !slices.Equal(w.Elapsed[:n], s.Elapsed) {
				t.Fatalf("%s: rows at %v, of the whole at %v", s.Target, s.Elapsed, w.Elapsed)
			}
			if keys := s.Keys(); len(keys) > maxColumns {
				t.Fatalf("%d columns", len(keys))
			}
		}
	})
}

// FuzzSettings: the lines of a settings file that can be read are the same whether or
// not more follow, every change is one, and no server has two entries.
func FuzzSettings(f *testing.F) {
	for _, data := range released(f, SettingsFile, 12000) {
		f.Add(data, 3000)
	}
	f.Add([]byte(`{"at":"2026-11-21T02:14:05Z","target":"n1","settings":{"a":"1"}}`+"\n"+`{"at":"2026-11-21T02:14:06Z","target":"n1","error":"x"}`+"\n"+
		`{"at":"2026-11-21T02:14:07Z","target":"n1","version":"8","settings":{"a":"2","b":""}}`+"\n{}\nnull\n[]\n"), 70)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		path := filepath.Join(t.TempDir(), SettingsFile)
		read := func(data []byte) []ServerSettings {
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
			lines, err := readSettings(path)
			if err != nil && !bytes.Contains(data, make([]byte, 1)) && len(data) < LongestStatus {
				t.Fatal(err)
			}
			return lines
		}
		all := read(data)
		part := read(data[:bytes.LastIndexByte(data[:min(max(cut, 0), len(data))], '\n')+1])
		if len(part) > len(all) {
			t.Fatalf("%d lines of a part, %d of all", len(part), len(all))
		}
		for i := range part {
			if !part[i].equal(&all[i]) || part[i].Target != all[i].Target || !part[i].At.Equal(all[i].At) {
				t.Fatalf("%+v, of the whole %+v", part[i], all[i])
			}
		}
		seen := map[string]bool{}
		for _, s := range newSettingsHistory(all) {
			if seen[s.Target] || s.Target == "" {
				t.Fatalf("%q twice", s.Target)
			}
			seen[s.Target] = true
			for _, c := range s.Changes {
				if c.Before == c.After || c.Name == "" && s.Settings[""] == "" && c.Before == "" && c.After == "" {
					t.Fatalf("%+v", c)
				}
			}
		}
	})
}
