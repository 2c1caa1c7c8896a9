package marker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/run/grafana"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const (
	// pollEvery is how often the queues of shown runs are checked; listEvery applies to the queues
	// of all runs on disk.
	pollEvery = time.Second
	listEvery = time.Minute
	// stopGrace is how long Run continues to deliver when the process stops. The
	// agent ends within 2 s.
	stopGrace = time.Second

	// settleTime is how long to wait before checking whether a timed-out request arrived.
	settleTime = 10 * time.Second
	// verifyAfter is when to look for a duplicate of a marker that was delivered after a doubtful
	// request; doubtLasts is when to look for the last time. A busy Grafana may carry out a request
	// minutes after it timed out.
	verifyAfter = 30 * time.Second
	doubtLasts  = 5 * time.Minute

	firstRefusedRetry = 5 * time.Second
	maxRefusedRetry   = 10 * time.Minute
)

// Options of a Deliverer.
type Options struct {
	// DataDir: deliver the queues of all its runs, and the queue of points without a run. Without a
	// DataDir only the queues of Shown are delivered.
	DataDir string
	// Shown returns the runs whose points Points returns. It is called often.
	Shown func() []rundir.Directory
	// Grafana returns the current destination; with nil, markers wait in their queues. A marker
	// that one Grafana has accepted is not sent to another.
	Grafana func() *Grafana
	Log     *slog.Logger
}

// Stats are counters since the Deliverer was made, and its current state.
type Stats struct {
	// Queued is the number of markers waiting for Grafana; 0 without a Grafana.
	Queued int
	// Delivered, Retried and Rejected count attempts by outcome. The region of a run is delivered
	// twice: at its begin and at its end.
	Delivered, Retried, Rejected uint64
}

// Deliverer sends the markers of queue files to Grafana.
//
// Run's goroutine owns the queues. One request at a time is in progress, in its own goroutine, so
// that new points are noticed while Grafana is slow. Of the queues of runs that are not shown and
// have nothing to deliver, only their files' identities are in memory.
type Deliverer struct {
	opts Options
	log  *slog.Logger
	poll time.Duration
	kick chan struct{}
	// write appends to a queue file. Tests make it fail.
	write func(path string, e entry) error

	mu              sync.Mutex
	publishedStats  Stats
	publishedPoints []Marker

	// Owned by Run.
	grafana  *Grafana
	stats    Stats
	queues   map[rundir.Directory]*queue // of shown runs, and those with something to deliver
	idle     map[string]idleQueue        // of the other runs, by id, as last listed
	loaded   map[uint32]int64            // bytes of the queues, by owner
	nextList time.Time
	sending  *delivery
	backoff  backoff
}

// New returns a Deliverer. It does nothing until Run is called.
func New(opts Options) *Deliverer {
	return &Deliverer{
		opts: opts, log: opts.Log, poll: pollEvery, write: appendEntry,
		kick: make(chan struct{}, 1), queues: map[rundir.Directory]*queue{}, loaded: map[uint32]int64{},
	}
}

// Kick makes Run check the queues now instead of at the next poll.
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
	return d.publishedStats
}

// Points returns the newest points of the shown runs and of no run: at most 100 of each queue, each
// text once.
func (d *Deliverer) Points() []Marker {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.publishedPoints)
}

