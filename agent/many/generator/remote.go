package generator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/benchwatch/benchwatch/agent/many/mirror"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const (
	// mirrorInterval is how often a generator is asked for what is new.
	mirrorInterval = 200 * time.Millisecond
	// startLead is how long before the start the generators learn of it.
	startLead = time.Second
	// abandonTime is how long the generators may take to learn that they do not start.
	abandonTime = time.Second
	// reconnectInterval is how often a lost connection is tried again.
	reconnectInterval = 2 * time.Second
)

// Remote is the generators of a group on other machines, reached by ssh.
type Remote struct {
	DataDir    string
	Name       string
	Connection rundir.Connection
	OnFailure  rundir.OnFailure
	// Notice prints a line about a generator.
	Notice func(format string, args ...any)

	sessions []*session
	mu       sync.Mutex
	signals  []chan syscall.Signal // to each generator
	stopping bool                  // the generators were asked to end
}

// Connect opens the connections to all machines, at the same time. If it fails for one,
// it closes them and the error matches all that failed, each an *Error.
func (r *Remote) Connect(ctx context.Context) error {
	r.sessions = make([]*session, len(r.Connection.Hosts))
	err := r.each(func(i int) (err error) {
		r.sessions[i], err = connect(ctx, r.Connection.Hosts[i], &r.Connection)
		return named(r.Connection.Hosts[i], err)
	})
	if err != nil {
		r.Close()
	}
	return err
}

// named returns err as one of a machine.
func named(host string, err error) error {
	var own *Error
	if err == nil || errors.As(err, &own) {
		return err
	}
	return &Error{Host: host, Text: err.Error()}
}

