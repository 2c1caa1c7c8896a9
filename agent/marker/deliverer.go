package marker

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	defaultPoll = time.Second
	// stopGrace is how long a request under way may take when the process stops.
	stopGrace = 2 * time.Second
)

// Options of a Deliverer.
type Options struct {
	// Poll is how often queue files are looked at; default 1 s.
	Poll time.Duration
	// write appends to a queue file; tests let it fail.
	write func(path string, e entry) error
}

// Stats are counters since the Deliverer was made, and where it stands.
type Stats struct {
	// Queued is how many markers wait for Grafana; 0 without a Grafana.
	Queued int
	// Delivered, Retried and Rejected count attempts by how they ended. A run's
	// range is delivered twice: when it begins and when it ends.
	Delivered, Retried, Rejected uint64
	// Problem is why markers wait, in one line; empty if they don't have to.
	Problem string
}

// Deliverer brings the markers of queue files to Grafana. Without a Grafana it
// only reads them, for Points.
//
// The goroutine of Run owns the queues. At most one request is under way, in a
// goroutine of its own, so that a slow Grafana keeps nobody from seeing new
// markers. mu guards what other goroutines ask for and what they are told.
type Deliverer struct {
	log   *slog.Logger
	poll  time.Duration
	write func(path string, e entry) error
	kick  chan struct{}

	mu      sync.Mutex
	grafana *Grafana
	changed bool            // grafana is another one than before
	watched map[string]bool // by path; false: to be forgotten once delivered
	stats   Stats
	points  []PointInTime

	// Owned by Run.
	queues  map[string]*queue
	backoff backoff
}

// New returns a Deliverer that does nothing until Run. grafana may be nil.
func New(grafana *Grafana, log *slog.Logger, opts Options) *Deliverer {
	if opts.Poll <= 0 {
		opts.Poll = defaultPoll
	}
	if opts.write == nil {
		opts.write = appendEntry
	}
	return &Deliverer{
		log: log, poll: opts.Poll, write: opts.write, grafana: grafana, kick: make(chan struct{}, 1),
		watched: map[string]bool{}, queues: map[string]*queue{},
	}
}

// SetGrafana makes deliveries go to another Grafana, or with nil to none. What
// was delivered stays delivered.
func (d *Deliverer) SetGrafana(g *Grafana) {
	d.mu.Lock()
	old := d.grafana
	d.grafana, d.changed = g, true
	d.mu.Unlock()
	if old != nil {
		old.Close()
	}
	d.Kick()
}

// Watch delivers what is and will be in the queue file at path, which need not
// exist yet. Watching one twice changes nothing.
func (d *Deliverer) Watch(path string) {
	d.mu.Lock()
	d.watched[path] = true
	d.mu.Unlock()
	d.Kick()
}

// Forget ends watching a queue, once everything in it is delivered.
func (d *Deliverer) Forget(path string) {
	d.mu.Lock()
	if _, found := d.watched[path]; found {
		d.watched[path] = false
	}
	d.mu.Unlock()
}

// Kick makes Run look at the queues now and not at the next poll.
func (d *Deliverer) Kick() {
	select {
	case d.kick <- struct{}{}:
	default:
	}
}

// Stats returns the counters.
func (d *Deliverer) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stats
}

// Run delivers until ctx is done. What is not delivered then stays in the
// queue files.
func (d *Deliverer) Run(ctx context.Context) {
	tick := time.NewTicker(d.poll)
	defer tick.Stop()
	// A request is not cut off in the middle when the process stops, if it can
	// be helped: whether Grafana carried it out would not be known.
	sendCtx, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	results := make(chan *shipment, 1)
	sending := false
	d.look(true)
	for {
		if !sending {
			if s := d.next(time.Now()); s != nil {
				sending = true
				go func() {
					s.send(sendCtx)
					results <- s
				}()
			}
		}
		d.publish()
		select {
		case <-ctx.Done():
			if sending {
				grace := time.AfterFunc(stopGrace, abort)
				d.finish(<-results, time.Now())
				grace.Stop()
			}
			d.close()
			return
		case s := <-results:
			sending = false
			d.finish(s, time.Now())
		case <-tick.C:
			d.look(false)
		case <-d.kick:
			d.look(true)
		}
	}
}

// close tells where the queues stand at the end.
func (d *Deliverer) close() {
	for _, q := range d.queues {
		q.flush(d.log)
	}
	d.publish()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.grafana != nil {
		d.grafana.Close()
	}
}