// Run delivers until ctx is done, and then briefly whatever can be delivered immediately. The rest
// stays in the queue files.
func (d *Deliverer) Run(ctx context.Context) {
	tick := time.NewTimer(clock.Next(d.poll))
	defer tick.Stop()
	// A request in progress may finish: otherwise its outcome would be unknown.
	sendCtx, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	sent := make(chan *delivery, 1)
	ending := ctx.Done()
	defer func() {
		d.publish()
		d.grafana.Close()
	}()
	d.scan()
	for {
		if d.sending == nil {
			d.sending = d.next(time.Now())
			if d.sending == nil && ending == nil {
				return
			}
			if s := d.sending; s != nil {
				go func() {
					s.annotation, s.err = s.grafana.upsert(sendCtx, &s.marker, s.verify, s.creating(d.write), d.log)
					sent <- s
				}()
			}
		}
		d.publish()
		select {
		case <-ending:
			ending = nil
			grace := time.AfterFunc(stopGrace, abort)
			defer grace.Stop()
			d.scan()
		case s := <-sent:
			d.finish(s, time.Now())
			if sendCtx.Err() != nil {
				return
			}
		case <-tick.C:
			tick.Reset(clock.Next(d.poll))
			d.scan()
		case <-d.kick:
			d.scan()
		}
	}
}

// scan reads what was appended: to the queues of shown runs and of runs with something to deliver,
// and once a minute to all others.
func (d *Deliverer) scan() {
	now := time.Now()
	if g := d.opts.Grafana(); g != d.grafana { // it may accept what waits in unloaded queues
		d.grafana.Close()
		d.grafana, d.backoff, d.nextList = g, backoff{}, time.Time{}
		clear(d.queues)
		clear(d.idle)
		clear(d.loaded)
	}
	shown := map[rundir.Directory]bool{}
	if d.opts.DataDir != "" {
		shown[rundir.Directory(d.opts.DataDir)] = true
	}
	for _, dir := range d.opts.Shown() {
		shown[dir] = true
	}
	for dir := range shown {
		d.watch(dir)
	}
	if d.opts.DataDir != "" && !now.Before(d.nextList) {
		d.nextList = now.Add(listEvery)
		d.list()
	}
	for dir, q := range d.queues {
		if !q.copied {
			d.refresh(q, shown[dir])
		}
		busy := d.sending != nil && d.sending.queue == q
		if !shown[dir] && !busy && len(q.unrecorded) == 0 && (d.grafana == nil || !q.pending()) {
			d.rest(dir, q)
		}
	}
}

// watch returns the queue of a run, which scan keeps up to date.
func (d *Deliverer) watch(dir rundir.Directory) *queue {
	q := d.queues[dir]
	if q == nil {
		q = newQueue(dir)
		q.copied = isCopy(dir)
		d.queues[dir] = q
	}
	return q
}

// list watches the queues of all runs on disk that have changed since they were idle.
func (d *Deliverer) list() {
	ids, err := rundir.List(d.opts.DataDir)
	if err != nil {
		d.log.Error("can't look for markers to deliver", "err", err)
		return
	}
	idle := make(map[string]idleQueue, len(ids))
	for _, id := range ids {
		dir := rundir.At(d.opts.DataDir, id)
		if d.queues[dir] != nil {
			continue
		}
		was := d.idle[id]
		if was.unchanged(dir) {
			idle[id] = was
		} else {
			d.watch(dir).complaint = was.complaint
		}
	}
	d.idle = idle
}

// rest stops watching a queue until its file changes.
func (d *Deliverer) rest(dir rundir.Directory, q *queue) {
	d.unload(q)
	delete(d.queues, dir)
	if d.idle != nil {
		d.idle[dir.ID()] = idleQueue{file: q.file, copied: q.copied, cut: q.cut, complaint: q.complaint}
	}
}

// idleQueue is a queue that has nothing to deliver, as it was last read. The zero value means that
// there is no file.
type idleQueue struct {
	file        file
	copied, cut bool
	complaint   string
}

// unchanged reports whether there is still nothing to deliver.
func (i *idleQueue) unchanged(dir rundir.Directory) bool {
	if i.copied || i.cut {
		return i.copied
	}
	now, err := fileAt(dir.Path(rundir.MarkersFile))
	return err == nil && now == i.file
}

// isCopy reports whether a run is recorded by a peer, which delivers its markers.
func isCopy(dir rundir.Directory) bool {
	meta, err := dir.Load()
	return err == nil && meta.IsCopy()
}

