package generator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/common/version"

	"github.com/benchwatch/benchwatch/agent/many/mirror"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const (
	// pollRemote is the interval for asking a generator for new data. A lost connection is retried
	// after pauses of up to reconnectInterval.
	pollRemote        = 200 * time.Millisecond
	reconnectInterval = 2 * time.Second
	// startLead is how long before the start the generators are informed.
	startLead = time.Second
	// abandonTime limits the time for informing the generators that they do not start.
	abandonTime = time.Second
	// mostSignals is the number of signals that can wait for a connection.
	mostSignals = 8
)

// Remote is the set of a group's generators on other machines, reached by ssh.
type Remote struct {
	DataDir    string
	Name       string
	Connection rundir.Connection
	OnFailure  rundir.OnFailure
	// Notice prints a line about a generator.
	Notice func(format string, args ...any)

	machines []*machine
	mu       sync.Mutex
	stopping bool // the generators were asked to end
}

// machine is the machine of one generator, which lists only that generator's run. It implements
// mirror.Source and reopens a lost connection with the next request.
type machine struct {
	host, run  string
	connection *rundir.Connection
	session    *session // nil: no connection

	mu      sync.Mutex
	signals []syscall.Signal // waiting to be sent
	wake    chan struct{}    // has an element if there may be signals
}

// open opens the connection if there is none.
func (m *machine) open(ctx context.Context) (err error) {
	if m.session != nil {
		return nil
	}
	if m.session, err = connect(ctx, m.host, m.connection); err != nil {
		return &mirror.AwayError{Err: err}
	}
	return nil
}

// ask sends a request about the run.
func (m *machine) ask(ctx context.Context, r *request) (answer, error) {
	if err := m.open(ctx); err != nil {
		return answer{}, err
	}
	r.Run = m.run
	a, err := m.session.ask(ctx, r)
	if isAway(err) {
		m.close()
	}
	return a, err
}

func isAway(err error) bool {
	_, away := errors.AsType[*mirror.AwayError](err)
	return away
}

func (m *machine) close() {
	if m.session != nil {
		m.session.Close()
		m.session = nil
	}
}

// named returns err with the name of this machine.
func (m *machine) named(err error) error {
	var own *Error
	if err == nil || errors.As(err, &own) {
		return err
	}
	return &Error{Host: m.host, Text: err.Error()}
}

// signal sends a signal as soon as there is a connection.
func (m *machine) signal(sig syscall.Signal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.signals) < mostSignals {
		m.signals = append(m.signals, sig)
	}
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// List implements mirror.Source. It sends pending signals first.
func (m *machine) List(ctx context.Context, _ time.Duration) (mirror.List, error) {
	if err := m.open(ctx); err != nil {
		return mirror.List{}, err
	}
	m.mu.Lock()
	signals := m.signals
	m.mu.Unlock()
	for _, sig := range signals {
		if _, err := m.ask(ctx, &request{Signal: int(sig)}); isAway(err) {
			return mirror.List{}, err
		}
		m.mu.Lock()
		m.signals = m.signals[1:]
		m.mu.Unlock()
	}
	return mirror.List{Version: version.Version, Output: true, Runs: mirror.Entries{{ID: m.run}}, Scraped: m.session.scraped}, nil
}

// News implements mirror.Source.
func (m *machine) News(ctx context.Context, _ string, have *mirror.Have) (mirror.News, error) {
	a, err := m.ask(ctx, &request{Have: *have})
	return a.News, err
}

// Reconnect makes Mirror open the connections.
func (r *Remote) Reconnect() {
	for i, host := range r.Connection.Hosts {
		r.machines = append(r.machines, &machine{host: host, run: rundir.GeneratorID(r.Name, i+1),
			connection: &r.Connection, wake: make(chan struct{}, 1)})
	}
}

// Connect opens the connections to all machines concurrently. If one fails, it closes all of them
// and returns an error that joins all failures, each an *Error.
func (r *Remote) Connect(ctx context.Context) error {
	r.Reconnect()
	err := r.each(func(_ int, m *machine) error { return m.open(ctx) })
	if err != nil {
		r.Close()
	}
	return err
}