// look reads what was appended to the queues, to all of them or those whose
// time it is, and takes up and drops queues.
func (d *Deliverer) look(all bool) {
	d.mu.Lock()
	if d.changed {
		d.changed = false
		d.backoff = backoff{}
		for _, q := range d.queues {
			q.attempts = map[string]*attempt{}
		}
	}
	reachable := d.grafana != nil
	for path := range d.watched {
		if d.queues[path] == nil {
			d.queues[path] = newQueue(path, d.write)
		}
	}
	watched := maps.Clone(d.watched)
	d.mu.Unlock()

	now := time.Now()
	for path, q := range d.queues {
		if all || !now.Before(q.nextLook) {
			q.look(d.log, now, d.poll)
		}
		if !watched[path] && !q.busy && (!reachable || !q.waits()) {
			d.drop(path)
		}
	}
}

// drop forgets a queue, unless it is watched again meanwhile.
func (d *Deliverer) drop(path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.watched[path] {
		delete(d.watched, path)
		delete(d.queues, path)
	}
}

// publish tells other goroutines where the queues stand.
func (d *Deliverer) publish() {
	queued := 0
	var points []PointInTime
	for _, q := range d.queues {
		queued += q.waiting()
		points = append(points, q.points...)
	}
	points = sortPoints(points)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.points = points
	d.stats.Queued = queued
	if d.grafana == nil {
		d.stats.Queued = 0
	}
	d.stats.Problem = ""
	if queued > 0 {
		d.stats.Problem = d.backoff.problem
	}
}

// next picks what to send now and takes the lock of its queue; nil if there is
// nothing to do. The newest runs come first: people look at them.
func (d *Deliverer) next(now time.Time) *shipment {
	d.mu.Lock()
	grafana := d.grafana
	d.mu.Unlock()
	if grafana == nil || !d.backoff.over(now, grafana.token) {
		return nil
	}
	paths := make([]string, 0, len(d.queues))
	for path := range d.queues {
		paths = append(paths, path)
	}
	slices.SortFunc(paths, func(a, b string) int { return strings.Compare(b, a) })
	for _, path := range paths {
		q := d.queues[path]
		if q.due(now) == nil {
			continue
		}
		lock, err := lockQueue(path)
		if err != nil {
			if !errors.Is(err, errLocked) {
				q.complain(d.log, err)
			}
			continue
		}
		// Another process may have delivered it before it gave the lock back.
		q.read(d.log)
		if s := q.due(now); s != nil {
			q.busy = true
			return &shipment{
				queue: q, lock: lock, grafana: grafana,
				marker: s.Marker, version: s.version, verify: s.Delivered,
			}
		}
		lock.Close()
	}
	return nil
}

// finish notes how a shipment ended and gives its queue's lock back.
func (d *Deliverer) finish(s *shipment, now time.Time) {
	q := s.queue
	q.busy = false
	defer s.lock.Close()
	d.warnDuplicates(s)
	if s.err == nil {
		q.delivered(s, now)
		if d.backoff.problem != "" {
			d.log.Info("grafana takes markers again")
		}
		d.backoff = backoff{}
		d.count(func(st *Stats) {
			if !s.verify {
				st.Delivered++
			}
		})
		q.flush(d.log)
		return
	}
	var e *requestError
	if !errors.As(s.err, &e) {
		e = &requestError{op: "deliver", err: s.err}
	}
	if e.problem == refused {
		if q.rejected(s, e, now) {
			d.log.Error("grafana refused a marker", "marker", describe(&s.marker), "run", s.marker.Run, "err", e)
			d.count(func(st *Stats) { st.Rejected++ })
			q.flush(d.log)
		}
		d.backoff = backoff{}
		return
	}
	q.failed(s, e, now)
	d.count(func(st *Stats) { st.Retried++ })
	if d.backoff.add(e, now, s.grafana.token) {
		args := []any{"url", s.grafana.base.Redacted(), "err", e}
		if hint := e.hint(); hint != "" {
			args = append(args, "hint", hint)
		}
		d.log.Warn("markers wait for grafana", args...)
	} else {
		d.log.Debug("marker not delivered", "marker", describe(&s.marker), "err", e)
	}
}

func (d *Deliverer) warnDuplicates(s *shipment) {
	if s.removeErr != nil {
		d.log.Warn("a marker is in grafana more than once and the extra one can't be deleted",
			"marker", describe(&s.marker), "err", s.removeErr)
	}
}

func (d *Deliverer) count(add func(*Stats)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	add(&d.stats)
}

// Flush waits until the watched queues hold nothing that Grafana has not taken
// or refused, or until ctx is done. Run must be running. Without a Grafana it
// returns at once.
func (d *Deliverer) Flush(ctx context.Context) error {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		if d.settled() && d.Stats().Queued == 0 {
			return nil
		}
		d.Kick()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

func (d *Deliverer) settled() bool {
	d.mu.Lock()
	paths := slices.Collect(maps.Keys(d.watched))
	reachable := d.grafana != nil
	d.mu.Unlock()
	if !reachable {
		return true
	}
	for _, path := range paths {
		states, err := Read(path)
		if err != nil {
			return false
		}
		for _, s := range states {
			if !s.Delivered && s.Refused == "" {
				return false
			}
		}
	}
	return true
}
