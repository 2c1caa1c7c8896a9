package marker

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestAppendTogether: several processes append at once, and one of them crashes
// in the middle of a line again and again; nothing that Append reported as
// written is lost.
func TestAppendTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "markers.jsonl")
	var writers sync.WaitGroup
	const each = 40
	for w := range 4 {
		writers.Go(func() {
			for i := range each {
				if _, err := Append(path, point(fmt.Sprintf("%d/%d", w, i), 0)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Go(func() {
		for range each {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
			if err != nil {
				t.Error(err)
				return
			}
			f.WriteString(`{"marker":{"id":"half`)
			f.Close()
		}
	})
	writers.Wait()
	states, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, s := range states {
		seen[s.Text] = true
	}
	if len(seen) != 4*each {
		t.Errorf("%d of %d markers", len(seen), 4*each)
	}
}

// faultyFile is an append-only file in memory that fails on demand.
type faultyFile struct {
	data     []byte
	offset   int64
	room     int    // bytes until the disk is full; -1: endless
	intruder string // another process's half line, written just before ours
	syncErr  error
}

func (f *faultyFile) Write(p []byte) (int, error) {
	f.data = append(f.data, f.intruder...)
	f.intruder = ""
	var err error
	if f.room >= 0 && len(p) > f.room {
		p, err = p[:f.room], syscall.ENOSPC
	}
	if f.room >= 0 {
		f.room -= len(p)
	}
	f.data = append(f.data, p...)
	f.offset = int64(len(f.data))
	return len(p), err
}

func (f *faultyFile) ReadAt(p []byte, at int64) (int, error) {
	return bytes.NewReader(f.data).ReadAt(p, at)
}

func (f *faultyFile) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekEnd {
		f.offset = int64(len(f.data))
	}
	return f.offset, nil
}

func (f *faultyFile) Sync() error { return f.syncErr }

// TestAppendLineFullDisk: wherever the disk got full, the error is returned and
// the next line is whole.
func TestAppendLineFullDisk(t *testing.T) {
	line := "{\"a\":1}\n"
	for room := range len(line) {
		f := &faultyFile{room: room}
		if err := appendLine(f, []byte(line)); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("room for %d bytes: %v", room, err)
		}
		f.room = -1
		if err := appendLine(f, []byte(line)); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix("\n"+string(f.data), "\n"+line) {
			t.Errorf("room for %d bytes: file is %q", room, f.data)
		}
	}
}

// TestAppendLineIntruder: a half line that another process leaves between our
// look and our write does not swallow ours.
func TestAppendLineIntruder(t *testing.T) {
	f := &faultyFile{room: -1, data: []byte("x\n"), intruder: "half"}
	if err := appendLine(f, []byte("whole\n")); err != nil {
		t.Fatal(err)
	}
	if got := string(f.data); !strings.Contains(got, "\nwhole\n") {
		t.Errorf("file is %q", got)
	}
}

// TestAppendLineSync: what is not on disk is not reported as written.
func TestAppendLineSync(t *testing.T) {
	f := &faultyFile{room: -1, syncErr: syscall.EIO}
	if err := appendLine(f, []byte("x\n")); !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
}

func TestAppendRefuses(t *testing.T) {
	good := point("text", 0)
	for name, change := range map[string]func(*Marker){
		"no text":               func(m *Marker) { m.Text = " \x00\n" },
		"no time":               func(m *Marker) { m.Start = time.Time{} },
		"year 10000":            func(m *Marker) { m.Start = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"end before 1970":       func(m *Marker) { m.End = time.Unix(-5, 0) },
		"no kind":               func(m *Marker) { m.Kind = "" },
		"range without run":     func(m *Marker) { m.Kind, m.Run = Range, "" },
		"id with a colon":       func(m *Marker) { m.ID = "a:b" },
		"id in capital letters": func(m *Marker) { m.ID = "A" },
		"endless id":            func(m *Marker) { m.ID = strings.Repeat("a", 1000) },
		"endless run":           func(m *Marker) { m.Run = strings.Repeat("a", maxLine) },
	} {
		path := filepath.Join(t.TempDir(), "markers.jsonl")
		m := good
		change(&m)
		if _, err := Append(path, m); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: something was written", name)
		}
	}
	if _, err := Append(filepath.Join(t.TempDir(), "gone", "markers.jsonl"), good); err == nil {
		t.Error("appended in a folder that does not exist")
	}
}

// TestAppendCleans: text from tools and tags can't do harm where they are shown.
func TestAppendCleans(t *testing.T) {
	path := filepath.Join(t.TempDir(), "markers.jsonl")
	m := Marker{
		Kind: Range, Run: "r", Text: "\x1b[31mred\x00\r\nline\xff" + strings.Repeat("ä", 2*MaxText),
		Tags:  []string{"a\nb", "", "a\nb", strings.Repeat("x", 1000)},
		Start: start.Add(time.Hour + 1234567*time.Nanosecond), End: start, // the clock was set back
	}
	if _, err := Append(path, m); err != nil {
		t.Fatal(err)
	}
	states, err := Read(path)
	if err != nil || len(states) != 1 {
		t.Fatal(states, err)
	}
	got := states[0]
	if n := len([]rune(got.Text)); n != MaxText || !strings.HasPrefix(got.Text, "[31mred \nlineää") {
		t.Errorf("text of %d runes: %q…", n, got.Text[:30])
	}
	if len(got.Tags) != 2 || got.Tags[0] != "a b" || len([]rune(got.Tags[1])) != maxTag {
		t.Errorf("tags %q", got.Tags)
	}
	if want := start.Add(time.Hour + time.Millisecond); !got.Start.Equal(want) || !got.End.Equal(want) {
		t.Errorf("from %s to %s", got.Start, got.End)
	}
}

// TestTwoOpenOneRun: of two processes that both open a run's range, all readers
// take the first; a late "began" does not open what has ended.
func TestTwoOpenOneRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "markers.jsonl")
	first, err := Append(path, openRun)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []Marker{openRun, closedRun(), openRun} {
		if _, err := Append(path, m); err != nil {
			t.Fatal(err)
		}
	}
	states, err := Read(path)
	if err != nil || len(states) != 1 {
		t.Fatalf("%+v, %v", states, err)
	}
	if s := states[0]; s.ID != first.ID || !s.End.Equal(closedRun().End) || s.Text != closedRun().Text {
		t.Errorf("%+v", s)
	}
}

