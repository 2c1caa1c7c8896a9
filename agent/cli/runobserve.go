package cli

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/observer"
	"github.com/benchwatch/benchwatch/agent/report"
	"github.com/benchwatch/benchwatch/agent/rundir"
)

// observation is the observer in this process, or none where an agent has the
// data directory.
type observation struct {
	observer *observer.Observer
	parts    sync.WaitGroup
	cancel   context.CancelFunc
}

func (o *observation) stop() {
	if o.cancel != nil {
		o.cancel()
	}
	o.parts.Wait()
}

// observe starts an observer for this run unless an agent does that.
func (r *runCommand) observe(ctx context.Context) (*observation, error) {
	own := &observation{}
	if _, ok := rundir.Agent(r.config.DataDir); ok {
		return own, nil
	}
	ls, err := r.listen(true)
	if err != nil {
		return nil, ownFailure(err, "")
	}
	b, err := observer.New(observer.Options{Config: r.config, Only: []string{r.dir.ID()}, Logger: r.log})
	if err != nil {
		ls[0].Close()
		return nil, ownFailure(err, "")
	}
	r.say("live page at http://%s/ (metrics at /metrics)", ls[0].Addr())
	ctx, own.cancel = context.WithCancel(ctx)
	own.observer = b
	own.parts.Go(func() {
		if err := b.Run(ctx); err != nil {
			r.say("%v", err)
		}
	})
	own.parts.Go(func() {
		if err := r.serve(ctx, b, ls, r.log); err != nil {
			r.say("%v", err)
		}
	})
	return own, nil
}

// afterwards waits for the replicas, prints the table and lingers. A signal
// ends each of the waits.
func (r *runCommand) afterwards(own *observation, signals <-chan os.Signal) {
	defer own.stop()
	ended := time.Now()
	if !r.unrecorded {
		r.awaitClosed(own, signals)
	}
	meta, err := r.dir.Load()
	if err != nil {
		r.say("%v", err)
		return
	}
	snap, err := ingest.Read(context.Background(), r.dir, r.config.ToolSet().ByName(meta.Tool))
	if err != nil {
		r.say("%v", err)
	}
	_ = report.WriteOutcome(r.streams.Err, &snap) // nobody reads it if stderr is gone
	r.say("run %s: %s", meta.ID, r.dir)
	if own.observer == nil {
		return
	}
	if wait := *r.linger - time.Since(ended); wait > 0 {
		r.say("serving metrics for %s more (Ctrl-C ends it)", wait.Round(time.Second))
		select {
		case <-time.After(wait):
		case <-signals:
		}
	}
	if n := own.observer.PendingMarkers(); n > 0 {
		r.say("%d markers not delivered to Grafana: an agent on this data directory will send them", n)
	}
}

// agentGrace is how long an agent may be away, for a restart, before the
// wrapper stops waiting for what it would write.
const agentGrace = 5 * time.Second

func (r *runCommand) awaitClosed(own *observation, signals <-chan os.Signal) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	began, seen := time.Now(), time.Now()
	told := false
	for {
		meta, err := r.dir.Load()
		if err == nil && meta.Closed() {
			return
		}
		if own.observer == nil {
			if _, ok := rundir.Agent(r.config.DataDir); ok {
				seen = time.Now()
			} else if time.Since(seen) > agentGrace {
				r.say("the agent is gone: not waiting for replicas")
				return
			}
		}
		if !told && time.Since(began) > 2*time.Second {
			told = true
			r.say("waiting for replicas to catch up (Ctrl-C to stop waiting)")
		}
		select {
		case <-tick.C:
		case <-signals:
			if own.observer == nil {
				return
			}
			own.observer.GiveUpDrain()
		}
	}
}
