package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"regexp"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"
)

// sourcePort matches the local port of a connection, which differs each time.
var sourcePort = regexp.MustCompile(`:\d+->`)

// repeatAfter is how long a recurring error is not logged again.
const repeatAfter = time.Minute

// member is one target of a sampler. Its goroutine owns the fields from prober to answers; the
// sampler's mutex guards the fields below them.
type member struct {
	sampler *Sampler
	target  *Target
	log     *slog.Logger
	ticks   chan tick
	// requests are requests for readings of statements.
	requests chan *statementsRequest

	prober    Prober
	password  Secret // of this prober, or of the next one
	said      *said
	failing   string // the current error
	announced bool   // an error was logged since the last recovery
	downSince time.Time
	pending   []*statementsRequest
	answers   bool // the last probe succeeded

	cancel   context.CancelFunc // ends the goroutine, without waiting for it
	busy     bool
	failures int // in a row
	retryAt  time.Time
	last     Sample
	// settingsDue: read the settings at the next tick. settings are the last ones read.
	settingsDue bool
	settings    *SettingsReading
	lagTick     time.Time // tick for which the lag of last was computed
	restarts    restartCounter
}

// said is what was logged about a server, also by an earlier member for it, whose goroutine may still run.
type said struct {
	mu      sync.Mutex
	missing map[string]bool      // missing rights
	errors  map[string]time.Time // with the time of the last log message
}

func newSaid() *said { return &said{missing: map[string]bool{}, errors: map[string]time.Time{}} }

// right reports whether a missing right has not been logged.
func (s *said) right(text string) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = !s.missing[text]
	s.missing[text] = true
	return first
}

// error reports whether an error has not been logged lately.
func (s *said) error(cause string, now time.Time) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, ok := s.errors[cause]; ok && now.Sub(last) < repeatAfter {
		return false
	}
	if len(s.errors) >= 100 { // texts that contain something variable
		clear(s.errors)
	}
	s.errors[cause] = now
	return true
}

func newMember(s *Sampler, t Target) *member {
	m := &member{
		sampler:  s,
		target:   &t,
		password: t.Password,
		log:      s.log.With("target", t.Name),
		ticks:    make(chan tick, 1),
		requests: make(chan *statementsRequest, maxRequests),
		said:     newSaid(),
		cancel:   func() {},
	}
	m.last = Sample{Target: m.target, Err: ErrNotSampled}
	return m
}

// run probes at each tick that it receives.
func (m *member) run(ctx context.Context) {
	defer m.close()
	var last tick
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-m.requests:
			if len(m.pending) < maxRequests {
				m.pending = append(m.pending, r)
			}
			m.readStatements(ctx, last)
		case t := <-m.ticks:
			last = t
			sample := m.probe(ctx, t)
			if ctx.Err() != nil {
				return // stopped: the error is not the target's fault
			}
			m.report(&sample)
			m.sampler.answered(m, sample)
			if m.answers = sample.Err == nil; m.answers && !t.extra {
				m.readSettings(ctx, t.at)
			}
			m.readStatements(ctx, t)
		}
	}
}

// probe asks the target once.
func (m *member) probe(ctx context.Context, t tick) Sample {
	sample := Sample{Target: m.target, Tick: t.at, Asked: m.sampler.now()}
	probeCtx, cancel := context.WithTimeout(ctx, share(t.window, probeShare)-max(0, sample.Asked.Sub(t.at)))
	defer cancel()
	sample.Status, sample.Err = m.ask(probeCtx)
	sample.Answered = m.sampler.now()
	switch {
	case sample.Err == nil && sample.Status == nil:
		sample.Err = errors.New("prober gave neither status nor error")
	case sample.Err != nil:
		sample.Status = nil
		m.renewPassword()
		if errors.Is(sample.Err, context.DeadlineExceeded) && ctx.Err() == nil {
			sample.Err = fmt.Errorf("%w: %w", deadlineError(m.sampler.interval), sample.Err)
		}
	default:
		sample.Status.bound()
		sample.Status.Set(MissingDetails, float64(len(sample.Status.Missing)))
	}
	return sample
}

// ask opens the prober if needed and probes. A panic counts as a failed probe, since no server's
// answer may end the agent.
func (m *member) ask(ctx context.Context) (status *Status, err error) {
	defer m.recoverAs(&err)
	if m.prober == nil {
		target := *m.target
		target.Password = m.password
		p, err := m.sampler.open(target)
		if err != nil {
			return nil, err
		}
		m.prober = p
	}
	return m.prober.Probe(ctx)
}

// renewPassword reads the password again after a failed probe. If it has changed, the next probe
// uses it.
func (m *member) renewPassword() {
	if m.target.ReadPassword == nil {
		return
	}
	password, err := m.target.ReadPassword()
	if err != nil || password == m.password {
		return // the failed probe is reported
	}
	m.log.Info("the password has changed: logging in again")
	m.password = password
	m.close()
}

// close closes the prober; the next probe opens another one.
func (m *member) close() {
	if m.prober == nil {
		return
	}
	if err := m.prober.Close(); err != nil {
		m.log.Debug("closing the connection failed", "err", err)
	}
	m.prober = nil
}