// each calls do for all generators at the same time and joins the errors.
func (r *Remote) each(do func(i int) error) error {
	errs := make([]error, len(r.Connection.Hosts))
	var all sync.WaitGroup
	for i := range r.Connection.Hosts {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Reconnect has Mirror open the connections.
func (r *Remote) Reconnect() { r.sessions = make([]*session, len(r.Connection.Hosts)) }

// Close closes the connections. What runs on the other machines continues.
func (r *Remote) Close() {
	var all sync.WaitGroup
	for i := range r.sessions {
		all.Go(func() { r.drop(i) })
	}
	all.Wait()
}

// drop closes one connection, if there is one.
func (r *Remote) drop(i int) {
	if s := r.sessions[i]; s != nil {
		s.close()
		r.sessions[i] = nil
	}
}

// Prepare has each machine start a `benchwatch run` with these arguments that waits for
// its start. If one fails, the others are taken back.
func (r *Remote) Prepare(ctx context.Context, arguments, command []string) error {
	err := r.each(func(i int) error {
		job := Job{Group: r.Name, Generator: i + 1, Generators: len(r.Connection.Hosts), Arguments: arguments, Command: command}
		_, err := r.sessions[i].ask(ctx, &request{Prepare: &job})
		return named(r.Connection.Hosts[i], err)
	})
	if err != nil {
		r.Abandon()
	}
	return err
}

// Abandon takes back what was prepared and not started.
func (r *Remote) Abandon() {
	ctx, cancel := context.WithTimeout(context.Background(), abandonTime)
	defer cancel()
	_ = r.each(func(i int) error {
		_, err := r.sessions[i].ask(ctx, &request{Run: r.run(i), Abandon: true})
		return err // a generator that is not reached gives up by itself
	})
}

func (r *Remote) run(i int) string { return rundir.GeneratorID(r.Name, i+1) }

// Members returns the generators as known before the start.
func (r *Remote) Members() []rundir.Member {
	members := make([]rundir.Member, len(r.Connection.Hosts))
	for i, s := range r.sessions {
		offset, uncertainty := s.offset.Seconds(), s.uncertainty.Seconds()
		members[i] = rundir.Member{Host: r.Connection.Hosts[i], ClockOffsetSeconds: &offset, ClockUncertaintySeconds: &uncertainty}
	}
	return members
}

// NextStart returns an instant that all generators will have learnt of before it comes.
func (r *Remote) NextStart() time.Time {
	slowest := time.Duration(0)
	for _, s := range r.sessions {
		slowest = max(slowest, s.uncertainty)
	}
	return time.Now().Add(startLead + 4*slowest).Round(0).UTC()
}

// Start sets the start of all generators, at by the clock of this machine.
func (r *Remote) Start(ctx context.Context, at time.Time) error {
	return r.each(func(i int) error {
		a, err := r.sessions[i].ask(ctx, &request{Run: r.run(i), StartAt: at.Add(r.sessions[i].offset).UnixNano()})
		if err == nil && a.Gone {
			err = fmt.Errorf("run %s %w", r.run(i), mirror.ErrGone)
		}
		return named(r.Connection.Hosts[i], err)
	})
}

// Mirror copies the generators' run directories until all are closed, or ctx is done. A
// connection that is lost is opened again.
func (r *Remote) Mirror(ctx context.Context) error {
	r.mu.Lock()
	r.signals = nil
	for range r.Connection.Hosts {
		r.signals = append(r.signals, make(chan syscall.Signal, 8))
	}
	r.mu.Unlock()
	return r.each(func(i int) error { return r.mirror(ctx, i) })
}

// Signal passes a signal to all generators.
func (r *Remote) Signal(sig syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopping = true
	for _, to := range r.signals {
		select {
		case to <- sig:
		default: // it has enough of them
		}
	}
}

// mirror copies one generator's run directory.
func (r *Remote) mirror(ctx context.Context, i int) error {
	name := rundir.GeneratorName(i+1, r.Connection.Hosts[i])
	m := &mirror.Mirror{Dir: rundir.At(r.DataDir, r.run(i)), From: rundir.Mirror{Host: r.Connection.Hosts[i]}, Files: mirrored}
	tick := time.NewTicker(mirrorInterval)
	defer tick.Stop()
	for lost := ""; ; {
		over, err := r.update(ctx, i, m)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errLost):
			if lost == "" {
				r.Notice("%s: %v; it runs on, trying to connect again", name, err)
			}
			lost = err.Error()
			r.drop(i)
		case errors.Is(err, mirror.ErrGone):
			r.Notice("%s: %v", name, err)
			return m.Abandon(err.Error())
		case errors.Is(err, mirror.ErrForeign), errors.Is(err, mirror.ErrReplaced), errors.Is(err, mirror.ErrRefused):
			return errors.Join(named(r.Connection.Hosts[i], err), m.Abandon(err.Error()))
		case err != nil: // such as a full disk: tried again
			if lost != err.Error() {
				r.Notice("%s: %v", name, err)
			}
			lost = err.Error()
		case lost != "":
			r.Notice("%s: connected again", name)
			lost = ""
		}
		if over {
			return r.judge(name, m)
		}
		wait, signals := tick.C, r.signals[i]
		if r.sessions[i] == nil {
			wait, signals = time.After(reconnectInterval), nil // they wait for a connection
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case sig := <-signals:
			if _, err := r.sessions[i].ask(ctx, &request{Run: r.run(i), Signal: int(sig)}); errors.Is(err, errLost) {
				r.signals[i] <- sig // once there is a connection; there is room for what was taken
				r.drop(i)
			}
		case <-wait:
		}
	}
}

func (r *Remote) update(ctx context.Context, i int, m *mirror.Mirror) (over bool, err error) {
	if r.sessions[i] == nil {
		s, err := connect(ctx, r.Connection.Hosts[i], &r.Connection)
		if err != nil {
			return false, &lostError{err.Error()}
		}
		r.sessions[i] = s
	}
	m.From.Scraped = r.sessions[i].scraped
	for {
		over, more, err := m.Update(ctx, r.sessions[i])
		if err != nil || !more {
			return over, err
		}
	}
}

// judge looks at how a generator ended.
func (r *Remote) judge(name string, m *mirror.Mirror) error {
	meta, err := m.Dir.Load()
	if err != nil {
		return err
	}
	r.mu.Lock()
	stopping := r.stopping
	r.mu.Unlock()
	if meta.Outcome == rundir.Succeeded || stopping && meta.Outcome == rundir.Interrupted {
		return nil
	}
	text := fmt.Sprintf("%s %s", name, meta.Outcome)
	if meta.Outcome == rundir.Interrupted || meta.Outcome == rundir.Lost {
		text = fmt.Sprintf("%s was %s", name, meta.Outcome)
	}
	if meta.Reason != "" {
		text += ": " + meta.Reason
	}
	switch {
	case stopping:
		r.Notice("%s", text)
	case r.OnFailure == rundir.Continue:
		r.Notice("%s; the others continue", text)
	default:
		r.Notice("%s; ending the others (they continue with --on-failure=continue)", text)
		r.Signal(syscall.SIGINT)
	}
	return nil
}
