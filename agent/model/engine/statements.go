package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// StatementCounts are the counts of one or several kinds of statements.
type StatementCounts = measure.StatementCounts

// Statement is a server's counts of statements whose text is equal except for literals.
type Statement struct {
	// Schema is the default database. Digest is the server's hash of the text, DigestPrepared, or
	// empty for all statements that did not fit into the server's table.
	Schema string `json:"schema,omitempty"`
	Digest string `json:"digest,omitempty"`
	// Text has no literals and may be cut. It is only read for the statements that took the most
	// time.
	Text string `json:"text,omitempty"`
	// FirstSeen is when the server began to count the statement, in seconds of Unix time by its
	// clock.
	FirstSeen float64 `json:"first_seen,omitempty"`
	StatementCounts
	// Latency is the distribution of execution times; nil: unknown.
	Latency LatencyBuckets `json:"latency,omitempty"`
}

// DigestPrepared is the digest of all executions of prepared statements, on servers that do not
// count them by text (MariaDB).
const DigestPrepared = "prepared"

// LatencyBuckets are the buckets of a histogram. In JSON a bucket is its two bounds in seconds,
// null for a missing one, and its number of values.
type LatencyBuckets []histogram.Bucket

// MarshalJSON implements json.Marshaler.
func (b LatencyBuckets) MarshalJSON() ([]byte, error) {
	rows := make([][3]any, len(b))
	for i, bucket := range b {
		rows[i] = [3]any{bucket.Low, bucket.High, bucket.N}
		if math.IsInf(bucket.High, 1) {
			rows[i][1] = nil
		}
	}
	return json.Marshal(rows)
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *LatencyBuckets) UnmarshalJSON(data []byte) error {
	var rows [][3]*float64
	if err := json.Unmarshal(data, &rows); err != nil {
		return err
	}
	*b = nil
	for _, r := range rows {
		if r[0] == nil || r[2] == nil || *r[2] < 0 {
			return errors.New("a bucket without a bound or a number")
		}
		bucket := histogram.Bucket{Low: *r[0], High: math.Inf(1), N: uint64(*r[2])}
		if r[1] != nil {
			bucket.High = *r[1]
		}
		*b = append(*b, bucket)
	}
	return nil
}

// since returns the values counted after before; nil if a count fell.
func (b LatencyBuckets) since(before LatencyBuckets) LatencyBuckets {
	was := map[[2]float64]uint64{}
	for _, bucket := range before {
		was[[2]float64{bucket.Low, bucket.High}] += bucket.N
	}
	more := LatencyBuckets{}
	for _, bucket := range b {
		bounds := [2]float64{bucket.Low, bucket.High}
		n := was[bounds]
		if bucket.N < n {
			return nil
		}
		delete(was, bounds)
		if bucket.N -= n; bucket.N > 0 {
			more = append(more, bucket)
		}
	}
	if len(was) > 0 {
		return nil
	}
	return more
}

// StatementReading is a server's counts at one time.
type StatementReading struct {
	// At is when the server was asked.
	At            time.Time `json:"at"`
	UptimeSeconds float64   `json:"uptime_seconds"`
	// Questions is the server's own counter of clients' statements; Prepared is the part that
	// executed a prepared statement.
	Questions series.Optional[float64] `json:"questions,omitzero"`
	Prepared  series.Optional[float64] `json:"prepared,omitzero"`

	Statements []Statement `json:"statements"`
	// Latency is the distribution over all statements; nil: unknown.
	Latency LatencyBuckets `json:"latency,omitempty"`
}

// StatementsDelta is what a server executed between two readings.
type StatementsDelta struct {
	From, To            time.Time
	Questions, Prepared series.Optional[float64]
	// Statements are the executed statements, ordered by time, the longest first.
	Statements []Statement
	Latency    LatencyBuckets
}

// The errors of StatementsBetween.
var (
	ErrStatementsRestart = errors.New("the server was restarted in between")
	ErrStatementsReset   = errors.New("the server's counters of statements were reset in between")
)

// StatementsBetween returns what was executed between two readings. It fails if the counters were
// reset in between.
func StatementsBetween(before, after *StatementReading) (*StatementsDelta, error) {
	if after.UptimeSeconds+RestartTolerance.Seconds() < before.UptimeSeconds+after.At.Sub(before.At).Seconds() {
		return nil, ErrStatementsRestart
	}
	d := &StatementsDelta{From: before.At, To: after.At, Questions: difference(before.Questions, after.Questions),
		Prepared: difference(before.Prepared, after.Prepared)}
	if before.Latency != nil {
		d.Latency = after.Latency.since(before.Latency)
	}
	type key struct{ schema, digest string }
	was := make(map[key]*Statement, len(before.Statements))
	for i := range before.Statements {
		s := &before.Statements[i]
		was[key{s.Schema, s.Digest}] = s
	}
	for _, s := range after.Statements {
		old := was[key{s.Schema, s.Digest}]
		switch {
		case old == nil: // its histogram only covers this time
		case old.FirstSeen != s.FirstSeen || !s.Subtract(&old.StatementCounts):
			return nil, ErrStatementsReset
		case old.Latency == nil:
			s.Latency = nil
		default:
			s.Latency = s.Latency.since(old.Latency)
		}
		if s.Executions > 0 {
			d.Statements = append(d.Statements, s)
		}
	}
	d.dropPrepared()
	slices.SortFunc(d.Statements, func(a, b Statement) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(b.Executions, a.Executions),
			strings.Compare(a.Schema+a.Digest, b.Schema+b.Digest))
	})
	return d, nil
}

