package live

import (
	"context"
	"errors"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/record"
)

// serverRecord is what a tracker records of the run's servers, and the failures to record something. The tracker's mu
// guards it, except for diskLow.
type serverRecord struct {
	recorder *record.Recorder
	last     engine.Frame // the newest frame, possibly from before the tool's end
	diskLow  bool         // used by the recording goroutine: the servers are not recorded
	faults   uint64
	faultLog time.Time // when a failure was last logged
}

// frame records a tick's samples of the run's servers and updates the drain.
func (t *tracker) frame(f engine.Frame) {
	t.mu.Lock()
	if t.meta.Mirror != nil { // its servers are in another machine's configuration
		t.mu.Unlock()
		return
	}
	f, ok := t.onAxis(f)
	if !ok {
		t.mu.Unlock()
		return
	}
	f = t.own(f)
	if t.last = f; t.drain != nil {
		t.drain.frame(&f)
	}
	id, recorder := t.meta.ID, t.recorder
	t.mu.Unlock()
	if len(f.Samples) > 0 {
		t.stalls.noteFrame(&f)
		t.opts.Sink.Sampled(id, f)
	}
	err := recorder.Record(f)
	if err != nil {
		t.fault("record the servers' status", err)
	}
	t.watchDisk(errors.Is(err, record.ErrDiskLow))
}

// watchDisk marks where lack of space interrupts the record of the servers, and where recording
// resumes. Only the recording goroutine calls it.
func (t *tracker) watchDisk(low bool) {
	if low == t.diskLow {
		return
	}
	t.diskLow = low
	text := "the disk is nearly full: servers are not recorded from here on"
	if !low {
		text = "the disk has space again: servers are recorded from here on"
	}
	t.log.Warn(text)
	t.mark(text, t.now())
}

// mark adds a marker to the run.
func (t *tracker) mark(text string, at time.Time) {
	if err := marker.Append(t.dir, marker.Marker{Kind: marker.Point, Run: t.dir.ID(), Text: text, Start: at}); err != nil {
		t.fault("mark the run", err)
	}
}

// fault counts a failure to record something and logs it once a minute.
func (t *tracker) fault(what string, err error) {
	t.mu.Lock()
	t.faults++
	speak := time.Since(t.faultLog) >= time.Minute
	if speak {
		t.faultLog = time.Now()
	}
	count := t.faults
	t.mu.Unlock()
	if speak && !errors.Is(err, context.Canceled) {
		t.log.Error("can't "+what, "err", err, "failures", count)
	}
}
