package record

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/evidence"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

func capture(number int, text string) *Capture {
	begin := time.Date(2026, 11, 21, 14, 3, 0, 0, time.UTC)
	return &Capture{Number: number, Trigger: "throughput 0/s", Clients: 16, Begin: begin, End: begin.Add(2 * time.Second),
		Moments: []evidence.Moment{{At: begin.Add(time.Second), Answers: []evidence.Answer{{Target: "n1", Engine: "x", At: begin,
			Sessions: []evidence.Session{{ID: "1", Statement: text}}}}}}}
}

func TestCaptures(t *testing.T) {
	dir, claim, err := rundir.Create(t.TempDir(), rundir.Meta{ID: "r", Timing: rundir.Timing{StartedAt: time.Now()}})
	if err != nil {
		t.Fatal(err)
	}
	claim.Release()
	w, last := NewCaptureWriter(dir)
	if last != 0 {
		t.Errorf("last %d", last)
	}
	for i := range 3 {
		if err := w.Write(capture(i+1, "SELECT ?")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Replace(2, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(capture(4, "CREATE USER x IDENTIFIED BY PASSWORD hunter2hunter2")); err != nil {
		t.Fatal(err)
	}
	w.Close()
	f, err := os.OpenFile(dir.Path(StallsFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("{\"capture\":5,\n{\"cap"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	all, err := ReadCaptures(dir)
	if err != nil || len(all) != 3 {
		t.Fatalf("%d captures, %v", len(all), err)
	}
	if d := cmp.Diff(*capture(1, "SELECT ?"), all[0]); d != "" {
		t.Error(d)
	}
	if all[1].Number != 3 || all[2].Number != 4 {
		t.Errorf("%+v", all)
	}
	if text := all[2].Moments[0].Answers[0].Sessions[0].Statement; strings.Contains(text, "hunter2") {
		t.Errorf("%q", text)
	}
	if w, last = NewCaptureWriter(dir); last != 4 {
		t.Errorf("last %d", last)
	}
	defer w.Close()
	large := capture(5, strings.Repeat("SELECT ? ", 5000))
	for range 29 {
		large.Moments = append(large.Moments, large.Moments[0])
	}
	if err := w.Write(large); err != nil || len(large.Moments) != 8 {
		t.Errorf("%v, %d moments of a large capture", err, len(large.Moments))
	}
	for i := 0; err == nil; i++ {
		if i > 50 {
			t.Fatal("no limit")
		}
		err = w.Write(capture(i+6, strings.Repeat("SELECT ? ", 45_000)))
	}
	if info, statErr := os.Stat(dir.Path(StallsFile)); !errors.Is(err, ErrStallsFull) || statErr != nil || info.Size() > mostStallBytes {
		t.Errorf("%v, %v", err, statErr)
	}
}