// dropPrepared removes the executions of prepared statements if the server also counted them by
// text, which the counts of clients' statements reveal.
func (d *StatementsDelta) dropPrepared() {
	i := slices.IndexFunc(d.Statements, func(s Statement) bool { return s.Digest == DigestPrepared })
	if i < 0 || !d.Questions.Known {
		return
	}
	all := d.Total()
	with := math.Abs(all.Executions - d.Questions.Value)
	if without := math.Abs(all.Executions - d.Statements[i].Executions - d.Questions.Value); without < with {
		d.Statements = slices.Delete(d.Statements, i, i+1)
	}
}

// Total returns the sum over all statements.
func (d *StatementsDelta) Total() StatementCounts {
	var total StatementCounts
	for i := range d.Statements {
		total.Add(&d.Statements[i].StatementCounts)
	}
	return total
}

func difference(before, after series.Optional[float64]) series.Optional[float64] {
	if !before.Known || !after.Known || after.Value < before.Value {
		return series.Optional[float64]{}
	}
	return series.Some(after.Value - before.Value)
}

// StatementReader is a Prober that can read its server's counts by statement.
type StatementReader interface {
	// Statements reads the counts with a few statements on the prober's connection. Without an
	// earlier reading it returns all statements without texts; otherwise the statements executed
	// since, with the texts of those that took the most time. It is called between two probes, on
	// the same goroutine.
	//
	// The error is a MissingError if the server can't be asked at all.
	Statements(ctx context.Context, before *StatementReading) (*StatementReading, error)
}

// MissingError is why something can't be read from a server until a person changes that: a right is
// missing, or it is switched off.
type MissingError string

// Error implements error.
func (e MissingError) Error() string { return string(e) }

// ErrSwitchedOff is returned for readings that the target's configuration switches off or its
// engine does not support.
var ErrSwitchedOff = errors.New("switched off")

// StatementsAnswer is a reading, or the reason why there is none.
type StatementsAnswer struct {
	*StatementReading
	Err error
}

// statementsRequest asks a member for a reading.
type statementsRequest struct {
	ctx    context.Context // context of the waiting caller
	before *StatementReading
	answer chan StatementsAnswer // with room for one answer
	tries  int
}

// maxTries limits how often a server is asked that does not answer in time.
const maxTries = 2

// maxRequests is the maximum number of pending readings of one target.
const maxRequests = 8

// ReadStatements reads the targets' counts by statement, each with its earlier reading or nil, and
// waits until ctx is done. It asks a target at once if the tick leaves enough time, otherwise after
// the next tick. Names that are not targets have no answer.
func (s *Sampler) ReadStatements(ctx context.Context, targets map[string]*StatementReading) map[string]StatementsAnswer {
	pending := map[string]chan StatementsAnswer{}
	s.mu.Lock()
	for _, m := range s.members {
		before, wanted := targets[m.target.Name]
		if !wanted {
			continue
		}
		answer := make(chan StatementsAnswer, 1)
		select {
		case m.requests <- &statementsRequest{ctx: ctx, before: before, answer: answer}:
		default:
			answer <- StatementsAnswer{Err: errors.New("too many requests are pending")}
		}
		pending[m.target.Name] = answer
	}
	s.mu.Unlock()
	all := map[string]StatementsAnswer{}
	for name, answer := range pending {
		select {
		case a := <-answer:
			all[name] = a
			continue
		case <-ctx.Done():
		}
		select { // it may have answered while another was waited for
		case a := <-answer:
			all[name] = a
		default:
			all[name] = StatementsAnswer{Err: errors.New("the server did not answer in time")}
		}
	}
	return all
}

// readStatements answers the pending requests if the last tick leaves enough time. It runs on the
// member's goroutine, which keeps the deadline of a probe.
func (m *member) readStatements(ctx context.Context, last tick) {
	m.pending = slices.DeleteFunc(m.pending, func(r *statementsRequest) bool { return r.ctx.Err() != nil })
	for len(m.pending) > 0 && m.answers {
		left := share(last.window, probeShare) - m.sampler.now().Sub(last.at)
		if left < share(m.sampler.interval, settingsShare) {
			return
		}
		r := m.pending[0]
		m.pending = m.pending[1:]
		a := m.askStatements(ctx, r.before, left)
		if errors.Is(a.Err, context.DeadlineExceeded) {
			if r.tries++; r.tries < maxTries {
				m.pending, m.answers = append(m.pending, r), false // the connection is lost
				return
			}
			a.Err = fmt.Errorf("the server took longer than %v", left.Round(time.Millisecond))
		}
		if missing, ok := errors.AsType[MissingError](a.Err); ok && m.said.right(missing.Error()) {
			m.log.Warn("a right is missing", "missing", missing.Error())
		}
		r.answer <- a
	}
}

func (m *member) askStatements(ctx context.Context, before *StatementReading, left time.Duration) (a StatementsAnswer) {
	defer m.recoverAs(&a.Err)
	reader, ok := m.prober.(StatementReader)
	if !ok {
		return StatementsAnswer{Err: ErrSwitchedOff}
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	at := m.sampler.now()
	reading, err := reader.Statements(ctx, before)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return StatementsAnswer{Err: err}
	}
	reading.At = at
	for i := range reading.Statements {
		s := &reading.Statements[i]
		s.Schema, s.Digest, s.Text = fit(s.Schema), fit(s.Digest), fit(s.Text)
	}
	return StatementsAnswer{StatementReading: reading}
}