// refresh reads what was appended to a queue, and writes the receipts that could not be written
// before.
func (d *Deliverer) refresh(q *queue, load bool) {
	damaged := q.damaged
	others := d.loaded[q.owner] - q.offset
	q.limit = min(maxQueue, max(q.offset, maxOwned-others))
	err := q.refresh(load)
	d.loaded[q.owner] = others + q.offset
	if err != nil {
		d.complain(q, err)
		return
	}
	switch {
	case q.file.size > maxQueue:
		d.complain(q, fmt.Errorf("%s is longer than %d MiB: the rest is skipped", q.path, maxQueue>>20))
	case q.cut:
		d.complain(q, fmt.Errorf("%s waits: the markers of its owner's other runs fill %d MiB", q.path, maxOwned>>20))
	}
	if n := q.damaged - damaged; n > 0 {
		d.log.Warn("markers that can't be read are skipped", "file", q.path, "lines", n)
	}
	d.flush(q)
}

// unload forgets the markers of a queue.
func (d *Deliverer) unload(q *queue) {
	d.loaded[q.owner] -= q.offset
	q.unload()
}

// complain logs an error of a queue file once.
func (d *Deliverer) complain(q *queue, err error) {
	if q.complaint != err.Error() {
		q.complaint = err.Error()
		d.log.Error("marker queue", "err", err)
	}
}

// record applies a receipt and writes it, or retries later if the disk is full.
func (d *Deliverer) record(q *queue, e entry) {
	q.apply(e)
	q.unrecorded = append(q.unrecorded, e)
	d.flush(q)
}

func (d *Deliverer) flush(q *queue) {
	for len(q.unrecorded) > 0 {
		if err := d.write(q.path, q.unrecorded[0]); err != nil {
			d.complain(q, err)
			return
		}
		q.complaint = ""
		q.unrecorded = q.unrecorded[1:]
	}
}

