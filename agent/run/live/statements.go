package live

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/run/record"
)

const (
	// statementsTime bounds the wait for a reading of statements.
	statementsTime = 4 * time.Second
	// statementsLate after the tool's end, counters may include work of others.
	statementsLate = 10 * time.Second
)

// statements is the tracker's state of the statement counters of the run's servers, which are read
// at the run's begin and after its end. follow's goroutine starts both readings; running tracks
// them.
type statements struct {
	begun, ended bool
	running      sync.WaitGroup
	done         chan struct{} // closed after the second reading; nil before it starts
}

// beginStatements starts the first reading once the run's servers are known, unless it was made
// before a restart.
func (t *tracker) beginStatements(ctx context.Context) {
	t.mu.Lock()
	meta, owner := t.meta, t.owner != nil
	targets := t.targets()
	t.mu.Unlock()
	if t.statements.begun || !owner || meta.Ended() || meta.Servers == nil || len(targets) == 0 {
		return
	}
	t.statements.begun = true
	if _, err := record.ReadStatementsBegin(t.dir); err == nil {
		return
	}
	t.statements.running.Go(func() {
		wanted := map[string]*engine.StatementReading{}
		for _, o := range targets {
			wanted[o.Name] = nil
		}
		answers := t.readStatements(ctx, wanted)
		begun := map[string]record.StatementsBegun{}
		for _, o := range targets {
			a, ok := answers[o.Name]
			if !ok || errors.Is(a.Err, engine.ErrSwitchedOff) {
				continue
			}
			b := record.StatementsBegun{Engine: o.Engine, Cluster: o.Cluster, Reading: a.StatementReading}
			if a.Err != nil {
				b.Error = secret.Text(a.Err.Error())
			}
			begun[o.Name] = b
		}
		if len(begun) == 0 || ctx.Err() != nil {
			return
		}
		if err := record.WriteStatementsBegin(t.dir, begun); err != nil && !errors.Is(err, record.ErrDiskLow) {
			t.fault("keep what the servers counted by statement", err)
		}
	})
}

// endStatements starts the second reading after the tool's end, once.
func (t *tracker) endStatements(ctx context.Context) {
	t.mu.Lock()
	meta, owner := t.meta, t.owner != nil
	t.mu.Unlock()
	if t.statements.ended || !owner || meta.Closed() {
		return
	}
	t.statements.ended, t.statements.begun = true, true
	t.statements.running.Wait() // for the first reading
	begun, err := record.ReadStatementsBegin(t.dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			t.fault("read what the servers counted by statement", err)
		}
		return
	}
	done := make(chan struct{})
	t.statements.done = done
	late := t.now().Sub(*meta.EndedAt) > statementsLate
	t.statements.running.Go(func() {
		defer close(done)
		wanted := map[string]*engine.StatementReading{}
		for name, b := range begun {
			if b.Reading != nil && !late {
				wanted[name] = b.Reading
			}
		}
		answers := t.readStatements(ctx, wanted)
		if ctx.Err() != nil {
			return
		}
		var all []record.ServerStatements
		for _, name := range slices.Sorted(maps.Keys(begun)) { // in a fixed order
			b := begun[name]
			a, ok := answers[name]
			switch {
			case late:
				a.Err = errors.New("the agent did not run when the tool ended")
			case !ok || errors.Is(a.Err, engine.ErrSwitchedOff):
				a.Err = errors.New("the target was taken out of the configuration during the run")
			}
			all = append(all, record.NewServerStatements(name, &b, a))
		}
		if err := record.WriteStatements(t.dir, all); err != nil && !errors.Is(err, record.ErrDiskLow) {
			t.fault("record what the servers counted by statement", err)
		}
	})
}

// readStatements queries the servers and returns the times of the readings on the run's axis.
func (t *tracker) readStatements(ctx context.Context, targets map[string]*engine.StatementReading) map[string]engine.StatementsAnswer {
	if len(targets) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, statementsTime)
	defer cancel()
	defer context.AfterFunc(t.patience, cancel)()
	answers := t.opts.Sampler.ReadStatements(ctx, targets)
	ahead := t.axis.AheadOf(t.opts.Samples)
	for _, a := range answers {
		if a.StatementReading != nil {
			a.At = a.At.Add(ahead).UTC().Truncate(time.Millisecond)
		}
	}
	return answers
}

// statementsRecorded reports whether no reading is pending.
func (t *tracker) statementsRecorded() bool {
	if t.statements.done == nil {
		return true
	}
	select {
	case <-t.statements.done:
		return true
	default:
		return false
	}
}