// TestReadWhileWritten: wherever reading stops in the middle of a line, nothing
// is missing or doubled when the rest has come.
func TestReadWhileWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "markers.jsonl")
	for _, m := range []Marker{openRun, point("one", time.Second), closedRun(), point("two", time.Second)} {
		if _, err := Append(path, m); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) {
		j := newJournal(path)
		for _, part := range [][]byte{whole[:n], whole} {
			if err := os.WriteFile(path, part, 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := j.refresh(); err != nil {
				t.Fatal(err)
			}
		}
		if len(j.states) != len(want) || j.damaged != 0 {
			t.Fatalf("stopped after %d bytes: %d markers, %d damaged lines", n, len(j.states), j.damaged)
		}
	}
}

// FuzzJournal: whatever is in a queue file, reading it in two steps gives what
// reading it in one does, and a marker added behind it is found.
func FuzzJournal(f *testing.F) {
	path := filepath.Join(f.TempDir(), "seed.jsonl")
	for _, m := range []Marker{openRun, point("one", time.Second), closedRun()} {
		if _, err := Append(path, m); err != nil {
			f.Fatal(err)
		}
	}
	appendEntry(path, entry{Delivered: &delivery{ID: "x", Version: "y", Annotation: 1}})
	appendEntry(path, entry{Rejected: &rejection{ID: "x", Version: "y", Reason: "z"}})
	seed, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed, 100)
	f.Add(seed[:len(seed)-1], 200)
	f.Add(append(seed[:300:300], seed...), 300)
	f.Add([]byte(`{"marker":null}`+"\n\n\x00\n[]\n{}\n"), 3)
	f.Add([]byte(strings.Repeat("x", maxLine+10)+"\n"+string(seed)), maxLine)
	f.Fuzz(func(t *testing.T, data []byte, split int) {
		path := filepath.Join(t.TempDir(), "markers.jsonl")
		split = min(max(split, 0), len(data))
		write := func(data []byte) {
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		write(data[:split])
		j := newJournal(path)
		if _, err := j.refresh(); err != nil {
			t.Fatal(err)
		}
		// What is behind the split may complete the last line into another one:
		// only whole lines may count as read.
		write(data)
		if _, err := j.refresh(); err != nil {
			t.Fatal(err)
		}
		once, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if split == 0 || data[split-1] == '\n' {
			if len(j.states) != len(once) {
				t.Errorf("%d markers in two steps, %d in one", len(j.states), len(once))
			}
		}
		added, err := Append(path, point("added", 0))
		if err != nil {
			t.Fatal(err)
		}
		all, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			if s.ID == added.ID {
				return
			}
		}
		t.Error("the added marker is lost")
	})
}