// each calls do for all generators concurrently and joins the errors.
func (r *Remote) each(do func(i int, m *machine) error) error {
	errs := make([]error, len(r.machines))
	var all sync.WaitGroup
	for i, m := range r.machines {
		all.Go(func() { errs[i] = m.named(do(i, m)) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Close closes the connections. Runs on the other machines continue.
func (r *Remote) Close() { _ = r.each(func(_ int, m *machine) error { m.close(); return nil }) }

// Prepare makes each machine start a `benchwatch run` with these arguments that waits for its
// start. If one fails, the others are cancelled.
func (r *Remote) Prepare(ctx context.Context, arguments, command []string) error {
	err := r.each(func(i int, m *machine) error {
		_, err := m.ask(ctx, &request{Prepare: &Job{Group: r.Name, Generator: i + 1, Generators: len(r.machines), Arguments: arguments, Command: command}})
		return err
	})
	if err != nil {
		r.Abandon()
	}
	return err
}

// Abandon cancels what was prepared but not started.
func (r *Remote) Abandon() {
	ctx, cancel := context.WithTimeout(context.Background(), abandonTime)
	defer cancel()
	_ = r.each(func(_ int, m *machine) error {
		_, err := m.ask(ctx, &request{Abandon: true})
		return err // a generator out of reach gives up by itself
	})
}

// Members returns the generators as known before the start.
func (r *Remote) Members() []rundir.Member {
	members := make([]rundir.Member, len(r.machines))
	for i, m := range r.machines {
		offset, uncertainty := m.session.offset.Seconds(), m.session.uncertainty.Seconds()
		members[i] = rundir.Member{Host: m.host, ClockOffsetSeconds: &offset, ClockUncertaintySeconds: &uncertainty}
	}
	return members
}

// NextStart returns a time that all generators will have received before it comes.
func (r *Remote) NextStart() time.Time {
	slowest := time.Duration(0)
	for _, m := range r.machines {
		slowest = max(slowest, m.session.uncertainty)
	}
	return time.Now().Add(startLead + 4*slowest).Round(0).UTC()
}

// Start sets the start of all generators; at is by this machine's clock.
func (r *Remote) Start(ctx context.Context, at time.Time) error {
	return r.each(func(_ int, m *machine) error {
		a, err := m.ask(ctx, &request{StartAt: at.Add(m.session.offset).UnixNano()})
		if err == nil && a.Gone {
			err = fmt.Errorf("run %s %w", m.run, mirror.ErrGone)
		}
		return err
	})
}

// Signal sends a signal to all generators.
func (r *Remote) Signal(sig syscall.Signal) {
	r.mu.Lock()
	r.stopping = true
	r.mu.Unlock()
	for _, m := range r.machines {
		m.signal(sig)
	}
}

// Mirror copies the generators' run directories until all are closed, or ctx is done.
func (r *Remote) Mirror(ctx context.Context) error {
	return r.each(func(i int, m *machine) error {
		name := rundir.GeneratorName(i+1, m.host)
		copier := mirror.Copier{
			DataDir: r.DataDir, Source: m, From: rundir.Mirror{Host: m.host}, Files: mirrored, Once: true, Wake: m.wake,
			Interval: pollRemote, LongestPause: reconnectInterval, Log: slog.New(slog.DiscardHandler),
			Notify: func(run string, err error) {
				switch {
				case run != "":
					r.Notice("%s: %v", name, err)
				case err != nil:
					r.Notice("%s: %v; it runs on, trying to connect again", name, err)
				default:
					r.Notice("%s: connected again", name)
				}
			},
		}
		if err := copier.Run(ctx); err != nil {
			return err
		}
		return r.reportEnd(i+1, m)
	})
}

// reportEnd prints how a generator ended unless it succeeded, and may end the others.
func (r *Remote) reportEnd(number int, m *machine) error {
	meta, err := rundir.At(r.DataDir, m.run).Load()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing to copy
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	stopping := r.stopping
	r.mu.Unlock()
	if meta.Outcome == rundir.Succeeded || stopping && meta.Outcome == rundir.Interrupted {
		return nil
	}
	ended := rundir.Member{Host: m.host, Outcome: meta.Outcome, Reason: meta.Reason}
	text := ended.Describe(number)
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
