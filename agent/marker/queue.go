package marker

import (
	"log/slog"
	"time"
)

const (
	// settleTime is how long to wait before looking for what a request that was
	// given up may still do.
	settleTime = 10 * time.Second
	// verifyAfter is when a marker is looked for once more that was delivered
	// after such a request.
	verifyAfter = 30 * time.Second
	// A refused marker is tried again for giveUpAfter: what refused it may have
	// been misconfigured for a while.
	firstRefusedRetry = 5 * time.Second
	maxRefusedRetry   = 10 * time.Minute
	giveUpAfter       = 24 * time.Hour
	// maxIdlePoll is how many polls apart a queue is looked at in which nothing
	// happens.
	maxIdlePoll = 5
)

// queue is a queue file with what the Deliverer knows beyond what is in it.
type queue struct {
	*journal
	write      func(path string, e entry) error
	attempts   map[string]*attempt // by marker's id
	unrecorded []entry             // applied, but not yet written: the disk is full
	points     []PointInTime
	pointsOf   int  // puts when points were picked
	busy       bool // a marker of it is on its way; its lock is held
	quiet      int  // looks without a change
	nextLook   time.Time
	complaint  string
	warned     int // damaged lines that were logged
}

// attempt is what is known of the deliveries of one marker.
type attempt struct {
	settled time.Time // not before; Grafana may still be at it
	// refusals of the content refusedVersion, which is not sent before refusedUntil.
	refusals       int
	refusedVersion string
	refusedUntil   time.Time

	doubtful bool // Grafana may carry out later what was given up
	// verify is when to look again whether Grafana has the marker only once.
	verify time.Time
}

func newQueue(path string, write func(string, entry) error) *queue {
	return &queue{journal: newJournal(path), write: write, attempts: map[string]*attempt{}}
}

// look reads the file and sets when to look again, less often when nothing
// happens there.
func (q *queue) look(log *slog.Logger, now time.Time, poll time.Duration) {
	if q.read(log) {
		q.quiet = 0
	} else {
		q.quiet++
	}
	q.flush(log)
	q.nextLook = now.Add(poll * time.Duration(min(1+q.quiet/60, maxIdlePoll)))
}

// read applies what was appended and reports whether there was something.
func (q *queue) read(log *slog.Logger) bool {
	changed, err := q.refresh()
	if err != nil {
		q.complain(log, err)
		return false
	}
	if q.damaged > q.warned {
		log.Warn("markers left out that can't be read", "file", q.path, "lines", q.damaged-q.warned)
	}
	q.warned = q.damaged
	if q.info == nil { // the run's folder was removed
		q.unrecorded, q.points = nil, nil
		clear(q.attempts)
		return changed
	}
	if changed {
		for _, e := range q.unrecorded { // the file may have been read anew
			q.apply(e)
		}
	}
	if q.puts != q.pointsOf {
		q.points, q.pointsOf = newestPoints(q.states), q.puts
	}
	return changed
}

// complain logs an error of the file once.
func (q *queue) complain(log *slog.Logger, err error) {
	if q.complaint != err.Error() {
		q.complaint = err.Error()
		log.Error("marker queue", "err", err)
	}
}

// waits reports whether anything is to be sent now or later.
func (q *queue) waits() bool {
	if len(q.unrecorded) > 0 || q.waiting() > 0 {
		return true
	}
	for _, a := range q.attempts {
		if !a.verify.IsZero() {
			return true
		}
	}
	return false
}

// waiting is how many markers Grafana neither has nor refused.
func (q *queue) waiting() int {
	n := 0
	for _, s := range q.states {
		if !s.Delivered && s.Refused == "" {
			n++
		}
	}
	return n
}

// due returns the first marker to be sent now, or nil.
func (q *queue) due(now time.Time) *State {
	if q.busy {
		return nil
	}
	for _, s := range q.states {
		a := q.attempts[s.ID]
		switch {
		case s.Delivered:
			if a != nil && !a.verify.IsZero() && !now.Before(a.verify) {
				return s
			}
		case s.Refused != "" && now.Sub(s.refusedAt).Abs() > giveUpAfter:
		case a == nil:
			return s
		case now.Before(a.settled) || a.refusedVersion == s.version && now.Before(a.refusedUntil):
		default:
			return s
		}
	}
	return nil
}

// delivered notes that Grafana has what was sent.
func (q *queue) delivered(s *shipment, now time.Time) {
	a := q.attempts[s.marker.ID]
	delete(q.attempts, s.marker.ID)
	if a != nil && a.doubtful {
		q.attempts[s.marker.ID] = &attempt{verify: now.Add(verifyAfter)}
	}
	if s.verify {
		return
	}
	q.record(entry{Delivered: &delivery{
		ID: s.marker.ID, Version: s.version, Annotation: s.annotation, At: now.UTC(),
	}})
}

// rejected notes that Grafana refused the marker and reports whether that is new.
func (q *queue) rejected(s *shipment, e *requestError, now time.Time) bool {
	a := q.attempt(s.marker.ID)
	if a.refusedVersion != s.version {
		a.refusedVersion, a.refusals = s.version, 0
	}
	a.refusedUntil = now.Add(min(firstRefusedRetry<<min(a.refusals, 10), maxRefusedRetry))
	a.refusals++
	if a.refusals > 1 {
		return false
	}
	q.record(entry{Rejected: &rejection{ID: s.marker.ID, Version: s.version, Reason: e.Error(), At: now.UTC()}})
	return true
}

// failed notes an attempt that says nothing about the marker itself.
func (q *queue) failed(s *shipment, e *requestError, now time.Time) {
	a := q.attempt(s.marker.ID)
	if s.doubtful {
		a.doubtful = true
		if e.timedOut() {
			a.settled = now.Add(settleTime)
		}
	}
}

func (q *queue) attempt(id string) *attempt {
	if q.attempts[id] == nil {
		q.attempts[id] = &attempt{}
	}
	return q.attempts[id]
}

// record applies an entry now and writes it with flush.
func (q *queue) record(e entry) {
	q.apply(e)
	q.unrecorded = append(q.unrecorded, e)
}

// flush writes the entries that are not in the file yet.
func (q *queue) flush(log *slog.Logger) {
	for len(q.unrecorded) > 0 {
		if err := q.write(q.path, q.unrecorded[0]); err != nil {
			q.complain(log, err)
			return
		}
		q.complaint = ""
		q.unrecorded = q.unrecorded[1:]
	}
}
