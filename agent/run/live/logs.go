package live

import (
	"context"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/run/toollog"
)

// logRuns tracks the runs in logs that tools write by themselves.
type logRuns struct {
	*Watcher
	ctx       context.Context //nolint:containedctx // of all trackers
	followers *sync.WaitGroup
}

// Track implements [toollog.Tracker].
func (r logRuns) Track(dir rundir.Directory, meta rundir.Meta, feed *ingest.Feed) toollog.Run {
	t := newTracker(dir, meta, feed, &r.opts)
	t.fromLog = true
	r.mu.Lock()
	r.live[meta.ID] = t
	r.mu.Unlock()
	r.followers.Go(func() {
		t.follow(r.ctx, r.notifier)
		r.finished(t)
	})
	return logRun{t}
}

// Ended implements [toollog.Tracker].
func (r logRuns) Ended() { r.rescan.Store(true) }

// logRun is a run in a log.
type logRun struct{ *tracker }

// ReportInterval implements [toollog.Run].
func (r logRun) ReportInterval() time.Duration {
	return time.Duration(r.snapshot().IntervalSeconds.Value * float64(time.Second))
}

// Mark implements [toollog.Run].
func (r logRun) Mark(text string) { r.mark(text, r.now()) }

// Fault implements [toollog.Run].
func (r logRun) Fault(what string, err error) { r.fault(what, err) }
