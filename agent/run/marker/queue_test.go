package marker

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// TestAppendTogether: several processes append at once, and one of them crashes
// in the middle of a line again and again; nothing that Append reported as
// written is lost.
func TestAppendTogether(t *testing.T) {
	dir := rundir.Directory(t.TempDir())
	var writers sync.WaitGroup
	const each = 40
	for w := range 4 {
		writers.Go(func() {
			for i := range each {
				if err := Append(dir, point(fmt.Sprintf("%d/%d", w, i), 0)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Go(func() {
		for range each {
			f, err := os.OpenFile(dir.Path(rundir.MarkersFile), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
			if err != nil {
				t.Error(err)
				return
			}
			f.WriteString(`{"marker":{"id":"half`)
			f.Close()
		}
	})
	writers.Wait()
	seen := map[string]bool{}
	for _, s := range items(t, dir) {
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

// TestAppendLineSync: a line that is not on disk is not reported as written.
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
		"range without run":     func(m *Marker) { m.Kind, m.Run = Run, "" },
		"id with a colon":       func(m *Marker) { m.ID = "a:b" },
		"id in capital letters": func(m *Marker) { m.ID = "A" },
		"endless id":            func(m *Marker) { m.ID = strings.Repeat("a", 1000) },
		"endless run":           func(m *Marker) { m.Run = strings.Repeat("a", maxLine) },
	} {
		dir := rundir.Directory(t.TempDir())
		m := good
		change(&m)
		if err := Append(dir, m); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if _, err := os.Stat(dir.Path(rundir.MarkersFile)); err == nil {
			t.Errorf("%s: something was written", name)
		}
	}
	if err := Append(rundir.Directory(t.TempDir()+"/gone"), good); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a directory that does not exist: %v", err)
	}
}

// TestAppendCleans: text from tools and tags can't do harm where they are shown.
func TestAppendCleans(t *testing.T) {
	dir := rundir.Directory(t.TempDir())
	m := Marker{
		Kind: Run, Run: "r", Text: "\x1b[31mred\x00\r\nline\xff" + strings.Repeat("ä", 2*maxText),
		Tags:  []string{"a\nb", "", "a\nb", strings.Repeat("x", 1000)},
		Start: start.Add(time.Hour + 1234567*time.Nanosecond), End: start, // the clock was set back
	}
	if err := Append(dir, m); err != nil {
		t.Fatal(err)
	}
	got := items(t, dir)[0]
	if n := len([]rune(got.Text)); n != maxText || !strings.HasPrefix(got.Text, "[31mred \nlineää") {
		t.Errorf("text of %d runes: %q…", n, got.Text[:30])
	}
	if len(got.Tags) != 2 || got.Tags[0] != "a b" || len([]rune(got.Tags[1])) != maxTag {
		t.Errorf("tags %q", got.Tags)
	}
	if want := start.Add(time.Hour + time.Millisecond); !got.Start.Equal(want) || !got.End.Equal(want) {
		t.Errorf("from %s to %s", got.Start, got.End)
	}
}

// TestTwoOpenOneRun: if two processes open a run's region, all readers take the first one; a late "began" does not
// reopen an ended region.
func TestTwoOpenOneRun(t *testing.T) {
	dir := rundir.Directory(t.TempDir())
	path := dir.Path(rundir.MarkersFile)
	for i, m := range []Marker{openRun, openRun, closedRun(), openRun} {
		m.ID = fmt.Sprint("id", i) // as written by processes that did not see the others' lines
		m, err := m.clean()
		if err != nil {
			t.Fatal(err)
		}
		if err := appendEntry(path, entry{Marker: &m}); err != nil {
			t.Fatal(err)
		}
	}
	got := items(t, dir)
	if len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	if s := got[0]; s.ID != "id0" || !s.End.Equal(closedRun().End) || s.Text != closedRun().Text {
		t.Errorf("%+v", s)
	}
}

// TestAppendTwice guards that nothing is written twice to a queue: neither the same content, nor the beginning of an
// ended marker.
func TestAppendTwice(t *testing.T) {
	dir := rundir.Directory(t.TempDir())
	alert := Marker{ID: "a", Kind: Alert, Run: "r1", Text: "fires", Start: start}
	resolved := alert
	resolved.End = start.Add(time.Minute)
	lines := 0
	for _, step := range []struct {
		m       Marker
		written bool
	}{
		{openRun, true}, {openRun, false}, {closedRun(), true}, {closedRun(), false}, {openRun, false},
		{alert, true}, {alert, false}, {resolved, true}, {alert, false}, {resolved, false},
		{point("one", 0), true}, {point("one", 0), true}, // two points may look the same
	} {
		if err := Append(dir, step.m); err != nil {
			t.Fatal(err)
		}
		if step.written {
			lines++
		}
		data, err := os.ReadFile(dir.Path(rundir.MarkersFile))
		if err != nil || bytes.Count(data, []byte("\n")) != lines {
			t.Errorf("after %s: want %d lines, have %q, %v", &step.m, lines, data, err)
		}
	}
	if n := len(items(t, dir)); n != 4 {
		t.Errorf("%d markers, want the run, the alert and two points", n)
	}
}

// TestRead guards the order, and that the run's own region is not among its markers.
func TestRead(t *testing.T) {
	dir := rundir.Directory(t.TempDir())
	if got, err := Read(dir); got != nil || err != nil {
		t.Errorf("without a file: %+v, %v", got, err)
	}
	for _, m := range []Marker{openRun, point("two", 2*time.Second), point("one", time.Second)} {
		if err := Append(dir, m); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Read(dir)
	if err != nil || len(got) != 2 || got[0].Text != "one" || got[1].Text != "two" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestReadOldFile reads a queue file of version 0.1, with two openings of one run,
// and delivers what waits in it, and only that.
func TestReadOldFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		old, err := os.ReadFile("testdata/v0.1.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(l.path, old, 0o644); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, it := range l.items() {
			state := "waits"
			switch {
			case it.delivered():
				state = "delivered"
			case it.refused():
				state = "refused"
			}
			got = append(got, fmt.Sprintf("%s %s %s", it.ID, it.Kind, state))
		}
		want := []string{
			"fpk2v6xqy3j5m7aa run delivered", "pointdelivered01 point delivered", "pointrefused0001 point refused",
			"pointwaits000001 point waits", "0123456789abcdef alert waits",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		d, stop := l.deliverer()
		defer stop()
		l.flush(d, time.Minute)
		var texts []string
		for _, a := range l.grafana.All() {
			texts = append(texts, a.Text)
		}
		// The refused one is too old to be tried again.
		if diff := cmp.Diff([]string{"waits", "alert X (critical)<br>it fires<br>resolved after 5s"}, texts); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}

// TestReadWhileWritten: wherever reading stops within a line, nothing is missing or duplicated after the rest has come.
func TestReadWhileWritten(t *testing.T) {
	dir := rundir.Directory(t.TempDir())
	path := dir.Path(rundir.MarkersFile)
	for _, m := range []Marker{openRun, point("one", time.Second), closedRun(), point("two", time.Second)} {
		if err := Append(dir, m); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := len(items(t, dir))
	for n := range whole {
		q := newQueue(dir)
		for _, part := range [][]byte{whole[:n], whole} {
			if err := os.WriteFile(path, part, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := q.refresh(true); err != nil {
				t.Fatal(err)
			}
		}
		if len(q.items) != want || q.damaged != 0 {
			t.Fatalf("stopped after %d bytes: %d markers, %d damaged lines", n, len(q.items), q.damaged)
		}
	}
}

// FuzzQueue: whatever a queue file contains, reading it in two steps gives the same as reading it in one, and a marker
// that is added later is found.
func FuzzQueue(f *testing.F) {
	dir := rundir.Directory(f.TempDir())
	path := dir.Path(rundir.MarkersFile)
	for _, m := range []Marker{openRun, point("one", time.Second), closedRun()} {
		if err := Append(dir, m); err != nil {
			f.Fatal(err)
		}
	}
	appendEntry(path, entry{Delivered: &receipt{ID: "x", Version: "y", Annotation: 1}})
	appendEntry(path, entry{Rejected: &receipt{ID: "x", Version: "y", Reason: "z"}})
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
		dir := rundir.Directory(t.TempDir())
		split = min(max(split, 0), len(data))
		q := newQueue(dir)
		read := func(data []byte) {
			if err := os.WriteFile(q.path, data, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := q.refresh(true); err != nil {
				t.Fatal(err)
			}
		}
		// What follows the split may complete the last line into another one:
		// only whole lines may count as read.
		read(data[:split])
		read(data)
		once := items(t, dir)
		if split == 0 || data[split-1] == '\n' {
			if len(q.items) != len(once) {
				t.Errorf("%d markers in two steps, %d in one", len(q.items), len(once))
			}
		}
		added := point("added", 0)
		added.ID = "added"
		if err := Append(dir, added); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(items(t, dir), func(it *item) bool { return it.ID == "added" }) {
			t.Error("the added marker is lost")
		}
	})
}

// TestQueueIsBounded: a file that another user has filled is read up to a limit, and takes no more
// markers.
func TestQueueIsBounded(t *testing.T) {
	dir := rundir.Directory(t.TempDir())
	var b strings.Builder
	lines := 0
	for ; b.Len() < 2*maxQueue; lines++ {
		fmt.Fprintf(&b, `{"marker":{"id":"m%d","kind":"point","run":"a","text":"x","start":"2026-11-21T14:03:00Z"}}`+"\n", lines)
	}
	if err := os.WriteFile(dir.Path(rundir.MarkersFile), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if markers, err := Read(dir); err != nil || len(markers) != maxItems || lines < 2*maxItems {
		t.Errorf("%d markers of %d: %v", len(markers), lines, err)
	}
	if err := Append(dir, Marker{Kind: Point, Text: "x", Start: time.Now()}); err == nil || !strings.Contains(err.Error(), "takes no more markers") {
		t.Errorf("append: %v", err)
	}
}
