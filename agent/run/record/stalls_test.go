package record

import (
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/evidence"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/run/stall"
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

// TestDuring: a look counts for the seconds of a dip that are nearest to it, and for none that are more than 2 s away.
func TestDuring(t *testing.T) {
	begin := time.Date(2026, 11, 21, 14, 3, 0, 0, time.UTC)
	elapsed := func(at time.Time) float64 { return at.Sub(begin).Seconds() }
	c := Capture{Number: 7, Clients: 16, Begin: begin.Add(11200 * time.Millisecond), End: begin.Add(20 * time.Second)}
	for i := range 8 {
		c.Moments = append(c.Moments, evidence.Moment{At: c.Begin.Add(time.Duration(i) * time.Second)})
	}
	for name, d := range map[string]struct {
		dip  stall.Dip
		want []float64
	}{
		"five seconds":              {stall.Dip{From: 10, To: 15}, []float64{1.7, 1, 1, 1, 0.3}},
		"over before the first one": {stall.Dip{From: 10, To: 11}, []float64{1}},
		"long before it":            {stall.Dip{From: 3, To: 8}, nil},
		"longer than the capture":   {stall.Dip{From: 17, To: 30}, []float64{0.7, 2.5}},
		"only its last moment":      {stall.Dip{From: 5, To: 9.5}, nil},
	} {
		d.dip.Seconds = d.dip.To - d.dip.From
		moments, number, clients := During([]Capture{c}, &d.dip, elapsed)
		var got []float64
		for _, m := range moments {
			got = append(got, math.Round(1000*m.Seconds)/1000)
		}
		if !slices.Equal(got, d.want) || len(got) > 0 && (number != 7 || clients != 16) {
			t.Errorf("%s: %v of capture %d, expected %v", name, got, number, d.want)
		}
	}
}