// recoverAs turns a panic into an error. It has to be deferred.
func (m *member) recoverAs(err *error) {
	if r := recover(); r != nil {
		m.log.Error("prober panicked", "panic", r, "stack", string(debug.Stack()))
		*err = fmt.Errorf("internal error: %v", r)
	}
}

// report logs changes since the last probe: a new error, a recovery, a missing privilege. It does not log every change
// of a target that comes and goes.
func (m *member) report(sample *Sample) {
	if sample.Err != nil {
		m.reportError(errorText(sample.Err), sample.Asked)
		return
	}
	m.failing = ""
	if m.announced {
		m.announced = false
		m.log.Info("target answers again", "after", sample.Answered.Sub(m.downSince).Round(time.Millisecond))
	}
	m.downSince = time.Time{}
	for _, right := range sample.Status.Missing {
		if m.said.right(right) {
			m.log.Warn("a right is missing", "missing", right)
		}
	}
}

func (m *member) reportError(text string, now time.Time) {
	if m.downSince.IsZero() {
		m.downSince = now
	}
	cause := sourcePort.ReplaceAllString(text, "->")
	if cause == m.failing {
		return
	}
	m.failing = cause
	if !m.said.error(cause, now) {
		return
	}
	m.announced = true
	m.log.Error("target can't be sampled", "err", text)
}

// record makes sample the newest of the member. The caller holds mu. Until the cluster's lag is
// computed, the sample has the lag of the previous tick.
func (m *member) record(sample Sample) {
	if sample.Err == nil {
		m.restarts.observe(sample.Answered, sample.Status.Uptime)
		if m.last.Err == nil && m.last.Tick.Add(2*m.sampler.interval).After(sample.Tick) {
			sample.LagTransactions, sample.LagSeconds, sample.LagBytes = m.last.LagTransactions, m.last.LagSeconds, m.last.LagBytes
			sample.Source, sample.Channels = m.last.Source, m.last.Channels
		}
	}
	sample.Restarts, sample.Settings = m.restarts.n, m.settings
	m.last = sample
}

// sameTarget reports whether a reload left the target unchanged.
func sameTarget(a, b *Target) bool {
	return a.Name == b.Name && a.Engine == b.Engine && a.Address == b.Address &&
		a.Cluster == b.Cluster && a.Behind == b.Behind && a.Nodename == b.Nodename &&
		a.Role == b.Role && a.Discover == b.Discover && a.Hearsay == b.Hearsay && a.TLSOptional == b.TLSOptional && a.User == b.User && a.Password == b.Password &&
		maps.Equal(a.Options, b.Options) && sameTLS(a.TLS, b.TLS)
}

// sameServer reports whether at most the cluster of a target has changed, which servers often report only
// after the first tick.
func sameServer(a, b *Target) bool {
	moved := *a
	moved.Cluster = b.Cluster
	return sameTarget(&moved, b)
}

func sameTLS(a, b *tls.Config) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ServerName == b.ServerName && a.InsecureSkipVerify == b.InsecureSkipVerify &&
		a.MinVersion == b.MinVersion && a.MaxVersion == b.MaxVersion &&
		(a.RootCAs == b.RootCAs || a.RootCAs != nil && b.RootCAs != nil && a.RootCAs.Equal(b.RootCAs)) &&
		slices.EqualFunc(a.Certificates, b.Certificates, func(x, y tls.Certificate) bool {
			return slices.EqualFunc(x.Certificate, y.Certificate, slices.Equal[[]byte])
		})
}

const (
	// quickRetries is the number of retries at every tick, since most outages are short.
	quickRetries = 5
	// maxBackoff is the longest pause between two attempts.
	maxBackoff = 5 * time.Second
)

// backoff returns the pause after a number of consecutive failures, from 0 (next tick) to
// maxBackoff. A fifth of it is random, so that many targets are not retried in step. A port without
// a listener is tried at every tick: that is cheap, and the first second of a starting server is
// sampled.
func backoff(failures int, interval time.Duration, err error) time.Duration {
	if failures <= quickRetries || errors.Is(err, syscall.ECONNREFUSED) {
		return 0
	}
	d := interval << min(failures-quickRetries, 10)
	if d <= 0 || d > maxBackoff {
		d = maxBackoff
	}
	return d - rand.N(d/5+1)
}

// RestartTolerance is how far the apparent start of a server may move between two samples without a
// restart: uptimes are whole seconds, and an answer can take up to an interval.
const RestartTolerance = 3 * time.Second

// restartCounter counts a server's restarts by its start time, since the uptime of a restarted
// server may exceed the previous one before it answers. Counters that fall for another reason
// (FLUSH STATUS) do not count as a restart.
type restartCounter struct {
	started time.Time // zero: unknown
	n       uint64
}

// observe takes the uptime that a server reported at a time; 0: unknown.
func (r *restartCounter) observe(answered time.Time, uptime time.Duration) {
	if uptime <= 0 {
		return
	}
	started := answered.Add(-uptime)
	if !r.started.IsZero() && started.Sub(r.started) > RestartTolerance {
		r.n++
	}
	r.started = started
}