// publish copies the state that other goroutines read.
func (d *Deliverer) publish() {
	var points []Marker
	d.stats.Queued = 0
	for _, q := range d.queues {
		points = append(points, q.points...)
		if d.grafana != nil {
			d.stats.Queued += q.waiting()
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.publishedStats, d.publishedPoints = d.stats, points
}

// delivery is one marker being delivered.
type delivery struct {
	queue   *queue
	lock    *os.File
	grafana *Grafana
	marker  Marker
	version string
	verify  bool // it was delivered: only remove duplicates
	// doubtful: Grafana may still carry out a request before this one.
	doubtful bool

	annotation int64
	err        error
	writeErr   error // of the queue file
}

// creating returns a function that records in the queue file that the marker is about to be
// created. A reader of the file then knows that Grafana may create it without answering. A full
// disk does not delay the marker.
func (s *delivery) creating(write func(string, entry) error) func() {
	if s.doubtful {
		return func() {}
	}
	return func() {
		s.writeErr = write(s.queue.path, entry{Creating: &receipt{ID: s.marker.ID, Version: s.version, At: time.Now().UTC()}})
	}
}

// next picks what to send now and takes the lock of its queue; nil if there is nothing to do. The
// newest runs come first, because people are watching them.
func (d *Deliverer) next(now time.Time) *delivery {
	g := d.grafana
	if g == nil || !d.backoff.over(now, g.client.TokenFile()) {
		return nil
	}
	dirs := slices.Sorted(maps.Keys(d.queues))
	for _, dir := range slices.Backward(dirs) {
		q := d.queues[dir]
		if q.due(now) == nil {
			continue
		}
		lock, err := dir.Lock(rundir.MarkersLock, false)
		if err != nil {
			if !errors.Is(err, rundir.ErrLocked) && !errors.Is(err, fs.ErrNotExist) {
				d.complain(q, err)
			}
			continue
		}
		// Another process may have delivered the marker before it released the lock.
		d.refresh(q, true)
		if it := q.due(now); it != nil {
			return &delivery{
				queue: q, lock: lock, grafana: g, marker: it.Marker, version: it.version, verify: it.delivered(), doubtful: it.doubtful,
			}
		}
		lock.Close()
	}
	return nil
}

// finish records how a delivery ended and releases the queue.
func (d *Deliverer) finish(s *delivery, now time.Time) {
	defer s.lock.Close()
	d.sending = nil
	it := s.queue.byID[s.marker.ID]
	if it == nil { // the run was removed meanwhile
		it = &item{}
	}
	if s.writeErr != nil {
		d.complain(s.queue, s.writeErr)
	}
	answer := &receipt{ID: s.marker.ID, Version: s.version, Annotation: s.annotation, At: now.UTC(), Doubtful: s.doubtful && !s.verify}
	if s.err == nil {
		if d.backoff.last != nil {
			d.log.Info("grafana accepts markers again")
		}
		d.backoff = backoff{}
		it.notBefore, it.refusals = time.Time{}, 0
		if !s.verify {
			d.stats.Delivered++
		} else if age := now.Sub(it.receipt.At).Abs(); age < doubtLasts {
			it.notBefore = now.Add(doubtLasts - age) // the file still marks it as doubtful
			return
		}
		d.record(s.queue, entry{Delivered: answer})
		return
	}
	e, ok := errors.AsType[*requestError](s.err)
	if !ok {
		e = newRequestError("deliver", s.err)
	}
	if e.Problem == grafana.Refused {
		d.backoff = backoff{}
		if it.version == s.version { // otherwise new content is waiting
			it.notBefore = now.Add(min(firstRefusedRetry<<min(it.refusals, 10), maxRefusedRetry))
			it.refusals++
		}
		if answer.Reason = e.Error(); !it.refused() {
			d.log.Error("grafana refused a marker", "marker", &s.marker, "run", s.marker.Run, "err", e)
			d.stats.Rejected++
			d.record(s.queue, entry{Rejected: answer})
		}
		return
	}
	if e.ambiguous() {
		it.doubtful = true
		if e.timedOut() {
			it.notBefore, it.refusals = now.Add(settleTime), 0
		}
	}
	d.stats.Retried++
	if d.backoff.add(e, now, s.grafana.client.TokenFile()) {
		args := []any{"url", s.grafana.client.Address(), "err", e}
		if hint := e.hint(); hint != "" {
			args = append(args, "hint", hint)
		}
		d.log.Warn("markers wait for grafana", args...)
	}
}

const (
	minBackoff = time.Second
	maxBackoff = time.Minute
	// maxBackoffRefused is for a refused connection: trying again costs nothing, and markers should
	// appear soon after Grafana starts.
	maxBackoffRefused = 5 * time.Second
)

// backoff delays all deliveries while Grafana can't accept any.
type backoff struct {
	failures int
	until    time.Time
	last     *requestError
	token    time.Time // modification time of the token file when its token was refused
}

// over reports whether it is time for the next attempt. Writing the token file after its token was
// refused ends the wait.
func (b *backoff) over(now time.Time, tokenFile string) bool {
	return !now.Before(b.until) || b.last.Problem == grafana.Unauthorised && !modified(tokenFile).Equal(b.token)
}

// add records a failure and reports whether its kind differs from the previous one's.
func (b *backoff) add(e *requestError, now time.Time, tokenFile string) (isNew bool) {
	isNew = b.last == nil || b.last.Problem != e.Problem || b.last.Status != e.Status
	b.last = e
	limit := maxBackoff
	if e.nothingListens() {
		limit = maxBackoffRefused
	}
	pause := min(minBackoff<<min(b.failures, 10), limit)
	if e.Problem == grafana.Unauthorised {
		pause = maxBackoff // trying more often does not help
		b.token = modified(tokenFile)
	}
	b.until = now.Add(max(pause-rand.N(pause/4+1), e.RetryAfter))
	b.failures++
	return isNew
}

func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
